"""Laws of columns as text: a reader of the format gets the values back."""

import csv
import io
import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.output import text_columns

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LISTS = st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), WORDS), max_size=3)), max_size=6)


@given(st.lists(st.one_of(st.none(), WORDS), max_size=6))
def test_json_strings_come_back(words: list[str | None]) -> None:
    assert [json.loads(text) for text in text_columns.json_column(pa.array(words, pa.string())).to_pylist()] == words


@given(LISTS)
def test_json_lists_come_back(items: list[list[str | None] | None]) -> None:
    column = pa.array(items, pa.list_(pa.string()))
    assert [json.loads(text) for text in text_columns.json_column(column).to_pylist()] == items
    if len(items) > 1:
        assert [json.loads(text) for text in text_columns.json_column(column.slice(1)).to_pylist()] == items[1:], (
            "of a slice too"
        )


ENTRIES = st.fixed_dictionaries(
    {
        "name": st.one_of(st.none(), WORDS),
        'a "key"': st.integers(-9, 9),
        "list": st.lists(WORDS, max_size=2),
        "ok": st.booleans(),
    }
)


@given(st.lists(st.one_of(st.none(), st.lists(ENTRIES, max_size=3)), max_size=5))
def test_json_rows_of_other_tables_come_back(items: list[list[dict[str, object]] | None]) -> None:
    kinds = {"name": pa.string(), 'a "key"': pa.int64(), "list": pa.list_(pa.string()), "ok": pa.bool_()}
    column = pa.array(items, pa.list_(pa.struct(kinds)))
    assert [json.loads(text) for text in text_columns.json_column(column).to_pylist()] == items
    assert [json.loads(text) for text in text_columns.json_column(column.slice(1)).to_pylist()] == items[1:]


@given(st.lists(WORDS.filter(lambda word: "\x00" not in word), min_size=1, max_size=6))
def test_csv_fields_come_back(words: list[str]) -> None:
    line = ",".join(text_columns.csv_column(pa.array(words)).to_pylist())
    assert next(csv.reader(io.StringIO(line, newline=""))) == words


def test_csv_tells_null_from_an_empty_string_and_joins_lists() -> None:
    assert text_columns.csv_column(pa.array(["", None, "a"])).to_pylist() == ['""', "", "a"]
    lists = pa.array([["a", "b"], [], None, [None, 'x"y'], ["p,q"]])
    assert text_columns.csv_column(lists).to_pylist() == ["a;b", "", "", '";x""y"', '"p,q"']
    assert text_columns.csv_column(pa.array([[0, 2], [1]], pa.list_(pa.int8()))).to_pylist() == ["0;2", "1"]


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "1970-01-01T00:00:00.000000Z"), (1_795_246_932_122_282, "2026-11-21T07:42:12.122282Z")]
)
def test_time_is_rfc_3339_with_microseconds(micros: int, text: str) -> None:
    column = pa.array([datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros), None], pa.timestamp("us", "UTC"))
    assert text_columns.json_column(column).to_pylist() == [f'"{text}"', "null"]
    assert text_columns.csv_column(column).to_pylist() == [text, ""]


def test_numbers_truth_and_bytes() -> None:
    assert text_columns.json_column(pa.array([1 << 62, None, -1])).to_pylist() == [str(1 << 62), "null", "-1"]
    assert text_columns.json_column(pa.array([True, False])).to_pylist() == ["true", "false"]
    (blob,) = text_columns.json_column(pa.array([b"\x00\xff"])).to_pylist()
    assert b64decode(json.loads(blob)) == b"\x00\xff"
    assert text_columns.readable_column(pa.array([None, 5])).to_pylist() == ["", "5"]


def test_lines_are_the_parts_of_each_row() -> None:
    made = text_columns.lines(["<", pa.array(["ä", "b"]), ">\n"], 2)
    assert bytes(made) == "<ä>\n<b>\n".encode()
    assert bytes(text_columns.lines(["x\n"], 3)) == b"x\n" * 3
