"""TLS of a connection that began in the fast path: its session, and how far its plaintext was taken.

In: a session whose handshake was read. Out: the objects of the connection where the reference path takes it over. Law: they are
as if it had read the handshake and every record itself.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kcap.kafka.conversation import Conversation
from kcap.kafka.decrypted import PlaintextProgress

if TYPE_CHECKING:
    from kcap.tls.session import TlsSession


@dataclass(slots=True)
class SealedConnection:
    """What is known of the connection beside numbers."""

    session: "TlsSession"
    client: int
    """The stream that sent the ClientHello."""
    streams: tuple[PlaintextProgress, PlaintextProgress]

    def enter(self, conversation: Conversation, *, begun: bool) -> Conversation:
        """Gives the session to the objects of its connection; those of the plaintext, where its first request was read."""
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
