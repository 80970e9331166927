"""Cuts one direction's bytes into length-prefixed frames; steps over holes, and resyncs where the frame boundary is lost.

In: `data` and `gap` of a stream. Out: `begun` when a frame's header is known, `completed` when its last byte has passed. Laws:
any chunking of the same whole messages gives the same frames; every unique stream byte is counted as framed, skipped or
pending.

A hole inside a frame does no harm: the length says where the next frame starts. A hole over a length prefix, or bytes that
cannot start a frame, start a resync (`kcap.kafka.resync.BoundarySearch`). A frame that announces more bytes than its message
has, since its length was damaged, ends where a segment begins with the next one. `TRANSITIONS` is the state table.
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
"""States of a framer, as single bytes of data change them. `header`: a frame is open whose header is not known yet; `body`: its
header is known, or known to be lost."""


def halves(piece: Piece, size: int) -> tuple[Piece, Piece]:
    """The first `size` bytes of a piece, and the rest."""
    first = piece._replace(data=piece.data[:size], length=size)
    return first, piece._replace(offset=piece.offset + size, data=piece.data[size:], length=piece.length - size)


class OpenFrame:
    """A frame of which not everything has passed yet."""

    __slots__ = (
        "contiguous", "crossed", "excerpts", "first_ns", "first_ref", "flags", "head", "header", "high", "last_ns", "last_ref",
        "low", "pieces", "received", "rest", "size", "start", "subject",
    )  # fmt: skip

    def __init__(self, start: int) -> None:
        self.start = start
        self.size = 0
        """Bytes with the prefix; 0 while the prefix is not whole."""
        self.head = bytearray()
        """The contiguous bytes from the prefix on, as far as they are buffered."""
        self.rest: Resumable | None = None
        """The resumable reader of a frame that is not buffered; it has had all bytes of the body so far."""
        self.excerpts: Pieces = ()
        """All of these bytes that is no record, where the fast path stored it, and no byte and no hole came since."""
        self.contiguous = True
        self.header = False
        """The header is known, or known to be lost."""
        self.subject: object = None
        """The exchange or response that `begun` made of it; None where it gives no row."""
        self.pieces: list[Piece] | None = []
        """The pieces to resync over should the header prove impossible; None once it is known."""
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
        """A packet brought bytes of this frame; offsets of another file than the first byte's do not compare."""
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
        """Whether it would be buffered to its end, if others left room."""
        return self.size <= limits.FRAME_GATHERED_MAX + 4

    @property
    def held(self) -> int:
        """Memory that it takes."""
        held = len(self.head) + sum(len(data) for _, data in self.excerpts)
        if self.pieces is not None:
            held += self.received + PIECE_COST * len(self.pieces)
        return held if self.rest is None else held + self.rest.held

    def frame(self) -> Frame:
        return Frame(
            self.start, self.size, self.first_ns, self.first_ref, self.last_ns, self.last_ref, self.low, self.high, self.flags
        )


