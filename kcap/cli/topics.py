"""`kcap topics`: who writes and reads which topic: records, bytes, batches, formats, lag."""

from kcap.cli.reports import command

run = command(
    "topics",
    "Who writes and reads which topic: records, bytes, batches, formats, lag.",
    """Who writes and reads which topic: records, bytes, batches, codecs, formats; busiest partitions; groups and their lag.

    FILEs are captures, or Parquet files of kcap rows with those of kcap rows --table partitions.
    """,
)
