"""Makes the tables: decided exchanges as Arrow record batches, a column at a time, and the other tables of the same pass."""
