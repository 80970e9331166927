"""Fragments come with the packet that completes their datagram; ports that are used again are another connection's."""

from kcap.export.mark_packets import FragmentPackets, PacketWalk, mark
from kcap.export.selection import Selection
from kcap.model import REF_FILE_SHIFT
from kcap.net.fragments import FragmentPlace
from kcap.session import Capture
from tests.export.parts import PCAPS


def nothing(*_) -> None:
    """No report."""


def test_fragments_are_taken_down_by_their_packets():
    pieces = FragmentPackets()
    assert pieces.add("a", 0, True, b"12345678", 8, FragmentPlace(2, 10, 0, 0), nothing) is None
    assert pieces.add("b", 0, True, b"abcdefgh", 8, FragmentPlace(2, 11, 0, 0), nothing) is None
    assert pieces.add("a", 8, False, b"9", 1, FragmentPlace(2, 12, 0, 0), nothing) == (b"123456789", 9)
    assert pieces.whole == {2 << REF_FILE_SHIFT | 12: [2 << REF_FILE_SHIFT | 10]}
    assert list(pieces.waiting) == ["b"]


def test_a_walk_sees_every_packet():
    path = str(PCAPS / "any-interface.pcap")
    total = sum(len(batch) for batch, _ in PacketWalk([path]))
    assert total == Capture([path]).captures(["packets"]).to_arrow().to_pylist()[0]["packets"]


def test_connections_share_no_packet_and_leave_none_of_theirs():
    path = str(PCAPS / "broker-paused.pcap")
    table = Capture([path]).connections(["connection", "packets", "phase"]).to_arrow().to_pylist()
    seen: set[int] = set()
    for row in table:
        if row["phase"] != "kafka":
            continue
        picked = Selection([], whole=True)
        picked.read(Capture([path]).filter(f'connection == "{row["connection"]}"'))
        (numbers,) = mark([path], picked)
        assert len(numbers) >= row["packets"]
        assert not seen & set(numbers)
        assert list(numbers) == sorted(set(numbers))
        seen |= set(numbers)
    assert seen
