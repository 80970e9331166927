"""One connection: order, holes, round trips."""

from dataclasses import dataclass, field

import pytest

from kcap import limits
from kcap.net.tcp import (
    ACK,
    DELIVERING,
    FIN,
    MASK,
    NO_ACKS,
    PSH,
    REORDERING,
    RST,
    STARTING,
    SYN,
    Connection,
    Stream,
    signed32,
)
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


def test_data_that_is_sent_again_where_no_syn_was_seen_has_had_no_acknowledgement_either() -> None:
    """A quiet connection that had begun before the capture waits long for a SYN that may come yet."""
    line = Line(opened=False)
    line.segment(line.client, 101, 501, DATA, b"abc")
    line.segment(line.server, 501, 104, ACK)
    line.segment(line.client, 104, 501, DATA, b"def")
    line.now += 800_000_000
    line.segment(line.client, 104, 501, DATA, b"def")
    assert not line.client.started
    assert (line.client.resent_ns, line.client.resent_at) == (801_000_000, line.now)
    longest = line.now
    line.segment(line.server, 501, 107, ACK)
    line.now += 900_000_000
    line.segment(line.client, 104, 501, DATA, b"def")
    assert (line.client.resent_ns, line.client.resent_at) == (801_000_000, longest), "the receiver had it by then"


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


def test_a_stream_says_its_state_and_its_side() -> None:
    """Until a SYN shows the client, the sides are those of the flow key."""
    line = Line(opened=False)
    line.send(0, b"abc")
    assert (line.client.state, line.client.side, line.server.side) == (STARTING, "lower endpoint", "higher endpoint")
    assert line.connection.closed_by is None
    line = Line()
    assert (line.client.state, line.client.side, line.server.side) == (DELIVERING, "client", "server")
    line.send(3, b"def")
    assert line.client.state == REORDERING
    line.send(0, b"abc")
    assert line.client.state == DELIVERING


def test_copies_of_what_is_held_count_once_and_are_not_out_of_order() -> None:
    line = Line()
    line.send(3, b"def")
    line.send(3, b"def")
    assert (line.client.out_of_order, line.client.retransmitted, line.client.held_bytes) == (1, 1, 3)
    assert line.client.repeats == [(3, 6, True)]
    line.send(2, b"cde")
    assert (line.client.out_of_order, line.client.retransmitted, line.client.held_bytes) == (2, 2, 4)
    assert line.client.repeats[1:] == [(2, 5, False)]
    line.send(0, b"ab")
    assert (line.seen.bytes, line.client.held_bytes) == (b"abcdef", 0)
    line.send(6, b"gh")
    assert line.client.out_of_order == 2


@pytest.mark.parametrize(("late_ns", "counts"), [(limits.DUPLICATE_NS, (0, 1)), (limits.DUPLICATE_NS + 1, (1, 0))])
def test_a_packet_captured_twice_comes_within_milliseconds(late_ns: int, counts: tuple[int, int]) -> None:
    line = Line()
    line.send(0, b"abc")
    line.now += late_ns - 1_000_000
    line.send(0, b"abc")
    assert (line.client.retransmitted, line.client.duplicated) == counts
    assert line.client.repeats == [(0, 3, counts == (0, 1))]


@pytest.mark.parametrize(("offset", "data", "counts"), [(2, b"c", 0), (1, b"b", 1), (1, b"bc", 1), (1, b"bcd", 1)])
def test_only_the_last_byte_alone_is_a_keep_alive_probe(offset: int, data: bytes, counts: int) -> None:
    """RFC 9293 section 3.8.4."""
    line = Line()
    line.send(0, b"abc")
    line.now += limits.DUPLICATE_NS
    line.send(offset, data)
    assert line.client.retransmitted == counts
    assert line.seen.bytes == b"abcd"[: 3 + (len(data) == 3)]


@pytest.mark.parametrize("waited_ns", [limits.REORDER_NS - 1, limits.REORDER_NS])
def test_a_hole_is_lost_once_it_has_lasted_the_time(waited_ns: int) -> None:
    line = Line()
    line.send(3, b"d")
    arrived = line.now
    line.acknowledge(4)
    line.now = arrived + waited_ns - 1_000_000
    line.acknowledge(4)
    assert (line.client.missing, line.client.held_bytes) == ((3, 0) if waited_ns == limits.REORDER_NS else (0, 1))


