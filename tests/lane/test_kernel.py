"""What the kernel takes of a packet and where it stops; the law itself is searched in test_engine."""

import struct

import numpy as np

from kcap.analyzer import Analyzer
from kcap.kafka.conversation import Conversation
from kcap.lane.kernel import distance
from kcap.net.columns import columns_of
from kcap.net.tcp import FIN, signed32
from tests.lane.test_engine import steady
from tests.support.wire import Tap, batch, metadata, metadata_answer


def test_distances() -> None:
    for ahead in (0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        assert distance(ahead, 3) == signed32(ahead - 3)


def in_lane(tap: Tap, after: Tap | None = None) -> bool:
    """Whether the connection is in the lane after the talk."""
    analyzer = Analyzer()
    analyzer.feed(columns_of(batch(tap.segments)))
    stream = next(iter(analyzer.table.streams.values()))
    assert isinstance(stream.connection.talk, Conversation)
    return stream.connection.talk.lane >= 0


def test_who_is_in_the_lane() -> None:
    """A calm connection enters; one that closes, or says what nobody knows, does not."""
    assert in_lane(steady(6))
    closing = steady(6)
    closing.add(0, FIN)
    assert not in_lane(closing)
    assert not in_lane(Tap().open().client(b"GET / HTTP/1.1\r\n\r\n"))


def test_a_connection_leaves_before_what_it_cannot_take() -> None:
    """The rest of a packet goes to the machines, which take it from there."""
    analyzer = Analyzer()
    tap = steady(6)
    analyzer.feed(columns_of(batch(tap.segments)))
    first = len(tap.segments)
    tap.client(metadata(90) + struct.pack(">i", 20) + b"\x7f\xff" + bytes(18))
    analyzer.feed(columns_of(batch(tap.segments[first:], first + 1)))
    assert analyzer.lane is not None
    assert not np.any(analyzer.lane.state.connections[:, -1])
    tap.server(metadata_answer(90))
    analyzer.feed(columns_of(batch(tap.segments[first + 1 :], first + 2)))
    analyzer.finish()
    assert [row[4] for row in analyzer.take().rows][-1] == 90
