"""TLS of a connection that began in the fast path: its session, and how far its plaintext was taken.

In: a session whose handshake is being read, or was. Out: the objects of the connection where the reference path takes it over.
Law: they are as if it had read the handshake and every record itself.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcap.kafka.conversation import Conversation
from kcap.kafka.decrypted import PlaintextProgress
from kcap.net import guard

if TYPE_CHECKING:
    from kcap.tls.records import RecordPiece
    from kcap.tls.session import TlsSession


@dataclass(slots=True)
class SealedConnection:
    """What is known of the connection beside numbers."""

    session: "TlsSession"
    client: int
    """The stream that sent the ClientHello."""
    streams: tuple[PlaintextProgress, PlaintextProgress] = field(
        default_factory=lambda: (PlaintextProgress(), PlaintextProgress())
    )
    read: list[int] = field(default_factory=lambda: [0, 0])
    """Stream bytes of client and server before these offsets are records of the handshake that were read."""
    packets: "list[tuple[int, bytes, RecordPiece]] | tuple[()]" = field(default=(), repr=False)
    """Packets of a handshake that goes on behind the walk: stream, payload and place. There are none once it was read."""

    def hold(self, packet: "tuple[int, bytes, RecordPiece]") -> None:
        """Keeps a packet of a handshake that goes on behind the walk."""
        self.packets = self.packets or []
        self.packets.append(packet)

    @property
    def held_bytes(self) -> int:
        """Bytes of these packets."""
        return sum(len(data) for _, data, _ in self.packets)

    def rest(self, side: int) -> "tuple[bytes, list[RecordPiece]]":
        """What the held packets brought of a side (0 client, 1 server) behind the records that were read."""
        at, data, pieces = self.read[side], bytearray(), []
        for index, payload, piece in self.packets:
            if index ^ self.client == side and piece.end > at:
                data += payload[max(at - piece.start, 0) :]
                pieces.append(piece)
        return bytes(data), pieces

    def settle(self) -> tuple[int, int]:
        """The handshake was read: the record readers go on behind it; how many bytes those of the two streams hold."""
        sizes = [0, 0]
        for side, at in enumerate(self.read):
            data, pieces = self.rest(side) if self.packets else (b"", ())
            index = side ^ self.client
            self.session.shaken(side, at, data, pieces)
            self.streams[index].taken = at
            sizes[index] = len(data)
        self.packets = ()
        return sizes[0], sizes[1]

    def enter(self, conversation: Conversation, *, begun: bool) -> Conversation:
        """Gives the session to the objects of its connection; those of the plaintext, where its first request was read."""
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

    def replay(self, conversation: Conversation) -> None:
        """Gives the packets of a handshake that goes on to the objects of its connection, in their order."""
        packets, self.packets = self.packets, ()
        for index, data, piece in packets:
            stream, size = conversation.tcp.streams[index], len(data)
            guard.data(stream, piece.start, data, 0, size, size, piece.time_ns, piece.ref, piece.position)
