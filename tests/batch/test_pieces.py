"""Batches of many topics in pieces."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

import kcap
from kcap.analyzer import RowBatch
from kcap.batch import pieces
from kcap.capture_pass import CapturePass
from kcap.fastpath import layout as at
from kcap.kafka import carried_bodies
from kcap.kafka.bodies import BodyCollector
from tests.fuzz.hostile import CLASSES, Calls, array, string
from tests.kafka.test_waiting_bodies import taken

TABLES = ("exchanges", "partitions", "records", "connections", "topic_names", "brokers", "negotiations", "weirds")


def tables_of(path: Path) -> dict[str, Any]:
    return {name: kcap.open(path).table(name).to_arrow().to_pylist() for name in TABLES}


@pytest.mark.parametrize("most", [0, 3, 40])
@pytest.mark.parametrize("name", ["java-transactions", "go-franz", "quota-0.10", "kafka-0.8-clients", "cluster-startup"])
def test_pieces_change_no_row(pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    """Law: how many topics rows are made of at once changes no table."""
    path = pcaps / f"{name}.pcap"
    whole = tables_of(path)
    made: list[int] = []

    def counted(batch: RowBatch) -> Any:
        found = list(pieces.in_pieces(batch))
        made.append(len(found))
        assert [row for piece in found for row in piece.rows] == batch.rows
        return iter(found)

    monkeypatch.setattr(pieces, "TOPICS_AT_ONCE", max(most, 1))
    monkeypatch.setattr("kcap.capture_pass.in_pieces", counted)
    assert tables_of(path) == whole
    assert max(made) > 1


def test_a_batch_has_few_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: no batch has more topics than so many and those of one row."""
    calls = Calls()
    for number in range(300):
        names = array([string(b"t%d" % (100 * number + at)) for at in range(50)])
        calls.call(3, 0, names, array([]) + array([]))
    path = tmp_path / "dense.pcap"
    path.write_bytes(calls.connection.file())
    monkeypatch.setattr(pieces, "TOPICS_AT_ONCE", 1000)
    reading = CapturePass([str(path)])
    found = [(len(batch), len(batch.bodies.projection.topics[0])) for batch in reading.batches()]
    assert sum(rows for rows, _ in found) == 302
    assert max(topics for _, topics in found) <= 1050


def test_topics_of_messages_that_waited_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: topics that came from another batch, or of a large message, are divided too."""
    path = tmp_path / "named.pcap"
    path.write_bytes(CLASSES["named_ids"][0](100_000))
    monkeypatch.setattr(pieces, "TOPICS_AT_ONCE", 40_000)
    (exchanges,) = (table.to_pylist() for table in [kcap.open(path).exchanges(["topics"]).to_arrow()])
    assert [len(row["topics"] or ()) for row in exchanges] == [0, 0, 50_000, 50_000]
    reading = CapturePass([str(path)])
    reading.patient = True  # whether the end of the capture is a batch of its own would depend on how much time has passed
    assert [len(batch) for batch in reading.batches()] == [2, 1, 1]


def test_a_batch_that_is_whole_goes_with_who_gets_it(pcaps: Path) -> None:
    """Its bodies need not stay in memory until the next one is wanted."""
    batches = CapturePass([str(pcaps / "go-franz.pcap")]).batches()
    reference = ref(next(batches))
    assert reference() is None


def test_topics_of_carried_columns_count(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a batch is cut at the same rows where its requests came with an earlier one."""
    monkeypatch.setattr(carried_bodies, "OVERTAKEN_BODY_BYTES", -1)
    batch, bodies = taken(pcaps / "java-transactions.pcap"), BodyCollector()
    assert batch.fast_rows is not None
    columns = batch.fast_rows.columns.copy()
    slots = columns[at.R_REQUEST_SLOT]
    here = np.flatnonzero((slots >= 0) & (np.asarray(batch.bodies.dense)[np.maximum(slots, 0)] >= 0))
    slots[here] = carried_bodies.carried(bodies, batch.bodies, slots[here])
    changed = replace(batch.bodies, carried=bodies.carried, waiting=bodies.waiting)
    earlier = replace(batch, bodies=changed, fast_rows=replace(batch.fast_rows, columns=columns))
    monkeypatch.setattr(pieces, "TOPICS_AT_ONCE", 3)
    sizes = [[len(piece) for piece in pieces.in_pieces(one)] for one in (batch, earlier)]
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) > 2
