"""Frames are put together from packets as the first reading did."""

import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.capture import packet_source
from kcap.capture.frame_location import FrameLocation
from kcap.capture.frame_reader import cut_out, laid
from kcap.capture.packet_source import Packet
from kcap.model import PacketBatch
from kcap.table.builder import Table
from tests.distributed.test_shard_reader import fragmented
from tests.fuzz.hostile import Calls, array, fetch_of, interleaved_fragments, packed_batch, request, string, varint


def place(size: int, head: bytes, first_ns: int) -> FrameLocation:
    return FrameLocation(0, b"", 0, 0, size, head, first_ns)


def piece(offset: int, data: bytes, time_ns: int) -> tuple[int, bytes, Packet]:
    return offset, data, Packet(time_ns, data, len(data), 1)


def test_a_frame_is_cut_out_of_its_packets() -> None:
    """First copies win, order does not matter, a look-alike in another packet is passed over, a hole ends what is known."""
    pieces = [
        piece(4, b"HEAD", 1),
        piece(12, b"HEADabcd", 2),
        piece(24, b"ijkl", 4),
        piece(20, b"efgh", 5),
        piece(20, b"XXXX", 6),
    ]
    packets, data = cut_out(pieces, place(16, b"HEAD", 2))
    assert data == b"HEADabcdefghijkl"[:16]
    assert [packet.time_ns for packet in packets] == [2, 4, 5, 6][: len(packets)]
    assert cut_out(pieces[:3], place(16, b"HEAD", 2))[1] == b"HEADabcd"
    assert cut_out(pieces, place(16, b"NONE", 2)) == ([], b"")
    assert cut_out([], place(16, b"HEAD", 2)) == ([], b"")
    assert laid(pieces, place(16, b"HEAD", 2)) == (12, data)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Fetch response of 16 MB, with 16 batches of one record each."""
    record = b"\0\0\0\1" + varint(1 << 20) + bytes(1 << 20) + b"\0"
    batch = packed_batch(varint(len(record)) + record, 0)
    part = struct.pack(">ihqqii", 0, 0, 5, 5, -1, 16 * len(batch)) + 16 * batch
    calls = Calls()
    calls.call(1, 4, fetch_of(b"t", 0), bytes(4) + array([string(b"t") + array([part])]))
    path = tmp_path_factory.mktemp("large") / "large.pcap"
    path.write_bytes(calls.connection.file())
    return path


def test_a_large_frame_is_in_memory_twice(large: Path) -> None:
    """Law: the packets that carried it, what they join to and the frame are never there together."""
    (exchange,) = (one for one in kcap.open(large) if one.row["api"] == "Fetch")
    size = exchange.row["response_bytes"]
    tracemalloc.start()
    message = exchange.response
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message is not None
    assert len(message.frame) == size - 4
    assert peak < 2.5 * size


def test_larger_messages_are_not_read_again_for_tables(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: what a table reads again is bounded; what was left out is counted."""
    for most, records, left_out in ((1 << 27, 16, 0), (1 << 23, 0, 1)):
        monkeypatch.setattr("kcap.capture_pass.REREAD_BYTES_MAX", most)
        reading = kcap.open(large).read()
        found = Table(lambda reading=reading: reading, "records").to_arrow()  # type: ignore[misc]
        assert (found.num_rows, reading.not_kept) == (records, left_out)


def test_kernels_read_the_same_packets(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: frames and their packets are those that the plain reader finds."""

    def frames(*, compiled: bool) -> list[Any]:
        monkeypatch.setattr(packet_source, "is_long", lambda _: compiled)
        found = kcap.open(pcaps / "go-franz.pcap")
        return [(exchange.frame("request"), exchange.frame("response"), exchange.packets()) for exchange in found]

    assert frames(compiled=True) == frames(compiled=False)


def test_messages_in_fragments_are_those_of_the_whole_packets(pcaps: Path, tmp_path: Path) -> None:
    """A frame's first packet is the one that completes its datagram; the packets before it carry most of its bytes."""
    path = pcaps / "quota-3.9.pcap"
    apart = fragmented(path, tmp_path / "fragments.pcap")

    def messages(capture: Path) -> list[str]:
        """Those of each exchange; what is decided by one packet and what waits for several come in another order."""
        return sorted(
            repr((exchange.row["api"], [side and side.to_json() for side in (exchange.request, exchange.response)]))
            for exchange in kcap.open(capture)
        )

    assert messages(apart) == messages(path)


def test_what_lies_between_the_fragments_of_a_message_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments of a thousand senders that take turns: each of a datagram's four stands a thousand packets behind the last."""
    path = tmp_path / "fragments.pcap"
    path.write_bytes(interleaved_fragments(8_000))
    read, batches = [], packet_source.PacketSource.batches

    def counted(self: packet_source.PacketSource, file: int, first: int, last: int) -> Iterator[PacketBatch]:
        for batch in batches(self, file, first, last):
            read.append(len(batch))
            yield batch

    monkeypatch.setattr(packet_source.PacketSource, "batches", counted)
    exchanges = list(kcap.open(path))
    assert len(exchanges) > 1_000
    assert {exchange.frame("request") for exchange in exchanges[:100]} == {request(1)}
    assert sum(read) <= 100 * 8
