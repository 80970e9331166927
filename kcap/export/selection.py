"""Selects packets: the frames of the exchanges that a filter selects, and their connections.

In: a capture with its filter. Out: `Selection`: for each connection the positions of its frames, its first packet, and digests
of its rows. Law: memory grows with what was selected, not with the capture (except for a number per connection).
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kcap.capture_pass import CapturePass
from kcap.columns import EXCHANGES
from kcap.filter.ast import columns_of
from kcap.model import CaptureFile
from kcap.net.connections import flow_of
from kcap.net.tcp import ACK, FIN, RST, SYN
from kcap.session import Capture

UP, DOWN, BOTH = 0, 1, 2
"""Directions: the client's frames, the broker's; and the span of a whole exchange, for packets without data."""
LAST: Final = (1 << 62) - 1
SIDES: Final = ("request", "response")
PLACES: Final = (
    "connection", "client_ip", "client_port", "server_ip", "server_port", "outcome",
    *(f"{side}_{what}" for side in SIDES for what in ("pos", "end_pos", "first_packet", "last_packet", "last_capture")),
    "capture", "response_capture",
)  # fmt: skip
RESTS_ON_OTHERS: Final = frozenset(
    "exchange broker_id cluster_id software_name software_version sasl_mechanism principal age_ns in_flight rtt_ns queue_ns"
    " service_ns long_poll_ns throttle_ns muted_ns version_verdict flags reason request_last_capture"
    " response_last_capture".split()
)
"""Columns whose values depend on other exchanges and packets; they may differ if those were not selected."""
PLACED: Final = frozenset(PLACES) - {"connection", "client_ip", "client_port", "server_ip", "server_port", "outcome"}
"""Columns with a row's position in its file."""
NAMED: Final = "topics"
"""Column with names that may come from elsewhere in the capture."""
HANDSHAKE_LEAD: Final = 24
"""Number of packets with data, of each side, of a TLS handshake that is included because another connection resumes its
session."""


class Intervals:
    """Pairs of numbers, low and high, that are searched in any order once all are there."""

    __slots__ = ("_highs", "_lows", "_pairs")

    def __init__(self) -> None:
        self._pairs = array("q")
        self._lows: list[int] | None = None
        self._highs: list[int] = []

    def add(self, low: int, high: int) -> None:
        self._pairs.extend((low, high))
        self._lows = None

    def holds(self, number: int) -> bool:
        """Whether a number is in one of them, ends included."""
        if self._lows is None:
            self._merge()
        assert self._lows is not None
        at = bisect_right(self._lows, number) - 1
        return at >= 0 and number <= self._highs[at]

    def _merge(self) -> None:
        lows: list[int] = []
        highs: list[int] = []
        for low, high in sorted(zip(self._pairs[::2], self._pairs[1::2])):
            if highs and low <= highs[-1]:
                highs[-1] = max(highs[-1], high)
            else:
                lows.append(low)
                highs.append(high)
        self._lows, self._highs = lows, highs


@dataclass(slots=True)
class RowDigests:
    """Hashes of a connection's rows: of all counted columns, and of these without the names of topics."""

    whole: "array[int]" = field(default_factory=lambda: array("q"))
    nameless: "array[int]" = field(default_factory=lambda: array("q"))


