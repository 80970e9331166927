"""What exchanges report about their connection, their broker and the capture, tracked batch by batch.

In: batches of decided exchanges, in order. Out: a `RowContext` for each batch: the facts that hold for each of its rows. Law: a
row's own facts come from exchanges of its connection up to itself, whatever the size of the batches. Only the messages of a few
APIs are read here, and equal ones once.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from kcap import limits
from kcap.arrays.arrow import Array, Coded, nulls, take
from kcap.arrays.vectors import grouped, occurring
from kcap.batch.failures import WAITED, Report, of_row, of_waiting, report_cut
from kcap.facts.api_versions import Offer, offer_of, software_of
from kcap.facts.brokers import Brokers, Server
from kcap.facts.connection_facts import NO_FACTS, ConnectionFacts, FactsOfConnections, RowConnections
from kcap.facts.message_json import behind_tags, digest, read, read_as_far
from kcap.facts.mutes import QuotaMutes
from kcap.facts.offer_history import OfferHistory
from kcap.facts.principals import principal_of_token
from kcap.facts.provisional import Provisional
from kcap.facts.topic_names import LOG_MARKS, METADATA_ID, METADATA_TOPIC, TopicNames, listed
from kcap.facts.tracked_rows import (
    API_VERSIONS,
    AUTHENTICATE,
    ELSEWHERE,
    HANDSHAKE,
    LISTING,
    TrackedRows,
    distinct,
    numbered,
    tracked_rows,
)
from kcap.facts.version_verdicts import UsedVersions, Verdicts, VersionClassifier
from kcap.identities import Identity
from kcap.kafka.frames import NO_BODY
from kcap.kafka.headers import FETCH
from kcap.model import CaptureFile
from kcap.schema import quirks
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch
    from kcap.arrays.vectors import Bools, Int64s
    from kcap.batch.columns import BatchColumns
    from kcap.batch.constants import Constants
    from kcap.decode.message import Message
    from kcap.facts.connection_facts import UInt64s
    from kcap.kafka.conversation import PassedOver

HEADS: Final = (1 << 10, 1 << 13, 1 << 16, 1 << 20)
"""Numbers of bytes of a Metadata response that are read until its topics begin; the brokers come first."""
BEHIND_BROKERS: Final = "topics"
NEVER: Final = 1 << 62


class Reread(Protocol):
    """Reads a row's `request` or `response` again from the file."""

    def __call__(self, batch: "RowBatch", at: int, side: str, following: Sequence[tuple[int, str]] = ()) -> "Message | None":
        """None if it cannot be read. `following`: further rows and sides that are read next; data that overlaps them in the
        file is read once for all."""


class Fact(Flag):
    """Kinds of facts that columns need; kinds that no column needs are not tracked."""

    CONNECTIONS = auto()
    """Software, login and offered versions of connections."""
    BROKERS = auto()
    TOPICS = auto()
    VERDICTS = auto()
    MUTES = auto()
    """How long the broker was silent after a throttled response."""


NO_FACT: Final = Fact(0)
EVERY_FACT: Final = ~NO_FACT
FROM_MESSAGES: Final = Fact.CONNECTIONS | Fact.BROKERS | Fact.VERDICTS
"""Kinds of facts for which the messages of TRACKED_APIS are read."""


