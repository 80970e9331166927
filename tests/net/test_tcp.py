"""One connection: order, holes, round trips."""

from dataclasses import dataclass, field

import pytest

from kcap import limits
from kcap.net.tcp import ACK, MASK, PSH, SYN, Connection, Stream, signed32
from kcap.weird import WeirdKind

DATA = PSH | ACK


@dataclass
class Recorder:
    """A sink that keeps what it is given, and an owner that keeps what is reported to it."""

    events: list[tuple[str, int, bytes | int]] = field(default_factory=list)
    reported: list[WeirdKind] = field(default_factory=list)
    looked: list[int] = field(default_factory=list)
    held_bytes: int = 0

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        self.events.append(("data", offset, bytes(buffer[at : at + captured])))

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        self.events.append(("gap", offset, length))

    def report(
        self, kind: WeirdKind, detail: str, ref: int = 0, position: int = 0, connection: Connection | None = None
    ) -> None:
        self.reported.append(kind)

    def searched(self, ref: int, connection: Connection) -> None:
        self.looked.append(ref)

    @property
    def bytes(self) -> bytes:
        return b"".join(e[2] for e in self.events if isinstance(e[2], bytes))


class Line:
    """A connection of which the client's stream is looked at."""

    def __init__(self, isn: int = 100, opened: bool = True) -> None:
        self.seen = Recorder()
        self.connection = Connection(b"a" * 12, b"b" * 12, 1, 0, 1, 24, self.seen)
        self.client, self.server = self.connection.streams
        self.client.sink = self.seen
        self.server.sink = Recorder()
        self.base, self.now = (isn + 1) & MASK, 0
        if opened:
            self.segment(self.client, isn, 0, SYN)
            self.segment(self.server, 500, self.base, SYN | ACK)

    def segment(self, stream: Stream, seq: int, ack: int, flags: int, data: bytes = b"", window: int = 9, cut: int = 0) -> None:
        self.now += 1_000_000
        size = len(data)
        self.connection.segment(stream, seq, ack, flags, window, data, 0, size - cut, size, self.now, self.now, 0)

    def send(self, offset: int, data: bytes, cut: int = 0) -> None:
        self.segment(self.client, (self.base + offset) & MASK, 501, DATA, data, cut=cut)

    def acknowledge(self, offset: int) -> None:
        self.segment(self.server, 501, (self.base + offset) & MASK, ACK)


@pytest.mark.parametrize(("a", "b", "distance"), [(5, 3, 2), (3, 5, -2), (0, MASK, 1), (MASK, 0, -1)])
def test_distances_wrap(a: int, b: int, distance: int) -> None:
    assert signed32(a - b) == distance


@pytest.mark.parametrize("isn", [100, MASK, MASK - 3])
def test_bytes_come_in_order_whatever_the_order_of_segments(isn: int) -> None:
    line = Line(isn)
    for offset, data in ((3, b"def"), (0, b"abc"), (9, b"jkl"), (6, b"ghi")):
        line.send(offset, data)
    assert line.seen.bytes == b"abcdefghijkl"
    assert line.client.out_of_order == 2
    assert line.connection.in_order


def test_the_first_copy_wins_and_a_differing_one_is_told() -> None:
    line = Line()
    line.send(3, b"DEF")
    line.send(0, b"abcdxf")
    assert line.seen.bytes == b"abcDEF"
    assert line.seen.reported == [WeirdKind.OVERLAP_DIFFERS]


def test_copies_that_are_held_against_each_other_are_named() -> None:
    """Both packets, since their bytes decide what is reported; those that are not compared are not."""
    line = Line()
    line.send(0, b"ab")
    line.send(0, b"ab")
    line.send(3, b"DEF")
    waits = line.now
    line.send(6, b"ghi")
    assert line.seen.looked == []
    line.send(2, b"cDEF")
    assert line.seen.looked == [line.now, waits]


def test_a_retransmission_is_counted_once_and_spoils_the_round_trip() -> None:
    """Karn: which copy is acknowledged cannot be told."""
    line = Line()
    line.client.rtt_min = None
    line.send(0, b"abc")
    line.now += limits.DUPLICATE_NS
    line.send(0, b"abc")
    line.acknowledge(3)
    assert (line.client.retransmitted, line.client.duplicated, line.client.rtt_min) == (1, 0, None)


