"""What each connection sent and received: its opening, its ApiVersions requests, the versions that it used, how it ended.

In: one pass over captures. Out: `ConnectionProfiles`: plain values for each connection, and what each server offered. Law:
counts are those of the rows of `exchanges`; memory grows with connections and the versions that they use, not with requests.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap import limits
from kcap.arrays.arrow import coded, take
from kcap.arrays.vectors import Vector, grouped
from kcap.batch.columns import SIDES
from kcap.facts.api_versions import Offer, Software, offer_of
from kcap.facts.brokers import Server
from kcap.facts.connection_facts import ConnectionFacts
from kcap.facts.message_json import behind_tags, digest, read, read_as_far
from kcap.facts.tracker import NO_FACT, Fact, MetadataTracker, RowContext
from kcap.facts.version_verdicts import NONE, VERDICTS, final_verdict
from kcap.kafka.frames import NO_BODY
from kcap.limits import ASKS_KEPT, TRAITS_KEPT
from kcap.reports.names import FirstNames
from kcap.reports.versions.growing_profiles import LATE, NEVER, NO_PROBE, GrowingProfile, call_numbers
from kcap.reports.versions.profile import AUTHENTICATE, HANDSHAKE, LINE, ApiVersionsResponse, ConnectionProfile, Use
from kcap.reports.versions.profile_store import ProfileStore, StoredProfile
from kcap.reports.versions.traits import SETTINGS, of_join
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION, response_version
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.table.builder import TableSet
from kcap.table.exchanges import Exchanges
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import ClosedConnection
    from kcap.arrays.vectors import Bools, Int64s
    from kcap.filter.ast import Filter
    from kcap.kafka.body_batch import BodyBatch
    from kcap.table.row_filter import RowFilter
    from kcap.table.table_builders import Reading

OPENING: Final = 12
"""Number of a connection's requests that are retained individually: the first few show which library a client uses."""
JOIN_GROUP: Final = 11
NUMBERED: Final = 2
"""Number of first requests whose correlation ids are compared: a Java client may send its second before its first."""
TOKEN: Final = -1
"""Stands for the key of a raw SASL token."""


