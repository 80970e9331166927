"""Filters over tables: DuckDB passes the rows that the closure passes."""

from time import process_time
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings

from kcap.errors import UsageError
from kcap.filter.ast import columns_of
from kcap.filter.ibis_filter import predicate
from kcap.filter.parse import parse
from kcap.filter.row_predicate import RowSelector, condition
from kcap.table.schema import TYPES
from kcap.table.schema import columns_of as declared
from tests.filter.samples import SOME, TERMS, Row, filters, rows


def table_of(found: list[Row]) -> pa.Table:
    columns = {name: pa.array([row[name] for row in found], TYPES[declared("exchanges")[name].type]) for name in SOME}
    return pa.table({"row": pa.array(range(len(found)), pa.int64()), **columns})


def by_closure(text: str, found: list[Row]) -> list[int]:
    tree = parse(text)
    assert tree is not None
    columns: dict[str, list[Any]] = {name: [row[name] for row in found] for name in columns_of(tree)}
    return RowSelector(columns).rows(tree, range(len(found)))


def by_duckdb(text: str, found: list[Row]) -> list[int]:
    table = ibis.memtable(table_of(found))
    passed = table.filter(predicate(parse(text), table)).select("row").to_pyarrow()
    return sorted(passed["row"].to_pylist())


@given(filters(), rows())
@settings(max_examples=40)
def test_duckdb_is_the_closure(text: str, found: list[Row]) -> None:
    """Law: the same rows, whatever the filter and however many nulls."""
    assert by_duckdb(text, found) == by_closure(text, found), text


@pytest.mark.parametrize("text", TERMS)
@given(found=rows())
@settings(max_examples=2)
def test_every_kind_of_condition(text: str, found: list[Row]) -> None:
    """The same for each kind on its own; a row at a time too."""
    wanted = by_closure(text, found)
    assert by_duckdb(text, found) == wanted
    passes = condition(parse(text))
    assert [at for at, row in enumerate(found) if passes(row)] == wanted


def test_decoded_bodies_are_not_in_tables() -> None:
    with pytest.raises(UsageError, match="no decoded bodies"):
        predicate(parse("request.topics.partitions.fetch_offset > 1"), None)


def test_no_filter_passes_all() -> None:
    assert by_duckdb("", [next(iter([dict.fromkeys(SOME) | {"flags": [], "tls": False}]))]) == [0]


def test_conditions_inside_each_other_are_fast() -> None:
    """The deepest that are read: DuckDB took 11 s for negations around each other, and a chain ended in a RecursionError."""
    found: list[Row] = [dict.fromkeys(SOME) | {"api_key": key} for key in range(3)]
    nested = "not (api_key == 1 or " * 45 + "api_key == 2" + ")" * 45
    for text in (nested, " and ".join(["api_key != 1"] * 550), "(api_key == 1 xor " * 90 + "api_key == 2" + ")" * 90):
        start = process_time()
        assert by_duckdb(text, found) == by_closure(text, found)
        assert process_time() - start < 3
