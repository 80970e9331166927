"""Frames are put together from packets as the first reading did."""

from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.capture import packet_source
from kcap.capture.frame_reader import FrameLocation, cut_out, laid
from kcap.capture.packet_source import Packet
from kcap.model import ROW
from tests.distributed.test_shard_reader import fragmented


def place(size: int, head: bytes, first_ns: int) -> FrameLocation:
    parts: dict[str, Any] = {"request_bytes": size, "request_first_ns": first_ns, "correlation_id": None}
    made = FrameLocation(tuple(parts.get(name) for name in ROW), "request", b"")
    made.head = head
    return made


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
