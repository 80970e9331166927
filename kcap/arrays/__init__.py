"""Columns in memory: numpy arrays with validity masks, and their way to Arrow and back. Below facts and tables, which
share it.
"""
