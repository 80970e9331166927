"""Columns in memory: numpy arrays with validity masks, and their conversion to and from Arrow. Facts and tables share this
layer, which is below both.
"""