def test_a_packet_captured_twice_is_no_retransmission() -> None:
    line = Line()
    line.send(0, b"abc")
    line.now -= 1_000_000
    line.send(0, b"abc")
    assert (line.client.retransmitted, line.client.duplicated) == (0, 1)


def test_a_keep_alive_is_nothing() -> None:
    line = Line()
    line.send(0, b"abc")
    line.send(2, b"x")
    assert (line.client.retransmitted, line.seen.bytes) == (0, b"abc")


def test_round_trips_are_those_of_the_handshake_and_of_data() -> None:
    line = Line()
    assert line.client.rtt_min == 1_000_000
    line.send(0, b"abc")
    line.now -= 400_000
    line.acknowledge(3)
    assert line.client.rtt_min == 600_000
    assert line.client.rtt_count == 2


def test_a_segment_that_waited_for_others_shows_no_round_trip() -> None:
    """Its acknowledgement waits for the bytes before it as well, and these may have been sent again."""
    line = Line()
    line.client.rtt_min = None
    line.send(3, b"def")
    line.now += 200_000_000
    line.send(0, b"abc")
    line.acknowledge(6)
    assert (line.seen.bytes, line.client.rtt_min) == (b"abcdef", None)
    line.send(6, b"ghi")
    line.acknowledge(9)
    assert line.client.rtt_min == 1_000_000, "in order again"


def test_a_segment_that_stands_behind_its_acknowledgement_shows_no_round_trip() -> None:
    """The next acknowledgement is that of other bytes, which may be sent much later."""
    line = Line()
    line.client.rtt_min = None
    line.acknowledge(3)
    line.send(0, b"abc")
    line.now += 5_000_000_000
    line.acknowledge(3)
    line.acknowledge(4)
    assert line.client.rtt_min is None


def test_a_hole_is_lost_once_it_is_acknowledged_and_the_window_has_passed() -> None:
    line = Line()
    line.send(3, b"d")
    line.acknowledge(4)
    for i in range(limits.REORDER_SEGMENTS - 1):
        line.send(4 + i, b"x")
        assert line.seen.events == []
    line.send(3 + limits.REORDER_SEGMENTS, b"x")
    assert line.seen.events[0] == ("gap", 0, 3)
    assert line.client.missing == 3
    line.send(0, b"abc")
    assert line.seen.reported == [WeirdKind.GAP, WeirdKind.LATE_DATA]


def test_a_hole_that_nobody_acknowledged_waits() -> None:
    line = Line()
    line.send(3, b"d")
    for i in range(3 * limits.REORDER_SEGMENTS):
        line.send(4 + i, b"x")
    assert line.seen.events == []
    line.send(0, b"abc")
    assert line.seen.bytes.startswith(b"abcdxxx")


def test_the_end_decides_every_hole() -> None:
    line = Line()
    line.send(3, b"d")
    line.acknowledge(9)
    line.connection.finish(line.now)
    assert line.seen.events == [("gap", 0, 3), ("data", 3, b"d"), ("gap", 4, 5)]


def test_without_a_syn_the_lowest_byte_is_the_first() -> None:
    line = Line(opened=False)
    line.send(5, b"fgh")
    line.send(2, b"cde")
    line.connection.finish(line.now)
    assert line.seen.events == [("data", 0, b"cde"), ("data", 3, b"fgh")]
    assert line.connection.began == "midstream"


