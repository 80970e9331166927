"""Large frames on the fast path: rows are those of the reference path, and the table's rows are used again."""

import gzip
import random
import struct
from unittest.mock import patch

import pytest

from kcap import limits
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.fastpath.test_large_kernels import batch, message
from tests.support.wire import Segment, produce, produce_answer


def fetched(correlation: int, records: bytes) -> tuple[bytes, bytes]:
    """A Fetch request of version 4 and its response with one partition."""
    from tests.support.wire import request, response

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
    from dataclasses import replace

    segments = [replace(segment, time_ns=time_ns) for segment, time_ns in zip(segments, times, strict=True)]
    with patch.object(limits, "FAST_PATH_LARGE_FROM", 300):
        agree(segments, 20, 4)


def test_no_free_row() -> None:
    """With one row for large frames, others stay as they would be without."""
    with patch.object(limits, "FAST_PATH_LARGE_FROM", 200), patch.object(limits, "FAST_PATH_LARGE_FRAMES", 1):
        agree(traffic(), 50, 10)
