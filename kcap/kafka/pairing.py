"""Pairs responses with requests, and decides why a request has no response.

In: requests and responses as descriptors, in the order in which their headers were complete. Out: each exchange exactly once,
through `Outlet.emit`. Law: every request ends in exactly one exchange, every response in exactly one exchange or orphan.
`TRANSITIONS` is the state table of a request and of a response.

Brokers respond to a connection's requests in order (SocketServer mutes the channel meanwhile), so pairing is first in, first
out, verified by correlation id. If the response to a later request comes first, the earlier request is passed over, since its
response is probably lost. Where several requests have the same id, as re-authentications do (KIP-368), those that were not
passed over are matched first. Captures may show responses before their requests; such a response waits for the reorder window.
"""

from math import inf
from typing import Final, Protocol

from kcap import limits
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.frames import FLAG, Frame, PendingExchange, PendingResponse
from kcap.kafka.waiting import WaitingQueue
from kcap.limits import EARLY_RESPONSE_BYTES
from kcap.model import Transition
from kcap.net.tcp import Connection
from kcap.weird import WeirdKind

OUT_OF_ORDER, LATE = FLAG["out_of_order"], FLAG["late"]


RESERVED_IDS: Final = (1 << 31) - 8
"""Java clients give requests ids below this one, and re-authenticate with ids from here on (SaslClientAuthenticator)."""

NEW, OUTSTANDING, OVERTAKEN, ACKS0, PAIRED, EARLY = "new", "outstanding", "overtaken", "acks0", "paired", "early"
TRANSITIONS: Final = (
    Transition(NEW, "request", OUTSTANDING),
    Transition(NEW, "response", EARLY),
    Transition(OUTSTANDING, "request_done", ACKS0),
    Transition(OUTSTANDING, "response", PAIRED),
    Transition(OUTSTANDING, "response", OVERTAKEN),
    Transition(OUTSTANDING, "request", "unanswered"),
    Transition(OUTSTANDING, "finish", "unanswered"),
    Transition(OVERTAKEN, "response", PAIRED),
    Transition(OVERTAKEN, "request", "unanswered"),
    Transition(OVERTAKEN, "finish", "unanswered"),
    Transition(ACKS0, "response", PAIRED),
    Transition(ACKS0, "response", "one_way"),
    Transition(ACKS0, "request_done", "one_way"),
    Transition(ACKS0, "finish", "one_way"),
    Transition(EARLY, "request", PAIRED),
    Transition(EARLY, "request", "orphan"),
    Transition(EARLY, "response", "orphan"),
    Transition(EARLY, "finish", "orphan"),
    Transition(PAIRED, "request_done", "answered"),
    Transition(PAIRED, "response_done", "answered"),
)
"""States of an exchange, from `new` to the outcomes in the table `exchanges`. `acks0` is a Produce that expects no response.
Events are the methods of `Pairing`; an event for another exchange of the connection counts too."""


class Outlet(Protocol):
    """Receives decided exchanges."""

    def emit(
        self,
        exchange: PendingExchange,
        response: PendingResponse | None,
        outcome: str,
        reason: str | None,
        decided_ns: int | None,
        flags: int,
    ) -> None: ...

    def left_out(self, response: PendingResponse) -> None:
        """A response has neither a request nor a row."""

    def passed_over(self, exchange: PendingExchange) -> None:
        """A later request got its response first. The outcome of this one may be decided much later."""