def test_without_a_syn_no_more_is_held_than_behind_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments from the end to the beginning: each would become the first of all, and nothing would ever be decided."""
    monkeypatch.setattr(limits, "REORDER_SEGMENTS_MAX", 10)
    line = Line(opened=False)
    for place in range(50, 0, -1):
        line.segment(line.client, 1000 + place, 1, DATA, b"x")
        assert len(line.client.held) <= 11
    assert line.client.started
    assert line.seen.bytes == b"x" * 11


def test_a_syn_displaced_behind_its_data_still_anchors() -> None:
    line = Line(opened=False)
    line.send(0, b"abc")
    line.segment(line.client, line.base - 1, 0, SYN)
    assert line.seen.events == [("data", 0, b"abc")]
    assert line.client.anchored


def test_what_the_snapshot_length_cut_keeps_its_place() -> None:
    line = Line()
    line.send(0, b"abcdef", cut=4)
    line.send(6, b"gh")
    assert line.seen.events == [("data", 0, b"ab"), ("data", 6, b"gh")]


def test_a_closed_window_is_one_stall_until_it_opens() -> None:
    line = Line()
    for window in (0, 0, 5, 5, 0):
        line.segment(line.server, 501, line.base, ACK, window=window)
    assert line.server.zero_stalls == 2
    assert line.server.closed_window_ns(line.now) == 2_000_000
    assert line.server.closed_window_ns(line.now + 5) == 2_000_005, "it stays closed up to the last packet"
    assert line.server.closed_window_ns(limits.CLOSED_WINDOW_NS * 2) == limits.CLOSED_WINDOW_NS


def test_a_later_syn_of_the_other_side_changes_no_roles() -> None:
    """Found by fuzzing: noise with SYN set on an open connection swapped client and server."""
    line = Line()
    line.send(0, b"abc")
    line.segment(line.server, 77, 0, SYN)
    assert line.connection.client is line.client


def test_data_that_is_sent_again_after_a_timeout_has_had_no_acknowledgement() -> None:
    line = Line()
    line.segment(line.client, 101, 501, DATA, b"abc")
    line.now += 200_000_000
    line.segment(line.client, 101, 501, DATA, b"abc")
    assert (line.client.resent_ns, line.client.resent_at) == (201_000_000, line.now)
    line.now += 400_000_000
    line.segment(line.client, 101, 501, DATA, b"abc")
    assert (line.client.resent_ns, line.client.resent_at) == (602_000_000, line.now), "from the newest data on"
    longest = line.now
    line.segment(line.server, 501, 104, ACK)
    line.now += 900_000_000
    line.segment(line.client, 101, 501, DATA, b"abc")
    assert (line.client.resent_ns, line.client.resent_at) == (602_000_000, longest), "the receiver had it by then"
    line.segment(line.client, 104, 501, DATA, b"d")
    line.now += 900_000_000
    line.segment(line.client, 104, 501, DATA, b"d")
    assert line.client.resent_ns == 602_000_000, "a keep-alive probe repeats the last byte"
    assert (line.server.resent_ns, line.server.resent_at) == (0, None)


@pytest.mark.parametrize(("after_ms", "recovered"), [(9, 0), (29, 1)])
def test_a_hole_that_is_filled_a_round_trip_later_was_a_loss(after_ms: int, recovered: int) -> None:
    line = Line(opened=False)
    line.segment(line.client, 100, 0, SYN)
    line.now += 20_000_000
    line.segment(line.server, 500, 101, SYN | ACK)  # the round trip takes 21 ms
    line.segment(line.client, 101, 501, DATA, b"abc")
    line.segment(line.client, 107, 501, DATA, b"ghi")
    line.now += after_ms * 1_000_000
    line.segment(line.client, 104, 501, DATA, b"def")
    assert line.seen.bytes == b"abcdefghi"
    assert (line.client.out_of_order, line.client.recovered) == (1, recovered)


@pytest.mark.parametrize(("after_ms", "recovered"), [(1, 0), (3, 1)])
def test_on_a_short_path_a_segment_may_be_displaced_by_three_milliseconds(after_ms: int, recovered: int) -> None:
    line = Line()
    line.segment(line.client, 107, 501, DATA, b"ghi")
    line.segment(line.client, 113, 501, DATA, b"mno")
    line.now += (after_ms - 1) * 1_000_000
    line.segment(line.client, 110, 501, DATA, b"jkl")
    assert line.client.recovered == recovered, "measured from the data that came behind this hole"
    line.now += 10_000_000
    line.segment(line.client, 110, 501, DATA, b"jkl")
    assert line.client.recovered == recovered, "it was there before"
