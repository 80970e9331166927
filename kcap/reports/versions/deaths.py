"""Why connections died: the request to which the broker reacted by closing.

In: a `DiagnosisContext`. Out: troubles added to it, one for all connections that died of the same request. Law: the broker
closed (its FIN or RST came first). Of several requests without a response the first is the cause, since a broker serves a
connection's requests in order. A version that the broker is known to reject is a sufficient cause. Another request is a cause
only if it never had a response there and the broker closed at once, and either a release is known to reject it, or several
connections died of it, or the broker sent no byte. A connection that began before the capture, has holes, or was closed by the
client, is no evidence.

Ranges come from the connection's own ApiVersions response, its server's, that of another listener of the same broker, or from
the brokers of its cluster. Sources: KIP-896, KAFKA-18659, RequestContext and SocketServer of Kafka (an unsupported version
closes).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kcap.reports.definition import uid
from kcap.reports.versions.diagnosis import ERROR, Diagnosis, DiagnosisContext, call, once, place, subject, whole_line
from kcap.reports.versions.libraries import ZOOKEEPER_ONLY, keys_of_apis
from kcap.reports.versions.profile import ConnectionProfile, Use
from kcap.reports.versions.profile_templates import ALERT_BYTES
from kcap.reports.versions.readiness import GONE_PRODUCE
from kcap.reports.versions.release_guess import on_controllers
from kcap.schema.facts import Versions
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import version_range
from kcap.schema.releases import absent_from, removed_in

AT_ONCE_NS: Final = 1_000_000_000
"""A broker that rejects a request closes within milliseconds; after this time other causes are more likely."""
WAITING: Final = keys_of_apis("Fetch", "JoinGroup", "SyncGroup", "ShareFetch")
"""APIs whose responses are delayed on purpose: a missing response at the end of a connection shows little."""
SEVERAL: Final = 2
PRODUCE, FETCH = 0, 1
NO_SUCH_API: Final = "No Kafka release has this API: a client of another product, or bytes that are not Kafka's."
IGNORES_OFFER: Final = (
    "The client ignores the versions that the broker offers (as librdkafka 2.6.0 does with Fetch 12): upgrade it, or pin it "
    "to the broker's release."
)
REQUESTS_NO_OFFER: Final = (
    "The client requests no versions and is newer than the broker: let it negotiate (ApiVersions), or pin it to the broker's "
    "release."
)
"""Advice about versions that a broker rejects."""


@dataclass(frozen=True, slots=True)
class Death:
    """A connection that the broker closed, and the request at which it did."""

    profile: ConnectionProfile
    client: str | None
    key: int
    version: int
    use: Use
    exchange: int


def closed_by_broker(profile: ConnectionProfile) -> bool:
    """Whether a request had no response when the broker closed the connection."""
    return (
        whole_line(profile) and profile.line.get("closed_by") == "server" and any(use.died for use in profile.uses.values())
        and profile.line.get("server_captured") != ALERT_BYTES
    )  # fmt: skip


def death_of(profile: ConnectionProfile) -> Death | None:
    """The first request of a connection without a response; None if it has no version."""
    died = [(use.died_example or 0, at, use) for at, use in profile.uses.items() if use.died_example is not None]
    exchange, (client, key, version), use = min(died, key=lambda one: one[0])
    if any(step.key < 0 and step.outcome == "unanswered" for step in profile.opening):
        return None  # a SASL token came first
    return Death(profile, client, key, version, use, exchange)


def ranges_for(case: DiagnosisContext, death: Death) -> tuple[Versions | None, str, bool]:
    """The versions of the API that the broker accepts, the source of this, and whether anything is known."""
    profile = death.profile
    if profile.offer is not None:
        return profile.offer.ranges.get(death.key), "it offered", True
    own = case.whole.tracker.offers.latest(profile.server)
    if own is not None:
        return own.ranges.get(death.key), "it offers", True
    sibling = case.siblings.of(profile.server)
    if sibling is not None:
        server, offer = sibling
        return offer.ranges.get(death.key), f"the same cluster offers at {place(server)}", True
    return None, "", False


def deaths(case: DiagnosisContext) -> None:
    """Connections that brokers closed at a request."""
    dead = once(closed_by_broker)
    served = dict.fromkeys((stored.server, stored.template) for stored in case.every)
    answered = {(server, use.key, use.version) for server, template in served for use in template.uses if use.served}
    open_ = {
        server for server, template in served
        if template.mechanism is None and any(use.served and use.key != API_VERSIONS for use in template.uses)
    }  # fmt: skip
    """Servers that served requests without a login."""
    unknown: dict[tuple[object, ...], list[Death]] = {}
    for profile, _ in case.worth(dead):
        death = death_of(profile) if closed_by_broker(profile) else None
        if death is None or death.key == API_VERSIONS or (profile.uid in case.whole.malformed and decodes(case, death)):
            continue
        if profile.server in case.controllers and not on_controllers(death.key):
            continue  # clients of a controller's listener have a diagnosis of their own
        ranges, source, known = ranges_for(case, death)
        group: tuple[object, ...] = (*case.group(profile.uid, death.client), death.key, death.version)
        if known and (ranges is None or not ranges[0] <= death.version <= ranges[1]):
            named(case, death, group, ranges, source)
        elif is_named_though_gone(case, death):
            add(case, death, group, Diagnosis(
                "advertised_but_removed", ERROR,
                f"{{servers}} close{{vs}} the connection after {call(death.key, death.version)} of {{who}} though "
                "ApiVersions offers it, on {n}",
                "Kafka 4 offers Produce 0-2 only so that librdkafka keeps compression on (KAFKA-18659), and accepts version 3 "
                "and later (KIP-896): upgrade the client.", subject(profile, death.client),
            ))  # fmt: skip
        elif (profile.server, death.key, death.version) not in answered and at_once(death) and not needs_login(case, profile):
            unknown.setdefault(group, []).append(death)
    for group, some in unknown.items():
        if is_evidence(some):
            for death in some:
                unexplained(case, death, group, wants_login=death.profile.server not in open_)


def is_evidence(some: list[Death]) -> bool:
    """Whether the requests were the reason for closing, and not a broker that stopped in the meantime."""
    key, version = some[0].key, some[0].version
    if removed_in(key, version) is not None or absent_from(key, version) is not None:
        return True
    times = [death.use.last_ns for death in some]
    if key in WAITING:
        return len(some) > SEVERAL and max(times) - min(times) >= AT_ONCE_NS
    return len(some) >= SEVERAL or not some[0].profile.line.get("server_captured")


def decodes(case: DiagnosisContext, death: Death) -> bool:
    """Whether the broker accepts the version as far as is known, so that the malformed body is the cause."""
    ranges, _, known = ranges_for(case, death)
    if not known:
        return removed_in(death.key, death.version) is None
    return ranges is not None and ranges[0] <= death.version <= ranges[1]


def needs_login(case: DiagnosisContext, profile: ConnectionProfile) -> bool:
    """Whether the server requires SASL and this connection began none; that has a diagnosis of its own."""
    return profile.server in case.sasl and profile.mechanism is None


def at_once(death: Death) -> bool:
    """Whether the broker closed soon after the request."""
    last = death.profile.line.get("last_ns")
    return last is None or last - death.use.last_ns < AT_ONCE_NS


def is_named_though_gone(case: DiagnosisContext, death: Death) -> bool:
    """Whether it is a Produce of versions 0-2 that a broker names and rejects: its ranges begin at 0, and it has no Fetch 0."""
    offer = case.whole.offer(death.profile)
    if death.key != PRODUCE or death.version >= GONE_PRODUCE or offer is None:
        return False
    return offer.ranges.get(PRODUCE, (GONE_PRODUCE, 0))[0] == 0 and offer.ranges.get(FETCH, (0, 0))[0] > 0


def add(case: DiagnosisContext, death: Death, group: tuple[object, ...], made: Diagnosis) -> None:
    """Counts a connection for a trouble."""
    case.add(group, death.profile.uid, uid(death.profile.uid, death.exchange), made)


def named(case: DiagnosisContext, death: Death, group: tuple[object, ...], ranges: Versions | None, source: str) -> None:
    """A version that the broker is known to reject."""
    key, version = death.key, death.version
    has = f"{source} {ranges[0]}-{ranges[1]}" if ranges else f"{source} no version of it"
    since, newest = removed_in(key, version), version_range(key)
    if newest is None:
        kind, advice = "unknown_api", NO_SUCH_API
    elif ranges is not None and version > ranges[1]:
        kind, advice = "above_broker_max", IGNORES_OFFER if death.profile.probes else REQUESTS_NO_OFFER
    elif ranges is None and since is None:
        kind, advice = "above_broker_max", "The broker is older than this API, or serves it on another listener."
    else:
        kind = "below_broker_min"
        advice = f"Kafka {since} removed it (KIP-896): " if since else "The client is too old for this broker: "
        advice = once_absent(key, version) or advice
        advice += "upgrade the client's library, let it negotiate, or raise the release that it is configured for."
    if key in ZOOKEEPER_ONLY and ranges is None:
        advice = "This API was removed with ZooKeeper: brokers of 4.0 and later, and of KRaft clusters, do not have it."
    add(case, death, group, Diagnosis(
        kind, ERROR,
        f"{{servers}} close{{vs}} the connection after {call(key, version)} of {{who}}: {has}, on {{n}}", advice,
        subject(death.profile, death.client),
    ))  # fmt: skip


def once_absent(key: int, version: int) -> str:
    """A sentence that only one release rejects a version; empty otherwise."""
    absent = absent_from(key, version)
    if absent is None:
        return ""
    return f"Only Kafka {absent[0]} rejects it, and its next patch release accepts it (KAFKA-19444): upgrade the broker, or "


def unexplained(case: DiagnosisContext, death: Death, group: tuple[object, ...], *, wants_login: bool) -> None:
    """A request at which the broker closes although its ranges are not known or include the version. `wants_login`: a missing
    login may be the reason."""
    key, version, profile = death.key, death.version, death.profile
    _, _, known = ranges_for(case, death)
    first = next((step for step in profile.opening if step.key != API_VERSIONS), None)
    if wants_login and known and first is not None and first.exchange == death.exchange and profile.mechanism is None:
        add(case, death, group, Diagnosis(
            "sasl_missing", ERROR,
            f"{{servers}} close{{vs}} the connection after {call(key, version)} of {{who}}, the first request other than "
            "ApiVersions and a version that it offers: a listener that requires a login (SASL) does this, on {n}",
            "Set security.protocol to SASL_PLAINTEXT or SASL_SSL, and sasl.mechanism, or use a listener without SASL; the "
            "broker's log names the reason.", subject(profile, death.client),
        ))  # fmt: skip
        return
    since = removed_in(key, version)
    at = "the version is one that it offers" if known else "the capture does not show which versions it accepts"
    advice = "Look into the broker's log (InvalidRequestException, UnsupportedVersionException): "
    if not known and once_absent(key, version):
        advice = f"{once_absent(key, version)}upgrade the client. Otherwise see the log: "
    elif not known and since:
        advice = f"Kafka {since} and later close at {call(key, version)} (KIP-896): upgrade the client. Otherwise see the log: "
    elif not known and version_range(key) is None:
        advice = "No Kafka release that kcap knows has this API. Otherwise see the broker's log: "
    add(case, death, group, Diagnosis(
        "closed_after", ERROR,
        f"{{servers}} close{{vs}} the connection after {call(key, version)} of {{who}} without a response; {at}, on {{n}}",
        f"{advice}the cause may be a version that it does not accept, a body that it cannot parse, a missing login, or a "
        "request above socket.request.max.bytes.",
        subject(profile, death.client),
    ))  # fmt: skip


def headers(case: DiagnosisContext) -> None:
    """Requests that do not decode as their headers say, and at which the broker closed the connection."""
    for profile, client in case.worth(lambda stored: stored.uid in case.whole.malformed):
        what = case.whole.malformed.get(profile.uid)
        if what is None or not whole_line(profile) or not any(use.died for use in profile.uses.values()):
            continue
        death = death_of(profile)
        if death is None or not decodes(case, death) or profile.line.get("closed_by") == "client":
            continue  # it was rejected for its version
        add(case, death, (*case.group(profile.uid, client), death.key, death.version), Diagnosis(
            "malformed_request", ERROR,
            f"{{servers}} close{{vs}} the connection after {call(death.key, death.version)} of {{who}}: its body does not "
            f"match its API and version ({what}), on {{n}}",
            "Compare header and body with `kcap schema`: flexible versions have compact lengths and tagged fields, and a "
            "header of version 2 (KIP-482).", subject(profile, death.client),
        ))  # fmt: skip


RULES: Final[tuple[Callable[[DiagnosisContext], None], ...]] = (deaths, headers)
