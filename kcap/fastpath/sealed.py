"""TLS records in the fast path: opened in batches; kernels frame and pair their plaintext.

In: the packets of connections with TLS that a walk took, with their state before it. Out: rows, and sessions and streams as the
reference path would have them after these packets. Law: a connection with a record or a frame that is not simple is reset to
its state before the walk, except for what was taken completely. Its packets are then left to the reference path, which skips
that part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.handshakes import shake
from kcap.fastpath.sealed_connection import SealedConnection
from kcap.fastpath.sealed_kernels import delivered, framed, gathered
from kcap.fastpath.state import FastPathState
from kcap.kafka.decrypted import PIECE, PlaintextProgress
from kcap.net.segment_columns import SegmentColumns
from kcap.tls.direction import Direction
from kcap.tls.many_records import OpenedRecords, key_table, open_records
from kcap.tls.records import HEADER, RecordPiece
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.simple_handshake import SimpleSide

BOUNDS_ROOM: Final = 1 << 10
"""Initial room for records beyond two per piece."""
OF_LOG: Final = (at.P_PLACE, at.P_RTT, at.P_LOW)
LOGGED: Final = (at.G_PLACE, at.G_RTT, at.G_OFFSET)
"""Columns of a piece, and the columns of the log that they are copied from."""


@dataclass(slots=True)
class SealedSource:
    """One direction of a connection in a window."""

    connection: SealedConnection | TlsSession
    side: int
    direction: Direction | SimpleSide
    stream: PlaintextProgress
    offset: int
    """Stream offset of the first byte of the gathered ciphertext."""
    held: bytes
    """Bytes of an incomplete record from earlier windows."""
    pieces: Sequence[RecordPiece]
    """The packets of these bytes."""


def source_of(state: FastPathState, place: int) -> SealedSource:
    """The direction of a connection to which this stream belongs."""
    slot, index = place >> 1, place & 1
    sealed, conversation = state.sealed.get(slot), state.conversations[slot]
    connection: SealedConnection | TlsSession
    if sealed is not None:
        connection, side, stream = sealed, index ^ sealed.client, sealed.streams[index]
    else:
        assert conversation is not None
        assert conversation.tls is not None
        assert conversation.tls.plain is not None
        connection, side = conversation.tls.session, index ^ conversation.tls.swapped
        stream = conversation.tls.plain.streams[index]
    direction = connection.sides[side]
    return SealedSource(connection, side, direction, stream, *direction.held)


def read_sealed(state: FastPathState, columns: SegmentColumns, fresh: Any, secrets: Secrets) -> Any:
    """Reads what the walk took. Returns the slots of the connections that are left to the reference path from the first packet
    of the walk on.
    """
    undo, log, connections = state.undo[: state.meta[at.M_TOUCHED]], state.log[: state.meta[at.M_LOGGED]], state.connections
    slots = undo[:, at.U_SLOT]
    shake(state, columns, log, slots[connections[slots, at.TLS] == at.SHAKING], secrets)
    read = connections[log[:, at.G_PLACE] >> 1, at.TOUCHED] > 0
    carrying = log[read & (log[:, at.G_LENGTH] > log[:, at.G_TAKEN])]
    if len(carrying):
        SealedWindow(state, columns, carrying).read(fresh)
    unasked = slots[(connections[slots, at.TLS] == at.SHAKING) & (connections[slots, at.LIVE] != at.TALKING)]
    connections[unasked, at.TOUCHED] = -abs(connections[unasked, at.TOUCHED])
    stopped = undo[connections[slots, at.TOUCHED] < 0]
    connections[slots, at.TOUCHED] = 0
    cut = stopped[:, at.U_SLOT]
    state.set_back(cut, stopped)
    return cut


class SealedWindow:
    """The ciphertext of one walk."""

    def __init__(self, state: FastPathState, columns: SegmentColumns, log: Any) -> None:
        """`log`: rows of packets with payload."""
        self.state = state
        log = log[log[:, at.G_PLACE].argsort(kind="stable")]
        places = log[:, at.G_PLACE]
        firsts = np.concatenate([[0], (places[1:] != places[:-1]).nonzero()[0] + 1])
        self.places = places[firsts]
        self.offsets: list[int] = (log[firsts, at.G_OFFSET] + log[firsts, at.G_TAKEN]).tolist()
        """Stream offset of the first byte from this walk, for each stream."""
        self.sources = [source_of(state, place) for place in self.places.tolist()]
        self.pieces = self._pieces(columns, log)
        self.ends = self.pieces[self.pieces[:, at.P_PLACE].searchsorted(self.places, side="right") - 1, at.P_END]
        """End of each stream in the ciphertext."""
        self.starts = np.concatenate([[0], self.ends[:-1]])
        self.cipher = np.empty(int(self.ends[-1]), np.uint8)
        gathered(columns.data, self.pieces, self.cipher)
        for source, start, offset in zip(self.sources, self.starts.tolist(), self.offsets):
            if source.held:
                self.cipher[start : start + len(source.held)] = np.frombuffer(source.held, np.uint8)
            else:
                source.offset = offset
        self.bounds = self._bounds()

    def _pieces(self, columns: SegmentColumns, log: Any) -> Any:
        """All pieces; in each stream, those of earlier windows come first."""
        meta, index = self.state.meta, log[:, at.G_INDEX]
        pieces = np.empty((len(log), at.PIECE_WIDTH), np.int64)
        pieces[:, OF_LOG] = log[:, LOGGED]
        pieces[:, at.P_AT] = log[:, at.G_AT] + log[:, at.G_TAKEN]
        pieces[:, at.P_LENGTH] = log[:, at.G_LENGTH] - log[:, at.G_TAKEN]
        pieces[:, at.P_NS], pieces[:, at.P_POSITION] = columns.time_ns[index], columns.position[index]
        pieces[:, at.P_REF], pieces[:, at.P_ORDER] = index + meta[at.M_REF], index + meta[at.M_ORDER]
        pieces[:, at.P_HIGH] = log[:, at.G_OFFSET] + log[:, at.G_LENGTH]
        held = [
            (place, -1, piece.end - max(piece.start, source.offset), 0, piece.time_ns, piece.ref, piece.position, -1, at.NONE,
             piece.start, piece.end)
            for place, source in zip(self.places.tolist(), self.sources) if source.held
            for piece in source.pieces
        ]  # fmt: skip
        if held:
            pieces = np.concatenate([np.array(held, np.int64), pieces])
            pieces = pieces[pieces[:, at.P_PLACE].argsort(kind="stable")]
        pieces[:, at.P_LENGTH].cumsum(out=pieces[:, at.P_END])
        return pieces

    def _bounds(self) -> Any:
        """Stream, start and end of each record."""
        bounds = np.empty((2 * len(self.pieces) + BOUNDS_ROOM, 3), np.int64)
        count = framed(self.cipher, self.ends, bounds)
        if count > len(bounds):
            bounds = np.empty((count, 3), np.int64)
            framed(self.cipher, self.ends, bounds)
        return bounds[:count]

    def read(self, fresh: Any) -> None:
        """Opens the records and takes their plaintext."""
        bounds, sources, data = self.bounds, self.sources, self.cipher.tobytes()
        directions = [source.direction for source in sources]
        keys, numbers = key_table([direction.packed for direction in directions]), [each.number for each in directions]
        opened = open_records(data, bounds, keys, numbers, lambda place: directions[place].opener)
        stops, highs = opened.firsts + opened.counts, opened.sizes.cumsum()
        bad = stops[stops < opened.lasts]
        passed = np.concatenate([[0], opened.counts.cumsum()])
        opened_at = np.arange(len(highs)) + np.repeat(opened.firsts - passed[:-1], opened.counts)
        """Indexes of the bounds that were opened."""
        records = self._records(opened_at, opened, highs, bad)
        self._deliver(opened.plain, records, passed, highs, fresh)
        self._settle(data, opened_at, passed, highs)

    def _records(self, opened_at: Any, opened: OpenedRecords, highs: Any, bad: Any) -> Any:
        """The records in the order in which they were complete."""
        bounds, ends = self.bounds, self.pieces[:, at.P_END]
        records = np.empty((len(opened_at) + len(bad), at.RECORD_WIDTH), np.int64)
        good, rest = records[: len(opened_at)], records[len(opened_at) :]
        good[:, at.D_STREAM] = bounds[opened_at, 0]
        rest[:, at.D_STREAM] = bounds[bad, 0]
        records[:, at.D_PLACE] = self.places[records[:, at.D_STREAM]]
        good[:, at.D_LOW], good[:, at.D_HIGH] = highs - opened.sizes, highs
        good[:, at.D_CIPHER] = opened.starts[opened_at]
        good[:, at.D_FIRST] = ends.searchsorted(good[:, at.D_CIPHER], side="right")
        good[:, at.D_LAST] = ends.searchsorted(bounds[opened_at, 2])
        rest[:, at.D_LOW : at.D_LAST] = -1
        rest[:, at.D_LAST] = ends.searchsorted(bounds[bad, 1] + HEADER)
        return records[self.pieces[records[:, at.D_LAST], at.P_ORDER].argsort(kind="stable")]

    def _deliver(self, plain: Any, records: Any, passed: Any, highs: Any, fresh: Any) -> None:
        """Takes the plaintext of all records."""
        state, meta = self.state, self.state.meta
        nexts, ahead = [], []
        for source in self.sources:
            nexts.append(source.stream.next)
            ahead.append(max(source.stream.skip - source.stream.next, 0))
        lows = np.concatenate([[0], highs])[passed[:-1]]
        """Start of each stream in the plaintext."""
        self.done, held = lows + ahead, np.zeros(len(lows), np.int64)
        self.bases = nexts - lows
        self.spans, self.count = np.empty((len(records) + len(self.pieces), 5), np.int64), np.zeros(1, np.int64)
        first = 0
        while first < len(records):
            meta[at.M_FULL] = 0
            first = delivered(
                plain, records, first, self.pieces, self.done, held, self.bases, self.spans, self.count, state.arrays(fresh)
            )
            if meta[at.M_FULL]:
                stream = records[first, at.D_STREAM]
                state.more_room(int(records[first, at.D_HIGH] - self.done[stream]))
        meta[at.M_FULL] = 0

    def _settle(self, data: bytes, opened_at: Any, passed: Any, highs: Any) -> None:
        """Leaves sessions and streams in the state that the reference path would have after what was taken. `passed` has the
        first of the opened records of each stream, and their number.
        """
        first, streams = passed[:-1], np.arange(len(passed) - 1)
        wholes = np.minimum(highs.searchsorted(self.done, side="right"), passed[1:]) - first
        """Number of records that were taken completely."""
        last, some = np.maximum(first + wholes - 1, 0), wholes > 0
        afters, nexts = self.starts.copy(), np.full(len(streams), -1)
        if len(highs):
            afters[some] = self.bounds[opened_at[last[some]], 2]
            nexts[some] = self.bases[some] + highs[last[some]]
        self._leave_open_ones(afters)
        cut = self.state.connections[self.places >> 1, at.TOUCHED] < 0
        spans = self.spans[: self.count[0]]
        spans = spans[spans[:, 0].argsort(kind="stable")]
        lows, ends = (spans[:, 0].searchsorted(streams, side=side) for side in ("left", "right"))
        stops = lows + np.bincount(spans[:, 0], spans[:, 2] <= nexts[spans[:, 0]], len(streams)).astype(np.int64)
        lows = np.maximum(lows, ends - limits.REPEATS_KEPT)
        packed = spans[:, 1:].tobytes()
        columns = wholes, self.starts, afters, self.ends, self.bases + self.done, nexts, cut, lows, stops
        each = zip(self.sources, self.offsets, *(column.tolist() for column in columns))
        for source, offset, whole, start, after, end, skip, at_next, is_cut, low, stop in each:
            source.connection.passed(source.side, whole, after - start)
            stream = source.stream
            if whole:
                stream.next = at_next
            stream.skip = skip
            if low < stop:
                stream.passed(packed[low * PIECE.size : stop * PIECE.size])
            self._restart(source, data, start, after, end, offset, is_cut=is_cut)

    def _leave_open_ones(self, afters: Any) -> None:
        """Leaves connections that end without a request, or with something incomplete, to the reference path. `afters` has the
        end of the taken part of each stream in the ciphertext.
        """
        connections, streams, slots = self.state.connections, self.state.streams, self.places >> 1
        streams[self.places, at.HELD] = self.ends - afters
        both = 2 * slots[:, None] + (0, 1)
        incomplete = ((streams[both, at.HELD] > 0) | (streams[both, at.OPEN_START] >= 0)).any(axis=1)
        open_ones = incomplete | (connections[slots, at.TLS] == at.SHAKING)
        left = slots[open_ones & (connections[slots, at.LIVE] != at.TALKING)]
        connections[left, at.TOUCHED] = -abs(connections[left, at.TOUCHED])

    def _restart(
        self, source: SealedSource, data: bytes, start: int, after: int, end: int, offset: int, *, is_cut: bool
    ) -> None:
        """Sets the bytes that the record reader of a stream holds: those from `after` on, or only those of earlier windows."""
        direction, at_offset = source.direction, source.offset + after - start
        if is_cut:
            end = min(end, start + len(source.held))
            source.stream.taken = max(at_offset, offset)
        if after >= end:
            direction.restart(at_offset, b"", ())
            return
        ends = self.pieces[:, at.P_END]
        some = self.pieces[ends.searchsorted(after, side="right") : ends.searchsorted(end) + 1]
        columns = some[:, (at.P_LOW, at.P_HIGH, at.P_NS, at.P_REF, at.P_POSITION)].tolist()
        direction.restart(at_offset, data[after:end], [RecordPiece(*piece) for piece in columns])
