"""Splits one direction's bytes into length-prefixed frames. It steps over holes, and resyncs if the frame boundary is lost.

In: `data` and `gap` of a stream. Out: `begun` when a frame's header is known, `completed` after its last byte. Laws: any
chunking of the same complete messages gives the same frames; every unique stream byte is counted as framed, skipped or pending.

A hole inside a frame is harmless, because the length says where the next frame starts. A hole over a length prefix, or bytes
that cannot start a frame, start a resync (`kcap.kafka.resync.BoundarySearch`). If a length was damaged, so that a frame
announces more bytes than its message has, the frame ends where a segment begins with the next frame. `TRANSITIONS` is the state
table.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from kcap import limits
from kcap.decode.interpreter import COMPLETE, TRAILING
from kcap.decode.projection import Resumable
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_values import Pieces, fed
from kcap.kafka.frames import FLAG, Frame
from kcap.kafka.resync import NO_PACKET, BoundarySearch, Piece, Region
from kcap.limits import PIECE_COST
from kcap.model import REF_FILE_SHIFT, Transition
from kcap.net.tcp import Stream
from kcap.weird import WeirdKind

GAP, SNAPLEN, TRUNCATED, RESYNCED = FLAG["gap"], FLAG["snaplen"], FLAG["truncated"], FLAG["resynced"]


BOUNDARY, HEADER, BODY, RESYNC = "boundary", "header", "body", "resync"
TRANSITIONS: Final = (
    Transition(BOUNDARY, "start_midstream", RESYNC),
    Transition(BOUNDARY, "data", HEADER),
    Transition(BOUNDARY, "gap", RESYNC),
    Transition(HEADER, "data", BODY),
    Transition(HEADER, "data", BOUNDARY),
    Transition(HEADER, "data", RESYNC),
    Transition(HEADER, "gap", BODY),
    Transition(HEADER, "gap", BOUNDARY),
    Transition(HEADER, "gap", RESYNC),
    Transition(BODY, "data", BOUNDARY),
    Transition(BODY, "gap", BOUNDARY),
    Transition(BODY, "gap", RESYNC),
    Transition(HEADER, "finish", BODY),
    Transition(RESYNC, "data", BOUNDARY),
    Transition(RESYNC, "data", BODY),
    Transition(RESYNC, "finish", BODY),
    Transition(RESYNC, "finish", BOUNDARY),
)
"""States of a framer, with the transitions for single bytes of data. `header`: the header of the open frame is not known yet.
`body`: its header is known, or known to be lost."""


def halves(piece: Piece, size: int) -> tuple[Piece, Piece]:
    """Returns the first `size` bytes of a piece, and the rest."""
    first = piece._replace(data=piece.data[:size], length=size)
    return first, piece._replace(offset=piece.offset + size, data=piece.data[size:], length=piece.length - size)


class OpenFrame:
    """A frame whose last byte has not been reached."""

    __slots__ = (
        "contiguous", "crossed", "excerpts", "first_ns", "first_ref", "flags", "head", "header", "high", "last_ns", "last_ref",
        "low", "pieces", "received", "rest", "size", "start", "subject",
    )  # fmt: skip

    def __init__(self, start: int) -> None:
        self.start = start
        self.size = 0
        """Bytes, with the prefix; 0 while the prefix is incomplete."""
        self.head = bytearray()
        """The contiguous bytes from the prefix on, as far as they are buffered."""
        self.rest: Resumable | None = None
        """The resumable reader of a frame that is not buffered. It has read all bytes of the body so far."""
        self.excerpts: Pieces = ()
        """All of these bytes except records, if the fast path stored them and no further byte or hole has come."""
        self.contiguous = True
        self.header = False
        """Whether the header is known, or known to be lost."""
        self.subject: object = None
        """The exchange or response that `begun` made of it; None if it gives no row."""
        self.pieces: list[Piece] | None = []
        """The pieces to resync over if the header turns out to be impossible; None once it is known."""
        self.received = 0
        self.first_ns: int | None = None
        self.first_ref: int | None = None
        self.last_ns: int | None = None
        self.last_ref: int | None = None
        self.low: int | None = None
        self.high: int | None = None
        self.flags = 0
        self.crossed = False

    def touch(self, ref: int, position: int) -> None:
        """Registers a packet that carried bytes of this frame. Offsets in another file than the first's are not compared."""
        if self.low is not None and self.first_ref is not None and ref >> REF_FILE_SHIFT != self.first_ref >> REF_FILE_SHIFT:
            self.high = position if self.high is None or self.crossed is False else max(self.high, position)
            self.crossed = True
        elif self.low is None or self.high is None:
            self.low = self.high = position
        elif position < self.low:
            self.low = position
        elif position > self.high:
            self.high = position

    @property
    def small(self) -> bool:
        """Whether it would be buffered completely, if other frames left enough memory."""
        return self.size <= limits.FRAME_GATHERED_MAX + 4

    @property
    def held(self) -> int:
        """Memory that it takes, bytes."""
        held = len(self.head) + sum(len(data) for _, data in self.excerpts)
        if self.pieces is not None:
            held += self.received + PIECE_COST * len(self.pieces)
        return held if self.rest is None else held + self.rest.held

    def frame(self) -> Frame:
        return Frame(
            self.start, self.size, self.first_ns, self.first_ref, self.last_ns, self.last_ref, self.low, self.high, self.flags
        )


