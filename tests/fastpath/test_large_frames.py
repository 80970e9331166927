"""Large frames on the fast path: rows are those of the reference path, and the table's rows are used again."""

import gzip
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from kcap import limits
from kcap.fastpath import large_frames
from kcap.fastpath.large_frames import LargeFrames
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.fastpath.test_large_kernels import batch, message
from tests.support.wire import Segment, Tap, produce, produce_answer, request, response


def fetched(correlation: int, records: bytes) -> tuple[bytes, bytes]:
    """A Fetch request of version 4 and its response with one partition."""
    asked = struct.pack(">iiiibi", -1, 500, 1, 1 << 20, 0, 1) + b"\0\1t" + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    given = struct.pack(">ii", 0, 1) + b"\0\1t" + struct.pack(">iihqqii", 1, 0, 0, 9, 9, 0, len(records)) + records
    return request(1, 4, correlation, asked), response(correlation, given)


def traffic() -> list[Segment]:
    """Large requests and responses among small ones, some with compressed messages of magic 1, some without a response."""
    inner = gzip.compress(message(50, 0, 1) * 3)
    old = struct.pack(">Ibbqii", 0, 1, 1, 5, -1, len(inner)) + inner
    wrapped = struct.pack(">qi", 3, len(old)) + old
    tap = steady(9)
    for number in range(100, 140, 4):
        tap.client(produce(number, 1, batch(3000 + 11 * number, number)))
        tap.server(produce_answer(number))
        asked, given = fetched(number + 1, batch(700, 5) + wrapped * 2 + batch(6000, 9))
        tap.client(asked + produce(number + 2, 0, batch(5000, 2)) + produce(number + 3, 1, batch(4000, 1)), 1000)
        tap.server(given + produce_answer(number + 3), 800)
    return tap.close().segments


@pytest.mark.parametrize("large", [200, 2500, 4500])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (7, 3), (400, 90)])
def test_rows_are_those_of_the_reference_path(large: int, size: int, step: int) -> None:
    with patch.object(limits, "FAST_PATH_LARGE_FROM", large):
        assert agree(traffic(), size, step).fast_rows > 20


def answered(correlation: int, partitions: int) -> bytes:
    """A Produce response of version 2 with many partitions, some with an error."""
    parts = b"".join(struct.pack(">ihqq", at, 3 * (at % 7 == 1), 5, -1) for at in range(partitions))
    return response(correlation, struct.pack(">i", 1) + b"\0\1t" + struct.pack(">i", partitions) + parts + struct.pack(">i", 7))


def together(count: int) -> list[Segment]:
    """Connections in the midst of a large request at once, and then of a large response, in segments of 400 bytes."""
    taps = [Tap(port=40_000 + at, time_ns=10**12 + 1_000 * at).open() for at in range(count)]
    for at, tap in enumerate(taps):
        tap.client(produce(0, 1)).server(produce_answer(0))
        tap.client(produce(1, 1, batch(3_000 + at, 7)), 400).server(answered(1, 150 + at), 400)
        tap.client(produce(2, 1)).server(produce_answer(2))
    return sorted((segment for tap in taps for segment in tap.segments), key=lambda segment: segment.time_ns)


@pytest.mark.parametrize(("first", "most"), [(1, 1), (1, 5), (2, 1 << 10)])
def test_rows_are_made_where_all_are_in_use(first: int, most: int) -> None:
    """Up to a bound; with it, other frames stay as they would be without."""
    with (
        patch.object(limits, "FAST_PATH_LARGE_FROM", 200),
        patch.object(limits, "FAST_PATH_LARGE_FRAMES", first),
        patch.object(limits, "FAST_PATH_LARGE_FRAMES_MAX", most),
        patch.object(LargeFrames, "take", autospec=True, side_effect=LargeFrames.take) as taken,
    ):
        agree(traffic(), 50, 10)
        before = taken.call_count
        agree(together(20), 50, 10)
    assert before > 0
    assert taken.call_count - before == (2 * 2 * 20 if most > 40 else pytest.approx(2 * 2 * most, rel=1))


def test_no_rows_are_made_where_the_system_has_no_room() -> None:
    """Frames stay as they would be without."""
    with (
        patch.object(limits, "FAST_PATH_LARGE_FROM", 200),
        patch.object(LargeFrames, "__init__", without_rows),
        patch.object(large_frames, "arrays", side_effect=OSError) as made,
    ):
        agree(together(5), 50, 10)
    assert made.call_count == 2  # one a fast path


NO_ROWS = large_frames.arrays(0)


def without_rows(self: LargeFrames, meta: Any) -> None:
    """A table without rows."""
    self.meta, self.arrays = meta, NO_ROWS


