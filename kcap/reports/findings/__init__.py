"""Findings: what is wrong in a capture, who is concerned, since when, how sure that is, and what to do about it.

In: the tables `exchanges`, `partitions`, `connections` and `brokers` as Ibis expressions (DuckDB here, Spark at scale). Out:
findings in the order of what they cost. Law: a rule is a function of the tables and its thresholds; it accuses none beyond
the evidence, which stands beside it as numbers and as a display filter, with what else could explain it. Rules stand in a
module by subject.
"""
