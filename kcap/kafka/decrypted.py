"""The plaintext of a TLS connection as two streams, so that later stages treat it like a connection without TLS.

In: the ordered bytes of both directions of a TLS connection. Out: the plaintext of application data to the sinks of a
`DecryptedConnection`, each piece with the packet that carried its ciphertext. Law: offsets count plaintext, and bytes that
could not be decrypted are a gap.
"""

from collections import deque
from collections.abc import Iterable
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from kcap import limits
from kcap.kafka.framing import Framer
from kcap.model import REF_FILE_SHIFT
from kcap.net.guard import StreamSink
from kcap.net.tcp import Connection, Stream
from kcap.tls.secrets import Secrets
from kcap.tls.turns import Turns
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcap.tls.direction import Event, LostPlaintext, Plaintext, RecordSpan
    from kcap.tls.record_ciphers import Whole
    from kcap.tls.session import TlsSession

    Listen = Callable[[bytes, int, bytes, int, int], None]
    """Called with flow key, plaintext offset, plaintext, packet reference and file position."""

UNSURE_GAP: Final = limits.FRAME_GATHERED_MAX
"""Length given to a gap of unknown length. It is longer than the rest of any frame, so that resync starts."""

PIECE: Final = Struct("=4q")
"""Layout of a piece: plaintext start and end, stream start and end."""
KEPT_BYTES: Final = limits.REPEATS_KEPT * PIECE.size


def position_of(span: "RecordSpan") -> int:
    """Returns the position in the file of a span's packet."""
    return span.piece.position


class PlaintextProgress:
    """How far the plaintext of one direction was delivered, and the stream bytes that carried it."""

    next = 0
    """Offset of the next plaintext byte."""
    skip = 0
    """Plaintext before this offset was delivered by the fast path."""
    taken = 0
    """Stream bytes before this offset were taken by the fast path."""
    _records: deque[tuple[int, int, int, int]] | None = None
    _later = b""
    """Pieces that follow those of `_records`, packed as `PIECE`. Few connections ever need them as tuples."""

    @property
    def records(self) -> deque[tuple[int, int, int, int]]:
        """The newest pieces: plaintext start and end, stream start and end."""
        return self._settle()

    def _settle(self) -> deque[tuple[int, int, int, int]]:
        """Makes tuples of the pieces that the fast path delivered last."""
        if self._records is None:
            self._records = deque(maxlen=limits.REPEATS_KEPT)
        if self._later:
            self._records.extend(PIECE.iter_unpack(self._later))
            self._later = b""
        return self._records

    def passed(self, pieces: bytes) -> None:
        """Adds pieces that the fast path delivered, packed as `PIECE`."""
        if self._later and len(pieces) < KEPT_BYTES:
            self._settle()  # pieces that wait may remain among the newest
        self._later = pieces[-KEPT_BYTES:]