@pytest.mark.parametrize(("acked", "missing"), [(0, 0), (1, 3)])
def test_a_hole_is_lost_where_an_acknowledgement_goes_into_it(acked: int, missing: int) -> None:
    """One up to its beginning says that the peer lacks the bytes as well."""
    line = Line()
    line.send(3, b"d")
    line.acknowledge(acked)
    line.now += limits.REORDER_NS
    line.acknowledge(acked)
    assert line.client.missing == missing


@pytest.mark.parametrize(
    ("acked", "fin", "missing"),
    [(3, False, 0), (4, False, 0), (5, False, 2), (5, True, 1), (3 + limits.SEQUENCE_FAR - 1, False, limits.SEQUENCE_FAR - 1),
     (3 + limits.SEQUENCE_FAR, False, 0)],
    ids=["all", "a-fin-that-was-not-seen", "two-bytes", "one-and-the-fin", "many", "too-many"],
)  # fmt: skip
def test_what_is_acknowledged_and_was_not_seen_is_missing_at_the_end(acked: int, fin: bool, missing: int) -> None:
    line = Line()
    line.send(0, b"abc")
    line.acknowledge(acked)
    if fin:
        line.segment(line.server, 501, (line.base + acked) & MASK, FIN | ACK)
    line.connection.finish(line.now)
    assert line.client.missing == missing
    assert line.seen.events[1:] == ([("gap", 3, missing)] if missing else [])


@pytest.mark.parametrize("isn", [100, MASK - 3])
def test_data_from_the_fin_on_is_reported(isn: int) -> None:
    line = Line(isn)
    line.send(0, b"abc")
    line.segment(line.client, (line.base + 3) & MASK, 501, FIN | ACK)
    line.send(0, b"abc")
    line.send(2, b"c")
    assert WeirdKind.DATA_AFTER_FIN not in line.seen.reported
    line.send(3, b"d")
    assert line.seen.reported.count(WeirdKind.DATA_AFTER_FIN) == 1


def test_the_first_fin_or_reset_closes_and_both_fins_or_a_reset_end() -> None:
    line = Line()
    line.segment(line.client, line.base, 501, FIN | ACK)
    assert (line.connection.ended, line.connection.closed_by) == ("open", "client")
    closed = line.now
    line.segment(line.server, 501, line.base + 1, FIN | ACK)
    assert (line.connection.ended, line.connection.closed_ns, line.connection.closing_ns) == ("fin", closed, line.now)
    line.segment(line.server, 502, line.base + 1, RST)
    assert (line.connection.ended, line.connection.closed_by) == ("fin", "client")
    line = Line()
    line.segment(line.server, 501, line.base, RST)
    assert (line.connection.ended, line.connection.closed_by, line.connection.closed_ns) == ("rst", "server", line.now)


def test_without_a_syn_bytes_behind_the_start_keep_their_place() -> None:
    line = Line(opened=False)
    line.send(5, b"fgh")
    line.send(2, b"cde")
    line.now += limits.REORDER_NS
    line.send(8, b"ijk")
    line.send(11, b"l")
    assert line.seen.bytes == b"cdefghijkl"
    assert (line.client.missing, line.client.next, line.client.next_raw) == (0, 10, line.base + 12)


def test_a_side_that_only_acknowledges_starts_where_it_acknowledges() -> None:
    """What it sends next is known, once the other one has sent as many segments as a hole may last."""
    line = Line(opened=False)
    for at in range(limits.REORDER_SEGMENTS):
        assert not line.server.started
        line.segment(line.client, 1000 + at, 7000, DATA, b"x")
    line.acknowledge(0)
    assert line.server.started
    sink = line.server.sink
    line.segment(line.server, 7000, 1000, DATA, b"abc")
    assert isinstance(sink, Recorder)
    assert sink.events == [("data", 0, b"abc")]


