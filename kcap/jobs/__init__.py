"""A capture read by two processes: one analyzes packets while the other makes tables of what was decided."""
