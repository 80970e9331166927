"""One capture read in parts: byte ranges, their stitching, the partitioner by flow, stripped segments, the reader of a shard.

In: the bytes of capture files, a range at a time. Out: shards of packets or segments, each with whole connections, and one
reader per shard that gives what a pass over the whole capture gives of these connections. Law: the rows do not depend on how
the files were cut or on how many shards there are. Spark runs these parts as tasks; nothing here knows Spark.
"""
