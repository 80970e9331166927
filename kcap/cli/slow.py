"""`kcap slow`: the slowest exchanges, and why each of them was slow."""

from kcap.cli.reports import command

run = command(
    "slow",
    "The slowest exchanges, and why each of them was slow.",
    """The slowest exchanges, and why: a queue (behind which request), a mute, a throttle, the network, the broker.

    FILEs are captures, or Parquet files of kcap rows.
    """,
)
