"""Reads a capture with two processes: one analyzes packets, the other makes tables of the decided exchanges."""