class Framer:
    """Base class of the framers of both directions; each direction decides what a header is and what counts as a boundary."""

    def __init__(self, stream: Stream, bodies: BodyCollector) -> None:
        self.stream = stream
        self.bodies = bodies
        self.open: OpenFrame | None = None
        self.search: BoundarySearch | None = None
        self.boundary_flags = 0
        """Flags for the next frame, which resync found."""
        self.losses = 0
        """Holes and resyncs so far."""
        self.frames = 0
        self.framed = 0
        self.skipped = 0
        self.spent = 0
        """Bytes that resyncs have taken, and those of bodies that they read, as often as they did."""
        self.counted = 0
        """Memory of the open frame in the sum of those of all connections."""

    # -- what a direction decides -------------------------------------------------------------------------------------
    def sane(self, size: int) -> bool:
        """Can a frame announce this many bytes (without the prefix)?"""
        raise NotImplementedError

    def begun(self, frame: OpenFrame, final: bool) -> bool | None:
        """Reads the header from `frame.head`: True when known, None when more bytes are needed, False when there can be none.

        `final` says that no more contiguous bytes will come.
        """
        raise NotImplementedError

    def resumed(self, frame: OpenFrame, *, light: bool = False) -> Resumable | None:
        """A resumable reader of a frame that has read its buffered bytes; None where no program is known, or where it is to be
        `light` and has to hold much of them.
        """
        raise NotImplementedError

    def completed(self, frame: OpenFrame, whole: bool) -> None:
        """The frame's last byte has passed, or (`whole` false) the stream ended in it."""
        raise NotImplementedError

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        """Can the frame boundary be at `region[at]`? None: not before more bytes are seen; `final`: none will come.

        `first`: the region starts where the capture of this stream starts, so a boundary there needs less proof.
        """
        raise NotImplementedError

    def candidates(self, region: Region, start: int) -> Iterable[int]:
        """Places from `region[start]` on at which a frame could start."""
        raise NotImplementedError

    def follows(self, frame: OpenFrame, buffer: bytes, at: int, captured: int) -> bool:
        """Whether a segment, of which these bytes were captured, begins with what looks like the frame behind an open one."""
        raise NotImplementedError

    # -- bytes --------------------------------------------------------------------------------------------------------
    def slow(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Takes bytes in any state; the direction's `data` handles the simple case before."""
        if self.search is None:
            again = self._read(offset, buffer, at, captured, length, time_ns, ref, position)
        else:
            again = [Piece(offset, bytes(buffer[at : at + captured]), length, time_ns, ref, position)]
        if again:
            self._reread(again)
        self.count()

    def _reread(self, pieces: list[Piece]) -> None:
        """Takes pieces that were read before or that resync looks at; a loop, since one resync may follow another."""
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
        """Reads frames until the bytes end; returns the pieces to resync over where the boundary is lost."""
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
        """As `_read`, from the open frame on."""
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
        """Buffers bytes of the frame, or feeds them to its resumable reader; False where neither is possible."""
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
        """The frame is read as it passes from here on."""
        frame.rest = rest
        del frame.head[limits.FRAME_HEAD_KEPT :]

    def _lightened(self, frame: OpenFrame) -> bool:
        """Lets most of what a frame holds go, since those of all connections hold too much; False where more has to stay."""
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
        """Counts the memory of the open frame in the sum of those of all connections, where it is much."""
        held = self.open.held if self.open is not None else 0
        held = held if held > limits.GATHERED_LEAST else 0
        self.bodies.gathered_bytes += held - self.counted
        self.counted = held

    def _progress(self, frame: OpenFrame) -> bool:
        """Reads the header once enough of it is there; False where no frame can start."""
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
        """Steps over a hole inside a frame; returns the pieces to resync over where the hole covers a boundary."""
        while length > 0:
            if self.search is not None:
                return self._found(self.search.hole(offset, length))
            frame = self.open
            if frame is None:
                self.search = BoundarySearch(self)
                return []
            lost = not frame.size
            if frame.size:
                frame.contiguous, frame.excerpts = False, ()  # packets that come too late may have what is missing
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
        """The state of `TRANSITIONS`."""
        if self.search is not None:
            return RESYNC
        if self.open is None:
            return BOUNDARY
        return BODY if self.open.header else HEADER

    @property
    def pending(self) -> int:
        """Bytes received of the open frame, or held by resync."""
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

    # -- a length that was damaged ------------------------------------------------------------------------------------
    def _is_over(self, frame: OpenFrame, buffer: bytes, at: int, captured: int, length: int) -> bool:
        """Whether the open frame has no more bytes, though it announced them: the segment, of which `follows` is true, begins
        with the next frame, in the midst of this one's header or behind the end of its message.
        """
        if not frame.contiguous or self.overspent:
            return False
        region = Region()
        region.add(Piece(0, bytes(buffer[at : at + captured]), length, 0, 0, 0))
        return bool(self.is_boundary(region, 0, True, False)) and (not frame.header or self._has_message(frame))

    def _has_message(self, frame: OpenFrame) -> bool:
        """Whether all bytes of the open frame's message are there, and perhaps more."""
        reader = frame.rest
        if reader is None and self.proof_room(len(frame.head)) == len(frame.head):
            reader = self.resumed(frame)
        if reader is None:
            return False
        reader.settled()
        return reader.state.status in (COMPLETE, TRAILING)

    def _give_up(self, frame: OpenFrame, ref: int) -> None:
        """The open frame ends here, where the packet `ref` begins with the next one."""
        self.losses += 1
        frame.flags |= TRUNCATED
        self._close(frame)
        self._report_incomplete(frame)
        self.boundary_flags = RESYNCED
        self.stream.connection.searched(ref)

    # -- searching ----------------------------------------------------------------------------------------------------
    @property
    def overspent(self) -> bool:
        """Whether resyncs of this stream have cost so much that they make do with less: what they hold and read again must stay
        linear in the stream.
        """
        return self.spent > limits.RESYNC_SPENT_MAX + limits.RESYNC_SPENT_FACTOR * self.stream.next

    @property
    def resync_room(self) -> int:
        """Bytes that a resync may hold."""
        crowded = self.bodies.searched_bytes > limits.SEARCHED_BYTES_MAX
        return limits.RESYNC_BYTES_LATER if crowded or self.overspent else limits.RESYNC_BYTES

    def resync_holds(self, change: int) -> None:
        """A resync holds so many bytes more, or less."""
        self.bodies.searched_bytes += change

    def resynced_over(self, size: int) -> None:
        """A resync takes `size` more bytes of the stream, perhaps not for the first time."""
        self.spent += size

    def proof_room(self, size: int) -> int:
        """The bytes of a body of `size` bytes that resync may read as proof."""
        allowed = min(size, limits.RESYNC_BYTES_LATER) if self.overspent else size
        self.spent += limits.RESYNC_PROOF_COST * allowed
        return allowed

    def start_midstream(self) -> None:
        """The first byte of this stream need not be the first of a frame."""
        self.search = BoundarySearch(self, first=True)

    def _lose(self, frame: OpenFrame, kind: WeirdKind) -> list[Piece]:
        """No frame starts here after all: starts a resync, returns the pieces of the frame for it."""
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