class ConnectionProfiles:
    """Everything that the report is made of."""

    needs = Fact.VERDICTS

    def __init__(self, tracker: MetadataTracker, only: "RowFilter | None" = None) -> None:
        """`only`: a filter for the exchanges that count."""
        self.tracker = tracker
        self._only = only
        self.profiles = ProfileStore()
        self.others: list[dict[str, Any]] = []
        """Connections without an exchange."""
        self.offers: dict[Server, dict[int, tuple[Offer, str]]] = {}
        """Server -> its different offers, each with the first exchange that has it."""
        self.features: dict[Server, dict[str, Any]] = {}
        self.malformed: dict[str, str] = {}
        """Connection -> the fault of a request whose body cannot be decoded."""
        self.left_out: Counter[str] = Counter()
        """What is omitted, by reason: responses without a request, and connections without an exchange beyond OTHERS_KEPT."""
        self._answers: dict[bytes, ApiVersionsResponse] = {}
        self._growing: dict[int, int] = {}
        """Connections by their number in the batch -> their numbers among growing profiles."""
        self._first_ids, self._first_principals = FirstNames(), FirstNames()
        self._first_libraries, self._first_releases = FirstNames(), FirstNames()

    # -- a batch ------------------------------------------------------------------------------------------------------
    def take(self, rows: Exchanges) -> None:
        size = rows.size
        wanted = np.ones(size, np.bool_)
        if self._only is not None:
            wanted[:] = False
            wanted[self._only.places(rows)] = True
        keys, versions = rows.number("api_key"), rows.number("api_version")
        named = keys.mask() & versions.mask()
        self._growing = {}
        if orphans := int((wanted & rows.columns.is_outcome("orphan")).sum()):
            self.left_out["orphan"] += orphans
        died = self._died(rows)
        codes = rows.columns.error_code
        if (named & wanted).any():
            self._count(rows, named & wanted, died, codes)
        self._open(rows, named, codes)
        self.profiles.settle()

    def _died(self, rows: Exchanges) -> "Bools":
        known, numbers = rows.columns.rows.codes("reason")
        ended: Bools = np.array([text in ("fin", "rst") for text in known] or [False], np.bool_)[numbers]
        return ended & rows.columns.is_outcome("unanswered")

    def _count(self, rows: Exchanges, here: "Bools", died: "Bools", codes: Vector) -> None:
        at = np.flatnonzero(here)
        context, verdicts = rows.context, rows.context.verdicts
        assert verdicts is not None
        found, number = verdicts.kinds, verdicts.kind
        keys, versions = rows.number("api_key").values[at], rows.number("api_version").values[at]
        calls, _, call = grouped(call_numbers(keys, versions))
        id_of, texts = coded(take(rows.columns.array("client_id"), at), nulls_too=True)
        clients = self.profiles.growing.clients
        names = np.array([clients[None if text is None else self._first_ids(text)] for text in texts], np.int64)
        identity, state = rows.number("identity").values[at], context.state[at]
        refused = (codes.values == UNSUPPORTED_VERSION) & codes.mask()
        code = identity
        outcomes = rows.columns.is_outcome("answered") | rows.columns.is_outcome("one_way")
        served = outcomes & ~refused
        flags = served[at] * 4 + refused[at] * 2 + died[at]
        for part, many in (
            (state, len(context.states)), (call, len(calls)), (id_of, len(names)), (found[number[at]] - NONE, 8), (flags, 8),
        ):  # fmt: skip
            code = code * many + part
        order = np.argsort(code, kind="stable")
        ordered = code[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        counts = np.diff(np.append(starts, len(order)))
        first = rows.number("request_first_ns").otherwise(rows.number("response_first_ns"))
        times, exchanges = first.filled()[at][order], rows.number("exchange").values[at][order]
        masks = rows.carried("codecs").filled()[at][order]
        one = order[starts]
        place, examples = at[one], np.minimum.reduceat(exchanges, starts)
        numbers = self._numbers(rows, identity[one])
        self.profiles.growing.add(uses=(
            numbers, names[id_of[one]], calls[call[one]], found[number[place]], counts, counts,
            np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts), examples, counts * refused[place],
            counts * served[place], counts * died[place], np.where(died[place], examples, LATE),
            np.bitwise_or.reduceat(masks, starts),
        ))  # fmt: skip
        self._learn(context, numbers, state[one])

    def _numbers(self, rows: Exchanges, identity: "Int64s") -> "Int64s":
        """The numbers of connections among the growing profiles."""
        known, first, which = grouped(identity)
        for index in known[np.argsort(first)].tolist():
            if index not in self._growing:
                self._growing[index] = self.profiles.number(rows.columns.identities, index)
        return np.array([self._growing[index] for index in known.tolist()])[which]

    def _learn(self, context: RowContext, numbers: "Int64s", state: "Int64s") -> None:
        """Adds the states of connections to their profiles; the last state of a connection counts."""
        said: dict[int, ConnectionFacts] = {}
        new = np.flatnonzero((np.diff(numbers, prepend=-1) != 0) | (np.diff(state, prepend=-1) != 0))
        for number, nth in zip(numbers[new].tolist(), state[new].tolist()):
            known = said.get(nth)
            if known is None:
                known = said[nth] = self._named(context.states[nth])
            profile = self.profiles.growing.known[number]
            profile.software = known.software or profile.software
            profile.principal = known.principal or profile.principal
            profile.offer = known.offer or profile.offer
            profile.mechanism = known.mechanism or profile.mechanism

    def _named(self, known: ConnectionFacts) -> ConnectionFacts:
        """The states with distinct names."""
        software, principal = known.software, known.principal
        if software:
            software = self._first_libraries(software[0]), self._first_releases(software[1])
        return replace(known, software=software, principal=self._first_principals(principal) if principal else None)

    def _open(self, rows: Exchanges, named: "Bools", codes: Vector) -> None:
        """Retains first requests, and the requests before the connection's work begins: of all rows, since a filter hides no
        beginning."""
        keys, exchanges = rows.number("api_key"), rows.number("exchange").values
        special = named & np.isin(keys.values, [API_VERSIONS, HANDSHAKE, AUTHENTICATE])
        orphan = rows.columns.is_outcome("orphan")
        places = np.flatnonzero(~orphan & ((exchanges <= OPENING) | special))
        if not len(places):
            return
        growing = self.profiles.growing
        numbers = self._numbers(rows, rows.number("identity").values[places])
        key = np.where(named, keys.values, TOKEN)[places]
        version = np.where(named, rows.number("api_version").values, 0)[places]
        exchange, error = exchanges[places], codes.filled(NEVER)[places]
        outcomes, outcome = rows.columns.rows.codes("outcome")
        reasons, reason = rows.columns.rows.codes("reason")
        said, _, words = grouped(outcome[places] * len(reasons) + reason[places])
        known = [growing.words[str(outcomes[one // len(reasons)]), reasons[one % len(reasons)]] for one in said.tolist()]
        requested, responded = (rows.number(f"{side}_first_ns").filled(NEVER)[places] for side in SIDES)
        slots = [rows.number(f"{side}_slot").filled(NO_BODY)[places] for side in SIDES]
        correlation = rows.number("correlation_id").take(places)
        begins = (exchange <= NUMBERED) & (key != TOKEN) & correlation.mask()
        bodies, opening = rows.columns.batch.bodies, exchange <= OPENING
        here = np.flatnonzero(opening)
        self._show_traits(rows, places[here], numbers[here], key[here], version[here], slots[REQUEST][here])
        answers = np.full(len(places), NO_PROBE)
        here = np.flatnonzero(special[places])
        lists = (column[here].tolist() for column in (numbers, exchange, key, version, error, responded, *slots))
        for nth, number, at, api, form, code, answered, sent, got in zip(here.tolist(), *lists):
            profile = growing.known[number]
            if api == API_VERSIONS:
                answers[nth] = self._take_probe(profile, at, form, body_of(bodies, got) if answered != NEVER else b"")
            elif code not in (0, NEVER):
                profile.failed(api, code, at)
                if api == HANDSHAKE:
                    profile.mechanism = read(body_of(bodies, sent), api, form, REQUEST).get("mechanism") or profile.mechanism
                    profile.mechanisms = tuple(read(body_of(bodies, got), api, form, RESPONSE).get("mechanisms") or ())
        here = opening | (answers != NO_PROBE)
        growing.add(steps=[
            column[here] for column in (
                numbers, ~opening, exchange, key, version, np.array(known)[words], error, answers, requested, responded,
                np.where(begins, np.minimum(correlation.values, NUMBERED), LATE),
            )
        ])  # fmt: skip

    def _show_traits(
        self, rows: Exchanges, places: "Int64s", numbers: "Int64s", key: "Int64s", version: "Int64s", slots: "Int64s"
    ) -> None:
        """Adds the settings in first requests to the profiles; `slots`: of the requests' bodies."""
        known, found = self.profiles.growing.known, []
        for api, (slot, name) in SETTINGS.items():
            here = np.flatnonzero(key == api)
            setting = rows.columns.request.slot(slot).take(places[here])
            values, _, value = grouped(setting.values)
            _, first, _ = grouped((numbers[here] * len(values) + value) * 2 + setting.mask())
            new = first[setting.mask()[first]]
            found += [(nth, {(name, str(at))}) for nth, at in zip(here[new].tolist(), setting.values[new].tolist())]
        for nth in np.flatnonzero(key == JOIN_GROUP).tolist():
            if known[int(numbers[nth])].software is None:
                body = body_of(rows.columns.batch.bodies, int(slots[nth]))
                found.append((nth, of_join(read(body, JOIN_GROUP, int(version[nth]), REQUEST))))
        for nth, traits in sorted(found, key=itemgetter(0)):
            profile = known[int(numbers[nth])]
            if len(profile.traits) < TRAITS_KEPT:
                profile.traits |= traits

    def _take_probe(self, profile: GrowingProfile, exchange: int, version: int, data: bytes) -> int:
        """Retains an ApiVersions request by its response. Returns the number of the response, NO_PROBE if there are enough."""
        profile.probe_count += 1
        answer = self._response(version, data) if data else None
        number = NO_PROBE
        if profile.probes_kept < ASKS_KEPT:
            profile.probes_kept += 1
            number = self.profiles.growing.answer(answer)
        if answer is not None and answer.offer is not None:
            profile.offer = answer.offer
            server = profile.identity.server_ip, profile.identity.server_port
            made = self.offers.setdefault(server, {})
            if id(answer.offer) not in made and len(made) < ASKS_KEPT:
                made[id(answer.offer)] = answer.offer, f"{profile.identity.uid}.{exchange}"
            if answer.features:
                self.features[server] = answer.features
        return number

    def _response(self, version: int, data: bytes) -> ApiVersionsResponse:
        """The content of a response; equal ones are one object."""
        name = digest(version, data)
        found = self._answers.get(name)
        if found is None:
            if len(self._answers) >= limits.ANSWERS_KEPT:
                self._answers.clear()
            form = response_version(API_VERSIONS, version, data[:2])
            value, legible = read_as_far(data, API_VERSIONS, form, RESPONSE)
            start = behind_tags(data, API_VERSIONS, form, RESPONSE)
            offer = self.tracker.same_offer(offer_of(data[start:], version))
            features = {
                part: said[: limits.OFFERED_FEATURES_MAX] if isinstance(said, list) else said
                for part in ("supportedFeatures", "finalizedFeaturesEpoch", "finalizedFeatures", "zkMigrationReady")
                if (said := value.get(part))
            }
            error = value.get("errorCode")
            found = ApiVersionsResponse(
                error if isinstance(error, int) else None, form, len(value.get("apiKeys") or ()), features, offer, legible
            )
            self._answers[name] = found
        return found

    # -- connections --------------------------------------------------------------------------------------------------
    def close(self, closed: "ClosedConnection") -> None:
        """Takes a connection that has ended."""
        line = closed.part(LINE)
        if self._closed(line):
            return
        if len(self.others) < limits.OTHERS_KEPT or line["exchanges"]:  # its rows may follow
            self.others.append(line)
        else:
            self.left_out["no_exchange"] += 1

    def _closed(self, line: dict[str, Any]) -> bool:
        """Adds the row of `connections` to a profile; returns whether the connection has a profile with an exchange."""
        return self.profiles.end(str(line["connection"]), line, midstream=line["began"] != "syn")

    def finish(self, reading: "Reading") -> None:
        """Completes the profiles at the end of the capture."""
        self._only = None
        # The rows of a connection may be decided a batch after its end.
        self.others = sorted((line for line in self.others if not self._closed(line)), key=began)
        for weird, _ in reading.weirds:
            if weird.kind == WeirdKind.UNDECODED and weird.connection and weird.detail.startswith("request "):
                self.malformed.setdefault(weird.connection, weird.detail)
        self.profiles.close()

    def only(self, uids: Container[str | None]) -> "ConnectionProfiles":
        """The profiles of these connections only; what is known about servers remains."""
        made = ConnectionProfiles(self.tracker)
        made.profiles, made.offers, made.features = self.profiles.only(uids), self.offers, self.features
        made.malformed = {uid: what for uid, what in self.malformed.items() if uid in uids}
        return made

    def offer(self, profile: ConnectionProfile) -> Offer | None:
        """The offer that holds for a connection: its own, or else the one that its server made on another connection."""
        return profile.offer or self._server_offer(profile.server, lambda: (use.first_ns for use in profile.uses.values()))

    def offer_for(self, stored: StoredProfile) -> Offer | None:
        """The same for a folded connection."""
        return stored.template.offer or self._server_offer(stored.server, stored.first_uses)

    def has_one_offer(self, stored: StoredProfile) -> bool:
        """Whether `offer_for` is the same for all connections of its template to its server."""
        return stored.template.offer is not None or len(self.tracker.offers.runs(stored.server)) < 2

    def _server_offer(self, server: Server, times: Callable[[], Iterable[int]]) -> Offer | None:
        """The offer of a server at the first of some times."""
        offers = self.tracker.offers
        return offers.at(server, min(times(), default=0) if len(offers.runs(server)) > 1 else 0)

    def verdicts(self, profile: ConnectionProfile, key: int, version: int, use: Use) -> Counter[str]:
        """The final verdicts of a use, with the facts of the whole capture."""
        found: Counter[str] = Counter()
        offer, common = self.offer(profile), self.tracker.offers.common(profile.server)
        for verdict, count in use.verdicts.items():
            name = self.verdict(verdict, offer, common, key, version, profile.software)
            if name is not None:
                found[name] += count
        return found

    def verdict(
        self, verdict: int, offer: Offer | None, common: Offer | None, key: int, version: int, software: Software | None
    ) -> str | None:
        """The final value of a verdict. `common`: what all offers of the server have in common."""
        verdict = final_verdict(verdict, offer, common, key, version, used=self.tracker.used, software=software)
        return VERDICTS[verdict] if verdict != NONE else None


def began(line: dict[str, Any]) -> tuple[int, str]:
    """When a connection without an exchange began, which is the order in which they are listed, whenever they ended."""
    return line["first_ns"], line["connection"]


def body_of(bodies: "BodyBatch", slot: int) -> bytes:
    """A body as the batch retains it, with the header's tags first; empty if it was not retained."""
    if slot >= 0:
        return bytes(bodies.arena[bodies.starts[slot] : bodies.ends[slot]])
    carried = bodies.carried.get(slot) if slot < NO_BODY else None
    return b"" if carried is None else carried.data


def gather(reading: "Reading", only: "Filter | None" = None) -> ConnectionProfiles:
    """Reads a pass to its end. `only`: a filter; exchanges that it does not select still give facts, but do not count."""
    row_filter = None
    if only is not None:
        from kcap.table.row_filter import RowFilter

        row_filter = RowFilter(only, reading)
        if row_filter.deep:
            reading.keep_bodies()
    profiles = ConnectionProfiles(MetadataTracker(reading.analyzer.report, reading.message), row_filter)
    tables = TableSet({}, [profiles], NO_FACT if row_filter is None else row_filter.needs)
    tables.begin(reading, profiles.tracker)
    for _ in tables.rows():
        pass
    profiles.finish(reading)
    return profiles
