"""Records out of stream bytes, however they were cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls.records import LENGTH_MAX, RecordReader, TlsRecord


def framed(*bodies: bytes, kind: int = 23) -> bytes:
    return b"".join(bytes([kind, 3, 3]) + len(body).to_bytes(2, "big") + body for body in bodies)


def feed(reader: RecordReader, data: bytes, cut: int, offset: int = 0) -> list[TlsRecord]:
    out = []
    for at in range(0, len(data), cut):
        piece = data[at : at + cut]
        reader.feed(offset + at, piece, len(piece), at, at, at)
        while (record := reader.next()) is not None:
            out.append(record)
    return out


@given(st.lists(st.binary(max_size=50), max_size=9), st.integers(1, 80))
def test_the_cut_changes_nothing_and_pieces_tile_the_record(bodies: list[bytes], cut: int) -> None:
    records = feed(RecordReader(), framed(*bodies), cut)
    assert [record.body for record in records] == bodies
    for record in records:
        end = record.offset + 5 + len(record.body)
        covered = {at for piece in record.pieces for at in range(piece.start, piece.end)}
        assert set(range(record.offset, end)) <= covered


def test_a_hole_inside_a_record_costs_that_record() -> None:
    data, reader = framed(b"a" * 20, b"b" * 20, b"c" * 20), RecordReader()
    found = feed(reader, data[:35], 35)
    reader.gap(35, 5)
    reader.feed(40, data[40:], len(data) - 40, 0, 0, 0)
    while (record := reader.next()) is not None:
        found.append(record)
    assert [(record.body[:1], record.whole) for record in found] == [(b"a", True), (b"b", False), (b"c", True)]


def test_behind_a_hole_over_a_header_a_boundary_is_proposed_and_may_be_refused() -> None:
    data, reader = framed(b"a" * 20, b"\x17\x03\x03\x00\x02" + b"b" * 15, b"c" * 20), RecordReader()
    feed(reader, data[:25], 25)
    reader.gap(25, 5)
    reader.feed(30, data[30:], len(data) - 30, 0, 0, 0)
    wrong = reader.next()
    assert wrong is not None
    assert (wrong.proposed, wrong.body, wrong.offset) == (True, b"bb", 30)
    reader.refuse()
    right = reader.next()
    assert right is not None
    assert (right.proposed, right.body, right.behind) == (True, b"c" * 20, 25)
    reader.accept(right)
    assert reader.next() is None
    assert not reader.searching


def test_bytes_behind_the_snapshot_length_are_a_hole() -> None:
    reader = RecordReader()
    reader.feed(0, framed(b"a" * 90)[:40], 95, 0, 0, 0)
    record = reader.next()
    assert record is not None
    assert not record.whole
    assert len(feed(reader, framed(b"b"), 3, 95)) == 1


@given(st.lists(st.one_of(st.binary(max_size=60), st.integers(1, 3 * LENGTH_MAX)), max_size=12))
def test_any_bytes_and_holes_are_taken(parts: list[bytes | int]) -> None:
    reader, offset = RecordReader(), 0
    for part in parts:
        if isinstance(part, int):
            reader.gap(offset, part)
            offset += part
        else:
            reader.feed(offset, part, len(part), 0, 0, 0)
            offset += len(part)
        for _ in range(10_000):
            record = reader.next()
            if record is None:
                break
            if record.proposed:
                reader.refuse()
        else:
            raise AssertionError("the search does not end")
    while (record := reader.next(final=True)) is not None:
        if record.proposed:
            reader.refuse()


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(1, 40), st.lists(st.booleans(), min_size=1))
def test_before_the_wanted_offset_no_record_is_complete(sizes: list[int], cut: int, lost: list[bool]) -> None:
    """Law: a reader that is only called from `wanted` on gives the records that one called for every piece gives."""
    stream = b"".join(b"\x17\x03\x03" + size.to_bytes(2, "big") + bytes([at]) * size for at, size in enumerate(sizes))
    always, seldom = RecordReader(), RecordReader()
    found: tuple[list[object], list[object]] = ([], [])
    for number, at in enumerate(range(0, len(stream), cut)):
        piece = stream[at : at + cut]
        for reader, out, eager in ((always, found[0], True), (seldom, found[1], False)):
            if lost[number % len(lost)] and number:
                reader.gap(at, len(piece))
            else:
                reader.feed(at, piece, len(piece), number, number, at)
                if not eager and reader.end < reader.wanted:
                    continue
            while (record := reader.next()) is not None and not record.proposed:
                out.append(record)
    assert found[0] == found[1]


@pytest.mark.parametrize("cut", [7, 1000])
def test_of_records_that_were_read_no_byte_is_held(cut: int) -> None:
    reader = RecordReader()
    data = framed(bytes(10), bytes(300), bytes(5))
    assert len(feed(reader, data, cut)) == 3
    assert reader.idle
    assert reader.held() == (len(data), b"", [])
    assert not reader._data
