"""Reads one capture in parallel: cuts files into byte ranges, partitions packets by flow into shards, reads each shard.

In: the bytes of capture files, a range at a time. Out: chunks of packets or stripped segments, each of one shard, and one
reader per shard, which gives the exchanges of its connections. Law: the rows do not depend on how the files were cut or on the
number of shards. The stages in order: `ranges` reads a range, `stitching` verifies where ranges begin, `flow_shards` and
`partitioner` give each packet its shard, `stripping` makes chunks small, `chunks` packs them, `shard_reader` reads a shard.
Spark runs these stages as tasks; nothing here imports Spark.
"""
