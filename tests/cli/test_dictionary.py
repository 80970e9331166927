"""The dictionary names everything that tables hold, and stands in the documentation as it is printed."""

import subprocess
import sys

import pytest

from kcap.cli import dictionary
from kcap.cli.main import main
from kcap.columns import FLAGS, ON_REQUEST, TABLE_MEANINGS, TABLES
from kcap.filter.fields import fields
from kcap.weird import WeirdKind
from tests.cli.running import ENVIRONMENT, ROOT


def test_every_table_has_a_meaning() -> None:
    assert list(TABLE_MEANINGS) == list(TABLES)
    assert [row[0] for row in dictionary.tables()[1:]] == list(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_every_column_says_when_it_is_null(table: str) -> None:
    declared = (*TABLES[table], *ON_REQUEST.get(table, ()))
    for column, row in zip(declared, dictionary.columns(table)[1:], strict=True):
        name, kind, unit, meaning, null, _ = row
        assert (name, kind, meaning) == (column.name, column.type, column.doc)
        assert (null == "never") != column.nullable
        assert null
        assert unit or not name.endswith(("_ns", "_ms", "bytes"))


def test_the_names_of_wireshark_are_taken_by_filters() -> None:
    names = {alias for row in dictionary.columns("exchanges")[1:] for alias in row[5].split()}
    assert {"kafka.correlation_id", "tcp.port", "frame.time_epoch"} <= names <= fields().keys()


def test_flags_and_oddities_are_all_there() -> None:
    assert tuple(row[0] for row in dictionary.flags()[1:]) == FLAGS == tuple(sorted(FLAGS))
    assert [row[0] for row in dictionary.weirds()[1:]] == [kind.value for kind in WeirdKind]
    assert all(row[1] for row in (*dictionary.flags(), *dictionary.weirds()))


@pytest.mark.parametrize(
    ("words", "first"),
    [(["--tables"], "exchanges"), (["--columns", "records"], "connection"), (["--flags"], "clock"),
     (["--weirds"], "file_truncated")],
)  # fmt: skip
def test_the_command_prints_it(words: list[str], first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", *words]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == first


def test_one_thing_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "fetch", "--flags"]) == 2
    assert main(["schema", "--columns", "exchanges", "--weirds"]) == 2
    assert "one thing at a time" in capsys.readouterr().err


def test_the_page_is_what_the_declarations_say() -> None:
    words = [sys.executable, "docs/tables_page.py", "--check"]
    assert subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, check=False).returncode == 0
