"""Rows by number are those of the table in one piece."""

import tracemalloc
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.filter.parse import parse
from kcap.table.schema import arrow_schema, choose
from kcap.tui import row_index
from kcap.tui.capture_model import CaptureModel
from kcap.tui.row_index import LEAST, RowIndex, in_order

SCHEMA = arrow_schema("exchanges", choose("exchanges", ["latency_ns", "api", "topics", "tls"]))
ROW = st.fixed_dictionaries({
    "latency_ns": st.one_of(st.none(), st.integers(-5, 5)),
    "api": st.one_of(st.none(), st.sampled_from(["Fetch", "Produce", "ü", ""])),
    "topics": st.one_of(st.none(), st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c,d"])), max_size=3)),
    "tls": st.booleans(),
})  # fmt: skip
PARTS = st.lists(st.lists(ROW, max_size=5), min_size=1, max_size=5)


def rows_of(parts: list[list[dict[str, Any]]]) -> tuple[RowIndex, list[dict[str, Any]]]:
    return RowIndex([pa.RecordBatch.from_pylist(part, SCHEMA) for part in parts], SCHEMA), [
        row for part in parts for row in part
    ]


@given(PARTS, st.data())
def test_taken_rows(parts: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    rows, wanted = rows_of(parts)
    assert len(rows) == len(wanted)
    numbers = data.draw(st.lists(st.integers(0, len(wanted) - 1), max_size=8)) if wanted else []
    taken = rows.take(np.array(numbers, np.int64))
    assert taken.to_pylist() == [wanted[n] for n in numbers]
    assert taken.column(0).num_chunks <= 1, "a page is read column by column"
    with mock.patch.object(row_index, "PAGE_ROWS_MAX", 0):
        assert rows.take(np.array(numbers, np.int64)).equals(taken), "many rows are those of a page too"
    assert rows.table().to_pylist() == wanted
    for number in set(numbers):
        assert rows.row(number) == wanted[number]


@given(PARTS, st.integers(0, 12), st.sampled_from(["api == Fetch", "latency_ns > 0", "topics == a", "!tls", "latency_ns != 1"]))
def test_passing_rows(parts: list[list[dict[str, Any]]], first: int, text: str) -> None:
    """Law: looked at in two goes, and by several threads, it is the same."""
    rows, _ = rows_of(parts)
    tree = parse(text)
    assert tree is not None
    whole = rows.passing(tree).tolist()
    assert rows.passing(tree, first).tolist() == [n for n in whole if n >= first]
    released: list[int] = []
    mapped = RowIndex(rows.batches, SCHEMA, release=lambda: released.append(1))
    with mock.patch.multiple(row_index, FILTER_THREADS_LEAST_ROWS=0, MAPPED_BATCHES_AT_ONCE=2):
        assert mapped.passing(tree).tolist() == whole
        assert released or not whole
        assert rows.passing(tree, first).tolist() == [n for n in whole if n >= first]


@given(PARTS)
def test_keys_sort_as_values_do(parts: list[list[dict[str, Any]]]) -> None:
    rows, wanted = rows_of(parts)

    def reported(value: Any) -> tuple[bool, Any]:
        joined = ",".join(entry or "" for entry in value) if isinstance(value, list) else value
        return (value is not None, joined if value is not None else 0)

    for name in ("latency_ns", "api", "topics", "tls"):
        order = np.argsort(rows.keys(name), kind="stable").tolist()
        assert order == sorted(range(len(wanted)), key=lambda at: reported(wanted[at][name]))


@given(PARTS, st.data())
def test_keys_of_some_rows(parts: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    """Law: the keys of some rows sort as these rows do among all; no other row of a batch is looked at."""
    rows, wanted = rows_of(parts)
    some = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(wanted)))) if wanted else st.just(set()))), np.int64)
    for name in ("latency_ns", "api", "topics", "tls"):
        whole, found = rows.keys(name)[some], rows.keys(name, some)
        assert np.argsort(found, kind="stable").tolist() == np.argsort(whole, kind="stable").tolist()


@given(st.lists(st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.just(LEAST))), st.booleans())
def test_places_in_order(keys: list[int], descending: bool) -> None:
    """Law: the order is that of a stable sort, of keys near each other and far apart; keys that stand in order need none."""
    wanted = sorted(range(len(keys)), key=lambda at: -keys[at] if descending else keys[at])
    found = in_order(np.array(keys, np.int64), descending=descending)
    assert (found.tolist() if found is not None else list(range(len(keys)))) == wanted
    assert (found is None) == (wanted == list(range(len(keys))))


def test_sorting_takes_no_array_beside_the_keys() -> None:
    """Sorting a million rows takes the keys, half as much for the places, and little else."""
    keys = np.random.default_rng(1).integers(0, 10**9, 1 << 20)
    tracemalloc.start()
    try:
        found = in_order(keys)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None
    assert found.nbytes == keys.nbytes // 2
    assert peak < 0.8 * keys.nbytes


def test_an_exchange_is_found(book: CaptureModel) -> None:
    rows = book.snapshot()
    for number in range(0, len(rows), 7):
        row = rows.row(number)
        assert rows.find(row["connection"], row["exchange"]) == number
    assert rows.find("C", 1) == -1


@given(PARTS, st.integers(0, 20))
def test_rows_keep_their_numbers_when_the_first_ones_are_dropped(parts: list[list[dict[str, Any]]], most: int) -> None:
    whole, wanted = rows_of(parts)
    rows = whole.latest(most)
    numbers = rows.numbers
    assert len(numbers) >= min(most, len(wanted))
    assert len(rows) == len(whole)
    assert rows.take(numbers).to_pylist() == wanted[rows.first :]
    assert [rows.holds(number) for number in (rows.first - 1, rows.first, len(rows))] == [False, rows.first < len(rows), False]
    tree = parse("api == Fetch")
    assert tree is not None
    assert rows.passing(tree).tolist() == [number for number in whole.passing(tree).tolist() if number >= rows.first]
    assert rows.keys("latency_ns", numbers).tolist() == whole.keys("latency_ns")[rows.first :].tolist()
    assert rows.latest(len(rows) - rows.first).first == rows.first


def test_batches_that_were_looked_at_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of mapped rows some batches at a time are memory of the process, whatever looks at all of them."""
    monkeypatch.setattr(row_index, "MAPPED_BATCHES_AT_ONCE", 2)
    batches = [
        pa.RecordBatch.from_pylist([{"text": "a", "number": at}], pa.schema([("text", pa.string()), ("number", pa.int64())]))
        for at in range(5)
    ]
    released: list[int] = []
    rows = RowIndex(batches, batches[0].schema, release=lambda: released.append(1))
    seen = [(start, len(released)) for start, _ in rows.scan()]
    assert seen == [(at, at // 2) for at in range(5)]
    assert len(released) == 3, "the last one too"
    assert [start for start, _ in rows.latest(2).scan()] == [3, 4]
    assert len(released) == 4
    assert rows.least("number") == 0
    assert len(released) == 7
    assert [rows.keys(name).tolist() for name in ("number", "text")] == [list(range(5)), [0] * 5]
    assert len(released) == 13
