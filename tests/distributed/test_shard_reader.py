"""Laws of reading a shard: rows equal those of a pass over everything, and reads of blanked bytes are noticed."""

from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

import kcap
from kcap import limits
from kcap.distributed.chunks import StrippedSegments
from kcap.distributed.flow_shards import keys_of_lists
from kcap.distributed.partitioner import PACKETS, REFERENCES, STRIPPED, FlowSet, Partitioner
from kcap.distributed.shard_reader import BlankedReadTracker, ShardReader
from kcap.facts.merge import FactsRecorder, merged, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.identities import Identity
from kcap.limits import STRIPPED_KNOWN
from kcap.model import REF_FILE_SHIFT
from kcap.net.connections import reverse_flow
from kcap.net.tcp import Connection
from kcap.table.backfill import Backfiller
from kcap.table.schema import choose
from kcap.table.side_tables import connection_rows
from tests.laws.test_interleaved import capture, records
from tests.net.test_tcp import Recorder
from tests.support.messages import began, far_from_a_boundary, metadata, metadata_answer, saved
from tests.support.shared import Shared
from tests.support.tables import ExchangeTable
from tests.support.wire import flow

UP, OTHER = flow(40_000), flow(40_001)


def connection(key: bytes) -> Connection:
    return Connection(key, reverse_flow(key), 1, 0, 1, 24, Recorder())


def stripped(blanked: list[bool], key: bytes = UP) -> StrippedSegments:
    zeros = np.zeros(len(blanked), np.int64)
    return StrippedSegments(np.zeros((7, len(blanked)), np.int64), zeros, [key], np.array(blanked), key)


def named(blanked_reads: BlankedReadTracker) -> list[int]:
    return np.frombuffer(blanked_reads.flows, np.int64).tolist()


def test_a_search_in_blanked_bytes() -> None:
    """Law: a flow is named where a packet was looked at of which something is blank, and only there."""
    blanked_reads = BlankedReadTracker()
    blanked_reads.blanked(1, np.array([5, 6, 9]), stripped([True, False, True]))
    base = 1 << REF_FILE_SHIFT
    for ref in (base + 6, base + 7, 5):
        blanked_reads.searched(ref, connection(UP))
    blanked_reads.searched(base + 5, connection(OTHER))
    assert named(blanked_reads) == []
    blanked_reads.searched(base + 9, connection(reverse_flow(UP)))
    assert named(blanked_reads) == keys_of_lists([UP]).tolist()


def test_what_is_not_remembered_counts_as_blanked() -> None:
    blanked_reads = BlankedReadTracker()
    for at in range(STRIPPED_KNOWN + 1):
        blanked_reads.blanked(0, np.array([10 * at + 1, 10 * at + 2]), stripped([True, False]))
    blanked_reads.searched(12, connection(UP))
    blanked_reads.searched(3, connection(OTHER))
    assert named(blanked_reads) == []
    blanked_reads.searched(1, connection(UP))
    assert named(blanked_reads) == keys_of_lists([UP]).tolist()


@pytest.mark.parametrize("blank", [False, True])
def test_a_log_that_was_read(blank: bool) -> None:
    """A connection on which KRaft's log was read is named where something of it is blank."""
    blanked_reads = BlankedReadTracker()
    blanked_reads.blanked(0, np.array([1]), stripped([blank], reverse_flow(UP)))
    blanked_reads.read_logs(
        [Identity("C1", "10.0.0.1", 40_000, "10.0.0.2", 9092), Identity("C2", "10.0.0.1", 40_001, "10.0.0.2", 9092)]
    )
    assert named(blanked_reads) == (keys_of_lists([UP]).tolist() if blank else [])


SINGLE = (
    "aiokafka.pcap", "any-interface.pcap", "broker-paused.pcap", "cluster-startup.pcap", "fallback-0.9.pcap",
    "java-transactions.pcap", "kafka-0.8-clients.pcap", "librdkafka-zstd.pcap", "old-java-new-broker.pcap", "pipelined.pcap",
    "quota-0.10.pcap", "raw-frames.pcap", "sasl-raw-tokens.pcap", "tls13.pcapng",
)  # fmt: skip
ROTATED = ("rotated.pcap2", "rotated.pcap", "rotated.pcap1")
COLUMNS = choose("exchanges", None)


