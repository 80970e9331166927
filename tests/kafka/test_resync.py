"""The search for a boundary: nothing is lost, wherever it ends."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.kafka.resync import NO_PACKET, BoundarySearch, Piece, Region, enough
from kcap.limits import RESYNC_PIECE_BYTES


class Marks:
    """A judge that takes the byte 0x4D for a boundary once two more bytes are there."""

    resync_room = limits.RESYNC_BYTES

    held = 0

    def resynced_over(self, size: int) -> None:
        """Costs nothing."""

    def resync_holds(self, change: int) -> None:
        self.held += change

    def candidates(self, region: Region, start: int) -> Iterable[int]:
        return [i for low, high in region.captured(start) for i in range(low, high) if region.data[i] == 0x4D]

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        if region.have(at) < 3:
            return None if region.comes(at, 3) and not final else False
        return region.data[at] == 0x4D


def piece(offset: int, data: bytes, length: int | None = None) -> Piece:
    return Piece(offset, data, len(data) if length is None else length, 1, 1, 0)


@given(st.lists(st.tuples(st.binary(max_size=12), st.integers(0, 4)), max_size=12), st.data())
def test_every_byte_is_handed_back_kept_or_skipped(chunks: list[tuple[bytes, int]], data: st.DataObject) -> None:
    direction = Marks()
    search, offset, came = BoundarySearch(direction), 0, 0
    found = None
    for chunk, cut in chunks:
        length = len(chunk) + cut
        if data.draw(st.booleans()) and length:
            found = search.hole(offset, length)
        else:
            came += length
            found = search.data(piece(offset, chunk, length))
        offset += length
        if found is not None:
            break
    if found is None:
        found = search.finish()
    back = 0 if found is None else sum(p.length for p in found if p.ref != NO_PACKET)
    held = search.held if found is None else 0
    assert came == back + held + search.skipped
    assert direction.held == 0
    if found:
        assert found[0].data[:1] == b"M"


def test_a_boundary_may_need_bytes_that_come_later() -> None:
    search = BoundarySearch(Marks())
    assert search.data(piece(0, b"xxM")) is None
    assert search.data(piece(3, b"y")) is None
    assert search.data(piece(4, b"z")) == [Piece(2, b"M", 1, 1, 1, 0), piece(3, b"y"), piece(4, b"z")]
    assert search.skipped == 2


def test_what_is_kept_is_bounded() -> None:
    search = BoundarySearch(Marks())
    chunk = bytes(1 << 20)
    for i in range(12):
        assert search.data(piece(i << 20, chunk)) is None
        assert search.held <= limits.RESYNC_BYTES + len(chunk)
    assert search.skipped + search.held == 12 << 20


def test_a_region_knows_its_holes() -> None:
    region = Region()
    region.add(piece(0, b"abc", 5))
    region.hole(2)
    region.add(piece(7, b"hi"))
    assert [region.have(i) for i in (0, 2, 3, 6, 7, 8, 9)] == [3, 1, 0, 0, 2, 1, 0]
    assert list(region.captured(1)) == [(1, 3), (7, 9)]
    assert region.comes(8, 2)
    assert not region.comes(0, 4)
    region.drop(4)
    assert (len(region), region.have(0), region.have(3)) == (5, 0, 2)


def test_evidence_grows_with_what_is_missing() -> None:
    assert not enough(34, 458_757)
    assert enough(1448, 100 << 20)
    assert enough(34, 100)
    assert enough(5, 5)
    assert enough(12, 2528)
    sizes = [next(size for size in (1 << bits for bits in range(6, 31)) if not enough(seen, size)) for seen in (20, 40, 80)]
    assert sizes == sorted(sizes)


class Patient(Marks):
    """Takes the byte 0x4D for a boundary once a thousand more bytes are there, and counts how often it looks."""

    looks = 0

    def candidates(self, region: Region, start: int) -> Iterable[int]:
        return [at for at in range(start, len(region)) if region.data[at] == 0x4D]

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        self.looks += 1
        return None if region.comes(at, 1000) and not final else False


def test_a_place_that_waits_is_looked_at_again_only_when_its_bytes_are_there() -> None:
    """Operations counted: a place for each of many small segments, each of which waits for a hundred segments."""
    direction = Patient()
    search = BoundarySearch(direction)
    for number in range(600):
        assert search.data(piece(10 * number, b"M123456789")) is None
    assert direction.looks <= 4 * 600


def test_a_hole_decides_what_waits() -> None:
    direction = Patient()
    search = BoundarySearch(direction)
    for number in range(20):
        search.data(piece(10 * number, b"M123456789"))
    assert len(search.waiting) > 0
    assert search.hole(200, 50) is None
    assert search.waiting == set()


def test_packets_of_a_byte_cost_what_they_hold() -> None:
    """Law: what a resync holds is bounded in memory, not in bytes of the stream alone."""
    direction = Marks()
    search = BoundarySearch(direction)
    most = direction.resync_room // RESYNC_PIECE_BYTES
    for offset in range(3 * most):
        assert search.data(piece(offset, b"x")) is None
        assert len(search.pieces) <= most
        assert direction.held == search.size
    assert search.skipped > most
