"""`kcap stats`: a digest: which requests take the time, with health, totals and the worst of each class."""

from kcap.cli.reports import command

run = command(
    "stats",
    "A digest: which requests take the time, with health, totals and the worst of each class.",
    """A digest: which requests take the time. The capture and its health first, then all exchanges, then classes by share.

    FILEs are captures, or Parquet files of kcap rows (those have no health to tell).
    """,
)
