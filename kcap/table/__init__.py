"""Builds the tables: decided exchanges become Arrow record batches, column by column, beside the other tables of
the same pass.
"""
