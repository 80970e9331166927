"""Request-response pairs of an encrypted connection, inferred from the sizes, directions and times of its records.

In: records of both sides in the order in which they were read, as visible without keys: content type, length, packets. Out:
turns, each a run of client records and the run of server records after it. Law: the result does not depend on keys, as long as
no record boundary is lost.

A turn is an inference: requests that overlap on the wire (pipelining) are one turn. Handshakes and alerts are left out. Before
TLS 1.3 they have separate content types. TLS 1.3 hides these, so that lengths and positions decide (RFC 8446 sections 4.4.4,
4.6, 6). The client's handshake ends with a record of the length of a Finished. What the server sends before a request is its
handshake or a session ticket; a ticket may also precede its first response. Records of the length of an alert or KeyUpdate
count as such, but an alert with padding only at the end of the connection.
"""

from array import array
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kcap import limits

if TYPE_CHECKING:
    from kcap.tls.suites import Suite

CLIENT, SERVER = 0, 1
FIELDS: Final = (
    "request_first_ns", "request_last_ns", "request_bytes", "request_records",
    "response_first_ns", "response_last_ns", "response_bytes", "response_records", "gap",
)  # fmt: skip
"""Fields of a turn, in the order of `Turns.done`. Times of a response are 0 if `response_records` is."""
SIDE_FIELDS: Final = 4
GAP: Final = FIELDS.index("gap")
JAVA_PADDING: Final = 16
ALERTS_AT_END: Final = 2
"""Number of alerts at the end: each side may send one."""
FULL_RECORD: Final = 1 << 14
FIRST_RECORDS: Final = 8
"""Number of a server's first records that are examined for session tickets."""
FLIGHT_RECORDS: Final = 64
"""Number of records that the client's last flight may have: a certificate chain of 1 MiB."""


class Seen(NamedTuple):
    """One record of application data, as visible without keys."""

    side: int
    first_ns: int
    last_ns: int
    length: int
    """Bytes after the record header."""
    whole: bool
    """Whether all its bytes were captured."""


