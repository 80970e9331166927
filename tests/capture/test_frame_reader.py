"""Frames are put together from packets as the first reading did."""

import os
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.capture import frame_index, packet_source
from kcap.capture.frame_index import FrameIndex
from kcap.capture.frame_location import FrameLocation
from kcap.capture.frame_reader import cut_out, laid
from kcap.capture.packet_source import Packet, PacketSource
from kcap.capture_pass import CapturePass
from kcap.model import PART, PacketBatch
from kcap.table.builder import Table
from tests.capture.test_frame_index import bodies, narrow, readings
from tests.distributed.test_shard_reader import fragmented
from tests.fuzz.hostile import Calls, array, fetch_of, interleaved_fragments, packed_batch, request, string, varint
from tests.laws.test_interleaved import capture, records

__all__ = ["narrow", "readings"]
"""Fixtures that tests here use."""


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
    for most, rows, left_out in ((1 << 27, 16, 0), (1 << 23, 0, 1)):
        monkeypatch.setattr("kcap.capture_pass.REREAD_BYTES_MAX", most)
        reading = kcap.open(large).read()
        found = Table(lambda reading=reading: reading, "records").to_arrow()  # type: ignore[misc]
        assert (found.num_rows, reading.not_kept) == (rows, left_out)


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


@pytest.mark.usefixtures("narrow", "readings")
def test_frames_that_are_read_next_are_read_in_the_order_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: readings of files follow from the bytes, not from how many packets carried them; each frame is what it is alone."""
    reads, read_bytes = list[int](), PacketSource.read_bytes

    def counted(self: PacketSource, file: int, size: int, at: int) -> bytes:
        reads.append(size)
        return read_bytes(self, file, size, at)

    path, found = capture(tmp_path / "together.pcap", records, "produce", together=True), list[bytes]()
    monkeypatch.setattr(PacketSource, "read_bytes", counted)
    reading = CapturePass([str(path)])
    reading.keep_bodies()
    for batch in reading.batches():
        passed = [number for number, values in batch.bodies.carried.items() if values.passed]
        following = [(at, "request") for at, row in enumerate(batch.rows) if row[PART["request_slot"]] in passed]
        for number, (at, side) in enumerate(following):
            message = reading.message(batch, at, side, () if number else following)
            assert message is not None
            found.append(bytes(message.frame))
    counted_reads = len(reads)
    assert found == bodies(path)[1]
    assert counted_reads < len(found) + path.stat().st_size // 10_000


@pytest.mark.usefixtures("narrow", "readings")
def test_a_full_disk_costs_no_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: without room for the index frames are those of a reading of their own."""

    def full(*_: Any) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(frame_index.os, "pwrite", full)
    together, alone = bodies(capture(tmp_path / "together.pcap", records, "produce", together=True))
    assert together == alone


@pytest.mark.usefixtures("narrow", "readings")
def test_an_index_that_cannot_be_read_costs_no_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: as with a full disk, where reading what was written of the index fails."""

    def broken(*_: Any) -> bytes:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(FrameIndex, "_stored", broken)
    together, alone = bodies(capture(tmp_path / "together.pcap", records, "produce", together=True))
    assert together == alone
    assert len(together) > 15


def test_frames_of_decrypted_connections_are_plaintext_with_the_packets_of_its_ciphertext(pcaps: Path) -> None:
    path = pcaps / "tls13.pcapng"
    exchanges = list(kcap.open(path))
    assert len(exchanges) > 10
    for exchange in exchanges:
        for side in ("request", "response"):
            size = exchange.row[f"{side}_bytes"]
            frame = exchange.frame(side)
            assert len(frame) == (size or 0)
            assert size is None or int.from_bytes(frame[:4], "big") == size - 4
        assert {packet.link for packet in exchange.packets()} == {1}
