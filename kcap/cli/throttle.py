"""`kcap throttle`: who was throttled, for how long, and whether they kept quiet."""

from kcap.cli.reports import command

run = command(
    "throttle",
    "Who was throttled, for how long, and whether they kept quiet.",
    """Who was throttled, for how long, in which way, and whether they kept quiet until the time was over (KIP-219).

    FILEs are captures, or Parquet files of kcap rows.
    """,
)
