"""TLS of a connection that began in the fast path: its session, and how far its plaintext was taken.

In: a session whose handshake is being read, or was read. Out: the connection's objects when the reference path takes it over.
Law: they are as if that path had read the handshake and every record itself.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcap.kafka.conversation import Conversation
from kcap.kafka.decrypted import PlaintextProgress
from kcap.net import guard
from kcap.tls.secrets import Secrets

if TYPE_CHECKING:
    from kcap.tls.direction import Direction
    from kcap.tls.facts import TlsFacts
    from kcap.tls.records import RecordPiece
    from kcap.tls.session import TlsSession
    from kcap.tls.simple_handshake import FlightContents, SimpleHandshake, SimpleSide


@dataclass(slots=True)
class SealedConnection:
    """What is known of the connection besides its numbers."""

    begun: "TlsSession | SimpleHandshake"
    """Its session, or the parts that one is made of."""
    client: int
    """Index of the stream that sent the ClientHello."""
    streams: tuple[PlaintextProgress, PlaintextProgress] = field(
        default_factory=lambda: (PlaintextProgress(), PlaintextProgress())
    )
    read: list[int] = field(default_factory=lambda: [0, 0])
    """Stream offsets of client and server up to which records of the handshake were read."""
    packets: "list[tuple[int, bytes, RecordPiece]] | tuple[()]" = field(default=(), repr=False)
    """Packets of a handshake that continues after the walk: stream, payload and place. Empty once it was read."""

    @property
    def sides(self) -> "tuple[Direction, Direction] | tuple[SimpleSide, SimpleSide]":
        """The directions of client and server."""
        return self.begun.sides

    @property
    def session(self) -> "TlsSession":
        """The session, which is made if there is none yet."""
        if isinstance(self.begun, tuple):
            self.begun = self.begun.session()
        return self.begun

    @property
    def handshaken(self) -> bool:
        """Whether the Finished messages of both directions were read, so that application data follows."""
        return self.sides[0].over and self.sides[1].over

    def passed(self, side: int, records: int, size: int) -> None:
        """The next records of a direction, of `size` bytes, were opened."""
        if isinstance(self.begun, tuple):  # it counts records when it becomes a session
            self.begun.sides[side].passed(records, size)
        else:
            self.begun.passed(side, records, size)

    def end(self) -> None:
        """No more bytes are expected."""
        if not isinstance(self.begun, tuple):  # a simple handshake has no opener
            self.begun.rest()

    def hold(self, packet: "tuple[int, bytes, RecordPiece]") -> None:
        """Stores a packet of a handshake that continues after the walk."""
        self.packets = self.packets or []
        self.packets.append(packet)

    @property
    def held_bytes(self) -> int:
        """Bytes of the stored packets."""
        return sum(len(data) for _, data, _ in self.packets)

    def rest(self, side: int) -> "tuple[bytes, list[RecordPiece]]":
        """The bytes that the held packets carried for a side (0 client, 1 server) after the records that were read, with their
        pieces.
        """
        at, data, pieces = self.read[side], bytearray(), []
        for index, payload, piece in self.packets:
            if index ^ self.client == side and piece.end > at:
                data += payload[max(at - piece.start, 0) :]
                pieces.append(piece)
        return bytes(data), pieces

    def settle(self) -> tuple[int, int]:
        """The handshake was read: makes the record readers continue after it. Returns how many bytes those of the two streams
        hold.
        """
        sizes, begun = [0, 0], self.begun
        for side, at in enumerate(self.read):
            index = side ^ self.client
            self.streams[index].taken = at
            if not isinstance(begun, tuple):  # its sides begin there
                data, pieces = self.rest(side) if self.packets else (b"", ())
                begun.sides[side].shaken(at, data, pieces)
                sizes[index] = len(data)
        self.packets = ()
        return sizes[0], sizes[1]

    def enter(self, conversation: Conversation, *, begun: bool) -> Conversation:
        """Gives the session to the objects of its connection. Returns those of the plaintext if its first request was read."""
        if self.packets:
            return conversation
        decryptor = conversation.decrypt()
        decryptor.session = self.session
        if not begun:
            return conversation
        for stream, progress in zip(decryptor.open().streams, self.streams):
            stream.go_on(progress)
        inner = conversation.inner
        assert inner is not None
        inner.begin(self.client)
        return inner

    def closed(self) -> "ClosedTls":
        """What is retained when the connection is closed."""
        return ClosedTls(self)

    def replay(self, conversation: Conversation) -> None:
        """Passes the packets of an incomplete handshake to the objects of its connection, in order."""
        packets, self.packets = self.packets, ()
        for index, data, piece in packets:
            stream, size = conversation.tcp.streams[index], len(data)
            guard.data(stream, piece.start, data, 0, size, size, piece.time_ns, piece.ref, piece.position)


class ClosedTls:
    """What is known of TLS of a closed connection, without its keys. It is made when a row needs it."""

    __slots__ = ("_known",)

    def __init__(self, sealed: SealedConnection) -> None:
        begun = sealed.begun
        self._known: TlsFacts | tuple[FlightContents, int]
        self._known = (begun.contents, begun.decrypted) if isinstance(begun, tuple) else begun.facts

    @property
    def facts(self) -> "TlsFacts":
        """The input for its columns."""
        if isinstance(self._known, tuple):
            from kcap.tls.simple_handshake import replayed

            self._known = replayed(*self._known, Secrets()).facts
        return self._known

    def __getstate__(self) -> "TlsFacts | tuple[FlightContents, int]":
        return self._known

    def __setstate__(self, known: "TlsFacts | tuple[FlightContents, int]") -> None:
        self._known = known
