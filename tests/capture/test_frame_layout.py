"""Bytes of a stream are laid out by their places, the first copy of each."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.frame_layout import FrameLayout
from kcap.capture.frame_location import FrameLocation
from kcap.limits import SEGMENT_BYTES_MAX

HEAD = b"head"
Pieces = list[tuple[int, bytes, int]]


def place(size: int, first_ns: int = 1) -> FrameLocation:
    """A frame of a size whose first byte came at a time."""
    return FrameLocation(0, b"", 0, 0, size, HEAD, first_ns)


def laid(pieces: Pieces, size: int) -> tuple[int, bytes]:
    layout = FrameLayout(place(size), 1 << 20)
    for piece in pieces:
        layout.add(*piece)
    return layout.found()


def plainly(pieces: Pieces, size: int) -> tuple[int, bytes]:
    """The same, byte by byte."""
    first: dict[int, tuple[int, int]] = {}
    for offset, data, time in pieces:
        for at, byte in enumerate(data):
            first.setdefault(offset + at, (byte, time))
    for start in sorted(first):
        if first[start][1] == 1 and all(first.get(start + n, (-1, 0))[0] in (byte, -1) for n, byte in enumerate(HEAD)):
            found = bytearray()
            while start + len(found) in first and len(found) < size:
                found.append(first[start + len(found)][0])
            if found.startswith(HEAD):
                return start, bytes(found)
    return 0, b""


@given(
    st.lists(st.tuples(st.integers(-40, 60), st.sampled_from([HEAD, b"he", b"adhead", b"x" * 9, b"y"]), st.integers(1, 2))),
    st.integers(4, 30),
)
def test_the_first_copy_of_a_byte_counts(pieces: Pieces, size: int) -> None:
    """Law: as of a dictionary of bytes; a look-alike that came at another time is passed over, a hole ends the frame."""
    assert laid(pieces, size) == plainly(pieces, size)


def test_what_claims_to_be_far_away_takes_no_room() -> None:
    """Sequence numbers may be any: what is farther away than the frame is long is none of its bytes."""
    pieces = [(0, HEAD, 1), ((1 << 31) - 2000, b"x" * 1000, 1), (-(1 << 31), b"x" * 1000, 1), (4, b"body", 1)]
    assert laid(pieces, 8) == (0, b"headbody")
    assert FrameLayout(place(8), 1 << 30)._reach == 8 + SEGMENT_BYTES_MAX


def test_memory_does_not_follow_the_number_of_pieces() -> None:
    """Law: a frame that came byte by byte, in order or not, takes what one in large packets does."""
    size = 10_000
    for swapped in (0, 1):
        layout = FrameLayout(place(size), size)
        tracemalloc.start()
        for at in range(size):
            layout.add(at ^ swapped, HEAD[at ^ swapped : (at ^ swapped) + 1] or b"x", 1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(layout.found()[1]) == size
        assert peak < 1.5 * size
