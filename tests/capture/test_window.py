"""A window forgets what was read and holds nothing back."""

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
