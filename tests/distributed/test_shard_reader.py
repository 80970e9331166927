"""Shares of captures tell what one reading of everything tells."""

from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

import kcap
from kcap.distributed.partitioner import NOTHING, PACKETS, STRIPPED, FlowSet, Partitioner
from kcap.distributed.shard_reader import ShardReader
from kcap.facts.merge import FactsRecorder, merged, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.table.backfill import Backfiller
from kcap.table.schema import choose
from kcap.table.side_tables import connection_rows
from tests.support.messages import began, far_from_a_boundary, metadata, metadata_answer, saved
from tests.support.shared import Shared
from tests.support.tables import ExchangeTable

SINGLE = (
    "aiokafka.pcap", "any-interface.pcap", "broker-paused.pcap", "cluster-startup.pcap", "fallback-0.9.pcap",
    "java-transactions.pcap", "kafka-0.8-clients.pcap", "librdkafka-zstd.pcap", "old-java-new-broker.pcap", "pipelined.pcap",
    "quota-0.10.pcap", "raw-frames.pcap", "sasl-raw-tokens.pcap", "tls13.pcapng",
)  # fmt: skip
ROTATED = ("rotated.pcap2", "rotated.pcap", "rotated.pcap1")
COLUMNS = choose("exchanges", None)


def told(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def exchanges(shared: Shared) -> list[dict[str, Any]]:
    """Rows of all shares, looked at again with what all of them learned; what was blanked and looked at is read as it is."""
    batches, facts, doubted = read(shared.in_shares())
    if doubted:
        shared.doubt(doubted)
        batches, facts, again = read(shared.in_shares())
        assert again == b""
    here = read(shared.here())
    fill = Backfiller(tracker_of(merged([*facts, *here[1]])))
    return [row for batch in [*batches, *here[0]] for row in fill(batch).to_pylist()]


def read(portions: Iterable[ShardReader]) -> tuple[list[Any], list[Any], bytes]:
    """Rows, what was learned, and the flows of which blanked bytes were looked at."""
    batches, facts, flows = [], [], set[int]()
    for portion in portions:
        tracker = MetadataTracker()
        witness, table = FactsRecorder(tracker), ExchangeTable(COLUMNS, portion.capture_files, tracker)
        for batch in portion.batches():
            if len(batch):
                batches.append(table.turn(batch))
                witness.observed(batch)
        facts.append(witness.close())
        portion.doubts.read_logs(tracker.logs)
        flows.update(np.frombuffer(portion.doubts.flows, np.int64).tolist())
    return batches, facts, np.array(sorted(flows), np.int64).tobytes()


def wanted(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return kcap.open(*paths).exchanges().to_arrow().to_pylist()


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize(("split", "shares", "carries", "edges"), [
    (4096, 5, NOTHING, False), (1 << 20, 2, PACKETS, False), (30_000, 3, PACKETS, True), (30_000, 3, STRIPPED, True),
])  # fmt: skip
def test_shares_of_a_file_have_the_rows_of_the_file(
    name: str, split: int, shares: int, carries: str, edges: bool, pcaps: Path
) -> None:
    """Law: ranges, shares, and what travels, packets or references, of all connections or of some, change no row."""
    shared = Shared([pcaps / name], split, shares, carries=carries, edges=edges)
    assert told(exchanges(shared)) == told(wanted([pcaps / name]))


@pytest.mark.parametrize(("split", "shares"), [(1024, 1), (7000, 3), (30_000, 64)])
def test_a_rotated_set_in_any_order_is_one_capture(split: int, shares: int, pcaps: Path) -> None:
    """Law: connections go from file to file; packet numbers are those of each file."""
    paths = [pcaps / name for name in ROTATED]
    assert told(exchanges(Shared(paths, split, shares))) == told(wanted(sorted(paths)))


def test_files_at_the_same_time_are_merged(pcaps: Path) -> None:
    """Law: packets of files that overlap in time come in the order of their times."""
    paths = [pcaps / name for name in ("quota-3.9.pcap", "quota-0.10.pcap", "pipelined.pcap")]
    assert told(exchanges(Shared(paths, 20_000, 4))) == told(wanted(paths))


def test_the_compiled_parts_give_the_same(pcaps: Path) -> None:
    """Law: with the fast lane a share has the same rows."""
    path = pcaps / "go-franz.pcap"
    shared = Shared([path], 50_000, 2, jit_after=0, large=True)
    assert told(exchanges(shared)) == told(wanted([path]))


def test_connections_of_one_range_are_read_there(pcaps: Path) -> None:
    """Law: of each connection all packets are read in one place: in its range where it lies in one, else in its share."""
    path = pcaps / "cluster-startup.pcap"
    shared = Shared([path], 30_000, 3, edges=True)
    dealt = sum(len(chunk) for chunks in shared.chunks.values() for _, chunk in chunks)
    here = 0
    for unit in shared.folded.stands:
        dealing = Partitioner(*shared.task(shared.known(unit), flows=FlowSet(shared.several, named=False), here=True))
        here += sum(len(chunk) for _, chunk in dealing.chunks())
    assert dealt > 0
    assert here > 0
    assert dealt + here == sum(len(chunk) for chunks in Shared([path], 30_000, 3).chunks.values() for _, chunk in chunks)
    assert 8 < len(shared.several) < sum(len(account.flows) for account in shared.accounts.values())


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
            for offset, some, more in ((496, payload[496:], 0), (0, payload[:496], 1)):
                piece = copy(frame.data)
                piece.offset, piece.mf, piece.df, piece.data, piece.len, piece.sum = offset, more, 0, some, 20 + len(some), 0
                writer.writepkt(data[:14] + bytes(piece), time)
    return out


def test_fragments_may_be_of_any_connection(pcaps: Path, tmp_path: Path) -> None:
    """A capture with fragments is dealt out as a whole: only who has all of them knows whose they are."""
    path = fragmented(pcaps / "quota-3.9.pcap", tmp_path / "fragmented.pcap")
    shared = Shared([path], 30_000, 3, edges=True)
    assert shared.folded.fragments > 4
    assert not shared.edges
    assert told(exchanges(shared)) == told(wanted([path]))
    assert len(wanted([path])) == len(wanted([pcaps / "quota-3.9.pcap"]))


def test_blanked_bytes_that_were_looked_at_come_as_they_are(tmp_path: Path) -> None:
    """A search for a frame boundary that goes on into blanked records: the connection is read again with its packets."""
    path = far_from_a_boundary(tmp_path / "far.pcap")
    shared = Shared([path], 60_000, 2, carries=STRIPPED, edges=True)
    assert told(exchanges(shared)) == told(wanted([path]))
    assert len(shared.doubted) == 8
    assert len(wanted([path])) == 9 + 8


@pytest.mark.parametrize("edges", [False, True])
def test_connections_have_their_turns(edges: bool, pcaps: Path) -> None:
    """Law: connections in the order of their turns have the numbers that one reading gives them."""
    path = pcaps / "cluster-startup.pcap"
    found = []
    for portion in Shared([path], 9000, 4, edges=edges).portions():
        portion.keep_connections = True
        for _ in portion.batches():
            pass
        rows = connection_rows(portion.connections, portion.capture_files)
        found += [(portion.turn(closed), row) for closed, row in zip(portion.connections, rows, strict=True)]
    found.sort(key=lambda one: one[0])
    mine = [row | {"number": number} for number, (_, row) in enumerate(found, 1)]
    names = [column.name for column in choose("connections", None) if column.name in mine[0]]
    every = kcap.open(path).connections(names).to_arrow().to_pylist()
    assert told([{name: row[name] for name in names} for row in mine]) == told(every)


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
    for shares in (1, 3, 12):
        shared = Shared([path], 2000, shares)
        assert told(exchanges(shared)) == told(wanted([path]))
        ends = []
        for portion in Shared([path], 2000, shares).portions():
            portion.keep_connections = True
            for _ in portion.batches():
                pass
            rows = connection_rows(portion.connections, portion.capture_files)
            ends += [{name: row[name] for name in columns} for row in rows]
        assert told(ends) == told(kcap.open(path).connections(columns).to_arrow().to_pylist())
        assert {row["ended"] for row in ends} >= {"idle", "open"}


def test_large_messages_are_read_again(pcaps: Path) -> None:
    """Law: a request that is asked for comes from the file, as it does for one reading."""
    path = pcaps / "librdkafka-zstd.pcap"
    shared = Shared([path], 8192, 2)
    seen = 0
    for portion in shared.portions():
        for batch in portion.batches():
            for at, row in enumerate(batch.rows):
                message = portion.message(batch, at, "request")
                if row[2] is not None:
                    assert message is not None
                    assert message.header.correlation_id == row[4]
                    seen += 1
    assert seen > 50
