"""Compiled sequence numbers, acknowledgements and repeats are those of `net.tcp`."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kcap.fastpath.import_state import MOVED
from kcap.fastpath.layout import NONE, OPEN_START, RTT_MIN, STREAM_WIDTH
from kcap.fastpath.state import none
from kcap.fastpath.stream_kernels import acknowledged, distance, heard, reopened, repeat_of, repeated, round_trip, shut
from kcap.kafka.frames import FLAG
from kcap.net.tcp import MASK, Connection, Stream, signed32
from kcap.weird import WeirdKind


class Quiet:
    """Hears of no oddity."""

    held_bytes = 0

    def report(
        self, kind: WeirdKind, detail: str, ref: int = 0, position: int = 0, connection: Connection | None = None
    ) -> None:
        raise AssertionError(kind)

    def searched(self, ref: int, connection: Connection) -> None:
        raise AssertionError(ref)


def pair(**values: int | None) -> tuple[Stream, "np.ndarray[tuple[int, int], np.dtype[np.int64]]"]:
    """A stream and its row."""
    stream = Connection(bytes(12), bytes(12), 1, 0, 0, 0, Quiet()).streams[0]
    stream.next, stream.next_raw, stream.anchored, stream.started = 5000, 70, True, True
    for name, value in values.items():
        setattr(stream, name, value)
    row = np.zeros((1, STREAM_WIDTH), np.int64)
    row[0, :OPEN_START] = [NONE if (value := getattr(stream, name)) is None else value for _, name in MOVED]
    return stream, row


def same(stream: Stream, row: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> bool:
    """Both say the same."""
    return [none(value) for value in row[0, :OPEN_START].tolist()] == [getattr(stream, name) for _, name in MOVED]


@given(st.integers(0, MASK), st.integers(0, MASK))
def test_distances(ahead: int, behind: int) -> None:
    assert distance(ahead, behind) == signed32(ahead - behind)
    assert distance(behind, behind) == 0


CENTURY_NS = 100 * 365 * 86400 * 10**9


@given(st.lists(st.integers(-3, 100) | st.just(CENTURY_NS), max_size=12))
@example([CENTURY_NS] * 4 + [5])
def test_round_trips(samples: list[int]) -> None:
    """Their sum is within 64 bits, also where a clock jumps to and fro."""
    stream, row = pair()
    for sample in samples:
        stream.round_trip(sample)
        round_trip(row, 0, sample)
        assert same(stream, row)
        assert stream.rtt_sum < 1 << 63
    assert none(row[0, RTT_MIN]) == min((sample for sample in samples if sample >= 0), default=None)


offsets = st.integers(-3, 3) | st.integers(-6000, 6000)


@given(st.none() | offsets, st.none() | offsets, st.lists(offsets, max_size=4), st.booleans())
def test_acknowledgements(acked: int | None, timed: int | None, acks: list[int], plain: bool) -> None:
    """As the thorough way takes them, and (where nothing more than sent is acknowledged) as the short way does."""
    stream, row = pair(
        acked=None if acked is None else 5000 + acked, timed_end=None if timed is None else 5000 + timed, timed_ns=3
    )
    for time_ns, by in enumerate(acks, 10):
        ack = (70 + by) & MASK
        if ack != stream.acked_raw:
            stream.acknowledged(ack, time_ns)
        if plain and by < 0 and (stream.acked or 0) <= 5000:
            assert heard(row, 0, ack, 0, time_ns)
        else:
            acknowledged(row, 0, ack, time_ns)
        assert same(stream, row)


def test_windows() -> None:
    stream, row = pair()
    for at, shuts in enumerate((True, True, False, False, True, True, False)):
        if not shuts:
            if stream.zero_since is not None:
                stream.opens_window(at)
            reopened(row, 0, at)
        else:
            if stream.zero_since is None:
                stream.zero_since = at
                stream.zero_stalls += 1
            shut(row, 0, at)
        assert same(stream, row)
    assert (stream.zero_stalls, stream.zero_ns, stream.closed_window_ns(9)) == (2, 4, 4)


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 3000), st.sampled_from((1, 4_000_000, 9_000_000))), max_size=6),
    st.sampled_from((None, 3000)),
)
def test_repeats(ranges: list[tuple[int, int, int]], acked: int | None) -> None:
    """Of bytes that were all seen before."""
    stream, row = pair(last_start=4000, last_ns=1, timed_end=4500, acked=acked)
    time_ns = 0
    for start, size, after in ranges:
        time_ns += after
        end = min(start + size, 5000)
        if start < end:
            stream._repeated(start, end, time_ns, 0, 0)
            flag = repeat_of(row, 0, start, end, time_ns)
            assert flag or (end - start <= 1 and end == 5000)
            if flag:
                assert stream.repeats[-1] == (start, end, flag == FLAG["duplicated"])
                repeated(row, 0, start, end, flag, time_ns)
            assert same(stream, row)
