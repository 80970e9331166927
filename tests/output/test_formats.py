"""A file's name says its format, or the file is not written."""

import os
from pathlib import Path

import pytest

from kcap.errors import UsageError
from kcap.output.formats import ADVICE, FORMATS, SUFFIXES, compression, format_of


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_has_a_format(suffix: str) -> None:
    assert format_of(None, f"out{suffix}") == format_of(None, f"a.b/out{suffix.upper()}") == SUFFIXES[suffix]
    assert SUFFIXES[suffix] in FORMATS


def test_names_that_say_nothing_leave_the_choice() -> None:
    assert [format_of(None, name) for name in (None, "-", "out", ".hidden", "a.csv/out")] == ["table"] * 5
    assert [format_of("csv", name) for name in (None, "-", "out", "out.2026-11-21")] == ["csv"] * 4
    assert format_of("arrow", None) == format_of("arrow", "x.arrows") == format_of("arrow", "x") == "arrow"


def test_arrow_in_a_file_is_the_file_format() -> None:
    assert format_of("arrow", "x.arrow") == format_of("arrow", "x.feather") == format_of(None, "x.arrow") == "feather"
    with pytest.raises(UsageError, match=r"\.arrows says arrow"):
        format_of("feather", "x.arrows")


@pytest.mark.parametrize("name", ["x.csv.gz", "x.tsv.zst", "x.json.gz", "x.ndjson.zst", "x.JSONL.GZ"])
def test_text_may_be_compressed(name: str) -> None:
    assert format_of(None, name) == SUFFIXES["." + name.lower().split(".")[1]]
    assert compression(name) == {"gz": "gzip", "zst": "zstd"}[name.lower().split(".")[2]]
    assert compression("x.csv") is None
    assert format_of("csv", "x.gz") == "csv"


@pytest.mark.parametrize(
    ("form", "name", "said"),
    [
        (None, "x.xlsx", r"write \.csv or \.parquet"),
        ("csv", "x.xlsx", r"write \.csv or \.parquet"),
        (None, "x.foo", r"\.foo is no known suffix; known are \.json"),
        ("csv", "x.parquet", "the format chosen is csv"),
        ("parquet", "x.csv.gz", "the format chosen is parquet"),
        ("table", "x.csv", "the format chosen is table"),
        ("ek", "x.parquet", "the format chosen is ek"),
        (None, "x.parquet.gz", "not compressed as a whole"),
        ("arrow", "x.gz", "not compressed as a whole"),
        (None, "x.gz", "does not say what is compressed"),
        (None, "x.foo.gz", "no known suffix"),
        ("csv", "x.csv.bz2", r"write \.gz or \.zst"),
        ("csv", "x.pcap", "kcap cut"),
    ],
)
def test_names_that_lie_are_refused(form: str | None, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        format_of(form, name)


def test_other_writers_have_other_suffixes() -> None:
    few = {".json": "json"}
    assert format_of(None, "x", few, default="json", text=()) == "json"
    for name in ("x.csv", "x.json.gz", *(f"x{suffix}" for suffix in ADVICE)):
        with pytest.raises(UsageError, match=r"known are \.json$"):
            format_of("json", name, few, text=())


def test_the_name_of_a_pipe_says_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "tmp.Xa81"
    os.mkfifo(pipe)
    assert format_of(None, str(pipe)) == "table"