def huge() -> list[Segment]:
    """Frames of 1.1 MB, which no path gathers."""
    tap = steady(3).client(produce(4, 1, batch(500_000, 3) + message(70) + batch(600_000, 4)), 9_000)
    tap.server(answered(4, 52_000), 9_000)
    asked, given = fetched(5, batch(1_100_000, 5))
    return tap.client(asked).server(given, 9_000).close().segments


@pytest.mark.parametrize("made", [traffic, lambda: together(4), huge])
def test_connections_come_back_within_a_large_frame(made: Callable[[], list[Segment]]) -> None:
    """Whatever the reference path has of the frame: its first bytes, or a reader that has read them as they passed. A frame
    that was taken back leaves again where the next segment comes late.
    """
    entered = 0
    for seed in range(8):
        random_of, segments = random.Random(seed), made()
        for _ in range(8):
            place, reach = random_of.randrange(20, len(segments) - 5), random_of.choice((1, 4))
            one, other = segments[place], segments[place + reach]
            segments[place], segments[place + reach] = replace(other, time_ns=one.time_ns), replace(one, time_ns=other.time_ns)
        with (
            patch.object(limits, "FAST_PATH_LARGE_FROM", 300),
            patch.object(limits, "FAST_PATH_WAIT", 1),
            patch.object(LargeFrames, "enter", autospec=True, side_effect=LargeFrames.enter) as one,
            patch.object(LargeFrames, "enter_bytes", autospec=True, side_effect=LargeFrames.enter_bytes) as other_one,
        ):
            agree(segments, 20, 4)
        entered += (one if made is huge else other_one).call_count
    assert entered > 5


def test_frames_that_hold_much_are_given_back_with_what_is_known_of_them() -> None:
    """Of frames with compressed messages all is known, though those of all connections are more than may be held."""
    inner = gzip.compress(message(300) * 10, 0)
    old = struct.pack(">Ibbqii", 0, 1, 1, 5, -1, len(inner)) + inner
    wrapped = (struct.pack(">qi", 3, len(old)) + old) * 8
    taps = [Tap(port=40_000 + at, time_ns=10**12 + 1_000 * at).open() for at in range(12)]
    for tap in taps:
        tap.client(produce(0, 1)).server(produce_answer(0)).client(produce(1, 1, wrapped), 1_000).server(produce_answer(1))
    segments = sorted((segment for tap in taps for segment in tap.segments), key=lambda segment: segment.time_ns)
    with patch.object(limits, "FAST_PATH_LARGE_FROM", 2_000), patch.object(limits, "GATHERED_OF_ALL", 100_000):
        assert agree(segments, 50, 10).fast_rows


def in_turn(late: Sequence[int] = ()) -> list[Segment]:
    """Produce v3 requests of 30 KB on connections whose packets take turns; the first one of a `late` connection comes behind
    the second one.
    """
    head = struct.pack(">hhi", -1, 1, 1000) + struct.pack(">i", 1) + b"\0\1t" + struct.pack(">ii", 1, 0)
    data = b"".join(batch(2_900, 3) for _ in range(10))
    taps = [Tap(port=40_000 + at, time_ns=10**12 + 1_000 * at).open() for at in range(12)]
    for number, tap in enumerate(taps):
        tap.client(produce(0, 1)).server(produce_answer(0))
        before = len(tap.segments)
        tap.client(request(0, 3, 1, head + struct.pack(">i", len(data)) + data), 1_000).server(produce_answer(1))
        if number in late:
            one, other = tap.segments[before : before + 2]
            tap.segments[before : before + 2] = replace(other, time_ns=one.time_ns), replace(one, time_ns=other.time_ns)
    return sorted((segment for tap in taps for segment in tap.segments), key=lambda segment: segment.time_ns)


def test_frames_that_have_no_room_are_read_as_they_pass() -> None:
    """Connections that are in the midst of more than may be gathered stay on the fast path."""
    with patch.object(limits, "GATHERED_OF_ALL", 100_000):
        assert agree(in_turn(), 50, 10).fast_rows == 24


def test_connections_come_back_within_a_frame_that_has_no_room() -> None:
    """The reference path gives back what it began to gather, once all that it has gathered is too much."""
    with (
        patch.object(limits, "GATHERED_OF_ALL", 100_000),
        patch.object(limits, "FAST_PATH_WAIT", 1),
        patch.object(LargeFrames, "enter_bytes", autospec=True, side_effect=LargeFrames.enter_bytes) as entered,
    ):
        agree(in_turn(range(12)), 50, 10)
    assert entered.call_count >= 12
