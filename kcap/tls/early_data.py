"""0-RTT data of TLS 1.3, which a client sends with its hello, and which counts only where the server takes it.

In: the client's early data, and what the handshake says. Out: the data once it is known to be taken. Law: data that the server
refuses is no plaintext of the connection, for the client sends it again. Source: RFC 8446 sections 2.3, 4.2.10 and 4.5.
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
    """Whether the server takes it; None where that is not known yet."""
    held: list[Event] | tuple[()] = field(default=(), repr=False)

    def data(self, event: Event, *, early: bool) -> Iterator[Event]:
        """Application data in order; `early`: under the key of early data. At most limits.TLS_WAITING_RECORDS of these wait."""
        if not early or self.taken:
            yield event
        elif self.taken is None:
            self.held = self.held or []
            self.held.append(event)
            if len(self.held) >= limits.TLS_WAITING_RECORDS:
                yield from self.decided(True)

    def decided(self, taken: bool) -> Sequence[Event]:
        """It is known whether the server takes it, or it never will be; the first word counts."""
        if self.taken is not None:
            return ()
        self.taken = taken
        held, self.held = self.held, ()
        return held if taken else ()
