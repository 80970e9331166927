"""The list as one sees it, without a screen."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.tui import list_model
from kcap.tui.capture_model import CaptureModel, read_whole
from kcap.tui.list_columns import HEADS
from kcap.tui.list_model import ListModel
from kcap.tui.row_index import RowIndex
from kcap.tui.search import Needle, find_in_list
from kcap.tui.timeline import timeline
from tests.tui.conftest import PCAPS


def made(book: CaptureModel, **wishes: Any) -> ListModel:
    view = ListModel(book, **wishes)
    view.install(view.arrange())
    return view


def values(view: ListModel, column: str) -> list[Any]:
    rows = view.arranged
    assert rows is not None
    return [rows.rows.row(rows.number(place))[column] for place in range(len(view))]


@pytest.mark.parametrize("name", ["time", "latency", "client", "call", "result", "about", "flags", "request_bytes", "tls"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("text", ["", "api in {Fetch, Produce}"])
def test_rows_stand_in_the_order_of_a_column(book: CaptureModel, name: str, descending: bool, text: str) -> None:
    """Law: sorted, equals as they were decided, nulls first or last; none is lost."""
    book.narrow(text)
    view = made(book, sort=name, descending=descending)
    found = values(view, HEADS[name].columns[0])
    there = [value if not isinstance(value, list) else ",".join(v or "" for v in value) for value in found if value is not None]
    assert there == sorted(there, reverse=descending)
    nulls = len(found) - len(there)
    assert all(value is None for value in (found[len(there) :] if descending else found[:nulls]))
    numbers = [view.number(place) for place in range(len(view))]
    assert sorted(numbers, key=str) == sorted((n for n in (book.sift().tolist() if text else range(110))), key=str)  # type: ignore[union-attr]
    for (a, one), (b, other) in zip(zip(found, numbers), list(zip(found, numbers))[1:]):
        assert a != b or (one or 0) < (other or 0)


def test_the_cursor_stays_with_its_exchange(book: CaptureModel) -> None:
    view = made(book)
    view.go(40)
    here = view.current
    view.order_by("latency")
    assert view.due
    view.install(view.arrange())
    assert view.descending, "numbers begin with the largest"
    assert view.current == here
    assert not view.due
    book.narrow("api == Fetch")
    view.install(view.arrange())
    assert len(view) == book.passed


@pytest.mark.parametrize("chooses", [False, True])
def test_the_cursor_stays_on_the_first_row_until_an_exchange_is_chosen(monkeypatch: pytest.MonkeyPatch, chooses: bool) -> None:
    """Law: while a capture is read earlier rows come in above, since rows come in the order in which they were decided."""
    whole = read_whole(str(PCAPS / "java-transactions.pcap"))
    try:
        rows, view = whole.snapshot(), ListModel(whole)
        late = int(np.argmax(rows.values("time", rows.numbers)))
        for order, done in (([late], False), (rows.numbers.tolist(), False), (rows.numbers.tolist(), True)):
            monkeypatch.setattr(whole, "done", done)
            arranged = view.arrange()
            by_time = sorted(order, key=lambda number: int(rows.values("time", np.array([number]))[0]))
            view.install(replace(arranged, order=np.array(by_time, np.int32)))
            assert view.current == (late if chooses else by_time[0])
            if chooses:
                view.go(view.cursor)
    finally:
        whole.close()


def test_following_the_end(book: CaptureModel) -> None:
    view = made(book)
    view.follow = True
    view.install(view.arrange())
    assert view.cursor == len(view) - 1
    view.go(view.cursor - 1)
    assert not view.follow, "moving ends it"


def test_marks(book: CaptureModel) -> None:
    view = made(book)
    for place in (3, 9):
        view.go(place)
        view.mark()
    view.go(5)
    assert view.next_mark(1)
    assert view.cursor == 9
    assert not view.next_mark(1)
    assert view.next_mark(-1)
    assert view.cursor == 3
    view.mark()
    assert len(view.marks) == 1


def test_a_row_without_times_of_its_own_has_that_of_the_table_exactly() -> None:
    """A time as a float of seconds would be off by up to 256 ns."""
    row = {"request_first_ns": None, "response_first_ns": None}
    for micros in (1_700_000_000_123_457, 1_700_000_000_999_999):
        when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
        assert [list_model.time_of(row | {"time": time}) for time in (when, micros)] == [micros * 1000] * 2


@given(first=st.integers(0, 109), count=st.integers(0, 30), form=st.sampled_from(["clock", "relative", "delta", "date"]))
def test_a_page_is_part_of_the_whole(java: CaptureModel, first: int, count: int, form: str) -> None:
    """Law: a row looks the same on whatever page it stands, but for the first row's delta."""
    view = made(java, form=form)
    heads = [head for head, _ in view.heads(200)]
    whole = view.page(0, 110, heads)
    assert len(whole) == 110
    page = view.page(first, count, heads)
    assert [cells.texts for cells in page] == [cells.texts for cells in whole[first : first + count]]
    assert [cells.rule for cells in page] == [cells.rule for cells in whole[first : first + count]]


