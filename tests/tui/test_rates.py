"""Rates of the last seconds."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from rich.cells import cell_len

from kcap.tui.rates import LEAST, SECONDS, Rates
from kcap.tui.row_index import RowIndex

START = 1_700_000_000


def index(*rows: tuple[float, int | None, str | None, int]) -> RowIndex:
    """Rows of: seconds, latency in ns, error, long poll in ns."""
    made: dict[str, list[Any]] = {
        "time": [datetime.fromtimestamp(START + at, UTC) for at, *_ in rows],
        "latency_ns": [latency for _, latency, *_ in rows],
        "error": [error for _, _, error, _ in rows],
        "long_poll_ns": [poll for *_, poll in rows],
        "request_bytes": [100] * len(rows),
        "response_bytes": [None] * len(rows),
        "outcome": ["answered"] * len(rows),
    }
    batch = pa.record_batch(made, schema=pa.schema([
        ("time", pa.timestamp("us", "UTC")), ("latency_ns", pa.int64()), ("error", pa.string()), ("long_poll_ns", pa.int64()),
        ("request_bytes", pa.int64()), ("response_bytes", pa.int64()), ("outcome", pa.string()),
    ]))  # fmt: skip
    return RowIndex([batch], batch.schema)


class Clock:
    """A clock that is set."""

    now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def test_each_exchange_counts_once_in_its_second_and_long_polls_are_not_slow() -> None:
    rates = Rates(Clock())
    rows = index((0.0, 5, None, 0), (0.9, 9, "NOT_LEADER_OR_FOLLOWER", 0), (1.5, 700, "NONE", 600), (2.0, None, None, 0))
    rates.take(rows)
    rates.take(rows)
    counted = [(one.exchanges, one.failed, one.size, one.slowest_ns) for one in rates.last(3)]
    assert counted == [(0, 0, 0, 0), (2, 1, 200, 9), (1, 0, 100, 0)], "the second that goes on is not complete"


def test_rates_fall_to_zero_when_nothing_passes_any_more() -> None:
    clock = Clock()
    rates = Rates(clock)
    rates.take(index((0.0, 5, None, 0)))
    clock.now += 3
    assert [one.exchanges for one in rates.last(3)] == [1, 0, 0]


def test_memory_holds_the_last_seconds_alone() -> None:
    rates = Rates(Clock())
    rates.take(index(*((float(at), 1, None, 0) for at in range(5 * SECONDS))))
    assert len(rates._seconds) == SECONDS
    assert all(one.exchanges == 1 for one in rates.last(SECONDS - 1))


@pytest.mark.parametrize("width", range(30, 251, 20))
def test_the_line_fits_and_gives_up_its_last_values_first(width: int) -> None:
    rates = Rates(Clock())
    assert rates.line(width) == []
    rates.take(index(*((at / 7, 10**6 * (at % 9), "NONE" if at % 5 else "UNKNOWN_SERVER_ERROR", 0) for at in range(300))))
    text = "".join(span for span, _ in rates.line(width))
    assert cell_len(text) <= max(width, 10 + LEAST + 12)
    names = ["exchanges/s", "failed/s", "bytes/s", "slowest"]
    places = [text.find(name) for name in names]
    there = [place for place in places if place >= 0]
    assert there == sorted(there)
    assert all(not (one < 0 <= other) for one, other in pairwise(places))
    assert width < 100 or len(there) == len(names)