class DecryptedStream(PlaintextProgress):
    """The plaintext of one direction, with the attributes of `kcap.net.tcp.Stream` that framers and pairing use."""

    def __init__(self, outer: Stream, connection: "DecryptedConnection", flow: bytes) -> None:
        self.outer = outer
        self.flow = flow
        """Flow key: source, destination and ports."""
        self.connection = connection
        self.sink: StreamSink
        self.peer: DecryptedStream
        self.whole = outer.anchored
        """Whether the plaintext is known from its first byte on."""

    def go_on(self, progress: PlaintextProgress) -> None:
        """Takes over the progress made so far."""
        self.__dict__.update(vars(progress))

    @property
    def anchored(self) -> bool:
        """Whether offset 0 is the first byte of the plaintext."""
        return self.outer.anchored and self.whole

    def __getattr__(self, name: str) -> Any:
        """Attributes that concern packets are those of the TCP stream."""
        if name == "outer":  # not set yet while a pickle is loaded
            raise AttributeError(name)
        return getattr(self.outer, name)

    @property
    def repeats(self) -> list[tuple[int, int, bool]]:
        """The newest few plaintext ranges whose packets were seen again: start, end, and whether the tap saw one packet
        twice.
        """
        out = []
        for start, end, twice in self.outer.repeats:
            inside = [(low, high) for low, high, first, last in self.records if first < end and last > start]
            if inside:
                out.append((inside[0][0], inside[-1][1], twice))
        return out

    def place(self, offset: int) -> int:
        """As `Stream.place`; if the piece with the offset is no longer stored, that of the oldest stored piece."""
        found = 0
        for low, _, start, _ in reversed(self.records):
            found = start
            if low <= offset:
                break
        return found

    def deliver(self, event: "Plaintext", listen: "Listen | None") -> None:
        """Delivers one record's data to the sink, one piece per packet. `listen` is called first with each piece."""
        base, spans, data = self.next, event.spans, event.data
        if listen is not None:
            for start, end, piece in spans:
                listen(self.flow, base + start, data[start:end], piece.ref, piece.position)
        if base < self.skip:
            spans = self._not_skipped(base, spans)
            self.next = min(base + len(data), self.skip)
        at, count = 0, len(spans)
        while at < count:
            last = self._inside_frame(base, spans, at)
            start, end, piece = spans[at][0], spans[last][1], spans[last][2]
            self.records.extend([(base + low, base + high, one.start, one.end) for low, high, one in spans[at : last + 1]])
            self.next = base + end
            self.sink.data(base + start, data, start, end - start, end - start, piece.time_ns, piece.ref, piece.position)
            at = last + 1

    def _not_skipped(self, base: int, spans: "list[RecordSpan]") -> "list[RecordSpan]":
        """Returns what is still to be delivered of a record whose plaintext begins at `base`."""
        first = self.skip - base
        self.records.extend(
            [(base + low, min(base + high, self.skip), one.start, one.end) for low, high, one in spans if low < first]
        )
        return [span._replace(start=max(span.start, first)) for span in spans if span.end > first]

    def _inside_frame(self, base: int, spans: "list[RecordSpan]", at: int) -> int:
        """Index of the last span, from `at` on, that can be delivered together with it. These spans are the rest of a frame
        whose header was read. Only the last packet and the positions of the others matter for it; the positions are stored
        here.
        """
        frame = self.sink.open if isinstance(self.sink, Framer) and self.sink.search is None else None
        if frame is None or not frame.header or frame.pieces is not None or frame.first_ref is None:
            return at
        file, stop, last = frame.first_ref >> REF_FILE_SHIFT, frame.start + frame.size - base, at
        while last + 1 < len(spans) and spans[last + 1][1] <= stop and spans[last + 1][2].ref >> REF_FILE_SHIFT == file:
            last += 1
        if last == at or spans[at][2].ref >> REF_FILE_SHIFT != file:
            return at
        for span in (min(spans[at:last], key=position_of), max(spans[at:last], key=position_of)):
            frame.touch(span.piece.ref, span.piece.position)
        return last

    def deliver_whole(
        self, record: "Whole", offset: int, length: int, time_ns: int, ref: int, position: int, listen: "Listen | None"
    ) -> None:
        """Delivers the data of a record that one packet carried completely, in the `length` stream bytes from `offset` on."""
        if not record.size:
            return
        at, self.next = self.next, self.next + record.size
        if listen is not None:
            listen(self.flow, at, record.buffer[: record.size], ref, position)
        self.records.append((at, self.next, offset, offset + length))
        skip = max(min(self.skip - at, record.size), 0)
        if skip < record.size:
            size = record.size - skip
            self.sink.data(at + skip, record.buffer, skip, size, size, time_ns, ref, position)

    def release(self) -> None:
        """As `Stream.release`."""
        del self.connection, self.peer, self.sink

    def lose(self, length: int, *, exact: bool, time_ns: int) -> None:
        """Delivers a gap to the sink."""
        if not self.next:
            self.whole = False
        size = length if exact else max(length, UNSURE_GAP)
        at, self.next = self.next, self.next + size
        self.sink.gap(at, size, time_ns)


class DecryptedConnection:
    """A connection whose streams are plaintext; all other attributes are those of the TCP connection."""

    def __init__(self, outer: Connection) -> None:
        self.outer = outer
        first, second = (DecryptedStream(stream, self, flow) for stream, flow in zip(outer.streams, outer.flows))
        self.streams = first, second
        self.streams[0].peer, self.streams[1].peer = self.streams[1], self.streams[0]
        self.conversation: object = None

    @property
    def client(self) -> DecryptedStream | None:
        """The stream that sends requests."""
        client = self.outer.client
        if client is None:
            return None
        return self.streams[0] if client is self.outer.streams[0] else self.streams[1]

    @client.setter
    def client(self, stream: DecryptedStream) -> None:
        self.outer.client = stream.outer

    def __getattr__(self, name: str) -> object:
        if name == "outer":  # not set yet while a pickle is loaded
            raise AttributeError(name)
        return getattr(self.outer, name)


class TlsSink:
    """Takes the bytes of one direction of a TLS connection."""

    def __init__(self, decryptor: "Decryptor", index: int) -> None:
        self.decryptor = decryptor
        self.index = index
        self.skip = 0
        """Stream bytes before this offset were taken by the fast path."""

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        first, end = offset, offset + length
        if captured == length:
            if offset < self.skip:
                at += min(self.skip, end) - offset
                offset = min(self.skip, end)
            if offset < end:
                taken = self.decryptor.whole_records(
                    self.index, first, length, buffer, at, end - offset, time_ns, ref, position
                )
                offset, at = offset + taken, at + taken
            if offset == end:
                return
            captured = end - offset
        data = bytes(buffer[at : at + captured])
        self.decryptor.data(self.index, offset, data, end - offset, time_ns, ref, position, first)

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        self.decryptor.gap(self.index, offset, length, time_ns)


