"""`kcap errors`: errors by code, API and client; of partitions; retries, and what came of lost leaders."""

from kcap.cli.reports import command

run = command(
    "errors",
    "Errors by code, API and client; of partitions; retries, and what came of lost leaders.",
    """Errors by code, API and client, of single partitions with --by topic,partition; beside them what was never
    answered, what was tried again, and how lost leaders were found.

    FILEs are captures, or Parquet files of kcap rows, those of --table partitions beside them.
    """,
)
