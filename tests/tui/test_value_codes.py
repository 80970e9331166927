"""Filters by the numbers of values pass the rows that they pass without them."""

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.filter.parse import parse
from kcap.table.schema import arrow_schema
from kcap.table.schema import columns_of as declared
from kcap.tui import value_codes
from kcap.tui.row_index import RowIndex
from kcap.tui.spill import main_path
from kcap.tui.value_codes import CODES, NUMBERED, UNFINISHED, VALUES, ValueCodes, write_codes

TEXT = st.one_of(st.none(), st.sampled_from(["", "a", "b,c", "ü"]))
ROWS = st.lists(
    st.fixed_dictionaries({
        "client_id": TEXT,
        "request_bytes": st.integers(0, 3),
        "topics": st.one_of(st.none(), st.lists(TEXT, max_size=3)),
    }),
    max_size=6,
)  # fmt: skip
NAMES = [*dict.fromkeys((*NUMBERED, "request_bytes", "cluster_id"))]
SCHEMA = arrow_schema("exchanges", [declared("exchanges")[name] for name in NAMES])
FILTERS = (
    'client_id == "a"', "client_id", 'topic contains "c"', 'all topic != "a"', "!topic", "count(topics) > 1",
    'client_id == "a" || request_bytes > 1', "error != NONE", "request_bytes == 1",
)  # fmt: skip


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def codes_of(folder: Path, batches: list[pa.RecordBatch]) -> ValueCodes:
    write_codes(str(folder), batches, lambda: None)
    return ValueCodes(str(folder))


@given(st.lists(ROWS, max_size=4), st.integers(0, 9), st.sampled_from([2, 4, 1 << 16]))
def test_filters_pass_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[dict[str, Any]]], first: int, most: int
) -> None:
    """Law: whatever the values, from any row on, and where some columns have too many values."""
    batches = [batch_of(rows) for rows in parts]
    with mock.patch.object(value_codes, "NUMBERED_VALUES_MAX", most):
        coded = codes_of(tmp_path_factory.mktemp("codes"), batches)
    with_codes, without = RowIndex(batches, SCHEMA, coded=coded), RowIndex(batches, SCHEMA)
    for text in FILTERS:
        tree = parse(text)
        assert tree is not None
        assert with_codes.passing(tree, first).tolist() == without.passing(tree, first).tolist(), text
    assert coded.values is not None


def test_each_value_has_a_number_once(tmp_path: Path) -> None:
    rows = [{"client_id": "a", "topics": ["x", None]}, {"client_id": None, "topics": []}, {"topics": None}]
    batches = [batch_of(rows), batch_of(rows[::-1])]
    coded = codes_of(tmp_path, batches)
    ids, topics = (part.column(name).to_pylist() for part in coded.codes()[:1] for name in ("client_id", "topics"))
    assert ids[1] == ids[2] != ids[0]
    assert len(set(topics)) == 3
    assert [part.column("topics").to_pylist() for part in coded.codes()] == [topics, topics[::-1]]
    assert not (tmp_path / f"{UNFINISHED}.arrow").exists()


@pytest.mark.parametrize("bound", ["NUMBERED_VALUES_MAX", "NUMBERED_BYTES_MAX"])
def test_a_column_with_too_many_values_has_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(value_codes, bound, 20)
    coded = codes_of(tmp_path, [batch_of([{"client_id": f"{n:02}", "topics": ["a"], "error": "NONE"} for n in range(21)])])
    assert len(coded.codes()) == 1
    assert coded.values is not None
    assert coded.values.has(["topics", "error"])
    assert not coded.values.has(["client_id"])


def test_there_are_no_numbers_before_all_were_made(tmp_path: Path) -> None:
    coded = codes_of(tmp_path, [batch_of([{"client_id": "a"}])])
    whole = Path(main_path(str(tmp_path), CODES))
    whole.rename(main_path(str(tmp_path), UNFINISHED))
    assert Path(main_path(str(tmp_path), VALUES)).exists()
    assert coded.codes() == []
    whole.with_name(f"{UNFINISHED}.arrow").rename(whole)
    assert len(coded.codes()) == 1
