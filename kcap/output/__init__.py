"""Writes rows: every format, the terminal's grid, tshark's fields, folders of Parquet, sorting, atomic files.

In: record batches. Out: bytes in a stream or a file that appears under its name only when it is complete.
"""