def _over(_connection: DecryptedConnection) -> None:
    """Does nothing; used as callback of a `Decryptor` whose connection is over."""


@cache
def session_types() -> "tuple[type[Plaintext], type[TlsSession]]":
    """Returns the classes of which sessions are made. This loads the library of ciphers, which few captures need."""
    from kcap.tls.direction import Plaintext
    from kcap.tls.session import TlsSession

    return Plaintext, TlsSession


class Decryptor:
    """Decrypts a TLS connection. It calls `begin`, which sets the sinks, before the first plaintext byte."""

    def __init__(
        self,
        connection: Connection,
        client: int,
        secrets: Secrets,
        begin: "Callable[[DecryptedConnection], None]",
        listen: "Listen | None" = None,
        *,
        turns: bool = False,
    ) -> None:
        """`client` is the index of the stream that sent the ClientHello, as far as is known. With `turns`, turns are
        inferred.
        """
        self._plaintext, session = session_types()
        self.connection = connection
        self.session = session(secrets, Turns() if turns else None, whole=connection.streams[client].anchored)
        self.swapped = client == 1
        self.plain: DecryptedConnection | None = None
        self._begin = begin
        self._listen = listen

    def data(
        self, index: int, offset: int, data: bytes, length: int, time_ns: int, ref: int, position: int, first: int
    ) -> None:
        """Takes stream bytes of `connection.streams[index]`; those of their packet begin at the offset `first`."""
        side = index ^ self.swapped
        if self.session.feed(side, offset, data, length, time_ns, ref, position, first):
            self._deliver(self.session.read(side))

    def whole_records(
        self, index: int, offset: int, length: int, buffer: bytes, at: int, size: int, time_ns: int, ref: int, position: int
    ) -> int:
        """Takes the records that are complete within the last `size` bytes of one packet, whose stream bytes are `length` from
        `offset` on, if the direction is in order. Returns how many bytes these records have; the rest is for `data`.
        """
        if self.plain is None:
            return 0
        side = index ^ self.swapped
        stop, records = self.session.whole_records(side, buffer, at, at + size, time_ns)
        stream, listen = self.plain.streams[index], self._listen
        for record in records:
            stream.deliver_whole(record, offset, length, time_ns, ref, position, listen)
        return stop - at

    @property
    def for_batches(self) -> bool:
        """Whether the fast path may continue from here and open its records in batches."""
        ready = self.plain is not None and self._listen is None and self.session.for_batches
        return ready and not self._repeats_to_come()

    def _repeats_to_come(self) -> bool:
        """Whether bytes of an incomplete record were captured twice. Only the reference path flags this in the record's
        exchange.
        """
        return any(
            high > self.session.sides[index ^ self.swapped].reader.next_offset
            for index, stream in enumerate(self.connection.streams)
            for _, high, _ in stream.repeats
        )

    def resumed(self, progress: "Iterable[PlaintextProgress]") -> None:
        """Resumes after the fast path, which took records up to these points. Records that it opened are read if some of their
        plaintext is still to be delivered.
        """
        for stream, taken in zip(self.connection.streams, progress):
            if isinstance(stream.sink, TlsSink):
                stream.sink.skip = taken.taken
        for side in (0, 1):
            self._deliver(self.session.read(side))

    def gap(self, index: int, offset: int, length: int, time_ns: int) -> None:
        del time_ns
        self._deliver(self.session.gap(index ^ self.swapped, offset, length))

    def finish(self, time_ns: int) -> None:
        events = self.session.finish(time_ns)
        self._deliver(event for event in events if self.plain is not None or isinstance(event, self._plaintext))
        turns = self.session.turns
        if turns is not None and turns.dropped:
            self.connection.report(WeirdKind.TLS_TURNS_LIMIT, f"{turns.dropped} turns behind the first {len(turns)}")

    def release(self) -> None:
        """As `Conversation.release`."""
        self._begin = _over

    def open(self) -> DecryptedConnection:
        """Starts the plaintext."""
        self.plain = DecryptedConnection(self.connection)
        self._begin(self.plain)
        return self.plain

    def _deliver(self, events: "Iterable[Event]") -> None:
        for event in events:
            plain = self.plain or self.open()
            stream = plain.streams[event.side ^ self.swapped]
            if isinstance(event, self._plaintext):
                stream.deliver(event, self._listen)
            else:
                lost = cast("LostPlaintext", event)
                detail = f"{lost.length} bytes of plaintext of the {stream.side}"
                self.connection.report(WeirdKind.TLS_RECORDS_LOST, detail)
                stream.lose(lost.length, exact=lost.exact, time_ns=lost.time_ns)
