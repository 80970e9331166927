"""Transactions: what each wrote, how long it stayed open, how it ended."""
