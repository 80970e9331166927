"""Two captures made of rows: a client that writes and reads, and what may change about it."""

from typing import Any

import numpy as np

from kcap.columns import EXCHANGES
from kcap.reports.diff.report import result
from kcap.reports.diff.summaries import COLUMNS, Side, summarized
from tests.reports.made import Row, engine, exchange, table


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


MADE: dict[str, Side] = {}


def narrow(rows: list[Row]) -> Any:
    """A table of the columns that a comparison takes."""
    return table(rows, [column for column in EXCHANGES if column.name in COLUMNS])


def side(rows: list[Row], name: str = "a.pcap") -> Side:
    """Their summaries, made once: most pairs have a side in common."""
    key = repr((rows, name))
    if key not in MADE:
        MADE[key] = summarized(engine().rows, narrow(rows), [name])
    return MADE[key]


def diff(before: list[Row], after: list[Row]) -> Row:
    """The report."""
    return result(side(before, "a.pcap"), side(after, "b.pcap"))


def found(before: list[Row], after: list[Row]) -> list[Row]:
    """The differences."""
    return [row for row in diff(before, after)["rows"] if row["significant"]]
