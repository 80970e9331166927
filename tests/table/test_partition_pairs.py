"""Partitions of requests and responses put side by side."""

import tracemalloc
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap import capture_pass, limits
from kcap.analyzer import RowBatch
from kcap.capture.fileset import FileSet
from kcap.capture_pass import CapturePass
from kcap.columns import PARTITIONS
from kcap.decode.slots import NOTHING
from kcap.kafka import body_batch
from kcap.schema.registry import RESPONSE
from kcap.table import partition_pairs
from kcap.table.partition_pairs import body_start, compiled_pairs, pairs_of
from kcap.table.partitions import LEADER, OF_RECORDS
from tests.fuzz.hostile import CLASSES
from tests.records.batches import batch, record
from tests.support.messages import saved
from tests.support.wire import MS, Tap, metadata, metadata_answer, produce, produce_answer

entries = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-1, 1), st.just(-1), st.integers(0, 1), st.sampled_from([0, 1, 2, NOTHING])),
    max_size=30,
)
"""Exchange, numbers of name, id and group, partition."""


@given(entries, entries)
def test_pairs_are_the_nth_mentions_of_a_partition(requests: list[tuple[int, ...]], responses: list[tuple[int, ...]]) -> None:
    """Law: the kernel and the plain path give the same pairs; every entry with a number is in one; both sides of a pair name
    the same partition as often before; requests come first within an exchange, in their order.
    """
    asked, given_ = sorted(requests, key=lambda entry: entry[0]), sorted(responses, key=lambda entry: entry[0])
    every = [*asked, *given_]
    table = np.array(every, np.int64).reshape(-1, 5)
    rows, keys = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1:].T)
    row, at = pairs_of(rows, len(asked), keys)
    other = compiled_pairs(rows, len(asked), keys)
    assert (row.tolist(), at.tolist()) == (other[0].tolist(), other[1].tolist())
    used = sorted(place for place in at.ravel().tolist() if place >= 0)
    assert used == [place for place, entry in enumerate(every) if entry[-1] != NOTHING]
    for exchange, (request, response) in zip(row.tolist(), at.T.tolist(), strict=True):
        found = [every[place] for place in (request, response) if place >= 0]
        assert {entry[0] for entry in found} == {exchange}
        assert len(set(found)) == 1
        if len(found) == 2:
            assert every[:request].count(found[0]) == every[len(asked) : response].count(found[0])
    places = [
        (one, first < 0, second if first < 0 else first)
        for one, (first, second) in zip(row.tolist(), at.T.tolist(), strict=True)
    ]
    assert places == sorted(places)


def test_programs_read_behind_the_fixed_header() -> None:
    frame = b"\0\1\0\4\0\0\0\7\0\3abcREST"
    assert frame[body_start(frame, 0, 1) :] == b"REST"
    assert body_start(b"\0\1\0\4\0\0\0\7\xff\xff", 0, 2) == 10
    assert body_start(frame, 0, 0) == 8
    assert body_start(frame, 1, None) == 4


@pytest.mark.parametrize("name", ["librdkafka-zstd", "java-transactions", "quota-0.10", "cluster-startup"])
def test_partitions_are_made_a_few_at_a_time(pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Law: how many are made at once changes no row; there are never more than that and those of one exchange."""
    path, columns = str(pcaps / f"{name}.pcap"), [column.name for column in PARTITIONS]
    whole = kcap.open(path).partitions(columns).to_arrow()
    made: list[int] = []
    init = partition_pairs.Pairs.__init__

    def counted(self: partition_pairs.Pairs, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        made.append(len(self) - max(np.bincount(self.row), default=0))

    monkeypatch.setattr(partition_pairs.Pairs, "__init__", counted)
    monkeypatch.setattr(partition_pairs, "PARTITIONS_AT_ONCE", 8)
    assert kcap.open(path).partitions(columns).to_arrow().to_pylist() == whole.to_pylist()
    assert len(made) > 1
    assert max(made) <= 8


def test_bodies_that_the_arena_lacks_are_in_memory_again_so_many_bytes_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: whether they are read again or were carried."""
    taps, records = [], batch(record(0, value=b"v" * 20_000), 1)
    for number in range(20):
        tap = Tap(port=40_000 + number).open().client(metadata(0)).server(metadata_answer(0)).client(produce(1, 1, records))
        tap.time_ns += 1_000 * MS
        taps.append(tap.server(produce_answer(1)))
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 200_000)
    monkeypatch.setattr(limits, "BODIES_BYTES", 20_000)
    monkeypatch.setattr(limits, "FEED_PACKETS", 10)
    monkeypatch.setattr(partition_pairs, "REREAD_AT_ONCE_BYTES", 50_000)
    init, added = partition_pairs.PartitionBodies.__init__, list[int]()

    def measured(self: partition_pairs.PartitionBodies, columns: Any, *args: Any, **named: Any) -> None:
        init(self, columns, *args, **named)
        added.append(len(self.buffer) - len(columns.batch.bodies.arena))

    monkeypatch.setattr(partition_pairs.PartitionBodies, "__init__", measured)
    assert len(kcap.open(str(saved(tmp_path / "late.pcap", *taps))).partitions(sorted(OF_RECORDS)).to_arrow()) == 20
    assert sum(added) >= 20 * 20_000
    assert max(added) <= 50_000 + 2 * 20_000


