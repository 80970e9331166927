"""Length-prefixed frames out of one direction's bytes; survives holes inside a frame and finds its feet after worse.

In: `data` and `gap` of a stream. Out: `begun` when a frame's header is known, `completed` when its last byte has passed.
Laws: any chunking of the same bytes gives the same frames; every unique stream byte is counted as framed, skipped or pending.

A hole inside a frame does no harm: the length says where the next one starts. A hole over a length prefix, or bytes that
cannot start a frame, begin a search (`hunting.BoundarySearch`).
"""

from collections import deque
from collections.abc import Iterable

from kcap import limits
from kcap.decode.projection import Resumable
from kcap.kafka.frames import FLAG, Frame
from kcap.kafka.resync import NO_PACKET, BoundarySearch, Piece, Region
from kcap.model import REF_FILE_SHIFT
from kcap.net.tcp import Stream
from kcap.weird import WeirdKind

GAP, SNAPLEN, TRUNCATED, RESYNCED = FLAG["gap"], FLAG["snaplen"], FLAG["truncated"], FLAG["resynced"]


class OpenFrame:
    """A frame of which not everything has passed yet."""

    __slots__ = (
        "contiguous", "crossed", "first_ns", "first_ref", "flags", "head", "header", "high", "last_ns", "last_ref", "low",
        "pieces", "received", "rest", "size", "start", "subject",
    )  # fmt: skip

    def __init__(self, start: int) -> None:
        self.start = start
        self.size = 0
        """Bytes with the prefix; 0 while the prefix is not whole."""
        self.head = bytearray()
        """The bytes captured without a break from the prefix on, as far as they are gathered."""
        self.rest: Resumable | None = None
        """Reads on, of a frame too large to be gathered; it was given all bytes of the body so far."""
        self.contiguous = True
        self.header = False
        """The header is known, or known to be lost."""
        self.subject: object = None
        """What `begun` made of it; None where it gives no row."""
        self.pieces: list[Piece] | None = []
        """What to search again should the header prove impossible."""
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

    def frame(self) -> Frame:
        """The descriptor."""
        return Frame(
            self.start, self.size, self.first_ns, self.first_ref, self.last_ns, self.last_ref, self.low, self.high, self.flags
        )


