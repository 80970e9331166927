"""One pass gives every table that a pass of its own would give."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.output.verdict import no_kafka_sentence
from kcap.reports.findings.live import requests
from kcap.tui import reader_tables
from kcap.tui.capture_model import CaptureModel, read_whole
from kcap.tui.reader_tables import RESOLVED_COLUMNS, ReaderTables
from kcap.tui.spill import OTHERS, PROFILES, RESOLVED, learned, main_path, read_file, unpickled
from kcap.tui.value_codes import NUMBERED, VALUES, ValueCodes
from tests.tui.conftest import PCAPS


@pytest.mark.parametrize("table", OTHERS)
def test_tables_are_those_of_a_pass_of_their_own(book: CaptureModel, table: str) -> None:
    wanted: list[dict[str, Any]] = kcap.open(str(PCAPS / "java-transactions.pcap")).table(table).to_arrow().to_pylist()
    made = book.table(table)
    assert made is not None

    def key(row: dict[str, Any]) -> str:
        return repr(sorted(row.items(), key=repr))

    assert sorted(made.to_pylist(), key=key) == sorted(wanted, key=key)


@pytest.mark.parametrize("name", ["java-transactions.pcap", "cluster-startup.pcap", "quota-3.9.pcap"])
def test_rows_are_those_of_the_table(name: str) -> None:
    """Also in the columns that the end of a capture knows better."""
    with read_whole(str(PCAPS / name)) as book:
        wanted = kcap.open(str(PCAPS / name)).exchanges().to_arrow().to_pylist()
        assert book.exchanges().to_pylist() == wanted


def test_talks_come_along(book: CaptureModel) -> None:
    found = unpickled(os.path.join(book.folder, PROFILES))
    assert len(found.profiles) == len(set(book.exchanges(["connection"])["connection"].to_pylist()))


def test_what_there_is_instead_of_kafka(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes((PCAPS / "aiokafka.pcap").read_bytes()[:24])
    with read_whole(str(empty)) as book:
        assert (book.rows, book.state) == (0, "done")
        assert book.status.said == no_kafka_sentence(0, Counter()), "in the words of the command line"


def test_values_of_a_large_capture_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that the end of a capture knows better; a small one has no numbers."""
    reading = kcap.open(str(PCAPS / "java-transactions.pcap")).read(keep_connections=True)
    tables = ReaderTables(reading, str(tmp_path))
    for batch in reading.batches():
        tables.take(batch)
    mark = tables.finish()
    tables.number_values(mark)
    assert ValueCodes(str(tmp_path)).codes() == []
    monkeypatch.setattr(reader_tables, "NUMBERED_ROWS_LEAST", mark.rows)
    tables.number_values(mark)
    codes = ValueCodes(str(tmp_path))
    rows = list(learned(str(tmp_path), read_file(main_path(str(tmp_path), "exchanges")).to_batches()))
    assert [part.num_rows for part in codes.codes()] == [part.num_rows for part in rows]
    (values,) = read_file(main_path(str(tmp_path), VALUES)).to_batches()
    for name in NUMBERED:
        reported = values.column(name).to_pylist()
        found = [reported[code] for part in codes.codes() for code in part.column(name).to_pylist()]
        assert found == [value for part in rows for value in part.column(name).to_pylist()], name


def test_rules_get_their_rows_while_a_capture_is_read_and_the_end_writes_what_it_knows_better(tmp_path: Path) -> None:
    """Law: the rows of a watch are those that rules get without the screen."""
    path = str(PCAPS / "cluster-startup.pcap")
    seen: dict[str, int] = {}

    class Watching:
        def begin(self, schemas: dict[str, Any]) -> None:
            self.schemas = schemas

        def take(self, label: str, rows: Any) -> None:
            seen[label] = seen.get(label, 0) + rows.num_rows

    reading = kcap.open(path).read(keep_connections=True)
    watch: Any = Watching()
    tables = ReaderTables(reading, str(tmp_path), watch)
    for batch in reading.batches():
        tables.take(batch)
    mark = tables.finish()
    assert watch.schemas.keys() == requests().keys()
    assert seen["exchanges"] == mark.rows
    rows = learned(str(tmp_path), read_file(main_path(str(tmp_path), "exchanges")).to_batches())
    found = [row for part in rows for row in part.select(list(RESOLVED_COLUMNS)).to_pylist()]
    assert found == kcap.open(path).exchanges(list(RESOLVED_COLUMNS)).to_arrow().to_pylist()
    assert os.path.exists(main_path(str(tmp_path), RESOLVED)) == tables.tracker.knows_better()
