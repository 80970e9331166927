"""Reports over the tables. Each is written once as Ibis expressions, which DuckDB runs here and Spark runs at scale."""
