"""A window forgets what was read and holds nothing back."""

from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.window import FileWindow


def test_a_window_moves_on_and_keeps_the_place():
    data, asked = bytes(range(100)), []

    def read(size):
        asked.append(size)
        at = sum(asked[:-1])
        return data[at : at + size]

    window = FileWindow(read, largest=16, first=4)
    assert window.advance(0, 1)
    assert (window.base, window.buffer) == (0, data[:4])
    assert window.advance(3, 2)
    assert (window.base, window.buffer) == (3, data[3:12])
    assert window.advance(9, 30)
    assert window.base == 12
    assert window.buffer[:30] == data[12:42]
    assert max(asked) == 16
    assert not window.advance(0, 1000)
    assert window.buffer == data[12:]
    assert window.ended


def test_what_a_pipe_gives_is_handed_on():
    parts = [b"ab", b"c", b""]
    window = FileWindow(lambda _size: parts.pop(0))
    assert window.advance(0, 1)
    assert window.buffer == b"ab"
    assert not window.advance(2, 2)
    assert window.buffer == b"c"


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 60), st.integers(1, 90)), max_size=12), st.integers(1, 40))
def test_a_file_that_is_read_by_position_gives_the_same(data: bytes, steps: list[tuple[int, int]], largest: int) -> None:
    """Whatever is forgotten and needed, the window has the file's bytes from `base` on."""
    place = 0

    def read(size: int) -> bytes:
        nonlocal place
        place += size
        return data[place - size : place]

    plain = FileWindow(read, largest, first=2)
    placed = FileWindow(lambda _: b"never read", largest, first=2, read_at=lambda at, size: data[at : at + size])
    for forget, need in steps:
        at = min(forget, len(plain.buffer), len(placed.buffer))
        assert plain.advance(at, need) == placed.advance(at, need)
        assert plain.base == placed.base
        for window in (plain, placed):
            assert window.buffer == data[window.base : window.base + len(window.buffer)]
            assert len(window.buffer) >= min(need, len(data) - window.base)


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), max_size=8), st.integers(1, 40))
def test_a_window_goes_on_behind_what_it_has_read(data: bytes, steps: list[tuple[int, int]], largest: int) -> None:
    """However far ahead, in a file as in a pipe whose bytes come a few at a time: what lies between is not held."""
    stream = BytesIO(data)
    windows = [
        FileWindow(lambda size: stream.read(min(size, 7)), largest, first=2),
        FileWindow(lambda _: b"never read", largest, first=2, read_at=lambda at, size: data[at : at + size]),
    ]
    place = 0
    for ahead, need in steps:
        place += ahead
        for window in windows:
            there = window.advance(place - window.base, need)
            assert there is (place + need <= len(data))
            if there:
                assert window.base + window.at == place
                assert window.buffer[window.at :][:need] == data[place : place + need]
        if place + need > len(data):
            break
