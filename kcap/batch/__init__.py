"""Columns of one batch of decided exchanges: its rows, what their bodies hold, and the topics they name."""
