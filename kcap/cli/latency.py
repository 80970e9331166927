"""`kcap latency`: how long answers took: percentiles by API, client, broker, topic, time; long polls apart."""

from kcap.cli.reports import command

run = command(
    "latency",
    "How long answers took: percentiles by API, client, broker, topic, time; long polls apart.",
    """How long answers took: percentiles by API or by whatever --by names; where the time went; long polls apart.

    FILEs are captures, or Parquet files of kcap rows. Percentiles are exact. A request that waited for data, as it had asked
    to, is counted and left out; one without an answer is counted with its age.
    """,
)
