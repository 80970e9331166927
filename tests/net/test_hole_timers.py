"""Which streams have held bytes for longer than the reorder window."""

import random
from typing import Any, cast

from kcap import limits
from kcap.net.hole_timers import HoleTimers
from kcap.net.tcp import Held, Stream


def held(time_ns: int) -> Held:
    """Bytes that came at a time."""
    return Held(10, 20, b"", time_ns, 0, 0, 0)


def stream() -> Stream:
    """A stream of no connection."""
    return Stream(cast(Any, None))


def test_timers_find_what_a_look_at_every_stream_finds() -> None:
    rng = random.Random(4)
    timers, streams, reported = HoleTimers(), [stream() for _ in range(20)], set()
    now = 0
    for _ in range(4000):
        now += rng.randrange(limits.REORDER_NS // 50)
        one = rng.choice(streams)
        one.held = [held(now)] if rng.random() < 0.6 else []
        timers.watch(one)
        reported.discard(one)
        due = {s for s in streams if s.held and now - s.held[0].time_ns >= limits.REORDER_NS} - reported
        found = timers.due(now)
        assert (set(found), len(found)) == (due, len(due))
        reported |= due


def test_a_forgotten_stream_is_not_referred_to() -> None:
    timers, one = HoleTimers(), stream()
    one.held = [held(0)]
    timers.watch(one)
    assert one in timers
    timers.forget(one)
    assert one not in timers
    assert timers.due(limits.REORDER_NS) == []


def test_a_stream_whose_bytes_change_often_has_one_timer() -> None:
    """Operations counted: a thousand changes leave one entry, which is looked at once."""
    timers, one = HoleTimers(), stream()
    for now in range(1000):
        one.held = [held(now)]
        timers.watch(one)
    assert timers.due(limits.REORDER_NS) == []
    assert timers.due(limits.REORDER_NS + 999) == [one]