class SelectedConnection:
    """A connection with selected packets."""

    __slots__ = (
        "_awaits", "_led", "_numbers", "_places", "ended", "first", "flow", "has_names", "lead", "said", "uid", "whole",
    )  # fmt: skip

    def __init__(self, uid: str, flow: bytes, *, whole: bool) -> None:
        self.uid = uid
        self.flow = flow
        """Flow of the client's direction."""
        self.whole = whole
        self.lead = 0
        """Number of packets with data, of each side, that are included from its beginning on."""
        self.has_names = False
        """Whether it has names that rows of other connections need."""
        self.ended = False
        """Whether its end matters, because a request has no response."""
        self.first = -1
        """Reference of its first packet."""
        self.said = RowDigests()
        self._awaits = False
        self._led = [0, 0]
        self._places: dict[tuple[int, int], Intervals] = {}
        self._numbers: dict[tuple[int, int], Intervals] = {}

    def frame(self, direction: int, first: tuple[int, int, int], last: tuple[int, int, int]) -> None:
        """Adds the packets from one to another, each given as a file, a position and a number within the file."""
        if first[0] == last[0]:
            self._places.setdefault((direction, first[0]), Intervals()).add(first[1], last[1])
        else:
            self._numbers.setdefault((direction, first[0]), Intervals()).add(first[2], LAST)
            self._numbers.setdefault((direction, last[0]), Intervals()).add(0, last[2])

    def start(self) -> None:
        """Starts a pass over the packets."""
        self._awaits = False
        self._led = [0, 0]

    def wants(self, direction: int, file: int, position: int, number: int, flags: int, length: int, ref: int) -> bool:
        """Whether a packet of this connection is selected."""
        shakes = self._shake(direction, flags, length)
        if shakes or self.whole or ref == self.first or (self.ended and flags & (FIN | RST)):
            return True
        if length and self._led[direction] < self.lead:
            self._led[direction] += 1
            return True
        key = (direction if length else BOTH, file)
        held, counted = self._places.get(key), self._numbers.get(key)
        return (held is not None and held.holds(position)) or (counted is not None and counted.holds(number))

    def _shake(self, direction: int, flags: int, length: int) -> bool:
        """Whether the packet is part of the handshake: SYN, SYN-ACK and the bare ACK after it."""
        if flags & SYN:
            self._awaits = bool(flags & ACK)
            return True
        answers = self._awaits and direction == UP
        self._awaits = self._awaits and direction != UP
        return answers and not length


class Selection:
    """Everything that is selected."""

    def __init__(self, columns: Sequence[str], *, whole: bool) -> None:
        self.columns = columns
        """Columns whose values must be equal."""
        self.whole = whole
        self.files: list[CaptureFile] = []
        self.chosen: dict[str, SelectedConnection] = {}
        self.starts: dict[int, str] = {}
        """Reference of a connection's first packet -> its uid."""
        self.rows = 0
        self.kafka = 0
        self.topic_ids: set[str] = set()
        """Topic ids whose names the rows have."""
        self.name_sources: dict[str, tuple[str, int]] = {}
        """Topic id -> connection and number of the first exchange with its name."""
        self.failed: list[str] = []
        self.resumes: dict[str, bytes] = {}
        """Uid -> random of the ClientHello of the connection whose TLS master secret it resumes."""
        self.randoms: dict[str, tuple[bytes, ...]] = {}
        """Uid -> client randoms of each TLS connection with known ones."""
        self.handshakes: dict[bytes, tuple[int, str, bytes]] = {}
        """Random of a ClientHello (before TLS 1.3) -> reference of the connection's first packet, its uid, its flow."""

    def read(self, capture: Capture, watch: Callable[[CapturePass], None] | None = None, *, context: bool = False) -> None:
        """Makes a pass over the capture. `context`: frames that others depend on, whose own rows do not count."""
        from kcap.table.builder import Table

        reading = capture.read(keep_connections=not context)

        def step() -> None:
            self._begun(reading)
            if watch is not None:
                watch(reading)

        reading.watch = step
        names = [*dict.fromkeys((*PLACES, *self.columns, "topics", "topic_ids"))]
        table = Table(lambda: reading, "exchanges", names, only=capture.only)
        for batch in table.record_batches():
            columns = batch.to_pydict()
            self._take(columns, reading.file_numbers, context=context)
        if table.tracker is not None and not context:
            sources = table.tracker.topic_sources.items()
            self.name_sources = {uuid: (uid, number) for uuid, (uid, number, _) in sources if uuid in self.topic_ids}
        self._begun(reading)
        for ref, uid in self.starts.items():
            if uid in self.chosen:
                self.chosen[uid].first = ref
        if not context:
            self.files = list(reading.capture_files)
            self.kafka = reading.analyzer.kafka_connections
            self.failed = [str(error) for _, error in reading.failed]

    def _begun(self, reading: CapturePass) -> None:
        closed, reading.connections = reading.connections, []
        for connection in closed:
            values: dict[str, Any] = connection.values
            uid = self.starts[connection.ref] = str(values["connection"])
            if values.get("resumes") is not None:
                self.resumes[uid] = values["resumes"]
            randoms = self.randoms[uid] = values.get("randoms", ())
            if randoms and values["tls_version"] != "TLS 1.3":
                flow = flow_of(values["client_ip"], values["client_port"], values["server_ip"], values["server_port"])
                self.handshakes |= dict.fromkeys(randoms, (connection.ref, uid, flow))

    def origin(self, uid: str) -> str | None:
        """The connection whose TLS session this one resumes, unless a key log has its secret."""
        random = self.resumes.get(uid)
        return self.handshakes[random][1] if random in self.handshakes else None

    def add_handshakes(self) -> None:
        """Adds the TLS handshakes that connections resume: without them the key log has no secret for these connections."""
        waiting = list(self.chosen)
        while waiting:
            random = self.resumes.get(waiting.pop())
            if random not in self.handshakes:
                continue
            ref, uid, flow = self.handshakes[random]
            if uid not in self.chosen:
                self.chosen[uid] = SelectedConnection(uid, flow, whole=False)
                self.chosen[uid].first = ref
                waiting.append(uid)
            self.chosen[uid].lead = HANDSHAKE_LEAD

    def _take(self, columns: dict[str, list[Any]], index: dict[str, int], *, context: bool) -> None:
        for at, uid in enumerate(columns["connection"]):
            row = {name: columns[name][at] for name in PLACES}
            chosen = self.chosen.get(uid)
            if chosen is None:
                flow = flow_of(row["client_ip"], row["client_port"], row["server_ip"], row["server_port"])
                chosen = self.chosen[uid] = SelectedConnection(uid, flow, whole=self.whole and not context)
            chosen.has_names = chosen.has_names or context
            chosen.ended = chosen.ended or row["outcome"] != "answered"
            places = []
            for direction, side in enumerate(SIDES):
                found = ends(row, side, index)
                if found is not None:
                    chosen.frame(direction, *found)
                    places.append(found)
            if places:
                chosen.frame(BOTH, *spanned(places))
        if not context:
            self.rows += len(columns["connection"])
            for uid, whole, nameless in said(columns, self.columns):
                self.chosen[uid].said.whole.append(whole)
                self.chosen[uid].said.nameless.append(nameless)
            for topics, ids in zip(columns["topics"], columns["topic_ids"]):
                self.topic_ids.update(id_ for name, id_ in zip(topics or (), ids or ()) if name is not None and id_ is not None)