class Framer:
    """The way both directions go; what a header is, and when one can be believed, is their own."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.open: OpenFrame | None = None
        self.hunter: BoundarySearch | None = None
        self.boundary_flags = 0
        """Flags for the next frame: it was found by a search."""
        self.losses = 0
        """Holes and searches so far."""
        self.frames = 0
        self.framed = 0
        self.skipped = 0

    # -- what a direction decides -------------------------------------------------------------------------------------
    def sane(self, size: int) -> bool:
        """Can a frame announce this many bytes (without the prefix)?"""
        raise NotImplementedError

    def begun(self, frame: OpenFrame, final: bool) -> bool | None:
        """Reads the header from `frame.head`: True when known, None when more bytes are needed, False when there can be none.

        `final` says that no more contiguous bytes will come.
        """
        raise NotImplementedError

    def resumed(self, frame: OpenFrame) -> Resumable | None:
        """What reads on behind the gathered bytes of a large frame, and has read those; None where no program is known."""
        raise NotImplementedError

    def completed(self, frame: OpenFrame, whole: bool) -> None:
        """The frame's last byte has passed, or (`whole` false) the stream ended in it."""
        raise NotImplementedError

    def judge(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        """Can the frame boundary be at `region[at]`? None: not before more bytes are seen; `final`: none will come.

        `first`: the region starts where the capture of this stream starts, so a boundary there needs less proof.
        """
        raise NotImplementedError

    def candidates(self, region: Region, start: int) -> Iterable[int]:
        """Places from `region[start]` on at which a frame could start."""
        raise NotImplementedError

    # -- bytes --------------------------------------------------------------------------------------------------------
    def slow(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Takes bytes the thorough way."""
        if self.hunter is None:
            again = self._read(offset, buffer, at, captured, length, time_ns, ref, position)
        else:
            again = [Piece(offset, bytes(buffer[at : at + captured]), length, time_ns, ref, position)]
        if again:
            self._reread(again)

    def _reread(self, pieces: list[Piece]) -> None:
        """Takes bytes that were read before, or are to be searched; a loop, since one search may follow another."""
        queue = deque(pieces)
        while queue:
            piece = queue.popleft()
            offset, data, length, time_ns, ref, position = piece
            if ref == NO_PACKET:
                again = self._gap(offset, length)
            elif self.hunter is None:
                again = self._read(offset, data, 0, len(data), length, time_ns, ref, position)
            else:
                self.stream.connection.searched(ref)
                again = self._found(self.hunter.data(piece))
            queue.extendleft(reversed(again))

    def _read(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> list[Piece]:
        """Reads frames until the bytes end; where the boundary is lost, gives back what is to be searched."""
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
                kept = self._gather(frame, buffer, at, have)
                frame.contiguous = have == take and kept
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
        """Keeps bytes of the frame, or reads them where it is too large to be kept; False where neither can be."""
        room = 0
        if frame.rest is None:
            room = min(have, limits.FRAME_GATHERED_MAX + 4 - len(frame.head))
            frame.head += buffer[at : at + room]
            if room == have:
                return True
            frame.rest = self.resumed(frame) if self._progress(frame) else None
            if frame.rest is None:
                return False
            del frame.head[limits.FRAME_HEAD_KEPT :]
        frame.rest.feed(buffer[at + room : at + have])
        return True

    def _progress(self, frame: OpenFrame) -> bool:
        """Reads the header once enough of it is there; False when none can stand here."""
        if frame.header or not frame.size:
            return True
        final = not frame.contiguous or len(frame.head) >= frame.size
        known = self.begun(frame, final)
        if known or (known is None and final):
            frame.header, frame.pieces = True, None
        return known is not False

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        """Bytes that no packet carries."""
        self.losses += 1
        self._reread([Piece(offset, b"", length, time_ns, NO_PACKET, 0)])

    def _gap(self, offset: int, length: int) -> list[Piece]:
        """Steps over a hole inside a frame; where it covers a boundary, gives back what is to be searched."""
        while length > 0:
            if self.hunter is not None:
                return self._found(self.hunter.hole(offset, length))
            frame = self.open
            if frame is None:
                self.hunter = BoundarySearch(self)
                return []
            lost = not frame.size
            if frame.size:
                frame.contiguous = False
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
        """The stream is over."""
        while True:
            if self.hunter is not None:
                found = self.hunter.finish()
                if found is None:
                    self.skipped += self.hunter.skipped
                    self.hunter = None
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
                detail = f"{frame.received} of {frame.size or 4} bytes, {self.stream.side} offset {frame.start}"
                self.stream.connection.report(WeirdKind.FRAME_INCOMPLETE, detail, frame.first_ref or 0, frame.low or 0)
                return
            self._reread(self._lose(frame, WeirdKind.BOUNDARY_LOST))

    @property
    def pending(self) -> int:
        """Bytes received of a frame that has no end, or still searched."""
        return (self.open.received if self.open is not None else 0) + (self.hunter.kept if self.hunter is not None else 0)

    def _close(self, frame: OpenFrame) -> None:
        self.open = None
        if frame.subject is None:
            self.skipped += frame.received
        else:
            self.frames += 1
            self.framed += frame.received
        self.completed(frame, True)

    # -- searching ----------------------------------------------------------------------------------------------------
    def start_midstream(self) -> None:
        """The first byte of this stream need not be the first of a frame."""
        self.hunter = BoundarySearch(self, first=True)

    def _lose(self, frame: OpenFrame, kind: WeirdKind) -> list[Piece]:
        """No frame starts where one was thought to: what was read of it is to be searched."""
        self.open = None
        self.losses += 1
        self.hunter = BoundarySearch(self, refuse=True)
        self.stream.connection.report(kind, f"{self.stream.side} offset {frame.start}", frame.first_ref or 0, frame.low or 0)
        return frame.pieces or []

    def _found(self, pieces: list[Piece] | None) -> list[Piece]:
        """The search is over: what follows the boundary is to be read as frames."""
        hunter = self.hunter
        if hunter is None or pieces is None:
            return []
        self.hunter = None
        self.skipped += hunter.skipped
        if not hunter.at_start:
            self.boundary_flags = RESYNCED
            first = pieces[0]
            kind = WeirdKind.HUNT_LIMIT if hunter.limited else WeirdKind.RESYNCED
            self.stream.connection.report(kind, f"{hunter.skipped} bytes passed over", first.ref, first.position)
        return pieces
