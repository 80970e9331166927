"""Tables: decided exchanges as Arrow record batches, a column at a time, with the tables that stand beside them."""
