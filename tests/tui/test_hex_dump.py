"""Bytes as lines."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.frame_bytes import PacketSpan
from kcap.tui.hex_dump import OFFSET, WIDE, Dump

NARROW = OFFSET + 2 + 8 * 3 + 1 + 8
"""Cells of a line of eight bytes."""


def text(dump: Dump, width: int) -> list[str]:
    return ["".join(part for part, _ in dump.line(at, width, focused=False)).rstrip() for at in range(dump.height(width))]


def test_lines() -> None:
    dump = Dump(b"\x00\x01kafka" + bytes(range(0xF0, 0xFC)))
    assert text(dump, WIDE) == [
        "000000  00 01 6b 61 66 6b 61 f0  f1 f2 f3 f4 f5 f6 f7 f8  ··kafka·········",
        "000010  f9 fa fb                                          ···",
    ]
    assert text(dump, NARROW)[0] == "000000  00 01 6b 61 66 6b 61 f0  ··kafka·"


@given(st.binary(max_size=70), st.sampled_from([WIDE, NARROW, 120]), st.data())
def test_every_byte_stands_once(data: bytes, width: int, draws: st.DataObject) -> None:
    """Law: the digits are the bytes, hidden ones apart, and no line is wider than there is room."""
    start = draws.draw(st.integers(0, len(data)))
    end = draws.draw(st.integers(start, len(data)))
    dump = Dump(data, hidden=[(start, end)], start=start, end=end)
    lines = text(dump, width)
    assert all(len(line) <= width for line in lines)
    per = dump.per_line(width)
    digits = " ".join(line[8 : 8 + per * 3 + (per > 8)] for line in lines).split()
    assert digits == ["**" if start <= at < end else f"{byte:02x}" for at, byte in enumerate(data)]
    assert dump.hex(0, len(data)).split() == digits


def test_the_chosen_span_counts_from_the_frame() -> None:
    dump = Dump(bytes(20), shift=4)
    dump.choose(2, 5)
    assert (dump.start, dump.end, dump.cursor) == (6, 9, 6)
    tones = [tone for part, tone in dump.line(0, WIDE, focused=True) if part == "00"]
    assert tones[6:9] == ["cell", "pick", "pick"]


def test_packets_are_told() -> None:
    dump = Dump(bytes(40), spans=[PacketSpan(0, 20, 7), PacketSpan(20, 40, 9)])
    assert (dump.packet(19), dump.packet(20), dump.packet(40)) == (7, 9, None)
    lines = text(dump, WIDE + 20)
    assert [line.endswith(mark) for line, mark in zip(lines, ("#7", "#9"))] == [True, True]
    dump.cursor = 20
    assert dump.where() == "byte 20 of 40, packet 9"


def test_search_goes_around() -> None:
    dump = Dump(b"abcabc")
    assert dump.search(b"bc", 1)
    assert dump.cursor == 1
    assert dump.search(b"bc", 1)
    assert dump.cursor == 4
    assert dump.search(b"bc", 1)
    assert dump.cursor == 1
    assert dump.search(b"bc", -1)
    assert dump.cursor == 4
    assert not dump.search(b"x", 1)
    assert not dump.search(b"", 1)
