"""What the kernel takes of a packet and where it stops; the law itself is searched in test_engine."""

import struct
from dataclasses import replace

import numpy as np

from kcap.analyzer import Analyzer
from kcap.fastpath.layout import CALLED, CLOSING, FREE, HALF, LIVE, M_LEFT, OPEN, TALKING
from kcap.net.segment_columns import SACKED, SPURIOUS, columns_of
from kcap.net.tcp import ACK, FIN
from tests.fastpath.both import agree, cut
from tests.fastpath.test_engine import steady
from tests.support.wire import MS, Tap, batch, metadata, metadata_answer


def phase(tap: Tap, first: int = 0) -> int:
    """What the fast path knows of the connection after the conversation, from packet `first` on."""
    analyzer = Analyzer()
    for each in cut(tap.segments[first:], 30):
        analyzer.feed(columns_of(each))
    assert analyzer.fast_path is not None
    return int(analyzer.fast_path.state.connections[:, LIVE].max())


def test_which_connections_are_in_the_fast_path() -> None:
    """A connection in good order is, from its SYN to its end; one that was met on the way enters; one that says what is
    unknown is not."""
    assert [phase(Tap(segments=Tap().open().segments[:count])) for count in (1, 2, 3)] == [CALLED, OPEN, OPEN]
    assert phase(steady(6)) == TALKING
    assert phase(steady(300), 3) == TALKING
    closing = steady(6)
    closing.add(0, FIN | ACK)
    assert phase(closing) == HALF
    assert phase(steady(6).close()) == CLOSING
    assert phase(steady(6).reset()) == CLOSING
    bare = steady(6)
    bare.add(0, FIN)
    assert phase(bare) == FREE
    assert phase(Tap().open().client(b"GET / HTTP/1.1\r\n\r\n")) == FREE


def test_what_is_sent_again_changes_nothing_but_counters() -> None:
    """A segment twice at once, later, and a keep-alive probe: the connection stays in the fast path."""
    for wait in (1, 300 * MS):
        tap = steady(6)
        again = [s for s in tap.segments if s.payload][-2:]
        tap.segments += [replace(s, time_ns=tap.time_ns + wait + at) for at, s in enumerate(again)]
        tap.time_ns += wait + 5
        tap.add(0, ACK, b"\0", seq=tap.next[0] - 1)
        assert phase(tap) == TALKING
        tap.close()
        assert agree(tap.segments).own == 1


def test_a_side_without_room_stays() -> None:
    """Each time that its window is shut counts once, also on a packet with bytes."""
    tap = steady(6)
    for window in (0, 0, 9, 0):
        tap.add(1, ACK)
        tap.segments[-1] = replace(tap.segments[-1], window=window)
    assert phase(tap) == TALKING
    found = agree(tap.close().segments)
    assert (found.own, found.connections[0]["zero_window_stalls"]) == (1, 2)
    tap = steady(6).client(metadata(80))
    tap.segments[-1] = replace(tap.segments[-1], window=0)
    assert phase(tap) == TALKING
    assert agree(tap.close().segments).connections[0]["zero_window_stalls"] == 1


def test_selective_acknowledgements_are_counted_and_change_nothing_else() -> None:
    """On bare acknowledgements, on one with bytes and on one that says nothing new."""
    tap = steady(6)
    for reported in (SACKED, SPURIOUS, SACKED | SPURIOUS):
        tap.add(1, ACK | reported)
    tap.client(metadata(80))
    tap.segments[-1] = replace(tap.segments[-1], flags=tap.segments[-1].flags | SACKED)
    assert phase(tap) == TALKING
    found = agree(tap.close().segments)
    assert (found.own, found.connections[0]["sacked"], found.connections[0]["spurious"]) == (1, 3, 2)


def test_nothing_of_a_packet_that_opens_nothing() -> None:
    """Acknowledgements and resets of unknown connections reach no connection."""
    tap = Tap()
    tap.add(0, ACK)
    tap.add(1, 4)
    analyzer = Analyzer()
    analyzer.feed(columns_of(batch(tap.segments)))
    assert analyzer.fast_path is not None
    assert not analyzer.fast_path.state.meta[M_LEFT]
    agree(tap.segments)


def test_a_connection_leaves_before_what_it_cannot_take() -> None:
    """The rest of a packet goes to the reference path, which take it from there."""
    analyzer = Analyzer()
    tap = steady(6)
    analyzer.feed(columns_of(batch(tap.segments)))
    first = len(tap.segments)
    tap.client(metadata(90) + struct.pack(">i", 20) + b"\x7f\xff" + bytes(18))
    analyzer.feed(columns_of(batch(tap.segments[first:], first + 1)))
    assert analyzer.fast_path is not None
    assert not np.any(analyzer.fast_path.state.connections[:, -1])
    tap.server(metadata_answer(90))
    analyzer.feed(columns_of(batch(tap.segments[first + 1 :], first + 2)))
    analyzer.finish()
    assert [row[4] for row in analyzer.take().rows][-1] == 90
