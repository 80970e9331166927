"""Two captures made of rows: a client that writes and reads, and what may change about it."""

import atexit
from dataclasses import replace
from functools import cache
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np
from pyarrow.parquet import write_table

from kcap.columns import EXCHANGES
from kcap.reports.diff.report import result, side_of
from kcap.reports.diff.summaries import COLUMNS, Side
from kcap.reports.source import Engine, ReportInput
from tests.reports.made import Row, arrow, exchange, table


def produce(at: int, took: float, **more: Any) -> Row:
    """A Produce of one batch."""
    plain = {
        "api": "Produce", "api_version": 9, "software_name": "java", "software_version": "3.9", "error": "NONE",
        "codecs": ["lz4"], "acks": -1, "topics": ["orders"], "topic_ids": [None], "batch_count": 1, "record_count": 5,
        "records_bytes": 500, "request_bytes": 600, "response_bytes": 60,
    }  # fmt: skip
    return exchange(exchange=at + 1, at_ms=at * 10, took_ms=took, **plain | more)


def capture(seed: int, count: int = 120, slower_ms: float = 0, **more: Any) -> list[Row]:
    """Produce requests with times of an exponential distribution."""
    times = np.random.default_rng(seed).exponential(3, count) + 1 + slower_ms
    return [produce(at, round(float(took), 3), **more) for at, took in enumerate(times)]


NARROW = [column for column in EXCHANGES if column.name in COLUMNS]
MADE: dict[str, Side] = {}


def narrow(rows: list[Row]) -> Any:
    """A table of the columns that a comparison takes."""
    return table(rows, NARROW)


def side(rows: list[Row], name: str = "a.pcap") -> Side:
    """Their summaries, made once: most pairs have a side in common."""
    key = repr((rows, name))
    if key not in MADE:
        with TemporaryDirectory() as folder:
            path = f"{folder}/exchanges.parquet"
            write_table(arrow(rows, NARROW), path)
            MADE[key] = replace(side_of(ReportInput([path]), duckdb()), captures=[name])
    return MADE[key]


@cache
def duckdb() -> Engine:
    """An engine for all sides: starting one takes a fifth of a second."""
    made = Engine(gettempdir())
    atexit.register(made.close)
    return made


def diff(before: list[Row], after: list[Row]) -> Row:
    """The report."""
    return result(side(before, "a.pcap"), side(after, "b.pcap"))


def found(before: list[Row], after: list[Row]) -> list[Row]:
    """The differences."""
    return [row for row in diff(before, after)["rows"] if row["significant"]]
