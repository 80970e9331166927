"""Extracts TLS records from one direction's stream bytes, with the packets that carried them.

In: stream bytes in order, and holes. Out: complete records, records with missing bytes, and the places at which the record
boundary was lost. Law: the pieces of a record tile its bytes. After a hole over a record header, a boundary is only proposed:
the caller accepts it (because the record authenticates) or refuses it. Source: RFC 5246 section 6.2.1, RFC 8446 section 5.1.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from kcap.limits import TLS_READ_BYTES

HEADER, NONCE = 5, 12
"""Bytes of the header of a record, and of a nonce of an AEAD."""
TLS13: Final = 0x0304
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
"""Content types."""
TYPES: Final = frozenset({20, 21, 22, 23, 24})
LENGTH_MAX: Final = (1 << 14) + 2048
"""Longest fragment of a protected record (RFC 5246 section 6.2.3)."""


class RecordPiece(NamedTuple):
    """Stream bytes that one packet carried: their offsets, and the packet."""

    start: int
    end: int
    time_ns: int
    ref: int
    position: int


@dataclass(slots=True)
class TlsRecord:
    offset: int
    """Stream offset of its header."""
    content_type: int
    version: int
    body: bytes
    pieces: list[RecordPiece]
    whole: bool = True
    """Whether all its bytes were captured."""
    proposed: bool = False
    """Whether its boundary was only found by shape."""
    behind: int = 0
    """Stream bytes between the previous record and this one that could not be read as records."""
    beginning: bytes = b""
    """For a record with a hole, the bytes of its body before the hole."""


class RecordReader:
    """Splits one direction into records. Positions are stream offsets."""

    __slots__ = ("_at", "_base", "_data", "_holes", "_looked", "_pieces", "searching", "skipped", "wanted")

    def __init__(self) -> None:
        self.searching = False
        """Whether the record boundary is unknown."""
        self.skipped = 0
        """Stream bytes skipped since the last record, including holes."""
        self.wanted = 0
        """Stream offset before which no record is complete, so that `next` need not be called."""
        self._data = bytearray()
        self._base = 0
        """Stream offset of the first byte of `_data`."""
        self._at = 0
        """Stream offset of the next record, or where the search for one continues."""
        self._looked = 0
        """Number of bytes after `_at` at which no record begins."""
        self._pieces: list[RecordPiece] | tuple[()] = ()
        self._holes: list[tuple[int, int]] | tuple[()] = ()
        """Start and end of holes; `_data` holds zeros there. It is a list, because an empty deque takes 600 bytes and few holes
        wait here.
        """

    @property
    def end(self) -> int:
        """Offset after the last byte taken."""
        return self._base + len(self._data)

    @property
    def next_offset(self) -> int:
        """Stream offset of the next record."""
        return self._at

    @property
    def held_bytes(self) -> int:
        """Number of stream bytes held from the next record on."""
        return self.end - self._at

    @property
    def idle(self) -> bool:
        """Whether the next byte begins a record, and no bytes are held."""
        return self._at >= self._base + len(self._data) and self.tidy

    def feed(
        self, offset: int, data: bytes, length: int, time_ns: int, ref: int, position: int, first: int | None = None
    ) -> None:
        """Takes stream bytes in order; those beyond `data` up to `length` were not captured.

        `first` is the offset of the packet's first byte, if earlier bytes of it were taken elsewhere.
        """
        if self._at >= self._base + len(self._data) or self._at - self._base > TLS_READ_BYTES:
            self._room(offset)
        self._data += data
        self._pieces = self._pieces or []
        self._pieces.append(RecordPiece(offset if first is None else first, offset + length, time_ns, ref, position))
        if len(data) < length:
            self._hole(offset + len(data), offset + length)

    @property
    def tidy(self) -> bool:
        """Whether the held bytes are only the beginning of a record."""
        return not self.searching and not self.skipped and not self._holes

    def held(self) -> tuple[int, bytes, list[RecordPiece]]:
        """The offset of the next record, its bytes so far and their packets."""
        if not self._data:
            return self._at, b"", []
        return self._at, bytes(self._data[self._at - self._base :]), list(self._pieces)

    def restart(self, offset: int, data: bytes, pieces: list[RecordPiece] | tuple[()]) -> None:
        """Sets the offset of the next record, its bytes so far in `data`, and their packets in `pieces`, a list that is not
        shared.
        """
        self._data[:] = data
        self._base = self._at = offset
        self._pieces = pieces
        self.wanted = 0

    def gap(self, offset: int, length: int) -> None:
        self._room(offset)
        self._hole(offset, offset + length)

    def _room(self, offset: int) -> None:
        """Drops bytes that were read."""
        if self._at >= self.end:
            self._at = max(offset, self._at)
            self._forget()
        elif self._at - self._base > TLS_READ_BYTES:
            del self._data[: self._at - self._base]
            self._base = self._at

    def _forget(self) -> None:
        """Drops all bytes, which were read. Many connections are idle."""
        self._data.clear()
        self._base = self._at

    def _hole(self, start: int, end: int) -> None:
        if end - start > 2 * LENGTH_MAX:  # no record can span it
            self.skipped += end - self._at
            self._pieces = ()
            self._holes = ()
            self._data.clear()
            self._base = self._at = end
            self.searching, self._looked = True, 0
            return
        self._data += bytes(end - start)
        if not self._holes:
            self._holes = []
        self._holes.append((start, end))

    def next(self, *, final: bool = False) -> TlsRecord | None:
        """The next record; None while bytes are missing. A proposed record remains the next one until `accept` or `refuse`."""
        data, start = self._data, self._at - self._base
        if not self.searching and not self._holes and len(data) - start >= HEADER:
            size = HEADER + (data[start + 3] << 8 | data[start + 4])
            if size <= len(data) - start and data[start] in TYPES and data[start + 1] == 3 and size <= HEADER + LENGTH_MAX:
                return self._simple(start, size)
        while self._at < self.end:
            if self.searching:
                return self._proposed(final)
            data, start, holes = self._data, self._at - self._base, self._holes
            hole = self._hole_in(self._at, self._at + HEADER) if holes else None
            if hole is not None:
                if hole[1] < self._at + HEADER and self.end < self._at + HEADER and not final:
                    return None
                self._pass(max(hole[1] - self._at, 1))
                self.searching = True
                continue
            room = len(data) - start
            if room < HEADER:
                return None
            size = HEADER + (data[start + 3] << 8 | data[start + 4])
            if data[start] not in TYPES or data[start + 1] != 3 or size > HEADER + LENGTH_MAX:
                self.searching, self._looked = True, 0
                continue
            if room < size:
                if not final:
                    self.wanted = self._at + size
                    return None
                return self._taken(room, whole=False)
            hole = self._hole_in(self._at, self._at + size) if holes else None
            if hole is None:
                return self._taken(size, whole=True)
            record = self._taken(size, whole=False)
            record.beginning = record.body[: max(hole[0] - record.offset - HEADER, 0)]
            return record
        return None

    def _hole_in(self, start: int, end: int) -> tuple[int, int] | None:
        return next((hole for hole in self._holes if hole[0] < end and hole[1] > start), None)

    def _pass(self, size: int) -> None:
        """Skips bytes that belong to no readable record."""
        self.skipped += size
        self._advance(size)

    def _advance(self, size: int) -> None:
        self._at += size
        self._looked = max(self._looked - size, 0)
        pieces, holes = self._pieces, self._holes
        passed = 0
        for piece in pieces:
            if piece.end > self._at:
                break
            passed += 1
        if pieces and passed:
            del pieces[:passed]
        if self._at >= self.end:
            self._forget()
        if holes:
            del holes[: next((i for i, hole in enumerate(holes) if hole[1] > self._at), len(holes))]

    def _record(self, size: int, *, whole: bool, proposed: bool) -> TlsRecord:
        start = self._at - self._base
        data, end = self._data, self._at + size
        pieces = []
        for piece in self._pieces:
            if piece.start >= end:
                break
            pieces.append(piece)
        version = data[start + 1] << 8 | data[start + 2]
        body = bytes(data[start + HEADER : start + size])
        return TlsRecord(self._at, data[start], version, body, pieces, whole, proposed, self.skipped)

    def _simple(self, start: int, size: int) -> TlsRecord:
        """The record whose `size` bytes are in `_data[start:]`, in one packet as in most cases."""
        data, pieces, at = self._data, self._pieces, self._at
        if not pieces or pieces[0].end < at + size:
            return self._taken(size, whole=True)
        body = bytes(data[start + HEADER : start + size])
        record = TlsRecord(at, data[start], 768 | data[start + 2], body, pieces[:1], behind=self.skipped)
        self.skipped, self._at = 0, at + size
        if pieces[0].end == at + size:
            del pieces[0]
        if len(data) == start + size:
            self._forget()
        return record

    def _taken(self, size: int, *, whole: bool) -> TlsRecord:
        record = self._record(size, whole=whole, proposed=False)
        self.skipped = 0
        self._advance(size)
        return record

    def _proposed(self, final: bool) -> TlsRecord | None:
        """A complete record that begins where a header could be; None if there is none."""
        data = self._data
        while True:
            found = data.find(b"\x03", self._at - self._base + self._looked + 1)
            if found < 0:
                self._pass(max(len(data) - 1 - (self._at - self._base), 0))
                return None
            at = self._base + found - 1
            room = self.end - at
            if room < HEADER:
                self._pass(at - self._at)
                return None
            length = int.from_bytes(data[found + 2 : found + 4], "big")
            fits = data[found - 1] in TYPES and data[found + 1] <= 4 and 0 < length <= LENGTH_MAX
            if fits and self._hole_in(at, min(at + HEADER + length, self.end)) is None:
                if room >= HEADER + length:
                    self._pass(at - self._at)
                    return self._record(HEADER + length, whole=True, proposed=True)
                if not final:
                    self._pass(at - self._at)
                    return None
            self._looked = at + 1 - self._at

    def accept(self, record: TlsRecord) -> None:
        """Accepts the proposed record: reading continues after it."""
        self.searching = False
        self.skipped = 0
        self._looked = 0
        self._advance(HEADER + len(record.body))

    def refuse(self) -> None:
        """Refuses the proposed record: the search continues one byte later."""
        self._looked = 1
