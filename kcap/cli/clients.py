"""`kcap clients`: who the clients are: software, users, groups, what they ask for, write and read."""

from kcap.cli.reports import command

run = command(
    "clients",
    "Who the clients are: software, users, groups, what they ask for, write and read.",
    """Who the clients are: software, users, groups, what they ask for, write and read, what went wrong.

    FILEs are captures, or Parquet files of kcap rows.
    """,
)