def reported(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def exchanges(shared: Shared) -> list[dict[str, Any]]:
    """Rows of all shards, looked at again with what all of them learned; what was blanked and looked at is read as it is."""
    batches, facts, unstripped = read(shared.in_shards())
    if unstripped:
        shared.reread_unstripped(unstripped)
        batches, facts, again = read(shared.in_shards())
        assert again == b""
    here = read(shared.read_local())
    fill = Backfiller(tracker_of(merged([*facts, *here[1]])))
    return [row for batch in [*batches, *here[0]] for row in fill(batch).to_pylist()]


def read(readers: Iterable[ShardReader]) -> tuple[list[Any], list[Any], bytes]:
    """Rows, what was learned, and the flows of which blanked bytes were looked at."""
    batches, facts, flows = [], [], set[int]()
    for reader in readers:
        tracker = MetadataTracker()
        recorder, table = FactsRecorder(tracker), ExchangeTable(COLUMNS, reader.capture_files, tracker)
        for batch in reader.batches():
            if len(batch):
                batches.append(table.turn(batch))
                recorder.observed(batch)
        facts.append(recorder.close())
        reader.blanked_reads.read_logs(tracker.logs)
        flows.update(np.frombuffer(reader.blanked_reads.flows, np.int64).tolist())
    return batches, facts, np.array(sorted(flows), np.int64).tobytes()


def wanted(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return kcap.open(*paths).exchanges().to_arrow().to_pylist()


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize(("split", "shards", "carries", "edges"), [
    (4096, 5, REFERENCES, False), (1 << 20, 2, PACKETS, False), (30_000, 3, PACKETS, True), (30_000, 3, STRIPPED, True),
])  # fmt: skip
def test_shares_of_a_file_have_the_rows_of_the_file(
    name: str, split: int, shards: int, carries: str, edges: bool, pcaps: Path
) -> None:
    """Law: ranges, shards, and what travels, packets or references, of all connections or of some, change no row."""
    shared = Shared([pcaps / name], split, shards, carries=carries, edges=edges)
    assert reported(exchanges(shared)) == reported(wanted([pcaps / name]))


@pytest.mark.parametrize(("split", "shards"), [(1024, 1), (7000, 3), (30_000, 64)])
def test_a_rotated_set_in_any_order_is_one_capture(split: int, shards: int, pcaps: Path) -> None:
    """Law: connections go from file to file; packet numbers are those of each file."""
    paths = [pcaps / name for name in ROTATED]
    assert reported(exchanges(Shared(paths, split, shards))) == reported(wanted(sorted(paths)))


def test_files_at_the_same_time_are_merged(pcaps: Path) -> None:
    """Law: packets of files that overlap in time come in the order of their times."""
    paths = [pcaps / name for name in ("quota-3.9.pcap", "quota-0.10.pcap", "pipelined.pcap")]
    assert reported(exchanges(Shared(paths, 20_000, 4))) == reported(wanted(paths))


def test_the_compiled_parts_give_the_same(pcaps: Path) -> None:
    """Law: with the fast path a shard has the same rows."""
    path = pcaps / "go-franz.pcap"
    shared = Shared([path], 50_000, 2, jit_after=0, large=True)
    assert reported(exchanges(shared)) == reported(wanted([path]))


def test_connections_of_one_range_are_read_there(pcaps: Path) -> None:
    """Law: of each connection all packets are read in one place: in its range where it lies in one, else in its shard."""
    path = pcaps / "cluster-startup.pcap"
    shared = Shared([path], 30_000, 3, edges=True)
    partitioned = sum(len(chunk) for chunks in shared.chunks.values() for _, chunk in chunks)
    here = 0
    for unit in shared.stitched.positions:
        partitioner = Partitioner(
            *shared.task(shared.verified_range(unit), flows=FlowSet(shared.several, listed=False), read_local=True)
        )
        here += sum(len(chunk) for _, chunk in partitioner.chunks())
    assert partitioned > 0
    assert here > 0
    assert partitioned + here == sum(len(chunk) for chunks in Shared([path], 30_000, 3).chunks.values() for _, chunk in chunks)
    assert 8 < len(shared.several) < sum(len(summary.flows) for summary in shared.summaries.values())


def fragmented(path: Path, out: Path) -> Path:
    """The capture with every datagram of more than 500 bytes in two pieces, the second one first."""
    with path.open("rb") as file, out.open("wb") as made:
        reader = dpkt.pcap.Reader(file)
        writer = dpkt.pcap.Writer(made, snaplen=1 << 18, linktype=reader.datalink())
        for time, data in reader:
            frame = dpkt.ethernet.Ethernet(data)
            payload = bytes(frame.data.data)
            if len(payload) <= 500:
                writer.writepkt(data, time)
                continue
            for offset, some, more in ((496 // 8, payload[496:], 0), (0, payload[:496], 1)):  # in units of 8 bytes
                piece = copy(frame.data)
                piece.offset, piece.mf, piece.df, piece.data, piece.len, piece.sum = offset, more, 0, some, 20 + len(some), 0
                writer.writepkt(data[:14] + bytes(piece), time)
    return out


def test_fragments_may_be_of_any_connection(pcaps: Path, tmp_path: Path) -> None:
    """A capture with fragments is partitioned as a whole: a fragment alone does not show its flow."""
    path = fragmented(pcaps / "quota-3.9.pcap", tmp_path / "fragmented.pcap")
    shared = Shared([path], 30_000, 3, edges=True)
    assert shared.stitched.fragments > 4
    assert not shared.edges
    assert reported(exchanges(shared)) == reported(wanted([path]))
    assert len(wanted([path])) == len(wanted([pcaps / "quota-3.9.pcap"]))


def test_blanked_bytes_that_were_looked_at_come_as_they_are(tmp_path: Path) -> None:
    """A search for a frame boundary that goes on into blanked records: the connection is read again with its packets."""
    path = far_from_a_boundary(tmp_path / "far.pcap")
    shared = Shared([path], 60_000, 2, carries=STRIPPED, edges=True)
    assert reported(exchanges(shared)) == reported(wanted([path]))
    assert len(shared.unstripped) == 8
    assert len(wanted([path])) == 9 + 8


@pytest.mark.parametrize("edges", [False, True])
def test_connections_have_their_turns(edges: bool, pcaps: Path) -> None:
    """Law: connections in the order of their turns have the numbers that one reading gives them."""
    path = pcaps / "cluster-startup.pcap"
    found = []
    for reader in Shared([path], 9000, 4, edges=edges).readers():
        reader.keep_connections = True
        for _ in reader.batches():
            pass
        rows = connection_rows(reader.connections, reader.capture_files)
        found += [(reader.turn(closed), row) for closed, row in zip(reader.connections, rows, strict=True)]
    found.sort(key=lambda one: one[0])
    mine = [row | {"number": number} for number, (_, row) in enumerate(found, 1)]
    names = [column.name for column in choose("connections", None) if column.name in mine[0]]
    every = kcap.open(path).connections(names).to_arrow().to_pylist()
    assert reported([{name: row[name] for name in names} for row in mine]) == reported(every)


def test_silent_connections_end_at_the_same_time(tmp_path: Path) -> None:
    """Law: when a connection that fell silent is over does not depend on who else sends: age and end are those of the whole."""
    hour = 3600 * 10**9
    stories = [began(40_000 + at, time_ns=10**9 + at * 7 * 10**9) for at in range(12)]
    for at, story in enumerate(stories):
        story.ask(metadata(1), metadata_answer(1, []))
        story.client(metadata(2))
        if at % 3 == 0:
            story.time_ns += hour + at * 20 * 10**9
            story.server(metadata_answer(2, []))
        if at % 4 == 1:
            story.time_ns += hour // 2
            story.ask(metadata(3), metadata_answer(3, []))
    path = saved(tmp_path / "silent.pcap", *stories)
    columns = ["connection", "began", "ended", "last_ns", "exchanges"]
    for shards in (1, 3, 12):
        shared = Shared([path], 2000, shards)
        assert reported(exchanges(shared)) == reported(wanted([path]))
        ends = []
        for reader in Shared([path], 2000, shards).readers():
            reader.keep_connections = True
            for _ in reader.batches():
                pass
            rows = connection_rows(reader.connections, reader.capture_files)
            ends += [{name: row[name] for name in columns} for row in rows]
        assert reported(ends) == reported(kcap.open(path).connections(columns).to_arrow().to_pylist())
        assert {row["ended"] for row in ends} >= {"idle", "open"}


@pytest.mark.parametrize(("shards", "carries"), [(1, PACKETS), (3, STRIPPED)])
def test_unfinished_frames_have_room_in_each_shard(
    shards: int, carries: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: the bound of unfinished frames counts those of a shard, and changes no row."""
    path = capture(tmp_path / "together.pcap", records, "fetch", together=True)
    rows = reported(wanted([path]))
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 100_000)
    assert reported(exchanges(Shared([path], 100_000, shards, carries=carries))) == rows


def test_large_messages_are_read_again(pcaps: Path) -> None:
    """Law: a request that is asked for comes from the file, as it does for one reading."""
    path = pcaps / "librdkafka-zstd.pcap"
    shared = Shared([path], 8192, 2)
    seen = 0
    for reader in shared.readers():
        for batch in reader.batches():
            for at, row in enumerate(batch.rows):
                message = reader.message(batch, at, "request")
                if row[2] is not None:
                    assert message is not None
                    assert message.header.correlation_id == row[4]
                    seen += 1
    assert seen > 50
