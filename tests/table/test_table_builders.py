"""Laws of the builders: any set of tables of one reading has the rows of readings of their own, whatever their filters."""

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import kcap
from kcap.arrays.arrow import CODED
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.filter.parse import parse
from kcap.table.backfill import Backfill
from kcap.table.builder import Table, TableSet
from kcap.table.schema import choose
from kcap.table.table_builders import BUILDERS, TableRequest, are_only
from tests.table.test_backfill import eager

CAPTURES = ("java-transactions.pcap", "sasl-raw-tokens.pcap", "go-franz.pcap", "quota-3.9.pcap", "cluster-startup.pcap")


def rows_of(requests: dict[str, TableRequest], *paths: Path) -> dict[str, list[dict[str, Any]]]:
    """Tables of one reading, completed."""
    tables, made = TableSet.of(requests), {label: [] for label in requests}  # type: dict[str, list[pa.RecordBatch]]
    tables.begin(kcap.open(*paths).read())
    for label, batch in tables.rows():
        made[label].append(batch)
    finish = {label: tables.finisher(label) for label in requests}
    return {label: [row for batch in made[label] for row in finish[label](batch).to_pylist()] for label in requests}


@pytest.mark.parametrize("name", CAPTURES)
def test_one_reading_gives_every_table_that_a_reading_of_its_own_gives(pcaps: Path, name: str) -> None:
    capture = kcap.open(pcaps / name)
    made = rows_of({table: TableRequest.of(table) for table in TABLES}, pcaps / name)
    for table in TABLES:
        assert made[table] == capture.table(table).to_arrow().to_pylist(), table


@pytest.mark.parametrize("name", CAPTURES)
def test_coded_tables_have_the_same_rows(pcaps: Path, name: str) -> None:
    """Law: that texts are dictionary-encoded changes no row, filtered or not, before and after a backfill."""
    beside = choose("exchanges", ("client_id", "server_ip", "latency_ns", "version_verdict"))
    few = ["connection", "exchange", "topic", "error", "api_key"]
    requests = {
        "exchanges": TableRequest.of("exchanges", only=parse("api != Heartbeat")),
        "partitions": TableRequest.of("partitions", few, only=parse("server_port > 0"), of_exchanges=beside),
    }
    short = {label: replace(request, coded=True) for label, request in requests.items()}
    made = rows_of(short, pcaps / name)
    assert made == rows_of(requests, pcaps / name)
    assert made["exchanges"]
    for request in short.values():
        assert CODED in request.schema.types
        assert pa.string() not in request.schema.types


def test_every_table_has_a_builder() -> None:
    assert BUILDERS.keys() == TABLES.keys()


def test_each_table_of_a_set_has_its_own_filter(pcaps: Path) -> None:
    path = pcaps / "java-transactions.pcap"
    texts = {"all": "", "fetch": "api == Fetch", "late": "broker_id == 2", "deep": "request.acks == -1"}
    requests = {label: TableRequest.of("exchanges", only=parse(text)) for label, text in texts.items()}
    requests["parts"] = TableRequest.of("partitions", ["connection", "exchange", "topic"], only=parse("broker_id == 2"))
    made = rows_of(requests, path)
    for label, text in texts.items():
        assert made[label] == kcap.open(path).filter(text).exchanges().to_arrow().to_pylist(), label
        assert made[label]
    keys = {(row["connection"], row["exchange"]) for row in made["late"]}
    assert {(row["connection"], row["exchange"]) for row in made["parts"]} <= keys
    assert made["parts"]


def test_a_filter_on_another_table_is_an_error() -> None:
    with pytest.raises(UsageError, match="about exchanges"):
        TableRequest.of("brokers", only=parse("api == Fetch"))


@pytest.mark.parametrize("table", ["exchanges", "partitions", "records"])
@pytest.mark.parametrize("name", ["java-transactions.pcap", "go-franz.pcap", "node-platformatic.pcap"])
def test_the_size_of_batches_changes_no_table(pcaps: Path, name: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics that are named by an id alone have their names, whenever these were reported."""

    def order(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["connection"], row["exchange"]

    wanted = sorted(kcap.open(pcaps / name).table(table).to_arrow().to_pylist(), key=order)
    assert wanted
    monkeypatch.setattr("kcap.limits.ROWS_PER_BATCH", 1)
    monkeypatch.setattr("kcap.capture_pass.EAGER_SECONDS", 0)
    assert sorted(kcap.open(pcaps / name).table(table).to_arrow().to_pylist(), key=order) == wanted


def test_a_table_that_needs_no_fact_reads_no_message(pcaps: Path) -> None:
    with patch("kcap.facts.tracker.MetadataTracker._read_tracked", side_effect=AssertionError):
        assert kcap.open(pcaps / "go-franz.pcap").exchanges(["api", "latency_ns", "topics"]).to_arrow().num_rows
        with pytest.raises(AssertionError):
            kcap.open(pcaps / "go-franz.pcap").exchanges(["broker_id"]).to_arrow()


@pytest.mark.parametrize("table", ["exchanges", "partitions"])
def test_rows_wait_only_where_facts_of_the_whole_capture_count(pcaps: Path, table: str) -> None:
    capture = kcap.open(pcaps / "java-transactions.pcap")
    for backfill in (Backfill.AS_KNOWN, Backfill.WAIT):
        reading: Any = eager(capture)
        next(Table(lambda reading=reading: reading, table, backfill=backfill).record_batches())  # type: ignore[misc]
        assert (reading.rows == 110) == (backfill is Backfill.WAIT)


@pytest.mark.parametrize("table", ["exchanges", "partitions", "records"])
def test_bodies_are_freed_when_the_rows_are_made(pcaps: Path, table: str) -> None:
    """Without Python's collector, which runs seldom: a batch's bodies are megabytes."""
    tables, reading = TableSet.of({table: TableRequest.of(table)}), kcap.open(pcaps / "java-transactions.pcap").read()
    tables.begin(reading)
    batch = next(batch for batch in reading.batches() if len(batch))
    arena, alone = batch.bodies.arena, bytearray()
    gc.disable()
    try:
        made = list(tables.take(batch))
        del batch
        assert sys.getrefcount(arena) == sys.getrefcount(alone)
    finally:
        gc.enable()
    assert made


@pytest.mark.parametrize(
    ("owners", "only"), [([], []), ([3], [True]), ([3, 3, 4, 5, 5], [False, False, True, False, False]), ([1, 2], [True, True])]
)
def test_a_row_is_the_only_one_where_its_neighbours_have_other_owners(owners: list[int], only: list[bool]) -> None:
    assert are_only(np.array(owners, np.int64)).tolist() == only