def test_the_row_under_the_cursor_is_read_once(book: CaptureModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the filter of a cell is that of its row, which is read again for another row, other rows or another cell alone, and
    of which no more is read than the cell needs."""
    view, read = made(book), []
    row = RowIndex.row
    monkeypatch.setattr(RowIndex, "row", lambda self, *wanted: read.append(wanted) or row(self, *wanted))
    for move in (0, 0, 1, 0, -1):
        view.go(view.cursor + move)
        number = view.current
        assert view.filter_of(HEADS["call"]) == HEADS["call"].by(row(view.arranged.rows, number))
    assert read == [(number, HEADS["call"].columns) for number in (0, 1, 0)]
    view.install(view.arrange())
    for name, head in HEADS.items():
        assert view.filter_of(head) == (head.by(row(view.arranged.rows, 0)) if head.by is not None else None), name


def test_an_empty_list(tmp_path: Any) -> None:
    (tmp_path / "empty.pcap").write_bytes((PCAPS / "aiokafka.pcap").read_bytes()[:24])
    with read_whole(str(tmp_path / "empty.pcap")) as book:
        view = made(book)
        assert (len(view), view.current, view.page(0, 10, [HEADS["time"]])) == (0, None, [])
        view.go(1)
        view.mark()
        assert view.cursor == 0
        assert not view.marks
        assert view.filter_of(HEADS["call"]) is None


@pytest.mark.parametrize("text", ["", "api in {Fetch, Produce}"])
@pytest.mark.parametrize("sort", ["time", "latency", "client"])
def test_the_latest_rows_alone_are_those_of_the_whole(
    book: CaptureModel, monkeypatch: pytest.MonkeyPatch, sort: str, text: str
) -> None:
    """Law: what a capture that goes on holds of its rows is sorted, filtered, searched and drawn as all of them are."""
    book.narrow(text)
    whole, rows = made(book, sort=sort), book.snapshot()
    parts = [batch.slice(start, 10) for batch in rows.batches for start in range(0, batch.num_rows, 10)]
    latest = RowIndex(parts, rows.schema).latest(40)
    monkeypatch.setattr(book, "_rows", latest)
    view = ListModel(book, sort=sort)
    assert whole.arranged is not None
    view.annotations.mark(rows, 3)
    view.install(view.arrange())
    assert view.arranged is not None
    numbers = [view.number(place) for place in range(len(view))]
    assert numbers == [number for place in range(len(whole)) if (number := whole.number(place)) is not None and number >= 70]
    assert 0 < book.passed == len(view) <= 40 < len(whole)
    assert view.annotations.marks == set(), "notes of rows that are gone go with them"
    heads = [head for head, _ in view.heads(200)]
    shown = {cells.number: cells.texts for cells in whole.page(0, len(whole), heads)}
    assert all(cells.texts[1:] == shown[cells.number][1:] for cells in view.page(0, len(view), heads))
    drawn = timeline(latest, view.arranged.order, 20)
    assert drawn is not None
    assert sum(drawn.counts) == len(view)
    assert find_in_list(view, Needle("Fetch"), 1) is not None
    last = max(view.arranged.order.tolist(), key=lambda number: rows.row(number)["time"])  # type: ignore[union-attr]
    assert view.place_of_time(int(rows.row(last)["time"].timestamp() * 1e6)) == numbers.index(last)


@given(st.data())
def test_rows_that_come_later_are_put_where_arranging_all_puts_them(data: st.DataObject) -> None:
    """Law: the list of a capture that is being read is the list of the same rows read at once, in whatever pieces they came."""
    times = data.draw(st.lists(st.one_of(st.integers(0, 6), st.integers(0, 10**6)), max_size=40))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(times)), max_size=5)))
    passing = data.draw(st.none() | st.sets(st.integers(0, max(len(times) - 1, 0))))
    near = data.draw(st.integers(1, 50))
    schema = pa.schema([pa.field("time", pa.timestamp("us")), pa.field("error", pa.string())])
    whole = pa.RecordBatch.from_arrays([pa.array(times, pa.timestamp("us")), pa.nulls(len(times), pa.string())], schema=schema)

    def rows_until(end: int) -> RowIndex:
        bounds = [0, *(cut for cut in cuts if cut < end), end]
        return RowIndex([whole.slice(start, stop - start) for start, stop in itertools.pairwise(bounds)], schema)

    book: Any = SimpleNamespace(filter_text="" if passing is None else "f", done=False, looking=False)
    growing = ListModel(book)
    for end in [*cuts, len(times)]:
        book.snapshot = partial(rows_until, end)
        held = None if passing is None else np.array(sorted(number for number in passing if number < end), np.int64)
        book.sift = partial(lambda held: held, held)
        with patch.object(list_model, "NEAR", near):
            growing.arranged = growing.arrange()
        at_once = ListModel(book).arrange()
        assert listed(growing.arranged) == listed(at_once)
        assert growing.arranged.first_ns == at_once.first_ns


def listed(made: Any) -> list[int]:
    """Row numbers by place."""
    return [made.number(place) for place in range(len(made))]
