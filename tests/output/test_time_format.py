"""Times as they are wanted: the same instants, whichever way they are told."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.output.time_format import CLOCKS, SECONDS, by_second, timed, timed_schema

KIND = pa.timestamp("us", "UTC")
START = 1_795_245_000_000_001
TIMES = st.lists(st.integers(START, START + 10**12), min_size=1, max_size=20)


def batches(times: list[int], size: int) -> list[pa.RecordBatch]:
    rows = [pa.array(times[at : at + size], pa.int64()).cast(KIND) for at in range(0, len(times), size)]
    return [pa.RecordBatch.from_arrays([pa.array(range(len(some))), some], names=["n", "time"]) for some in rows]


def read(times: list[int], clock: str, size: int = 3) -> list[object]:
    made = list(timed(batches(times, size), clock, lambda: START * 1000))
    for batch in made:
        assert batch.schema.field("time").type == timed_schema(batches(times, size)[0].schema, clock).field("time").type
    return [value for batch in made for value in batch.column("time").to_pylist()]


@given(TIMES, st.integers(1, 5))
def test_seconds(times: list[int], size: int) -> None:
    """Law: what was taken away gives the instant back when it is added again."""
    assert [int(value * 10**6) for value in read(times, "epoch", size)] == times
    assert [int(value * 10**6) + START for value in read(times, "relative", size)] == times
    differences = [int(value * 10**6) for value in read(times, "delta", size)]
    assert differences == [0, *(b - a for a, b in pairwise(times))]


def test_words() -> None:
    instant = datetime(2026, 11, 21, 7, 0, 0, 1, UTC)
    micros = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert read([micros], "utc") == [instant]
    (text,) = read([micros], "local")
    assert datetime.fromisoformat(str(text)) == instant
    assert read([micros], "epoch") == [Decimal(micros).scaleb(-6)]


@pytest.mark.parametrize("clock", CLOCKS)
def test_tables_without_times_stay_as_they_are(clock: str) -> None:
    plain = pa.RecordBatch.from_pylist([{"n": 1}])
    assert list(timed([plain], clock, lambda: None)) == [plain]
    assert timed_schema(plain.schema, clock) == plain.schema
    assert SECONDS.scale == 6


def test_seconds_are_those_of_strftime() -> None:
    """Law: also before 1970, over a change of the second, with times out of order."""
    times = [datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 7, tzinfo=UTC)]
    times += [datetime(2026, 3, 2, tzinfo=UTC), times[0] - timedelta(microseconds=999_999)]
    seconds, places, fractions = by_second(pa.array(times, pa.timestamp("us", "UTC")), "%Y-%m-%d %H:%M:%S")
    shown = [f"{seconds[place]}.{fraction:06d}" for place, fraction in zip(places, fractions)]
    assert shown == [f"{time:%Y-%m-%d %H:%M:%S.%f}" for time in times]
    assert len(seconds) == 3
