"""Tables: what the analyzer decided, as Arrow record batches and as files of every format that kcap writes."""
