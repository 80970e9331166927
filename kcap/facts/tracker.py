"""What exchanges tell about their connection, their broker and the capture, learned batch by batch.

In: batches of decided exchanges, in order. Out: what each row's connection had told by then, and what is known so far of
servers and topic ids. Law: a row's own facts come from exchanges of its connection up to itself; the size of the batches
changes nothing. Only the few messages that teach are read here, and equal ones once.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kcap import limits
from kcap.arrays.arrow import Array, nulls, take
from kcap.facts.api_versions import Offer, Software, offer_of, software_of
from kcap.facts.batch_verdicts import VersionJudge
from kcap.facts.brokers import Brokers, Server
from kcap.facts.failures import Report, of_row, of_waiting
from kcap.facts.message_json import behind_tags, read, read_as_far
from kcap.facts.principals import principal_of_token
from kcap.facts.topic_names import LOG_MARKS, METADATA_ID, METADATA_TOPIC, TopicNames, listed, listing_sides
from kcap.facts.version_verdicts import Used, named
from kcap.kafka.bodies import BodyBatch
from kcap.kafka.frames import NO_BODY
from kcap.model import CaptureFile
from kcap.schema import quirks
from kcap.schema.registry import REQUEST, RESPONSE, api_key
from kcap.table.records import learn_log
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import Identity
    from kcap.arrays.vectors import Bools, Int64s
    from kcap.kafka.conversation import PassedOver
    from kcap.table.exchanges import Exchanges

FETCH: Final = 1
API_VERSIONS, HANDSHAKE, AUTHENTICATE = (api_key(name) for name in ("ApiVersions", "SaslHandshake", "SaslAuthenticate"))
LISTING: Final = listing_sides()
TRACKED_APIS: Final = frozenset(LISTING) | {API_VERSIONS, HANDSHAKE, AUTHENTICATE}
HEADS: Final = (1 << 10, 1 << 13, 1 << 16, 1 << 20)
"""Brokers stand at the front of a Metadata answer: so much of it is read until its topics begin."""
BEHIND_BROKERS: Final = "topics"
NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What a connection told of itself."""

    software: Software | None = None
    mechanism: str | None = None
    principal: str | None = None
    offer: Offer | None = None
    asked: bool = False
    """It asked for the broker's versions, and nothing shows that it was refused."""


NO_FACTS: Final = ConnectionFacts()


@dataclass(slots=True)
class RowContext:
    """What is known of each row of a batch."""

    known: list[ConnectionFacts]
    """The different states of connections."""
    state: "Int64s"
    """Row -> its connection's state, by number."""
    servers: list[Server]
    """The different servers."""
    server: "Int64s"
    """Row -> its server, by number."""

    def texts(self, pick: Callable[[ConnectionFacts], str | None]) -> Array:
        """A column of the states."""
        values = [pick(known) for known in self.known]
        if not any(value is not None for value in values):
            return nulls(len(self.state), pa.string())
        return take(pa.array(values, pa.string()), self.state)


class TeachingRow(NamedTuple):
    """One exchange that teaches."""

    uid: str
    server: Server
    exchange: int
    key: int
    version: int
    answered: bool
    bodies: tuple[bytes, bytes]
    """Of request and answer, header tags in front; empty where they were not kept."""


