"""0-RTT data of TLS 1.3, which a client sends with its hello, and which counts only if the server accepts it.

In: the client's early data, and the messages of the handshake. Out: the data, once it is known to be accepted. Law: data that
the server refuses is no plaintext of the connection, because the client sends it again. Source: RFC 8446 sections 2.3, 4.2.10
and 4.5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kcap import limits
from kcap.tls.direction import Event


@dataclass(slots=True)
class EarlyData:
    """The early data of one connection."""

    offered: bool = False
    """Whether the newest ClientHello offers it."""
    taken: bool | None = None
    """Whether the server accepts it; None while that is not known."""
    held: list[Event] | tuple[()] = field(default=(), repr=False)

    def data(self, event: Event, *, early: bool) -> Iterator[Event]:
        """Takes application data in order; `early` says that it was encrypted with the key of early data. At most
        limits.TLS_WAITING_RECORDS such records wait.
        """
        if not early or self.taken:
            yield event
        elif self.taken is None:
            self.held = self.held or []
            self.held.append(event)
            if len(self.held) >= limits.TLS_WAITING_RECORDS:
                yield from self.decided(True)

    def decided(self, taken: bool) -> Sequence[Event]:
        """It is now known whether the server accepts it, or that this will never be known. Only the first call counts."""
        if self.taken is not None:
            return ()
        self.taken = taken
        held, self.held = self.held, ()
        return held if taken else ()