@dataclass(frozen=True, slots=True)
class RowContext(RowConnections):
    """The facts that hold for the rows of one batch; kinds that were not tracked are empty or None."""

    brokers: Sequence[tuple[int | None, str | None, int | None]] = ()
    """Node id and cluster id of each server, and how many brokers it listed."""
    topic_names: Mapping[str, str] = field(default_factory=dict)
    """Topic id -> name, for ids that rows of the batch have without a name."""
    verdicts: Verdicts | None = None
    muted: "Int64s | None" = None
    """Nanoseconds of each row's service time in which the broker was silent after an earlier throttle (KIP-219)."""
    throttled: "Int64s | None" = None
    """Nanoseconds of each row's service time that were the throttle itself, for brokers older than KIP-219."""

    def select(self, places: "Int64s") -> "RowContext":
        """The context of some of the rows."""
        return replace(
            self,
            state=self.state[places],
            server=self.server[places],
            verdicts=None if self.verdicts is None else self.verdicts.select(places),
            muted=None if self.muted is None else self.muted[places],
            throttled=None if self.throttled is None else self.throttled[places],
        )

    def texts(self, pick: Callable[[ConnectionFacts], str | None]) -> Array | Coded:
        """A text attribute of each row's connection."""
        values = [pick(known) for known in self.states]
        if not any(value is not None for value in values):
            return nulls(len(self.state), pa.string())
        return Coded(pa.array(values, pa.string()), self.state)

    def of_servers(self, part: int, kind: pa.DataType) -> Array | Coded:
        """Node id (part 0), cluster id (part 1) or number of listed brokers (part 2) of each row's server."""
        values = [known[part] for known in self.brokers]
        if not any(value is not None for value in values):
            return nulls(len(self.server), kind)
        known = pa.array(values, kind)
        return Coded(known, self.server) if kind == pa.string() else take(known, self.server)


def no_context(size: int) -> RowContext:
    """The context of rows for which nothing is tracked."""
    none = np.zeros(size, np.int64)
    return RowContext((NO_FACTS,), none, (), none)


class TrackedExchange(NamedTuple):
    """One exchange whose messages are read."""

    uid: str
    server: Server
    exchange: int
    key: int
    version: int
    answered: bool
    bodies: tuple[bytes, bytes]
    """Bodies of request and response, with the header's tags first; empty if they were not retained."""


