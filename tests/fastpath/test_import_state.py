"""Who may enter the fast path; that entering changes nothing is said in test_leaving."""

import random
from dataclasses import replace
from unittest.mock import patch

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.fastpath.import_state import MOVED, fits, import_connection, packets_until_fit
from kcap.fastpath.layout import LIVE, OPEN_START, TALKING
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.net.tcp import ACK, FIN
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.fastpath.test_large_frames import traffic
from tests.support.wire import Tap, batch, metadata, produce, produce_answer


def talk_of(tap: Tap) -> Conversation:
    """The conversation of the reference path."""
    analyzer = Analyzer()
    analyzer.feed(batch(tap.segments))
    conversation = next(iter(analyzer.table.streams.values())).connection.conversation
    assert isinstance(conversation, Conversation)
    return conversation


def fit(tap: Tap) -> bool:
    conversation = talk_of(tap)
    return fits(conversation.connection, conversation)


def test_who_fits() -> None:
    """A calm connection does; one that closes, that is in a frame or no Kafka does not."""
    assert fit(steady(6))
    closing = steady(6)
    closing.add(0, FIN)
    assert not fit(closing)
    within = steady(6)
    within.client(metadata(9)[:-3])
    assert not fit(within)
    assert not fit(Tap().open().client(b"GET / HTTP/1.1\r\n\r\n"))
    assert not fit(steady(6).client(metadata(9, client_id="a\0b")))
    assert fit(steady(6).client(metadata(9, client_id="a\tb")))


def test_when_a_connection_with_a_hole_may_fit() -> None:
    """After the segments that its hole waits for; nothing is known where a boundary is searched behind another hole."""
    lost = steady(6)
    lost.next[0] += 50
    holed = talk_of(lost.client(metadata(90)))
    assert packets_until_fit(holed) > 0
    noise = steady(6)
    noise.next[0] += 50
    noise.client(b"\xff" * 40)
    noise.add(1, ACK)
    noise.time_ns += 2 * limits.REORDER_NS
    noise.client(b"\xff" * 40)
    noise.next[0] += 50
    searching = talk_of(noise.client(b"\xff" * 40))
    assert searching.requests is not None
    assert searching.requests.search is not None
    assert any(stream.held for stream in searching.tcp.streams)
    assert packets_until_fit(searching) == 0


def test_numbers_stand_where_the_kernel_looks() -> None:
    conversation, state = talk_of(steady(6)), FastPathState()
    assert import_connection(state, conversation, 0)
    assert state.connections[conversation.fast_path_slot, LIVE] == TALKING
    for place, stream in enumerate(conversation.connection.streams, 2 * conversation.fast_path_slot):
        assert state.streams[place, OPEN_START] == -1
        assert all(state.streams[place, at] == getattr(stream, name) for at, name in MOVED if getattr(stream, name) is not None)


def test_there_is_no_room_for_more_names() -> None:
    state = FastPathState()
    state.name_sizes = state.name_sizes[:1]
    assert not import_connection(state, talk_of(steady(6)), 0)


@pytest.mark.parametrize("seed", range(6))
def test_segments_lost_repeated_and_late(seed: int) -> None:
    """Connections that leave the fast path within a large frame."""
    random_of, segments = random.Random(seed), traffic()
    for _ in range(4):
        place = random_of.randrange(20, len(segments) - 5)
        fate = random_of.randrange(3)
        if fate == 0:
            del segments[place]
        elif fate == 1:
            segments.insert(place + 2, segments[place])
        else:
            segments[place], segments[place + 1] = segments[place + 1], segments[place]
    times = sorted(segment.time_ns for segment in segments)
    segments = [replace(segment, time_ns=time_ns) for segment, time_ns in zip(segments, times, strict=True)]
    with patch.object(limits, "FAST_PATH_LARGE_FROM", 300):
        agree(segments, 20, 4)


def test_many_requests_wait_over_many_batches() -> None:
    """Bodies of requests, small and large, go on to the batch in which their row is decided."""
    tap = steady(6)
    tap.client(b"".join(produce(100 + at, 1, bytes(at * 300)) for at in range(40)), 1000)
    for at in range(40):
        tap.server(produce_answer(100 + at))
    assert agree(tap.segments, 10, 4).fast_rows > 20