class Turns:
    """The turns of a connection; at most limits.TLS_TURNS_MAX are retained."""

    __slots__ = ("_alerts", "_first", "_flight", "_gap", "_hidden", "_lost", "_open", "_waits_for", "done", "dropped")

    def __init__(self) -> None:
        self.done: array[int] = array("q")
        """`FIELDS` of each turn, concatenated."""
        self.dropped = 0
        """Number of turns beyond the limit."""
        self._open: list[int] | None = None
        self._hidden: Hidden | None = Hidden.unknown()
        """Hidden lengths of TLS 1.3, also if the version is not known."""
        self._waits_for: frozenset[int] | None = None
        """Lengths of the Finished that ends the client's handshake; None after it came."""
        self._first: list[Seen] | None = None
        """TLS 1.3: what the server sent after the first request, if that may begin with session tickets."""
        self._alerts: list[Seen] = []
        """The newest records, if they have the length of an alert with padding."""
        self._flight: list[Seen] = []
        """Records of the client's last flight, while its end is not known."""
        self._gap = False
        """Whether bytes are missing since the last turn began."""
        self._lost = [False, False]
        """Whether the record boundary of each side is unknown."""

    def __len__(self) -> int:
        return len(self.done) // len(FIELDS)

    def server_hello(self, suite: "Suite", *, tls13: bool) -> None:
        """Takes a ServerHello. After one of TLS 1.3, the encrypted handshake follows, in records that look like application
        data.
        """
        self._hidden = Hidden.of(suite) if tls13 else None
        self._waits_for = self._hidden.finished if self._hidden is not None else None

    def record(self, seen: Seen) -> None:
        """Takes a record whose content type is application data."""
        self._lost[seen.side] = False
        if any(self._lost):
            return
        if self._waits_for is None:
            self._after_handshake(seen)
        elif seen.side == CLIENT:
            self._flight.append(seen)
            if seen.length in self._waits_for:
                self._flight.clear()
                self._waits_for, self._first = None, []
            elif len(self._flight) > FLIGHT_RECORDS:
                self._end_flight()
        elif self._flight:
            self._end_flight()
            self._after_handshake(seen)

    def _after_handshake(self, seen: Seen) -> None:
        """Takes a record after the handshake, unless it is one that TLS 1.3 hides among the data."""
        hidden = self._hidden
        if hidden is None:
            self._application(seen)
        elif seen.length in hidden.padded_alert:
            self._alerts.append(seen)
            if len(self._alerts) > ALERTS_AT_END:
                self._application(self._alerts.pop(0))
        elif seen.length not in hidden.never_data:
            for earlier in self._alerts:
                self._application(earlier)
            self._alerts.clear()
            self._application(seen)

    def gap(self, side: int) -> None:
        """Bytes of a side are missing. Those of the server may belong to the turn before a request that was seen already."""
        self._gap = True
        turn = self._open
        if turn is not None:
            turn[GAP] = 1
        if side == SERVER and self.done and (turn is None or not turn[SIDE_FIELDS + 3]):
            self.done[len(self.done) - len(FIELDS) + GAP] = 1

    def lose(self, side: int) -> None:
        """The record boundary of a side is lost: nothing is inferred until it is found again."""
        self._lost[side] = True
        self.gap(side)
        self._close()

    def finish(self) -> None:
        self._end_flight()
        self._close()

    def _end_flight(self) -> None:
        """No Finished was recognised: the first record counts as the whole flight (messages in one record, or padding)."""
        flight, self._flight, self._waits_for = self._flight, [], None
        for seen in flight[1:]:
            self._after_handshake(seen)

    def _application(self, seen: Seen) -> None:
        turn = self._open
        if seen.side == CLIENT and (turn is None or turn[SIDE_FIELDS + 3]):
            self._close()
            turn = self._open = [0] * len(FIELDS)
            turn[GAP], self._gap = int(self._gap), False
        if turn is None:
            self._first = None  # session tickets came before the first request, or the rest of what began before the capture
        elif seen.side == SERVER and self._first is not None:
            self._first.append(seen)
            turn[SIDE_FIELDS + 3] = 1
            if len(self._first) > FIRST_RECORDS:
                self._place_first(turn)
        else:
            self._add(turn, seen)

    def _place_first(self, turn: list[int]) -> None:
        """Adds what the server sent after the first request, except for session tickets before its response."""
        first, self._first = self._first or [], None
        if first:
            turn[SIDE_FIELDS + 3] = 0
        for seen in first[tickets(first) :]:
            self._add(turn, seen)

    def _add(self, turn: list[int], seen: Seen) -> None:
        at = SIDE_FIELDS * seen.side
        if not turn[at + 3]:
            turn[at] = seen.first_ns
        turn[at + 1] = max(turn[at + 1], seen.last_ns)
        turn[at + 2] += seen.length
        turn[at + 3] += 1
        turn[GAP] |= not seen.whole

    def _close(self) -> None:
        turn, self._open = self._open, None
        if turn is None:
            return
        self._place_first(turn)
        if len(self) < limits.TLS_TURNS_MAX:
            self.done.extend(turn)
        else:
            self.dropped += 1


class Hidden(NamedTuple):
    """Lengths of records of TLS 1.3 that are not application data. Java's TLS pads these by 16 bytes."""

    finished: frozenset[int]
    never_data: frozenset[int]
    """Alerts and KeyUpdates: plaintext of 2 and 5 bytes, which no message of Kafka has."""
    padded_alert: frozenset[int]
    handshake_alert: frozenset[int]
    """Alerts in a client's last flight, also with padding: no other message at that point is as short."""

    @classmethod
    def of(cls, suite: "Suite") -> "Hidden":
        """The lengths for a cipher suite."""
        return cls._of("" if suite.cipher is None else suite.cipher.kind, suite.hash_bytes)

    @classmethod
    def unknown(cls) -> "Hidden":
        """The lengths for a connection whose ServerHello was not seen."""
        return cls._of("", 32)

    @classmethod
    @cache
    def _of(cls, kind: str, hash_bytes: int) -> "Hidden":
        added = 1 + (8 if kind == "ccm8" else 16)
        message = 4 + hash_bytes
        return cls(
            frozenset({message + added, message + added + JAVA_PADDING}),
            frozenset({2 + added, 5 + added}),
            frozenset({2 + added + JAVA_PADDING}),
            frozenset({2 + added, 2 + added + JAVA_PADDING}),
        )


def tickets(first: list[Seen]) -> int:
    """Number of session tickets among the first records of a server: one message, or two of the same length, but never all
    records.
    """
    count = 0
    while count < len(first) and first[count].length >= FULL_RECORD:
        count += 1
    count += 1
    if count < len(first) and first[count].length == first[count - 1].length:
        count += 1
    return count if count < len(first) else 0
