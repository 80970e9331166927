"""Compares two captures: what changed from one to the other, and what chance alone explains."""