Point = tuple[int, int, int]


def ends(row: dict[str, Any], side: str, index: dict[str, int]) -> tuple[Point, Point] | None:
    """First and last packet of a row's request or response: file, position, number."""
    name = row["capture" if side == "request" else "response_capture"]
    first, last = row[f"{side}_pos"], row[f"{side}_end_pos"]
    if name is None or first is None:
        return None
    file = index[name]
    end = row[f"{side}_last_capture"]
    number = row[f"{side}_first_packet"] or 0
    stop = file if end is None else index[end]
    return (file, first, number), (stop, last if last is not None else first, row[f"{side}_last_packet"] or number)


def spanned(places: Sequence[tuple[Point, Point]]) -> tuple[Point, Point]:
    """From the first packet of an exchange to its last."""
    (first, last), (begin, end) = places[0], places[-1]
    if first[0] == end[0]:
        return min(first, begin), max(last, end)
    return first, end


def counted_columns(capture: Capture) -> list[str]:
    """Columns whose values must be equal: those of the exchange itself, and those that the filter tests."""
    requested = set(columns_of(capture.only)) if capture.only is not None else set()
    return [
        column.name
        for column in EXCHANGES
        if column.name not in PLACED and (column.name not in RESTS_ON_OTHERS or column.name in requested - {"exchange"})
    ]


def said(columns: dict[str, list[Any]], names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """For each row: its connection, and hashes of the named columns, with and without the names of topics."""
    nameless = [columns[name] for name in names if name != NAMED]
    for uid, topics, *values in zip(columns["connection"], columns[NAMED], *nameless):
        # Lists are hashed by their elements.
        known = hash(tuple([tuple(value) if isinstance(value, list) else value for value in values]))
        yield uid, hash((known, tuple(topics or ()))), known