class Pairing:
    """The outstanding requests of one connection, and the responses that came before their requests."""

    def __init__(self, connection: Connection, outlet: Outlet, bodies: BodyCollector) -> None:
        self.connection = connection
        self.outlet = outlet
        self.bodies = bodies
        self.outstanding: WaitingQueue[PendingExchange] = WaitingQueue()
        self.one_way: WaitingQueue[PendingExchange] = WaitingQueue()
        self.early: WaitingQueue[PendingResponse] = WaitingQueue()
        self.early_bytes = 0
        """Memory of the completed frames among `early`."""
        self.counted = 0
        """Number of requests of this connection, as counted in the sum of all connections."""
        self._first_named: PendingExchange | None = None
        """The first outstanding request that is not a token, as long as it waits."""
        self.exchanges = 0
        self.losses = 0
        """Number of holes and resyncs of the response stream so far."""
        self.request_losses = 0

    def _report(self, kind: WeirdKind, detail: str, frame: Frame | None) -> None:
        """Reports an oddity of a frame; None for a frame that is not complete yet."""
        if frame is None:
            self.connection.report(kind, detail)
        else:
            self.connection.report(kind, detail, frame.first_ref or 0, frame.low or 0)

    def waiting(self, until_ns: int | None) -> int:
        """Counts complete requests that came up to `until_ns` and wait for a response, except those that were passed over. If
        bytes are missing before a response, it is delivered only when these are known to be lost, and many requests may have
        come by then. The times show which requests came before it; at most IN_FLIGHT_DATED are compared."""
        until, end = inf if until_ns is None else until_ns, inf
        for came, exchange in enumerate(self.outstanding.in_turn()):
            end = min(end, exchange.number + limits.IN_FLIGHT_DATED)
            if exchange.number >= end:
                break
            if exchange.request is None or (exchange.request.last_ns or 0) > until:
                return came
        last = self.outstanding.last()
        count = self.outstanding.ahead()
        return count - 1 if count and last is not None and last.request is None else count

    def count(self) -> None:
        """Adds the requests that wait to the sum of all connections, if they are many."""
        many = len(self.outstanding) + len(self.one_way)
        many = many if many >= limits.OUTSTANDING_LEAST else 0
        self.bodies.outstanding += many - self.counted
        self.counted = many

    @property
    def crowded(self) -> bool:
        """Whether this connection has to drop requests, because those of all connections are too many."""
        return self.counted > 0 and self.bodies.outstanding > limits.OUTSTANDING_OF_ALL

    # -- requests -----------------------------------------------------------------------------------------------------
    def number(self) -> int:
        """Returns the next number within the connection."""
        self.exchanges += 1
        return self.exchanges

    def request(self, exchange: PendingExchange) -> None:
        """A request's header is complete. The request gets its number here; before it is 0."""
        self.request_losses |= exchange.behind_loss
        response = self._early_response(exchange) if self.early else None
        if response is not None:
            exchange.number = response.number
            self._leaves_early(response)
            response.exchange, exchange.response = exchange, response
            self._drop_passed(exchange)
            return
        exchange.number = self.number()
        outstanding = self.outstanding
        last, waiting = outstanding.last(), 1
        if last is not None:
            waiting += len(outstanding)
            if waiting > limits.OUTSTANDING_MAX or self.crowded:
                most = f"more than {limits.OUTSTANDING_OF_ALL if self.crowded else limits.OUTSTANDING_MAX} requests wait"
                self.connection.report(WeirdKind.OUTSTANDING_LIMIT, most)
                self._unanswered(outstanding.popleft(), "skipped", self.connection.last_ns)
                last, waiting = outstanding.last(), waiting - 1
            if last is not None and last.correlation_id == exchange.correlation_id and not exchange.token:
                self._report(WeirdKind.CORRELATION_REUSED, f"correlation id {exchange.correlation_id}", exchange.request)
        outstanding.append(exchange)
        if self.counted or waiting + len(self.one_way) >= limits.OUTSTANDING_LEAST:
            self.count()

    def request_done(self, exchange: PendingExchange) -> None:
        """The request's last byte was reached, and `exchange.request` is set."""
        response = exchange.response
        if response is not None:
            if response.frame is not None:
                self.complete(exchange, response)
        elif exchange.one_way:
            self.outstanding.remove(exchange)
            self.one_way.append(exchange)
            if len(self.one_way) > limits.ONE_WAY_KEPT or self.crowded:
                self._emit_one_way(self.one_way.popleft())
            if self.counted:
                self.count()

    def _early_response(self, exchange: PendingExchange) -> PendingResponse | None:
        while (first := self.early.first() if exchange.token else self.early.oldest(exchange.correlation_id)) is not None:
            if exchange.precedes(first):
                return first
            if first.frame is None:
                return None
            self._drop_early(first)  # its own request was lost, since later ones with its id come even later
        return None

    def _leaves_early(self, response: PendingResponse) -> None:
        """A response no longer waits for its request."""
        self.early.remove(response)
        if response.frame is not None:
            self._early_holds(-EARLY_RESPONSE_BYTES - (response.frame.size or 0))

    def _early_holds(self, change: int) -> None:
        """The memory of early responses changed by `change` bytes."""
        self.early_bytes += change
        self.bodies.early_bytes += change

    # -- responses ----------------------------------------------------------------------------------------------------
    def response(self, response: PendingResponse) -> None:
        """A response's correlation id is known: finds its request, or holds it for a request that is captured later."""
        exchange = self._match(response)
        if exchange is None:
            self.settle(response.seen_ns)
            waiting = self.early.first()
            if waiting is not None and len(self.early) >= limits.EARLY_RESPONSES_MAX:
                self.connection.report(WeirdKind.EARLY_LIMIT, f"more than {limits.EARLY_RESPONSES_MAX} responses wait")
                self._drop_early(waiting)
            response.number = self.number()
            self.early.append(response)
            return
        response.exchange, exchange.response = exchange, response
        if self.early:
            self._drop_passed(exchange)
        if exchange.one_way:
            self.one_way.remove(exchange)
            self._report(WeirdKind.ACKS0_ANSWERED, f"correlation id {response.correlation_id}", response.frame)
        elif self.outstanding.first() is exchange:
            self.outstanding.remove(exchange)
        else:
            self._skip_to(exchange, response)
        while (first := self.one_way.first()) is not None and first.number < exchange.number:
            self._emit_one_way(self.one_way.popleft())
        if self.counted:
            self.count()

    def _match(self, response: PendingResponse) -> PendingExchange | None:
        outstanding, correlation_id = self.outstanding, response.correlation_id
        match = None if correlation_id is None else outstanding.oldest(correlation_id)  # tokens have no id
        if match is not None and not match.precedes(response):
            match = next((one for one in outstanding.all_of(correlation_id) if one.precedes(response)), None)
        if match is not None and match.skipped_ns is not None and (match.correlation_id or 0) >= RESERVED_IDS:
            match = None  # each login reuses this id; its response was lost, and so was the request of this one
        first = outstanding.first()
        if first is not None and first.token and (match is None or match is not self._named()):
            return first
        if match is None and correlation_id is not None:
            match = self.one_way.oldest(correlation_id)
        return match

    def _named(self) -> PendingExchange | None:
        """The first outstanding request that is not a token. It is searched for again only after it has left."""
        first = self._first_named
        if first is None or first not in self.outstanding:
            first = self._first_named = next((x for x in self.outstanding if not x.token), None)
        return first

    def _skip_to(self, exchange: PendingExchange, response: PendingResponse) -> None:
        """Removes a request behind others. Those remain outstanding, since their responses may be lost or come out of order."""
        lost = new = False
        while (first := self.outstanding.first()) is not None and first.token:
            # with some mechanisms the last token gets no response
            self._unanswered(self.outstanding.popleft(), "skipped", response.seen_ns)
        for waiting in self.outstanding.pass_over(exchange):
            if waiting.skipped_ns is None:
                waiting.skipped_ns = response.seen_ns
                self.outlet.passed_over(waiting)
                new, lost = True, lost or self.losses > waiting.lost_before
        if (new and not lost) or exchange.skipped_ns is not None:
            response.flags |= OUT_OF_ORDER
            self._report(WeirdKind.OUT_OF_ORDER_RESPONSE, f"correlation id {exchange.correlation_id}", response.frame)
        self.outstanding.remove(exchange)

    def response_done(self, response: PendingResponse) -> None:
        """The response's last byte was reached, and `response.frame` is set."""
        exchange = response.exchange
        if exchange is None and response in self.early and response.frame is not None:
            self._early_holds(EARLY_RESPONSE_BYTES + (response.frame.size or 0))
        if exchange is not None and exchange.request is not None:
            self.complete(exchange, response)

    def complete(self, exchange: PendingExchange, response: PendingResponse) -> None:
        """The last byte of the request and of the response was reached."""
        flags = response.flags
        client = self.connection.client
        if client is not None and client.fin_ns is not None and response.seen_ns > client.fin_ns:
            flags |= LATE
            self._report(WeirdKind.LATE_RESPONSE, f"correlation id {exchange.correlation_id}", response.frame)
        if self.counted:
            self.count()
        self.outlet.emit(exchange, response, "answered", None, None, flags)
        response.exchange = None  # they refer to each other, and only the garbage collector would free them

    # -- requests and responses without a partner ---------------------------------------------------------------------
    def settle(self, time_ns: int) -> None:
        """Turns early responses that have waited for the reorder window into orphans."""
        client = self.connection.client
        segments = client.data_segments if client is not None else 0
        while (first := self.early.first()) is not None:
            if first.frame is None:
                return
            if segments - first.mark < limits.EARLY_SEGMENTS and time_ns - first.seen_ns < limits.EARLY_NS:
                crowded = self.bodies.early_bytes > limits.EARLY_BYTES_OF_ALL and self.early_bytes > limits.EARLY_BYTES_LEAST
                if not crowded and self.early_bytes <= limits.EARLY_BYTES_MAX:
                    return
                self.connection.report(WeirdKind.EARLY_LIMIT, f"{self.early_bytes:,} bytes of responses wait")
            self._drop_early(first)

    def _drop_passed(self, exchange: PendingExchange) -> None:
        """Turns early responses that came before the response to `exchange` into orphans if their ids are lower. A client's ids
        rise and its bytes come in order, so their requests would be here if they were in the capture."""
        correlation = exchange.correlation_id
        while (first := self.early.first()) is not None and first.frame is not None and first.number < exchange.number:
            if correlation is None or first.correlation_id is None or first.correlation_id >= correlation:
                return
            self._drop_early(first)

    def _drop_early(self, response: PendingResponse) -> None:
        """Turns an early response into an orphan."""
        self._leaves_early(response)
        self._orphan(response)

    def _orphan(self, response: PendingResponse) -> None:
        lost = self.connection.began == "syn" or self.request_losses
        reason = "lost_in_capture" if lost else "midstream"
        self._report(WeirdKind.ORPHAN, f"correlation id {response.correlation_id}", response.frame)
        if response.correlation_id is None:
            self.outlet.left_out(response)
            return  # the broker's half of a token exchange has no meaning on its own
        orphan = PendingExchange(response.number, None, None, response.correlation_id, None, 0)
        self.outlet.emit(orphan, response, "orphan", reason, None, response.flags)

    def _emit_one_way(self, exchange: PendingExchange) -> None:
        self.outlet.emit(exchange, None, "one_way", None, None, 0)

    def _unanswered(self, exchange: PendingExchange, reason: str, decided_ns: int) -> None:
        if not exchange.token:
            self._report(WeirdKind.UNANSWERED, f"correlation id {exchange.correlation_id}: {reason}", exchange.request)
        self.outlet.emit(exchange, None, "unanswered", reason, decided_ns, 0)

    def finish(self, reason: str, decided_ns: int, losing: bool) -> None:
        """Ends the connection: nothing more will come. `losing`: the response stream ended in a hole or without a boundary."""
        for response in self.early:
            if response.frame is not None:
                self._orphan(response)
        self.early.clear()
        self._early_holds(-self.early_bytes)
        waiting = sorted([*self.outstanding, *self.one_way], key=_number)
        self.outstanding.clear()
        self.one_way.clear()
        self.count()
        for exchange in waiting:
            if exchange.one_way:
                self._emit_one_way(exchange)
            elif exchange.skipped_ns is not None:
                lost = self.losses > exchange.lost_before
                self._unanswered(exchange, "lost_in_capture" if lost else "skipped", exchange.skipped_ns)
            elif losing or self.losses > exchange.lost_before:
                self._unanswered(exchange, "lost_in_capture", decided_ns)
            else:
                self._unanswered(exchange, reason, decided_ns)


def _number(exchange: PendingExchange) -> int:
    return exchange.number
