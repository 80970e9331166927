"""Which response answers which request, and why one has none.

In: requests and answers as descriptors, in the order their headers were complete. Out: each exchange exactly once, through
`Outlet.emit`. Law: every request ends in exactly one exchange, every answer in exactly one exchange or orphan.

Brokers answer a connection's requests in order (SocketServer mutes it meanwhile), so pairing is first in, first out, checked
by correlation id. Captures do show answers before their requests; such an answer waits for the reorder window.
"""

from collections import deque
from typing import Protocol

from kcap import limits
from kcap.kafka.frames import FLAG, Frame, PendingExchange, PendingResponse
from kcap.net.tcp import Connection
from kcap.weird import WeirdKind

OUT_OF_ORDER, LATE = FLAG["out_of_order"], FLAG["late"]


class Outlet(Protocol):
    """Takes decided exchanges."""

    def emit(
        self,
        exchange: PendingExchange,
        answer: PendingResponse | None,
        outcome: str,
        reason: str | None,
        decided_ns: int | None,
        flags: int,
    ) -> None: ...

    def passed_over(self, exchange: PendingExchange) -> None:
        """A later request was answered first; whether this one ever is may be seen much later."""


class Pairing:
    """The requests of one connection that wait, and the answers that came too early."""

    def __init__(self, connection: Connection, outlet: Outlet) -> None:
        self.connection = connection
        self.outlet = outlet
        self.outstanding: deque[PendingExchange] = deque()
        self.one_way: deque[PendingExchange] = deque()
        self.early: list[PendingResponse] = []
        self.exchanges = 0
        self.losses = 0
        """Holes and searches of the response stream so far."""
        self.request_losses = 0

    def _report(self, kind: WeirdKind, detail: str, frame: Frame | None) -> None:
        """An oddity of a frame, or of one that has not ended yet."""
        if frame is None:
            self.connection.report(kind, detail)
        else:
            self.connection.report(kind, detail, frame.first_ref or 0, frame.low or 0)

    # -- requests -----------------------------------------------------------------------------------------------------
    def number(self) -> int:
        """The next number within the connection."""
        self.exchanges += 1
        return self.exchanges

    def request(self, exchange: PendingExchange) -> None:
        """A request's header is complete. Its number is 0 until given here."""
        answer = self._early_answer(exchange) if self.early else None
        if answer is not None:
            exchange.number = answer.number
            self.early.remove(answer)
            answer.exchange, exchange.response = exchange, answer
            return
        exchange.number = self.number()
        if self.outstanding:
            if len(self.outstanding) >= limits.OUTSTANDING_MAX:
                self.connection.report(WeirdKind.OUTSTANDING_LIMIT, f"more than {limits.OUTSTANDING_MAX} requests wait")
                self._unanswered(self.outstanding.popleft(), "skipped", self.connection.last_ns)
            if self.outstanding and self.outstanding[-1].correlation_id == exchange.correlation_id and not exchange.token:
                self._report(WeirdKind.CORRELATION_REUSED, f"correlation id {exchange.correlation_id}", exchange.request)
        self.outstanding.append(exchange)

    def request_done(self, exchange: PendingExchange) -> None:
        """The request's last byte has passed and `exchange.request` is set."""
        answer = exchange.response
        if answer is not None:
            if answer.frame is not None:
                self.answered(exchange, answer)
        elif exchange.one_way:
            self.outstanding.remove(exchange)
            self.one_way.append(exchange)
            if len(self.one_way) > limits.ONE_WAY_KEPT:
                self._emit_one_way(self.one_way.popleft())

    def _early_answer(self, exchange: PendingExchange) -> PendingResponse | None:
        if exchange.token:
            return self.early[0]
        for answer in self.early:
            if answer.correlation_id == exchange.correlation_id:
                return answer
        return None

    # -- answers ------------------------------------------------------------------------------------------------------
    def answer(self, answer: PendingResponse) -> None:
        """A response's correlation id is known: finds its request, or keeps it for a request captured later."""
        exchange = self._match(answer.correlation_id)
        if exchange is None:
            self.settle(answer.seen_ns)
            if len(self.early) >= limits.EARLY_RESPONSES_MAX:
                self.connection.report(WeirdKind.EARLY_LIMIT, f"more than {limits.EARLY_RESPONSES_MAX} responses wait")
                self._orphan(self.early.pop(0))
            answer.number = self.number()
            self.early.append(answer)
            return
        answer.exchange, exchange.response = exchange, answer
        if exchange.one_way:
            self.one_way.remove(exchange)
            self._report(WeirdKind.ACKS0_ANSWERED, f"correlation id {answer.correlation_id}", answer.frame)
        elif self.outstanding[0] is exchange:
            self.outstanding.popleft()
        else:
            self._skip_to(exchange, answer)
        while self.one_way and self.one_way[0].number < exchange.number:
            self._emit_one_way(self.one_way.popleft())

    def _match(self, correlation_id: int | None) -> PendingExchange | None:
        outstanding = self.outstanding
        match = None
        if correlation_id is not None:
            match = next((x for x in outstanding if x.correlation_id == correlation_id and not x.token), None)
        if outstanding and outstanding[0].token and (match is None or match is not next(x for x in outstanding if not x.token)):
            return outstanding[0]
        if match is None and correlation_id is not None:
            match = next((x for x in self.one_way if x.correlation_id == correlation_id), None)
        return match

    def _skip_to(self, exchange: PendingExchange, answer: PendingResponse) -> None:
        """Those in front stay outstanding: their answers may be lost, or come out of order."""
        lost = new = False
        while self.outstanding[0].token:
            # the last token of some mechanisms is not answered
            self._unanswered(self.outstanding.popleft(), "skipped", answer.seen_ns)
        for waiting in self.outstanding:
            if waiting is exchange:
                break
            if waiting.skipped_ns is None:
                waiting.skipped_ns = answer.seen_ns
                self.outlet.passed_over(waiting)
                new, lost = True, lost or self.losses > waiting.lost_before
        if (new and not lost) or exchange.skipped_ns is not None:
            answer.flags |= OUT_OF_ORDER
            self._report(WeirdKind.OUT_OF_ORDER_RESPONSE, f"correlation id {exchange.correlation_id}", answer.frame)
        self.outstanding.remove(exchange)

    def answer_done(self, answer: PendingResponse) -> None:
        """The response's last byte has passed and `answer.frame` is set."""
        exchange = answer.exchange
        if exchange is not None and exchange.request is not None:
            self.answered(exchange, answer)

    def answered(self, exchange: PendingExchange, answer: PendingResponse) -> None:
        """Both the request's and the response's last byte have passed."""
        flags = answer.flags
        client = self.connection.client
        if client is not None and client.fin_ns is not None and answer.seen_ns > client.fin_ns:
            flags |= LATE
            self._report(WeirdKind.LATE_RESPONSE, f"correlation id {exchange.correlation_id}", answer.frame)
        self.outlet.emit(exchange, answer, "answered", None, None, flags)

    # -- what has no partner ------------------------------------------------------------------------------------------
    def settle(self, time_ns: int) -> None:
        """Early answers that have waited for the reorder window are orphans."""
        client = self.connection.client
        segments = client.data_segments if client is not None else 0
        kept = sum(answer.frame.size or 0 for answer in self.early if answer.frame is not None)
        while self.early:
            first = self.early[0]
            waits = segments - first.mark < limits.EARLY_SEGMENTS and time_ns - first.seen_ns < limits.EARLY_NS
            if first.frame is None or (waits and kept <= limits.EARLY_BYTES_MAX):
                return
            kept -= first.frame.size or 0
            self._orphan(self.early.pop(0))

    def _orphan(self, answer: PendingResponse) -> None:
        lost = self.connection.began == "syn" or self.request_losses
        reason = "lost_in_capture" if lost else "midstream"
        self._report(WeirdKind.ORPHAN, f"correlation id {answer.correlation_id}", answer.frame)
        if answer.correlation_id is None:
            return  # the broker's half of a token exchange says nothing on its own
        orphan = PendingExchange(answer.number, None, None, answer.correlation_id, None, 0)
        self.outlet.emit(orphan, answer, "orphan", reason, None, answer.flags)

    def _emit_one_way(self, exchange: PendingExchange) -> None:
        self.outlet.emit(exchange, None, "one_way", None, None, 0)

    def _unanswered(self, exchange: PendingExchange, reason: str, decided_ns: int) -> None:
        if not exchange.token:
            self._report(WeirdKind.UNANSWERED, f"correlation id {exchange.correlation_id}: {reason}", exchange.request)
        self.outlet.emit(exchange, None, "unanswered", reason, decided_ns, 0)

    def finish(self, reason: str, decided_ns: int, losing: bool) -> None:
        """Nothing more will come. `losing`: the response stream ended in a hole or without a boundary."""
        for answer in self.early:
            if answer.frame is not None:
                self._orphan(answer)
        self.early.clear()
        waiting = sorted([*self.outstanding, *self.one_way], key=_number)
        self.outstanding.clear()
        self.one_way.clear()
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
