"""Filters over record batches: a column at a time passes what a row at a time does."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kcap
from kcap.arrays.arrow import values
from kcap.filter import row_predicate
from kcap.filter.ast import Compare, columns_of
from kcap.filter.parse import parse
from kcap.filter.row_predicate import RowSelector
from kcap.table import arrow_filter
from kcap.table.arrow_filter import NumberedValues, mask
from kcap.table.schema import TYPES
from kcap.table.schema import columns_of as declared
from tests.conftest import ROOT
from tests.filter.samples import SOME, TERMS, Row, filters, rows

TEXTS = {name for name in SOME if TYPES[declared("exchanges")[name].type] in (pa.string(), pa.list_(pa.string()))}


def batch_of(found: list[Row]) -> pa.RecordBatch:
    columns = {name: pa.array([row[name] for row in found], TYPES[declared("exchanges")[name].type]) for name in SOME}
    return pa.RecordBatch.from_pydict(columns)


def by_closure(text: str, batch: pa.RecordBatch) -> list[int]:
    tree = parse(text)
    assert tree is not None
    columns: dict[str, list[Any]] = {name: values(batch.column(name)) for name in columns_of(tree)}
    return RowSelector(columns).rows(tree, range(batch.num_rows))


@given(filters(), rows())
@settings(max_examples=200)
def test_columns_are_the_closure(text: str, found: list[Row]) -> None:
    """Law: the same rows, whatever the filter and however many nulls; of a part of a batch too."""
    batch = batch_of(found)
    assert mask(parse(text), batch).nonzero()[0].tolist() == by_closure(text, batch), text
    part = batch.slice(1)
    assert mask(parse(text), part).nonzero()[0].tolist() == by_closure(text, part), text


@pytest.mark.parametrize("text", TERMS)
@given(found=rows())
@settings(max_examples=10)
def test_every_kind_of_condition(text: str, found: list[Row]) -> None:
    batch = batch_of(found)
    assert mask(parse(text), batch).nonzero()[0].tolist() == by_closure(text, batch)


def numbered(found: list[Row], names: set[str]) -> tuple[NumberedValues, pa.RecordBatch]:
    """Values of some columns, those of each row being the number of another row with an equal one."""
    texts = [[repr(row[name]) for row in found] for name in sorted(names)]
    codes = [pa.array([column.index(text) for text in column], pa.uint16()) for column in texts]
    return NumberedValues(batch_of(found).select(sorted(names))), pa.RecordBatch.from_arrays(codes, sorted(names))


@given(filters(), rows(), st.sets(st.sampled_from(sorted(TEXTS))))
@settings(max_examples=200)
def test_numbers_of_values_are_the_values(text: str, found: list[Row], names: set[str]) -> None:
    """Law: the same rows where the values of some text columns, and of no others, have numbers; of a part of a batch too."""
    batch = batch_of(found)
    values, codes = numbered(found, names)
    assert mask(parse(text), batch, values, codes).nonzero()[0].tolist() == by_closure(text, batch), text
    part = mask(parse(text), batch.slice(1), values, codes.slice(1))
    assert part.nonzero()[0].tolist() == by_closure(text, batch.slice(1)), text


@pytest.mark.parametrize(
    "text",
    ["ip.addr == 10.0.0.1", "ip.addr", 'all topic contains "o"', 'client_id == "app" && !(topic == "a")', "error != NONE",
     "len(client_id) > 2", "request_bytes > response_bytes || flags"],
)  # fmt: skip
@given(found=rows())
@settings(max_examples=20)
def test_conditions_on_numbered_columns(text: str, found: list[Row]) -> None:
    """Several columns as alternatives, all entries of a list, two columns with each other."""
    batch = batch_of(found)
    assert mask(parse(text), batch, *numbered(found, TEXTS)).nonzero()[0].tolist() == by_closure(text, batch)


def test_rows_whose_values_have_numbers_are_not_looked_at() -> None:
    values = NumberedValues(pa.RecordBatch.from_arrays([pa.array(["app", None, "b"])], ["client_id"]))
    codes = pa.RecordBatch.from_arrays([pa.array([2, 0, 1, 0], pa.uint16())], ["client_id"])
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2, 3, 4], pa.int64())], ["request_bytes"])
    assert mask(parse('client_id contains "p" && request_bytes > 2'), rows, values, codes).tolist() == [
        False,
        False,
        False,
        True,
    ]
    assert mask(parse("!client_id"), rows, values, codes).tolist() == [False, False, True, False]


def test_no_filter_passes_everything() -> None:
    batch = pa.RecordBatch.from_pydict({"exchange": pa.array([1, 2], pa.int64())})
    assert mask(None, batch).tolist() == [True, True]


@pytest.mark.parametrize(
    "text",
    ["api == Fetch", "error != NONE", "latency > 5ms && !long_poll", "topic contains a", "flags", "request_last_packet > 100.5",
     "client_ip in {10.0.0.0/8, 127.0.0.1}", "count(topics) > 1", "request_bytes > response_bytes"],
)  # fmt: skip
def test_real_rows(text: str) -> None:
    table = kcap.open(str(ROOT / "pcaps" / "java-transactions.pcap")).exchanges().to_arrow()
    for batch in table.to_batches():
        assert mask(parse(text), batch).nonzero()[0].tolist() == by_closure(text, batch)


def test_a_text_is_tested_once_however_many_batches_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many texts as are remembered; long ones are not."""
    tested: list[str] = []

    def noted(tree: Any) -> Callable[[Any], bool]:
        test = row_predicate.test_of(tree)
        return lambda text: (tested.append(text), test(text))[1]

    monkeypatch.setattr(arrow_filter, "test_of", noted)
    monkeypatch.setattr(arrow_filter, "TEXTS_TESTED", 2)
    arrow_filter.passing_texts.cache_clear()
    tree, long = parse('client_id contains "p"'), "p" * 300
    assert isinstance(tree, Compare)
    for texts, found in ((["app", "b"], [1, 0]), (["b", "app", "app"], [0, 1, 1]), ([long, long], [1, 1]), (["c"], [0])):
        batch = pa.RecordBatch.from_arrays([pa.array(texts)], ["client_id"])
        assert mask(tree, batch).tolist() == [bool(one) for one in found]
    assert tested == ["app", "b", long, "c"]
    assert len(arrow_filter.passing_texts(tree)) == 1
    arrow_filter.passing_texts.cache_clear()


def test_a_condition_is_not_looked_at_where_the_one_before_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["a", "b"])], ["request_bytes", "client_id"])
    looked: list[str] = []
    entries = arrow_filter._entries
    monkeypatch.setattr(arrow_filter, "_entries", lambda column: (looked.append(str(column.type)), entries(column))[1])
    assert mask(parse('request_bytes > 5 && client_id == "a"'), batch).tolist() == [False, False]
    assert mask(parse('request_bytes > 0 || client_id == "a"'), batch).tolist() == [True, True]
    assert looked == ["int64", "int64"]
    assert mask(parse('request_bytes > 1 || client_id == "a"'), batch).tolist() == [True, True]
    assert mask(parse('request_bytes > 1 && client_id == "a"'), batch).tolist() == [False, False]
    assert looked[2:] == ["int64", "string", "int64", "string"]