def test_they_are_put_behind_one_copy_of_the_arena() -> None:
    """Law: those that are read again and those that were carried take no second copy."""
    size, some = 8 << 20, 100_000
    made: Any = object.__new__(partition_pairs.PartitionBodies)
    made.buffer = arena = memoryview(bytes(range(256)) * (size // 256))
    made._length = size
    batch: Any = SimpleNamespace(bodies=SimpleNamespace(arena=arena))
    message: Any = SimpleNamespace(frame=bytes(4) + b"x" * some, header=SimpleNamespace(version=0))
    tracemalloc.start()
    try:
        again = made._read_again(batch, [(some + 8, -1, (0, 0, RESPONSE))], lambda *_: message)
        carried = made._laid([(((0, b"y" * some), (some, b"")), (0, 1, RESPONSE))], arena, None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [again, carried] == [[(size, size + some, 0, 0, RESPONSE)], [(size + some, size + 2 * some, 0, 1, RESPONSE)]]
    assert bytes(made.buffer) == bytes(arena) + b"x" * some + b"y" * some
    assert peak < 1.5 * size


@pytest.mark.parametrize("listed", [False, True], ids=["", "with-leaders"])
@pytest.mark.parametrize("name", ["librdkafka-zstd", "java-transactions", "quota-0.10", "cluster-startup", "raw-frames"])
def test_partitions_are_projected_with_the_batch_or_alone(
    pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str, listed: bool
) -> None:
    """Law: whether the batch was projected with its partitions changes no row, on either path and with small batches, of which
    many bodies are carried from one to the next."""
    pytest.importorskip("kcap.fastpath.engine")  # it takes bounds when it is loaded, which are not to be those of this test
    path = str(pcaps / f"{name}.pcap")
    columns = [column.name for column in PARTITIONS if listed or column.name != LEADER]

    def rows() -> list[dict[str, Any]]:
        return kcap.open(path).partitions(columns).to_arrow().to_pylist()

    first: list[bool] = []
    init = partition_pairs.PartitionBodies.__init__

    def seen(self: partition_pairs.PartitionBodies, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        first.append(len(self._first) > 0)

    monkeypatch.setattr(partition_pairs.PartitionBodies, "__init__", seen)
    together = [rows()]
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 2)
    together.append(rows())
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    monkeypatch.setattr(capture_pass, "FileSet", partial(FileSet, jit_after=0))
    together.append(rows())
    assert any(first)
    first.clear()
    monkeypatch.setattr(body_batch, "PARTITIONS_PROJECTED_MAX", -1)
    assert all(found == rows() for found in together)
    assert not any(first)


@pytest.mark.parametrize("name", ["librdkafka-zstd", "java-transactions", "quota-0.10", "cluster-startup"])
def test_large_bodies_need_not_be_read_again(pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Law: partitions of bodies that passed without being stored are those of bodies that were; excerpts are enough for all
    that is not in the records, and where they are not, the file is read again.
    """
    columns = [column.name for column in PARTITIONS]
    without = [column for column in columns if column not in OF_RECORDS]
    rereads: list[int] = []
    message = CapturePass.message

    def counted(self: CapturePass, batch: RowBatch, at: int, side: str, following: Any = ()) -> Any:
        rereads.append(at)
        return message(self, batch, at, side, following)

    monkeypatch.setattr(CapturePass, "message", counted)
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    monkeypatch.setattr(capture_pass, "FileSet", partial(FileSet, jit_after=0))

    def rows(names: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = kcap.open(pcaps / f"{name}.pcap").table("partitions", names).to_arrow().to_pylist()
        return found

    whole = rows(columns)
    monkeypatch.setattr(limits, "FAST_PATH_LARGE_FROM", 300)
    rereads.clear()
    excerpted: list[int] = []
    plain = partition_pairs.pieces_of

    def seen(values: Any, *, records: bool) -> Any:
        found = plain(values, records=records)
        excerpted.append(found != () and values.passed)
        return found

    monkeypatch.setattr(partition_pairs, "pieces_of", seen)
    assert rows(without) == [{column: row[column] for column in without} for row in whole]
    if name == "quota-0.10":  # only the records of old messages say how many there are
        assert rereads
        assert not any(excerpted)
    else:
        assert any(excerpted)
        assert bool(rereads) == (name == "cluster-startup")  # for the names in the cluster's log
    assert rows(columns) == whole


def test_room_is_made_for_what_came_of_large_messages(tmp_path: Path) -> None:
    """Cut requests of half a gigabyte each, more together than any machine has."""
    path = tmp_path / "announced.pcap"
    path.write_bytes(CLASSES["announced_frames"][0](2_000))
    assert len(kcap.open(str(path)).partitions().to_arrow()) == 0


def test_what_messages_claim_to_be_makes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: for a message of which the first bytes alone were sent no more room is made than for some times these."""
    path, made = tmp_path / "announced.pcap", list[int]()
    path.write_bytes(CLASSES["announced_frames"][0](5))
    init = partition_pairs.Pairs.__init__

    def measured(self: partition_pairs.Pairs, found: partition_pairs.PartitionBodies) -> None:
        made.append(len(found.buffer))
        init(self, found)

    monkeypatch.setattr(partition_pairs.Pairs, "__init__", measured)
    kcap.open(path).partitions([column.name for column in PARTITIONS]).to_arrow()
    assert 0 < max(made) < 100_000
