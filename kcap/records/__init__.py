"""Record batches of every message format, and what is inside them."""