class MetadataTracker:
    """Everything learned of a capture; its parts are picklable values."""

    def __init__(self, report: Report | None = None) -> None:
        self.connections: dict[str, ConnectionFacts] = {}
        self._older: dict[str, ConnectionFacts] = {}
        """Connections without a row since `connections` was begun."""
        self._begun_ns = 0
        self.muted_until: dict[str, int] = {}
        self.offers: dict[Server, Offer] = {}
        """What each server answered last."""
        self.brokers = Brokers()
        self.topics = TopicNames()
        self.tellers: dict[str, tuple[str, int, Server]] = {}
        """Topic id -> connection, exchange and server that told its name first."""
        self.used = Used()
        self.judge = VersionJudge(self.offers, self.used)
        self.report = report
        self._reported: set[str] = set()
        self._bodies: BodyBatch | None = None
        self._same: dict[ConnectionFacts, ConnectionFacts] = {}
        self._equal: dict[frozenset[tuple[int, tuple[int, int]]], Offer] = {}
        self._fresh: dict[tuple[bytes, bytes, int], ConnectionFacts] = {}
        """What an ApiVersions exchange tells of a connection that told nothing before."""
        self._mechanisms: dict[bytes, str | None] = {}
        self._heads: set[int] = set()
        self.logs: set[Identity] = set()
        """Connections on which KRaft's log was read."""
        self._changes: dict[int, list[tuple[int, ConnectionFacts]]] = {}
        """Connection of the batch -> from which of its rows on it is known to be what."""
        self._nameless: set[str] = set()
        """Topic ids that rows have without a name."""
        self._said: dict[Server, set[tuple[int | None, str | None]]] = {}
        """What rows say of servers."""

    # -- a batch ------------------------------------------------------------------------------------------------------
    def take(self, rows: "Exchanges") -> RowContext:
        """Learns from a batch; what its rows' connections had told by then."""
        identities, identity = rows.batch.identities, rows.number("identity").values
        self._turn_over(int(rows.number("response_last_ns").filled().max(initial=0)))
        states: dict[int, int] = {}
        known: list[ConnectionFacts] = []
        young, older, before = self.connections, self._older, [0] * (len(identities) + 1)
        for place, one in enumerate(identities):
            state = young.get(one.uid) or (self.known(one.uid) if older else NO_FACTS)
            number = states.setdefault(id(state), len(states))
            if number == len(known):
                known.append(state)
            before[place] = number
        numbers: dict[Server, int] = {}
        of_server = [numbers.setdefault((one.server_ip, one.server_port), len(numbers)) for one in identities]
        servers = list(numbers), np.array([*of_server, 0], np.int64)[identity]
        self._changes.clear()
        told_early = [(rows.parts.place_of(row), place, one) for row, place, one in rows.batch.passed_over]
        self._teach(rows, told_early)
        old = np.array(before, np.int64)
        if not self._changes:
            return RowContext(known, old[identity], *servers)
        here = np.arange(rows.size)
        since, after, more = np.full(len(before), NEVER, np.int64), old.copy(), []
        for place, changes in self._changes.items():
            for nth, (first, state) in enumerate(changes):
                number = states.setdefault(id(state), len(states))
                if number == len(known):
                    known.append(state)
                if nth:
                    more.append((place, first, number))
                else:
                    since[place], after[place] = first, number
        found = np.where(here >= since[identity], after[identity], old[identity])
        for place, first, number in more:
            found[(identity == place) & (here >= first)] = number
        return RowContext(known, found, *servers)

    def known(self, uid: str) -> ConnectionFacts:
        """What a connection has told so far."""
        found = self.connections.get(uid)
        if found is None:
            found = self._older.pop(uid, NO_FACTS)
            if found is not NO_FACTS:
                self.connections[uid] = found
        return found

    def _turn_over(self, time_ns: int) -> None:
        """Forgets connections without a row for as long as a silent connection is kept; Kafka's own limit is a sixth of it."""
        if time_ns - self._begun_ns < limits.CONNECTION_IDLE_NS:
            return
        self._older, self.connections = self.connections, {}
        self.muted_until = {uid: until for uid, until in self.muted_until.items() if until > self._begun_ns}
        self._begun_ns = time_ns

    def _teach(self, rows: "Exchanges", early: "list[tuple[int, int, PassedOver]]") -> None:
        """Reads the messages that teach; `early`: requests that wait, from which row on they hold, and for which connection."""
        self._bodies = rows.batch.bodies
        keys = rows.number("api_key")
        wanted = TEACHES[np.where((keys.values >= 0) & (keys.values < len(TEACHES)), keys.values, 0)]
        if keys.valid is not None:
            wanted = np.where(keys.valid, wanted, rows.number("request_slot").values != NO_BODY)  # raw tokens
        places = np.flatnonzero(wanted)
        early.sort(key=itemgetter(0))
        if not len(places):
            self._waiting(rows.batch.identities, early)
            return
        names = ("identity", "exchange", "api_key", "api_version")
        columns = [rows.number(name).take(places).filled(-1).tolist() for name in names]
        slots = [rows.number(f"{side}_slot").take(places).filled(NO_BODY) for side in ("request", "response")]
        first, last = (rows.number(name).take(places) for name in ("request_first_ns", "response_first_ns"))
        answered = first.mask() & last.mask()
        slots[RESPONSE] = np.where(answered, slots[RESPONSE], NO_BODY)
        columns += [column for numbers in slots for column in self._spans(numbers)]
        columns.append(answered.tolist())
        identities, view, fresh = rows.batch.identities, memoryview(self._bodies.arena), self._fresh
        connections, older, changes, offers = self.connections, self._older, self._changes, self.offers
        for at, place, exchange, key, version, low, high, answer_low, answer_high, done in zip(places.tolist(), *columns):
            if early and early[0][0] <= at:
                before = [entry for entry in early if entry[0] <= at]
                self._waiting(identities, before)
                del early[: len(before)]
            one = identities[place]
            asked = bytes(view[low:high]) if low >= 0 else self._moved(low)
            told = bytes(view[answer_low:answer_high]) if answer_low >= 0 else self._moved(answer_low)
            with of_row(self.report, rows.batch, at, "what is learned"):
                if key == API_VERSIONS:
                    new = fresh.get((told, asked, version)) or self._api_versions(version, asked, told)
                    if new.offer is not None:
                        offers[one.server_ip, one.server_port] = new.offer
                    if one.uid not in connections and one.uid not in older:
                        connections[one.uid] = new
                        changes.setdefault(place, []).append((at, new))
                        continue
                    new = self._also(self.known(one.uid), new)
                else:
                    row = TeachingRow(one.uid, (one.server_ip, one.server_port), exchange, key, version, done, (asked, told))
                    if key == HANDSHAKE:
                        new = self._handshake(row)
                    elif key in (AUTHENTICATE, -1):
                        new = self._authenticate(row)
                    else:
                        self._listing(row)
                        continue
                self._change(one.uid, place, at, new)
        self._waiting(identities, early)

    def _waiting(self, identities: "Sequence[Identity]", early: "list[tuple[int, int, PassedOver]]") -> None:
        """Learns from requests that wait while later ones are answered."""
        for at, place, asked in early:
            one = identities[place]
            with of_waiting(self.report, one.uid, asked.exchange, "what is learned"):
                if asked.api_key == API_VERSIONS:
                    new = self._also(self.known(one.uid), self._api_versions(asked.api_version, asked.body, b""))
                else:
                    server, bodies = (one.server_ip, one.server_port), (asked.body, b"")
                    call = asked.exchange, asked.api_key, asked.api_version
                    new = self._handshake(TeachingRow(one.uid, server, *call, False, bodies))
                self._change(one.uid, place, at, new)

    @staticmethod
    def _also(known: ConnectionFacts, new: ConnectionFacts) -> ConnectionFacts:
        """What was known, and what one more ApiVersions exchange tells."""
        software, offer, own = new.software or known.software, new.offer or known.offer, new.asked or known.asked
        if software == known.software and offer is known.offer and own is known.asked:
            return known
        return replace(known, software=software, offer=offer, asked=own)

    def _change(self, uid: str, place: int, at: int, new: ConnectionFacts) -> None:
        """From one row of the batch on a connection is known to be something else."""
        if new is not self.known(uid):
            self.connections[uid] = new
            self._changes.setdefault(place, []).append((at, new))

    def _spans(self, slots: "Int64s") -> list[list[int]]:
        """Where bodies start and end in the arena; a slot below that for those that came from an earlier batch."""
        assert self._bodies is not None
        here = slots >= 0
        at = np.where(here, slots, 0)
        starts, ends = (np.append(np.asarray(column, np.int64), 0)[at] for column in (self._bodies.starts, self._bodies.ends))
        return [np.where(here, starts, slots).tolist(), ends.tolist()]

    def _moved(self, slot: int) -> bytes:
        """A body that came from an earlier batch; empty where it was not kept."""
        values = self._bodies.carried.get(slot) if slot < NO_BODY and self._bodies is not None else None
        return b"" if values is None else values.data

    def let_go(self) -> None:
        """The batch at hand is done with: its bodies are megabytes, which need not stay until the next one comes."""
        self._bodies = None

    def _limit(self, what: str) -> None:
        if what not in self._reported:
            self._reported.add(what)
            if self.report is not None:
                self.report(WeirdKind.FACTS_LIMIT, what)

    # -- the connection's own facts -----------------------------------------------------------------------------------
    def _api_versions(self, version: int, asked: bytes, told: bytes) -> ConnectionFacts:
        """What the exchange tells of a connection that told nothing before; equal offers are one."""
        if len(self._fresh) >= limits.ANSWERS_KEPT:
            self._fresh.clear()
            self._equal.clear()
            self._same.clear()
        software = software_of(asked, version, behind_tags(asked, quirks.API_VERSIONS, version, REQUEST)) if asked else None
        offer = offer_of(told, version) if told else None
        if offer is not None:
            offer = self._equal.setdefault(frozenset(offer.ranges.items()), offer)
        found = ConnectionFacts(software, offer=offer, asked=told[:2] in (b"", b"\0\0"))
        found = self._fresh[told, asked, version] = self._same.setdefault(found, found)
        return found

    def _handshake(self, row: TeachingRow) -> ConnectionFacts:
        data = row.bodies[REQUEST]
        if data not in self._mechanisms:
            if len(self._mechanisms) >= limits.ANSWERS_KEPT:
                self._mechanisms.clear()
            mechanism = read(data, row.key, row.version, REQUEST).get("mechanism")
            self._mechanisms[data] = mechanism if isinstance(mechanism, str) else None
        known = self.known(row.uid)
        same = self._mechanisms[data] == known.mechanism
        return known if same else replace(known, mechanism=self._mechanisms[data])

    def _authenticate(self, row: TeachingRow) -> ConnectionFacts:
        """A login: the name that a token tells counts once the broker goes on with it, and no more when it refuses."""
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
    def _listing(self, row: TeachingRow) -> None:
        for side in LISTING[row.key]:
            if side == RESPONSE and not row.answered:
                continue
            data = row.bodies[side]
            if data:
                self._list(row, side, data)

    def _list(self, row: TeachingRow, side: int, data: bytes) -> None:
        heads = self._heads
        for size in HEADS:
            head = data[:size]
            seen = hash((row.server, row.key, row.version, side, head))
            if seen in heads:
                return
            body, whole = read_as_far(head, row.key, row.version, side)
            if size >= len(data) or BEHIND_BROKERS in body:
                break
        if len(heads) >= limits.ANSWERS_KEPT:
            heads.clear()
        heads.add(seen)
        brokers, itself = listed(row.key, side, body)
        itself = itself and (whole or BEHIND_BROKERS in body)  # what was cut off may be the server's own entry
        cluster = body.get("clusterId")
        self.brokers.learn(
            row.server, cluster if isinstance(cluster, str) else None, brokers,
            itself=itself, connection=row.uid, exchange=row.exchange,
        )  # fmt: skip
        if len(self.brokers.told) >= limits.BROKERS_KEPT:
            self._limit("brokers")

    def take_topics(self, rows: "Exchanges") -> None:
        """Learns what topic ids are called: from messages that hold both, and from KRaft's log where that is fetched."""
        if rows.topics.mentions(METADATA_TOPIC, METADATA_ID):
            self._take_log(rows)
        for at, name, uuid in rows.topics.pairs():
            if uuid in self.topics.names:
                continue
            if len(self.topics.names) >= limits.TOPIC_NAMES_KEPT:
                self._limit("topics")
                return
            self.topics.names[uuid] = name
            known = rows.batch.identities[int(rows.number("identity").values[at])]
            server = known.server_ip, known.server_port
            self.tellers[uuid] = known.uid, int(rows.number("exchange").values[at]), server

    def _take_log(self, rows: "Exchanges") -> None:
        """Learns from fetches of KRaft's log."""
        self._bodies = rows.batch.bodies
        fetches = (rows.number("api_key").filled(-1) == FETCH) & (rows.response.slot("records_bytes").filled() > 0)
        places = np.flatnonzero(fetches)
        versions, identities = (rows.number(name).values[places].tolist() for name in ("api_version", "identity"))
        low, high = self._spans(rows.number("response_slot").filled(NO_BODY)[places])
        arena = memoryview(self._bodies.arena)
        for at, version, identity, first, last in zip(places.tolist(), versions, identities, low, high):
            data = bytes(arena[first:last]) if first >= 0 else b""
            if not any(mark in data for mark in LOG_MARKS):
                continue
            self.logs.add(rows.batch.identities[identity])
            if (seen := hash(data)) not in self._heads:
                self._heads.add(seen)
                with of_row(self.report, rows.batch, at, "the log"):
                    learn_log(read(data, FETCH, version, RESPONSE), self.topics)

    def take_names(self, files: Iterable[CaptureFile]) -> None:
        """Takes the host names that the files tell."""
        for file in files:
            if file.names:
                self.brokers.resolve_names(file.names)

    # -- columns ------------------------------------------------------------------------------------------------------
    def of_servers(self, rows: "Exchanges", part: int, kind: pa.DataType) -> Array:
        """Node id (part 0) or cluster id (part 1) of each row's server."""
        found = [self.brokers.identify(server) for server in rows.told.servers]
        for server, both in zip(rows.told.servers, found):
            self._said.setdefault(server, set()).add(both)
        values = [both[part] for both in found]
        if not any(value is not None for value in values):
            return nulls(rows.size, kind)
        return take(pa.array(values, kind), rows.told.server)

    def topic_names(self, rows: "Exchanges") -> Array:
        """The column `topics`."""
        self.take_topics(rows)
        self._nameless.update(uuid for uuid in rows.topics.nameless() if uuid not in self.topics.names)
        return rows.topics.names(self.topics.names)

    def verdicts(self, rows: "Exchanges") -> Array:
        """The column `version_verdict`, by what is known so far."""
        found, number = self.judge.judged(rows)
        if self.used.full:
            self._limit("client libraries")
        return take(named(found), number)

    def settle(self) -> None:
        """All rows so far were made again."""
        self._nameless -= self.topics.names.keys()
        self._said = {server: {self.brokers.identify(server)} for server in self._said}
        self.judge.settle()

    def knows_better(self) -> bool:
        """Whether some row that was made could be made better by now."""
        names, brokers = self.topics.names, self.brokers
        return (
            any(uuid in names for uuid in self._nameless)
            or any(said != {brokers.identify(server)} for server, said in self._said.items())
            or self.judge.knows_better()
        )


def _teaches() -> "Bools":
    found = np.zeros(1 << 7, np.bool_)
    found[[key for key in TRACKED_APIS if key is not None]] = True
    return found


TEACHES: Final = _teaches()
"""API key -> whether its exchanges are read here."""
