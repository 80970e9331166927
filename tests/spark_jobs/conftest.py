"""A Spark session for the tests of jobs."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from spark_jobs.spark_session import session

    made = session("tests", master="local[2]", sql_shuffle_partitions="2", driver_extraJavaOptions="-XX:TieredStopAtLevel=1")
    yield made
    made.stop()