def test_what_the_server_had_acknowledged_is_known_by_packet() -> None:
    """Of packets with payload alone: an acknowledgement counts from the packet that brings it on."""
    line = Line()
    packets = ((1, 0, b"ab"), (2, 2, b"c"), (3, 2, b"d"), (4, 5, b"e"))
    sent = 0
    for ref, acked, data in packets:
        line.now += 1_000_000
        line.connection.segment(
            line.server, 501 + sent, line.base + acked, DATA, 9, data, 0, len(data), len(data), line.now, ref, 0
        )
        sent += len(data)
    assert [line.server.acked_with(ref) for ref in (1, 2, 3, 4, 9)] == [0, 2, 2, 5, 5]
    line.send(0, b"abcde")
    assert line.client.acks == NO_ACKS, "nothing needs those of the client"


def test_what_waits_counts_in_the_sum_of_all_where_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = limits.HELD_COST
    monkeypatch.setattr(limits, "HELD_BYTES_LEAST", 2 * cost + 6)
    line = Line()
    for offset, sum_of_all in ((3, 0), (7, 0), (11, 3 * cost + 9), (15, 4 * cost + 12)):
        line.send(offset, b"xyz")
        assert line.seen.held_bytes == sum_of_all
    line.send(0, b"abc")
    assert line.seen.held_bytes == 3 * cost + 9
    line.send(6, b"_")
    assert line.seen.held_bytes == 0


def test_a_copy_of_several_held_pieces_fills_what_is_between_them() -> None:
    line = Line()
    for offset, data in ((3, b"de"), (7, b"hi"), (11, b"lm")):
        line.send(offset, data)
    line.send(4, b"EfgHIjkLm")
    assert [(one.start, one.end, one.data) for one in line.client.held] == [
        (3, 5, b"de"), (5, 7, b"fg"), (7, 9, b"hi"), (9, 11, b"jk"), (11, 13, b"lm"),
    ]  # fmt: skip
    assert line.seen.reported == [WeirdKind.OVERLAP_DIFFERS] * 3, "it differs from each of the three"
    line.send(0, b"abc")
    assert line.seen.bytes == b"abcdefghijklm"
    assert line.client.captured == 13


def test_too_much_behind_a_hole_that_nothing_acknowledged_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REORDER_SEGMENTS_MAX", 5)
    for acknowledged in (False, True):
        line = Line()
        if acknowledged:
            line.acknowledge(9)
        for at in range(6):
            assert line.seen.events == []
            line.send(3 + at, b"x")
        assert line.seen.events[0] == ("gap", 0, 3)
        assert (WeirdKind.REORDER_LIMIT in line.seen.reported) is not acknowledged


def test_the_first_bytes_of_a_stream_are_timed() -> None:
    """Nothing of the server was acknowledged before."""
    line = Line()
    assert line.server.acked is None
    line.segment(line.server, 501, line.base, DATA, b"abc")
    line.now += 4_000_000
    line.segment(line.client, line.base, 504, ACK)
    assert (line.server.rtt_min, line.server.rtt_count) == (5_000_000, 1)


def test_acknowledgements_are_noted_where_they_change() -> None:
    line = Line()
    for ref, acked in ((1, 0), (2, 0), (3, 4)):
        line.connection.segment(line.server, 500 + ref, line.base + acked, DATA, 9, b"x", 0, 1, 1, line.now, ref, 0)
    assert line.server.acks.tolist() == [1, 0, 3, 4]


def test_data_without_an_acknowledgement_has_an_age() -> None:
    line = Line()
    assert (line.client.unacked_ns(line.now), line.server.unacked_ns(line.now)) == (None, None), "nothing was sent"
    line.send(0, b"abc")
    assert line.client.unacked_ns(line.now + 7) == 7
    line.acknowledge(2)
    assert line.client.unacked_ns(line.now) == 1_000_000
    line.acknowledge(3)
    assert line.client.unacked_ns(line.now) is None


def test_a_copy_that_begins_in_a_held_piece_brings_what_is_behind_it() -> None:
    line = Line()
    for offset, data in ((3, b"de"), (7, b"hi"), (11, b"lm")):
        line.send(offset, data)
    line.send(8, b"ijkl")
    assert [(one.start, one.end) for one in line.client.held] == [(3, 5), (7, 9), (9, 11), (11, 13)]
