"""Record batches of every message format, and the records in them."""
