"""Sorting in bounded memory."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.errors import UsageError
from kcap.output.sorting import Key, sort, sort_keys

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.int64())])
rows = st.lists(st.tuples(st.one_of(st.none(), st.integers(-3, 3)), st.sampled_from([None, "x", "y"])), max_size=60)


@given(rows, st.integers(1, 9), st.integers(1, 20), st.sampled_from(["ascending", "descending"]), st.booleans())
def test_sorted_whatever_the_runs(
    values: list[tuple[int | None, str | None]], size: int, at_once: int, order: str, both: bool
) -> None:
    """Law: Python's own stable sort with null last, however many rows are held at once and however they come."""
    whole = [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate(values)]
    batches = [pa.RecordBatch.from_pylist(whole[at : at + size], SCHEMA) for at in range(0, len(whole), size)]
    keys: list[Key] = [("a", order), *([("b", "ascending")] if both else [])]
    found = [row for batch in sort(batches, keys, at_once) for row in batch.to_pylist()]
    wanted = sorted(whole, key=lambda row: (row["b"] is None, row["b"] or "")) if both else whole
    sign = -1 if order == "descending" else 1
    wanted = sorted(wanted, key=lambda row: (row["a"] is None, sign * (row["a"] or 0)))
    assert found == wanted


def test_keys_as_they_are_typed() -> None:
    assert sort_keys("exchanges", "-latency_ns, time") == [("latency_ns", "descending"), ("time", "ascending")]
    assert sort_keys("exchanges", "api:desc,api_version:asc") == [("api", "descending"), ("api_version", "ascending")]
    for text, reason in (
        ("latency", "did you mean"),
        ("topics", "no order"),
        ("api:up", "asc or desc"),
        (" ", "needs a column"),
    ):
        with pytest.raises(UsageError, match=reason):
            sort_keys("exchanges", text)
