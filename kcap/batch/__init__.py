"""Columns of one batch of decided exchanges: its rows, the values of their bodies, and the topics that they name."""
