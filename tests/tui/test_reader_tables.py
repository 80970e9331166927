"""One pass gives every table that a pass of its own would give."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.output.verdict import no_kafka_sentence
from kcap.tui.capture_model import CaptureModel, read_whole
from kcap.tui.spill import OTHERS, PROFILES
from kcap.tui.versions_source import loaded
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
    found = loaded(os.path.join(book.folder, PROFILES))
    assert len(found.profiles) == len(set(book.exchanges(["connection"])["connection"].to_pylist()))


def test_what_there_is_instead_of_kafka(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes((PCAPS / "aiokafka.pcap").read_bytes()[:24])
    with read_whole(str(empty)) as book:
        assert (book.rows, book.state) == (0, "done")
        assert book.heard.said == no_kafka_sentence(0, Counter()), "in the words of the command line"