class MetadataTracker:
    """All facts of a capture so far; can be pickled."""

    def __init__(self, report: Report | None = None, reread: Reread | None = None, *, partial: bool = False) -> None:
        """`report` receives oddities; `reread` reads messages that are too large for a batch. `partial`: it observes only some
        of the capture's connections, so that offers on others count only in the backfill."""
        self.connections = FactsOfConnections()
        self.mutes = QuotaMutes()
        self.offers = OfferHistory()
        self.constants: Constants | None = None
        """Constants of the connections of the batch observed last."""
        self.fresh_offers: list[tuple[Server, Int64s, Offer]] = []
        """Server, times in order, and offer of equal ApiVersions responses of the last batch."""
        self.brokers = Brokers()
        self.topics = TopicNames()
        self.topic_sources: dict[str, tuple[str, int, Server]] = {}
        """Topic id -> connection, exchange and server that reported its name first."""
        self.used = UsedVersions()
        self._classifier = VersionClassifier(OfferHistory() if partial else self.offers, self.used)
        self.report, self._reread = report, reread
        self._reported: set[str] = set()
        self._offers: dict[bytes, Offer] = {}
        """Every distinct offer, by its packed form."""
        self._fresh: dict[bytes, ConnectionFacts] = {}
        """`digest` of an ApiVersions exchange -> the facts of a connection that reported nothing before."""
        self._mechanisms: dict[bytes, str | None] = {}
        self._heads: set[int] = set()
        self.logs: set[Identity] = set()
        """Connections on which KRaft's log was read."""
        self._host_names: dict[str, int] = {}
        """File -> number of its host names that were taken."""
        self._provisional = Provisional()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"report": None, "_reread": None, "constants": None}

    # -- a batch ------------------------------------------------------------------------------------------------------
    def observe(self, columns: "BatchColumns", needs: Fact = EVERY_FACT, files: Iterable[CaptureFile] = ()) -> RowContext:
        """Observes a batch, once; returns the facts that hold for its rows. `files`: of the capture, for host names."""
        self._forget_idle(int(columns.number("response_last_ns").filled().max(initial=0)))
        self.fresh_offers, self.constants = [], columns.constants
        self._take_host_names(files)
        context = self._connection_states(columns) if needs & FROM_MESSAGES else no_context(columns.size)
        found: dict[str, Any] = {}
        if Fact.TOPICS in needs:
            found["topic_names"] = self._topic_names(columns)
        if Fact.BROKERS in needs:
            found["brokers"] = [self.brokers.facts(server) for server in context.servers]
            self._provisional.identified(zip(context.servers, found["brokers"]))
        if Fact.VERDICTS in needs:
            found["verdicts"] = self._classifier.classify(columns, context)
            if self.used.full:
                self._limit("client libraries")
        if Fact.MUTES in needs:
            found["muted"], found["throttled"] = self.mutes.observe(columns)
        return replace(context, **found)

    def _connection_states(self, columns: "BatchColumns") -> RowContext:
        """Reads the tracked messages of a batch; returns the state of each row's connection at that row, and its server."""
        identity, known = columns.number("identity").values, self.connections
        uids = columns.constants.uid_numbers()
        old = np.append(known.of(uids), 0)
        of_server, servers = columns.constants.servers
        server = of_server.take(identity)
        changes = self._read_tracked(columns, server, uids, old[:-1] == 0)
        found = old.take(identity)
        for places, rows, facts in changes.steps:
            since, after = np.full(len(old), NEVER, np.int64), old.copy()
            since[places], after[places] = rows, facts
            found = np.where(np.arange(columns.size) >= since.take(identity), after.take(identity), found)
        for place, steps in changes.several.items():
            here = np.flatnonzero(identity == place)
            for first, number in steps:
                found[here[here >= first]] = number
        numbers, state = occurring(found, len(known.different))
        return RowContext([known.different[number] for number in numbers.tolist()], state, servers, server)

    def known(self, uid: str) -> ConnectionFacts:
        """The latest facts of a connection."""
        return self.connections[uid]

    def _forget_idle(self, time_ns: int) -> None:
        """Forgets connections without a row for long, and muted times that ended before these had their last one."""
        begun_ns = self.connections.begun_ns
        if self.connections.forget_idle(time_ns):
            self.mutes.forget(begun_ns)

    def _read_tracked(self, columns: "BatchColumns", of_server: "Int64s", uids: "UInt64s", unknown: "Bools") -> "Changes":
        """Reads the messages of TRACKED_APIS; returns from which row on connections have which new facts.

        `of_server`: number of each row's server; `uids`: of the connections; `unknown`: connections without facts.
        """
        changes = Changes()
        early = [(columns.rows.place_of(row), place, one) for row, place, one in columns.batch.passed_over]
        early.sort(key=itemgetter(0))
        rows = tracked_rows(columns)
        alone = unknown.copy()
        alone[[place for _, place, _ in early]] = False
        left = self._read_alike(columns, rows, of_server[rows.at], uids, alone, changes)
        offers: list[tuple[int, int]] = []
        for at, place, exchange, key, version, done, low, high, other_low, other_high in rows.lists(left):
            if early and early[0][0] <= at:
                before = [entry for entry in early if entry[0] <= at]
                self._read_waiting(columns.identities, before, changes)
                del early[: len(before)]
            one = columns.identities[place]
            server, bodies = (one.server_ip, one.server_port), (columns.body(low, high), columns.body(other_low, other_high))
            with of_row(self.report, columns.batch, at, "facts"):
                if key == API_VERSIONS:
                    new = self._api_versions(version, *bodies)
                    offers.append((at, self.connections.number(new)))
                    new = self._merged(self.known(one.uid), new)
                else:
                    row = TrackedExchange(one.uid, server, exchange, key, version, bool(done), bodies)
                    if key == HANDSHAKE:
                        new = self._handshake(row)
                    elif key in (AUTHENTICATE, -1):
                        new = self._authenticate(row)
                    else:
                        self._listing(row)
                        continue
                self._change(one.uid, new, changes.several.setdefault(place, []), at)
        self._read_waiting(columns.identities, early, changes)
        some = np.array(offers, np.int64).reshape(-1, 2).T
        self._take_offers(columns, np.append(changes.rows, some[0]), np.append(changes.facts, some[1]), of_server)
        changes.several = {place: steps for place, steps in changes.several.items() if steps}
        return changes

    def _read_alike(
        self,
        columns: "BatchColumns",
        rows: "TrackedRows",
        server: "Int64s",
        uids: "UInt64s",
        unknown: "Bools",
        changes: "Changes",
    ) -> "Bools":
        """Reads the ApiVersions exchanges of connections that have no facts and report nothing else in this batch, equal ones
        once, up to FACT_STEPS_MAX per connection. Skips repeated lists of a server. `server`: of each of the rows, by number;
        `unknown`: the connections without facts and without a waiting request.

        Returns the rows that remain to be read one by one.
        """
        size = len(rows.at)
        left = np.ones(size, np.bool_)
        if not size:
            return left
        contents = [rows.contents(columns, side) for side in (REQUEST, RESPONSE)]
        here = (contents[REQUEST] != ELSEWHERE) & (contents[RESPONSE] != ELSEWHERE)
        reports = (rows.key == API_VERSIONS) | (rows.key == HANDSHAKE) | (rows.key == AUTHENTICATE) | (rows.key < 0)
        first, alike = distinct(rows.key, rows.version, *contents, rows.answered, server)
        left &= reports | ~here | (first[alike] == np.arange(size))
        of_api = (rows.key == API_VERSIONS) & here
        reported, of_these = (np.bincount(rows.place[which], minlength=len(uids)) for which in (reports, of_api))
        unknown = unknown & (reported == of_these) & (reported <= limits.FACT_STEPS_MAX)
        alone = np.flatnonzero(of_api & unknown[rows.place])
        first, alike = distinct(*(column[alone] for column in (rows.version, *contents)))
        known: list[int] = []
        for _, _, _, _, version, _, low, high, other_low, other_high in rows.lists(alone[first]):
            try:
                facts = self._api_versions(version, columns.body(low, high), columns.body(other_low, other_high))
                known.append(self.connections.number(facts))
            except Exception:  # noqa: BLE001 - each of these rows is left, and fails with a report of its own
                known.append(-1)
        found = np.array(known, np.int64)[alike]
        unknown[rows.place[alone[found < 0]]] = False
        fine = unknown[rows.place[alone]]
        alone, found = alone[fine], found[fine]
        left[alone] = False
        changes.rows, changes.facts, places = rows.at[alone], found, rows.place[alone]
        number = numbered(places)
        for step in range(int(number.max(initial=-1)) + 1):
            some = np.flatnonzero(number == step)
            after = found[some] if not step else self._both(self.connections.of(uids[places[some]]), found[some])
            self.connections.update(uids[places[some]], after)
            changes.steps.append((places[some], changes.rows[some], after))
        return left

    def _both(self, known: "Int64s", new: "Int64s") -> "Int64s":
        """The facts of connections after one more ApiVersions exchange, as `_merged`; all by number."""
        different = self.connections.different
        kinds, _, kind = grouped(known * len(different) + new)
        pairs = [divmod(code, len(different)) for code in kinds.tolist()]
        merged = [self.connections.number(self._merged(different[before], different[more])) for before, more in pairs]
        return np.array(merged, np.int64)[kind]

    def _take_offers(self, columns: "BatchColumns", rows: "Int64s", facts: "Int64s", of_server: "Int64s") -> None:
        """Stores the offers of the ApiVersions responses of some rows, which have these facts, by number."""
        when = columns.number("response_last_ns").take(rows)
        order = np.argsort(when.values, kind="stable")
        order = order[when.mask()[order]]
        rows, times, different = rows[order], when.values[order], self.connections.different
        kinds, first, kind = grouped(of_server[rows] * len(different) + facts[order])
        by_server: dict[Server, list[tuple[Int64s, Offer]]] = {}
        places = columns.number("identity").values[rows[first]].tolist()
        alike = np.split(times[np.argsort(kind, kind="stable")], np.cumsum(np.bincount(kind))[:-1])
        for code, place, some in zip(kinds.tolist(), places, alike):
            offer = self.same_offer(different[code % len(different)].offer)
            if offer is not None:
                one = columns.identities[place]
                by_server.setdefault((one.server_ip, one.server_port), []).append((some, offer))
        self.fresh_offers = [(server, *taken) for server, offers in by_server.items() for taken in offers]
        for server, offers in by_server.items():
            if len(offers) > 1 or not self.offers.continues(server, *offers[0]):
                each = ((time_ns, offer) for some, offer in offers for time_ns in some.tolist())
                for one in sorted(each, key=itemgetter(0)):
                    self.take_offer(server, *one)

    def take_offer(self, server: Server, time_ns: int, offer: Offer) -> None:
        """Stores what a server offered at a time."""
        one = self.same_offer(offer)
        if one is not None and not self.offers.add(server, time_ns, one):
            self._limit("changes of offers")

    def _read_waiting(
        self, identities: Sequence[Identity], early: "Sequence[tuple[int, int, PassedOver]]", changes: "Changes"
    ) -> None:
        """Reads requests that still wait for a response while later ones of their connections have one.

        `early`: from which row on they count, the connection, the request.
        """
        for at, place, waiting in early:
            one = identities[place]
            with of_waiting(self.report, one.uid, waiting.exchange, "facts"):
                if waiting.api_key == API_VERSIONS:
                    new = self._merged(self.known(one.uid), self._api_versions(waiting.api_version, waiting.body, b""))
                else:
                    server, bodies = (one.server_ip, one.server_port), (waiting.body, b"")
                    new = self._handshake(
                        TrackedExchange(one.uid, server, waiting.exchange, waiting.api_key, waiting.api_version, False, bodies)
                    )
                self._change(one.uid, new, changes.several.setdefault(place, []), at)

    @staticmethod
    def _merged(known: ConnectionFacts, new: ConnectionFacts) -> ConnectionFacts:
        """The facts of a connection after one more ApiVersions exchange."""
        software, offer = new.software or known.software, new.offer or known.offer
        negotiated = new.negotiated or known.negotiated
        if software == known.software and offer is known.offer and negotiated is known.negotiated:
            return known
        return replace(known, software=software, offer=offer, negotiated=negotiated)

    def _change(self, uid: str, new: ConnectionFacts, steps: list[tuple[int, int]], at: int) -> None:
        """Gives a connection new facts from row `at` on."""
        if new != self.known(uid):
            self.connections[uid] = new
            steps.append((at, self.connections.number(new)))

    def _limit(self, what: str) -> None:
        """Reports, once, that a limit was reached."""
        if what not in self._reported:
            self._reported.add(what)
            if self.report is not None:
                self.report(WeirdKind.FACTS_LIMIT, what)

    # -- the connection's own facts -----------------------------------------------------------------------------------
    def _api_versions(self, version: int, request: bytes, response: bytes) -> ConnectionFacts:
        """The facts that the exchange alone gives a connection; equal offers are one object."""
        name = digest(version, request, response)
        found = self._fresh.get(name)
        if found is not None:
            return found
        if len(self._fresh) >= limits.ANSWERS_KEPT:
            self._fresh.clear()
        software = (
            software_of(request, version, behind_tags(request, quirks.API_VERSIONS, version, REQUEST)) if request else None
        )
        offer = self.same_offer(offer_of(response, version)) if response else None
        found = ConnectionFacts(software, offer=offer, negotiated=response[:2] in (b"", b"\0\0"))
        self._fresh[name] = found
        return found

    def same_offer(self, offer: Offer | None) -> Offer | None:
        """The one object for all equal offers; None beyond OFFERS_KEPT."""
        if offer is None:
            return None
        found = self._offers.get(offer.packed)
        if found is None and len(self._offers) < limits.OFFERS_KEPT:
            found = self._offers[offer.packed] = offer
        elif found is None:
            self._limit("offers")
        return found

    def _handshake(self, row: TrackedExchange) -> ConnectionFacts:
        data = row.bodies[REQUEST]
        name = digest(row.version, data)
        if name not in self._mechanisms:
            if len(self._mechanisms) >= limits.ANSWERS_KEPT:
                self._mechanisms.clear()
            mechanism = read(data, row.key, row.version, REQUEST).get("mechanism")
            self._mechanisms[name] = mechanism if isinstance(mechanism, str) else None
        known = self.known(row.uid)
        same = self._mechanisms[name] == known.mechanism
        return known if same else replace(known, mechanism=self._mechanisms[name])

    def _authenticate(self, row: TrackedExchange) -> ConnectionFacts:
        """A login: the name in a token counts once the broker accepts the token, and no longer once it refuses it."""
        known = self.known(row.uid)
        principal = known.principal
        if row.key == -1:
            principal = (principal_of_token(known.mechanism, row.bodies[REQUEST]) if row.answered else None) or principal
        elif read(row.bodies[RESPONSE], row.key, row.version, RESPONSE).get("errorCode"):
            principal = None
        elif row.answered:
            text = read(row.bodies[REQUEST], row.key, row.version, REQUEST).get("authBytes")
            principal = principal_of_token(known.mechanism, a2b_base64(text) if isinstance(text, str) else b"") or principal
        return known if principal == known.principal else replace(known, principal=principal)

    # -- facts of the capture -----------------------------------------------------------------------------------------
    def _listing(self, row: TrackedExchange) -> None:
        for side in LISTING[row.key]:
            if side == RESPONSE and not row.answered:
                continue
            if data := row.bodies[side]:
                self._list(row, side, data)

    def _is_new(self, seen: int) -> bool:
        """Whether a body, by its hash, was not read before, among the last ANSWERS_KEPT; records it as read."""
        if seen in self._heads:
            return False
        if len(self._heads) >= limits.ANSWERS_KEPT:
            self._heads.clear()
        self._heads.add(seen)
        return True

    def _list(self, row: TrackedExchange, side: int, data: bytes) -> None:
        for size in HEADS:
            head = data[:size]
            seen = hash((row.server, row.key, row.version, side, head))
            if seen in self._heads:
                return
            body, whole = read_as_far(head, row.key, row.version, side)
            if size >= len(data) or BEHIND_BROKERS in body:
                break
        self._is_new(seen)
        brokers, itself = listed(row.key, side, body)
        itself = itself and (whole or BEHIND_BROKERS in body)  # the server's own entry may be cut off
        cluster = body.get("clusterId")
        self.brokers.take(
            row.server, cluster if isinstance(cluster, str) else None, brokers,
            itself=itself, connection=row.uid, exchange=row.exchange,
        )  # fmt: skip
        if len(self.brokers.listings) >= limits.BROKERS_KEPT:
            self._limit("brokers")

    def _topic_names(self, columns: "BatchColumns") -> dict[str, str]:
        """Takes the names of topic ids, from messages with both and from KRaft's log if it is fetched.

        Returns the known names of ids that the batch has without a name.
        """
        topics, names, batch = columns.topics, self.topics.names, columns.batch
        report_cut(self.report, batch, topics.cut, WeirdKind.TOPICS_LIMIT, "topics", limits.TOPICS_OF_MESSAGE)
        report_cut(self.report, batch, topics.left_out, WeirdKind.TOPICS_LIMIT, "topics", limits.TOPICS_CARRIED_BYTES, WAITED)
        logs = topics.mentions(METADATA_TOPIC, METADATA_ID)
        if logs.any() and len(names) < limits.TOPIC_NAMES_KEPT:
            self._read_log(columns, logs)
        for at, name, uuid in (pair for pair in topics.pairs() if pair[2] not in names):
            if len(names) >= limits.TOPIC_NAMES_KEPT:
                break
            names[uuid] = name
            known = columns.identities[int(columns.number("identity").values[at])]
            number = int(columns.number("exchange").values[at])
            self.topic_sources[uuid] = known.uid, number, (known.server_ip, known.server_port)
        if len(names) >= limits.TOPIC_NAMES_KEPT:
            self._limit("topics")
        nameless = topics.nameless()
        self._provisional.nameless(uuid for uuid in nameless if uuid not in names)
        return {uuid: names[uuid] for uuid in nameless if uuid in names}

    def topic_name(self, uuid: str | None) -> str | None:
        """The name of a topic id, if known; an id without one counts as a row that a backfill may change."""
        if uuid is None:
            return None
        found = self.topics.names.get(uuid)
        if found is None:
            self._provisional.nameless((uuid,))
        return found

    def restart(self) -> None:
        """Forgets connections, before a second pass; facts of servers, topics and versions remain."""
        self.connections, self.mutes = FactsOfConnections(), QuotaMutes()

    def _read_log(self, columns: "BatchColumns", mentioned: "Bools") -> None:
        """Takes the names in fetched parts of KRaft's log, if rows have some."""
        fetches = (columns.number("api_key").filled(-1) == FETCH) & (columns.response.slot("records_bytes").filled() > 0)
        places = np.flatnonzero(fetches & mentioned)
        names = "api_version", "identity", "response_bytes"
        numbers = [columns.number(name).take(places).filled().tolist() for name in names]
        spans = columns.spans(columns.number("response_slot").filled(NO_BODY)[places])
        for at, version, identity, size, low, high in zip(places.tolist(), *numbers, *(span.tolist() for span in spans)):
            data = columns.body(low, high)
            if (not data or size > limits.FRAME_GATHERED_MAX) and self._reread is not None:
                with of_row(self.report, columns.batch, at, "the log"):
                    message = self._reread(columns.batch, at, "response")
                    body = message.to_json() if message is not None else None
                    if body is not None:
                        self.topics.take_log(body)
                continue
            if not any(mark in data for mark in LOG_MARKS):
                continue
            self.logs.add(columns.identities[identity])
            if self._is_new(hash(data)):
                with of_row(self.report, columns.batch, at, "the log"):
                    self.topics.take_log(read(data, FETCH, version, RESPONSE))

    def _take_host_names(self, files: Iterable[CaptureFile]) -> None:
        """Takes the host names in name resolution blocks of capture files."""
        for file in files:
            taken = self._host_names.get(file.path, 0)
            if len(file.names) > taken:
                self._host_names[file.path] = len(file.names)
                if not self.brokers.resolve_names(dict(islice(file.names.items(), taken, None))):
                    self._limit("host names")

    # -- backfill -----------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Records that all rows so far were made again with the present facts."""
        self._provisional.settle(self.topics.names, self.brokers.facts)
        self._classifier.settle()

    def knows_better(self) -> bool:
        """Whether a row would be different with the present facts."""
        return self._provisional.outdated(self.topics.names, self.brokers.facts) or self._classifier.knows_better()


@dataclass(slots=True)
class Changes:
    """From which row of a batch on connections have which new facts."""

    rows: "Int64s" = field(default_factory=lambda: np.zeros(0, np.int64))
    facts: "Int64s" = field(default_factory=lambda: np.zeros(0, np.int64))
    """ApiVersions exchanges that were read together, and the facts of each alone, by number."""
    steps: "list[tuple[Int64s, Int64s, Int64s]]" = field(default_factory=list)
    """Connections that have only such exchanges and had no facts before. First for the first exchange of each, then for the
    second ones and so on: the connections, the rows, and the facts from these rows on."""
    several: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Other connections: rows and facts, in order."""
