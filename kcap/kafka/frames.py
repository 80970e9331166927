"""Descriptors of frames, requests and responses for the stages after framing; they hold no bytes.

A frame's body goes to `BodyCollector` as it is read, and the descriptor has the body's slot there.
"""

from typing import NamedTuple

from kcap.columns import FLAGS

FLAG = {name: 1 << i for i, name in enumerate(FLAGS)}
"""Bit of each member of `exchanges.flags`."""

NO_BODY = -1


class Frame(NamedTuple):
    """One frame of one direction. Times (ns) and packet references are those of the first copy of a byte; None for a byte that
    was not captured."""

    start: int | None
    """Stream offset of the length prefix."""
    size: int | None
    """Announced number of bytes, with the prefix."""
    first_ns: int | None
    first_ref: int | None
    last_ns: int | None
    last_ref: int | None
    low: int | None
    """Lowest file offset of the packets that carried its bytes."""
    high: int | None
    flags: int


NO_FRAME = Frame(None, None, None, None, None, None, None, None, 0)


class PendingExchange:
    """A request whose exchange is not decided yet."""

    __slots__ = (
        "api_key", "api_version", "behind_loss", "client_id", "correlation_id", "first_ref", "lost_before", "number",
        "one_way", "place", "request", "request_slot", "response", "skipped_ns",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        api_key: int | None,
        api_version: int | None,
        correlation_id: int | None,
        client_id: str | None,
        lost_before: int,
        request: Frame | None = None,
    ) -> None:
        self.number = number
        self.api_key = api_key
        """None for a raw token after SaslHandshake v0; so are version, correlation id and client id."""
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.lost_before = lost_before
        """Number of losses of the response stream when the request was seen."""
        self.first_ref: int | None = None
        """Packet that carried its first byte; None if that was before all responses to come."""
        self.behind_loss = False
        """Whether bytes of the client's stream before it were lost."""
        self.place = 0
        """Offset in the client's TCP stream from which on that packet, or an earlier one, carried bytes of it."""
        self.request = request
        """None before the request's last byte."""
        self.request_slot = NO_BODY
        """The slot of the body. `BodyCollector` updates it when it moves the body."""
        self.response: PendingResponse | None = None
        self.one_way = False
        """Produce with acks=0: no response will come."""
        self.skipped_ns: int | None = None
        """Time at which a later request got its response before this one, ns; None if none did."""

    def received(self, first_ref: int | None, acked: int | None) -> bool:
        """Whether the broker had received it when it sent bytes that came with packet `first_ref`. A tap may show packets in
        another order than they were sent: if the request was captured later than these bytes, the broker must have acknowledged
        a part of it by then. `acked` is the offset that the broker had acknowledged in the client's TCP stream."""
        if self.first_ref is None or first_ref is None or self.first_ref <= first_ref:
            return True
        return acked is None or acked > self.place

    def precedes(self, response: "PendingResponse") -> bool:
        """Whether it was sent before a response with its id, which can have no other request if none was lost before it."""
        return not self.behind_loss or self.received(response.first_ref, response.acked)

    @property
    def token(self) -> bool:
        """Whether it is a raw token after SaslHandshake v0."""
        return self.api_key is None


class PendingResponse:
    """A response whose exchange is not decided yet."""

    __slots__ = (
        "acked", "body", "correlation_id", "exchange", "first_ref", "flags", "frame", "mark", "number", "previous_ns",
        "seen_ns", "slot",
    )  # fmt: skip

    def __init__(self, correlation_id: int | None, mark: int, seen_ns: int) -> None:
        self.correlation_id = correlation_id
        self.exchange: PendingExchange | None = None
        self.frame: Frame | None = None
        """None before the response's last byte."""
        self.slot = NO_BODY
        self.body: bytes | None = None
        """The body, after the batch in which it came is over."""
        self.number = 0
        """Number of the exchange; it is given to a response that came before its request."""
        self.flags = 0
        self.mark = mark
        """Number of data segments of the client when it came."""
        self.seen_ns = seen_ns
        self.previous_ns: int | None = None
        """Time of the last byte of the previous response on this connection, ns."""
        self.first_ref: int | None = None
        """Packet that carried its first byte."""
        self.acked: int | None = None
        """Offset that the broker had acknowledged in the client's TCP stream by then."""