class Framer:
    """Base class of the framers of both directions. Each direction defines what a header is and what counts as a boundary."""

    def __init__(self, stream: Stream, bodies: BodyCollector) -> None:
        self.stream = stream
        self.bodies = bodies
        self.open: OpenFrame | None = None
        self.search: BoundarySearch | None = None
        self.boundary_flags = 0
        """Flags for the next frame, set by resync."""
        self.losses = 0
        """Number of holes and resyncs so far."""
        self.frames = 0
        self.framed = 0
        self.skipped = 0
        self.spent = 0
        """Number of bytes that resyncs have taken, and of bytes of bodies that they read, each time they did so."""
        self.counted = 0
        """Memory of the open frame, as counted in the sum of all connections."""

    # -- defined by each direction ------------------------------------------------------------------------------------
    def sane(self, size: int) -> bool:
        """Whether a frame can announce this many bytes (without the prefix)."""
        raise NotImplementedError

    def begun(self, frame: OpenFrame, final: bool) -> bool | None:
        """Reads the header from `frame.head`. Returns True if it is known, None if more bytes are needed, False if there can be
        none.

        `final` says that no more contiguous bytes will come.
        """
        raise NotImplementedError

    def resumed(self, frame: OpenFrame, *, light: bool = False) -> Resumable | None:
        """Makes a resumable reader that has read the frame's buffered bytes. Returns None if no program is known, or if it
        should be `light` but would have to hold many of these bytes."""
        raise NotImplementedError

    def completed(self, frame: OpenFrame, whole: bool) -> None:
        """The frame is over: its last byte was reached, or the stream ended inside it (`whole` is False)."""
        raise NotImplementedError

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        """Whether a frame boundary can be at `region[at]`; None if more bytes are needed to decide. `final` says that none will
        come.

        `first` says that the region starts where the capture of this stream starts; a boundary there needs less evidence.
        """
        raise NotImplementedError

    def candidates(self, region: Region, start: int) -> Iterable[int]:
        """Positions from `region[start]` on at which a frame could start."""
        raise NotImplementedError

    def follows(self, frame: OpenFrame, buffer: bytes, at: int, captured: int) -> bool:
        """Whether a segment, of which these bytes were captured, begins with what looks like the frame after an open one."""
        raise NotImplementedError

    # -- bytes --------------------------------------------------------------------------------------------------------
    def slow(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Takes bytes in any state. The direction's `data` handles the simple case before."""
        if self.search is None:
            again = self._read(offset, buffer, at, captured, length, time_ns, ref, position)
        else:
            again = [Piece(offset, bytes(buffer[at : at + captured]), length, time_ns, ref, position)]
        if again:
            self._reread(again)
        self.count()

    def _reread(self, pieces: list[Piece]) -> None:
        """Takes pieces that are read again, some of them by resync. It is a loop because one resync may follow another."""
        queue = deque(pieces)
        while queue:
            piece = queue.popleft()
            offset, data, length, time_ns, ref, position = piece
            if ref == NO_PACKET:
                again = self._gap(offset, length)
            elif self.search is None:
                again = self._read(offset, data, 0, len(data), length, time_ns, ref, position)
            elif length > limits.RESYNC_BYTES_LATER and self.overspent:
                queue.extendleft(reversed(halves(piece, limits.RESYNC_BYTES_LATER)))
                continue
            else:
                self.stream.connection.searched(ref)
                again = self._found(self.search.data(piece))
            queue.extendleft(reversed(again))

    def _read(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> list[Piece]:
        """Reads frames until the bytes end. If the boundary is lost, returns the pieces to resync over."""
        frame = self.open
        if (
            frame is not None
            and self.follows(frame, buffer, at, captured)
            and self._is_over(frame, buffer, at, captured, length)
        ):
            if not frame.header:
                again = self._lose(frame, WeirdKind.BOUNDARY_LOST)
                return [*again, Piece(offset, bytes(buffer[at : at + captured]), length, time_ns, ref, position)]
            self._give_up(frame, ref)
        return self._read_on(offset, buffer, at, captured, length, time_ns, ref, position)

    def _read_on(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> list[Piece]:
        """As `_read`, beginning within the open frame."""
        while length > 0:
            frame = self.open
            if frame is None:
                frame = self.open = OpenFrame(offset)
                frame.first_ns, frame.first_ref = time_ns, ref
                frame.flags, self.boundary_flags = self.boundary_flags, 0
            prefix = not frame.size
            end = frame.start + (4 if prefix else frame.size)
            take = min(end - offset, length)
            have = min(take, captured)
            frame.touch(ref, position)
            frame.received += take
            if frame.pieces is not None:
                frame.pieces.append(Piece(offset, bytes(buffer[at : at + have]), take, time_ns, ref, position))
            if frame.contiguous:
                held = self._gather(frame, buffer, at, have)
                frame.contiguous = have == take and held
                if have < take:
                    frame.flags |= SNAPLEN
            offset, at, captured, length = offset + take, at + have, captured - have, length - take
            lost = None
            if prefix:
                if len(frame.head) == 4:
                    size = int.from_bytes(frame.head, "big", signed=True)
                    if self.sane(size):
                        frame.size = size + 4
                    else:
                        lost = WeirdKind.FRAME_LENGTH_INVALID
                elif not frame.contiguous:
                    lost = WeirdKind.BOUNDARY_LOST
            if frame.size and offset == frame.start + frame.size:
                frame.last_ns, frame.last_ref = time_ns, ref
            if lost is None and not self._progress(frame):
                lost = WeirdKind.BOUNDARY_LOST
            if lost is not None:
                again = self._lose(frame, lost)
                if length:
                    again.append(Piece(offset, bytes(buffer[at : at + captured]), length, time_ns, ref, position))
                return again
            if frame.size and offset == frame.start + frame.size:
                self._close(frame)
        return []

    def _gather(self, frame: OpenFrame, buffer: bytes, at: int, have: int) -> bool:
        """Buffers bytes of the frame, or feeds them to its resumable reader; False if neither is possible."""
        room = 0
        if self.counted and self.bodies.gathered_bytes > limits.GATHERED_OF_ALL and not self._lightened(frame):
            self._report_limit(frame, "")
            frame.rest = None
            del frame.head[limits.GATHERED_LEAST :]
            return False
        if frame.rest is None:
            room = min(have, limits.FRAME_GATHERED_MAX + 4 - len(frame.head))
            frame.head += buffer[at : at + room]
            if room == have:
                return True
        if frame.rest is None:
            rest = self.resumed(frame) if self._progress(frame) else None
            if rest is None:
                return False
            self._passes(frame, rest)
        assert frame.rest is not None
        frame.excerpts = ()
        fed(frame.rest, buffer[at + room : at + have])
        return True

    def _passes(self, frame: OpenFrame, rest: Resumable) -> None:
        """Reads the rest of the frame piece by piece instead of buffering it."""
        frame.rest = rest
        del frame.head[limits.FRAME_HEAD_KEPT :]

    def _lightened(self, frame: OpenFrame) -> bool:
        """Releases most of what a frame holds, because all frames hold too much; False if it has to keep that."""
        rest, most = frame.rest, limits.GATHERED_LEAST
        if rest is None:
            rest, most = self.resumed(frame, light=True) if self._progress(frame) else None, len(frame.head) // 2
        if rest is None:
            return False
        uncounted = rest.whole is not None and rest.held > most
        if uncounted:
            rest.whole = None
        if rest.held > most:
            return False
        if uncounted:
            self._report_limit(frame, ": records in its compressed messages are not counted")
        self._passes(frame, rest)
        return True

    def _report_limit(self, frame: OpenFrame, consequence: str) -> None:
        detail = f"more than {limits.GATHERED_OF_ALL:,} bytes of unfinished frames{consequence}"
        self.stream.connection.report(WeirdKind.FRAMES_LIMIT, detail, frame.first_ref or 0, frame.low or 0)

    def count(self) -> None:
        """Adds the memory of the open frame to the sum of all connections, if it is much."""
        held = self.open.held if self.open is not None else 0
        held = held if held > limits.GATHERED_LEAST else 0
        self.bodies.gathered_bytes += held - self.counted
        self.counted = held

    def _progress(self, frame: OpenFrame) -> bool:
        """Reads the header as soon as enough bytes are there; False if no frame can start here."""
        if frame.header or not frame.size:
            return True
        final = not frame.contiguous or len(frame.head) >= frame.size
        known = self.begun(frame, final)
        if known or (known is None and final):
            frame.header, frame.pieces = True, None
        return known is not False

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        """Takes a gap: bytes that no packet carries."""
        self.losses += 1
        self._reread([Piece(offset, b"", length, time_ns, NO_PACKET, 0)])
        self.count()

    def _gap(self, offset: int, length: int) -> list[Piece]:
        """Steps over a hole inside a frame. If the hole covers a boundary, returns the pieces to resync over."""
        while length > 0:
            if self.search is not None:
                return self._found(self.search.hole(offset, length))
            frame = self.open
            if frame is None:
                self.search = BoundarySearch(self)
                return []
            lost = not frame.size
            if frame.size:
                frame.contiguous, frame.excerpts = False, ()  # packets that arrive late may carry the missing bytes
                frame.flags |= GAP
                take = min(frame.start + frame.size - offset, length)
                offset, length = offset + take, length - take
                if frame.pieces is not None:
                    frame.pieces.append(Piece(offset - take, b"", take, 0, NO_PACKET, 0))
                lost = not self._progress(frame)
            if lost:
                again = self._lose(frame, WeirdKind.BOUNDARY_LOST)
                if length:
                    again.append(Piece(offset, b"", length, 0, NO_PACKET, 0))
                return again
            if offset == frame.start + frame.size:
                self._close(frame)
        return []

    def finish(self) -> None:
        self._finish()
        if self.open is not None:
            self.open.head, self.open.rest, self.open.excerpts, self.open.pieces = bytearray(), None, (), None
        self.count()

    def _finish(self) -> None:
        while True:
            if self.search is not None:
                found = self.search.finish()
                if found is None:
                    self.skipped += self.search.skipped
                    self.search = None
                    return
                self._reread(self._found(found))
                continue
            frame = self.open
            if frame is None:
                return
            frame.flags |= TRUNCATED
            frame.contiguous = False
            if self._progress(frame):
                self.completed(frame, False)
                self._report_incomplete(frame)
                return
            self._reread(self._lose(frame, WeirdKind.BOUNDARY_LOST))

    @property
    def state(self) -> str:
        """The state in `TRANSITIONS`."""
        if self.search is not None:
            return RESYNC
        if self.open is None:
            return BOUNDARY
        return BODY if self.open.header else HEADER

    @property
    def pending(self) -> int:
        """Number of bytes received of the open frame, or held by resync."""
        return (self.open.received if self.open is not None else 0) + (self.search.held if self.search is not None else 0)

    def _close(self, frame: OpenFrame) -> None:
        self.open = None
        if frame.subject is None:
            self.skipped += frame.received
        else:
            self.frames += 1
            self.framed += frame.received
        self.completed(frame, True)

    def _report_incomplete(self, frame: OpenFrame) -> None:
        detail = f"{frame.received} of {frame.size or 4} bytes, {self.stream.side} offset {frame.start}"
        self.stream.connection.report(WeirdKind.FRAME_INCOMPLETE, detail, frame.first_ref or 0, frame.low or 0)

    # -- damaged lengths ----------------------------------------------------------------------------------------------
    def _is_over(self, frame: OpenFrame, buffer: bytes, at: int, captured: int, length: int) -> bool:
        """Whether the open frame is over although it announced more bytes. The segment, for which `follows` is true, then
        begins with the next frame, while the header of this one is incomplete or after the end of its message."""
        if not frame.contiguous or self.overspent:
            return False
        region = Region()
        region.add(Piece(0, bytes(buffer[at : at + captured]), length, 0, 0, 0))
        return bool(self.is_boundary(region, 0, True, False)) and (not frame.header or self._has_message(frame))

    def _has_message(self, frame: OpenFrame) -> bool:
        """Whether all bytes of the open frame's message were received, and perhaps more."""
        reader = frame.rest
        if reader is None and self.proof_room(len(frame.head)) == len(frame.head):
            reader = self.resumed(frame)
        if reader is None:
            return False
        reader.settled()
        return reader.state.status in (COMPLETE, TRAILING)

    def _give_up(self, frame: OpenFrame, ref: int) -> None:
        """Ends the open frame where packet `ref` begins with the next one."""
        self.losses += 1
        frame.flags |= TRUNCATED
        self._close(frame)
        self._report_incomplete(frame)
        self.boundary_flags = RESYNCED
        self.stream.connection.searched(ref)

    # -- resync -------------------------------------------------------------------------------------------------------
    @property
    def overspent(self) -> bool:
        """Whether resyncs of this stream have cost so much that further ones must hold and re-read fewer bytes. This bounds the
        total cost to be linear in the stream's length."""
        return self.spent > limits.RESYNC_SPENT_MAX + limits.RESYNC_SPENT_FACTOR * self.stream.next

    @property
    def resync_room(self) -> int:
        """Number of bytes that a resync may hold."""
        crowded = self.bodies.searched_bytes > limits.SEARCHED_BYTES_MAX
        return limits.RESYNC_BYTES_LATER if crowded or self.overspent else limits.RESYNC_BYTES

    def resync_holds(self, change: int) -> None:
        """The number of bytes that a resync holds changed by `change`."""
        self.bodies.searched_bytes += change

    def resynced_over(self, size: int) -> None:
        """A resync takes `size` more bytes of the stream; it may have taken them before."""
        self.spent += size

    def proof_room(self, size: int) -> int:
        """Number of bytes of a body of `size` bytes that resync may read as evidence."""
        allowed = min(size, limits.RESYNC_BYTES_LATER) if self.overspent else size
        self.spent += limits.RESYNC_PROOF_COST * allowed
        return allowed

    def start_midstream(self) -> None:
        """The first byte of this stream need not be the first byte of a frame."""
        self.search = BoundarySearch(self, first=True)

    def _lose(self, frame: OpenFrame, kind: WeirdKind) -> list[Piece]:
        """The bytes of this frame turned out not to be a frame: starts a resync and returns their pieces for it."""
        self.open = None
        self.losses += 1
        self.search = BoundarySearch(self, refuse=True)
        self.stream.connection.report(kind, f"{self.stream.side} offset {frame.start}", frame.first_ref or 0, frame.low or 0)
        return frame.pieces or []

    def _found(self, pieces: list[Piece] | None) -> list[Piece]:
        """Ends a resync that found a boundary; returns the pieces from there on."""
        search = self.search
        if search is None or pieces is None:
            return []
        self.search = None
        self.skipped += search.skipped
        if not search.at_start:
            self.boundary_flags = RESYNCED
            first = pieces[0]
            kind = WeirdKind.HUNT_LIMIT if search.limited else WeirdKind.RESYNCED
            self.stream.connection.report(kind, f"{search.skipped} bytes passed over", first.ref, first.position)
        return pieces
