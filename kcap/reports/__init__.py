"""Reports over the tables, each written once as Ibis expressions: DuckDB runs them here, Spark at scale."""
