"""Diagnoses of versions and brokers, in sentences.

In: the connections of a capture, its clients and brokers. Out: one row per trouble and library, with its connections, an
example and advice; the most severe first. Facts that deserve a line but are no trouble are rows of their own. Law: a sentence
follows from what was seen on the connections that it names; a capture that shows only one direction, or began too late, gives
no diagnosis; a healthy client gives none.

Sources: KIP-35, KIP-511 (error 35 with a version 0 body), KIP-896, KAFKA-18659 (Produce 0-2 are advertised and rejected).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kcap.facts.api_versions import SOFTWARE_SINCE
from kcap.facts.brokers import Server
from kcap.kafka.proxy_header import has_header
from kcap.reports.definition import uid
from kcap.reports.text import NO_PROXY_HEADER
from kcap.reports.versions import addresses, deaths, listeners
from kcap.reports.versions.diagnosis import (
    ENDS,
    ERROR,
    LEVELS,
    NOTE,
    WARNING,
    Diagnosis,
    DiagnosisContext,
    Row,
    answered,
    call,
    once,
    place,
    subject,
    whole_line,
)
from kcap.reports.versions.identity import Clients
from kcap.reports.versions.profile import ConnectionProfile, Use
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profile_templates import ProfileTemplate, TemplateUse
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import range_in
from kcap.reports.versions.simulator import nothing_in_common
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION
from kcap.schema.registry import api_key, version_range
from kcap.schema.releases import line, removed_in

PRODUCE: Final = 0
CHOSEN: Final = {
    found: version
    for name, version in (("Produce", 11), ("EndTxn", 4), ("TxnOffsetCommit", 4), ("AddOffsetsToTxn", 4), ("Fetch", 12),
                          ("OffsetCommit", 9), ("OffsetFetch", 9))
    if (found := api_key(name)) is not None
}  # fmt: skip
"""API -> the version that clients choose on purpose: without transactions of version 2 (KIP-890) or topic ids (KIP-516)."""
OTHERS: Final = ", and respond{vs} to the request on others"
"""Text for requests to which other servers respond."""
LIMITED: Final = (
    "See the broker's log at that time: max.connections, max.connections.per.ip, max.connection.creation.rate, or a listener "
    "that was shutting down."
)
ONLY_NONE: Final = 1
"""The codecs' bit mask of batches that are all uncompressed."""


# -- ApiVersions ----------------------------------------------------------------------------------------------------------
def negotiations(case: DiagnosisContext) -> None:
    """ApiVersions requests that the broker refused or did not respond to, and what became of the connection."""
    for profile, client in case.profiles():
        if not profile.probes or not whole_line(profile):
            continue
        key, who = case.group(profile.uid, client), subject(profile, client)
        refused = [probe for probe in profile.probes if probe.answer is not None and probe.answer.error == UNSUPPORTED_VERSION]
        worked = any(probe.answer is not None and probe.answer.offer is not None for probe in profile.probes)
        probe = min(refused, key=lambda one: one.step.version, default=None)
        # The response to an older version may be missing, for example if packets were cut.
        older = probe is not None and any(one.step.version < probe.step.version for one in profile.probes)
        if probe is not None and not worked and not older and (profile.line.get("ended") in ENDS or len(refused) > 1):
            legible = probe.answer is None or probe.answer.legible
            case.add((*key, probe.step.version, legible), profile.uid, uid(profile.uid, probe.step.exchange), Diagnosis(
                "error_35_loop", ERROR,
                f"{{who}} request{{s}} ApiVersions v{probe.step.version}, {{servers}} respond{{vs}} UNSUPPORTED_VERSION "
                f"(error 35, {'in' if legible else 'but not in'} a version 0 body), and the client does not try an older "
                "version, on {n}",
                "The client must read the refusal as version 0 and try again with a version that it names (KIP-511): upgrade "
                "or fix the client, or pin it to the broker's release." if legible
                else "The broker or a proxy must refuse in a version 0 body, from which clients take the version to try "
                "(KIP-511): upgrade or fix it, or pin the clients to the versions that it has.", who,
            ))  # fmt: skip
        silent = [probe for probe in profile.probes if probe.step.outcome == "unanswered" and probe.step.reason in ENDS]
        if silent and not worked and not refused and not (profile.line.get("server_captured") or 0) and not by_client(profile):
            knows, proxied = profile.server in case.offering, has_header(profile.line.get("detail"))
            case.add((*key, profile.server, proxied), profile.uid, uid(profile.uid, silent[0].step.exchange), Diagnosis(
                "apiversions_unanswered", WARNING if knows else ERROR,
                f"{{servers}} close{{vs}} the connection after ApiVersions v{silent[0].step.version} of {{who}} without "
                f"sending a byte, on {{n}}{', behind a PROXY protocol header' if proxied else OTHERS if knows else ''}",
                NO_PROXY_HEADER if proxied else LIMITED if knows else
                "A broker before 0.10 does not know the request: pin the client to that release (broker.version.fallback, "
                "api_version). A TLS listener or a proxy may do so too: compare security.protocol with the listener.", who,
            ))  # fmt: skip


def strangers(case: DiagnosisContext) -> None:
    """Clients that can neither produce to a broker nor fetch from it: they have no version of either request in common."""
    for profile, client in case.profiles():
        known, offer = case.known.of(profile.uid, client), profile.offer
        apart = nothing_in_common(known, offer.ranges) if known is not None and offer is not None else []
        if apart:
            example = uid(profile.uid, profile.probes[-1].step.exchange)
            case.add((*case.group(profile.uid, client), *apart), profile.uid, example, Diagnosis(
                "no_common_version", ERROR,
                f"{{who}} and {{servers}} have no common version of {' and '.join(apart)}, on {{n}}",
                "Upgrade the brokers, or use a client of an older release: 4.0 and later need brokers of 2.1 (KIP-896).",
                subject(profile, client),
            ))  # fmt: skip


def by_client(profile: ConnectionProfile) -> bool:
    """Whether the client closed the connection, so that a missing response shows nothing about the broker."""
    return profile.line.get("closed_by") == "client"


def worked(profile: ConnectionProfile) -> bool:
    """Whether a connection did more than request ApiVersions, and got responses."""
    return answered(profile) and any(key != API_VERSIONS for _, key, _ in profile.uses)


# -- versions -------------------------------------------------------------------------------------------------------------
def outside(case: DiagnosisContext) -> None:
    """Requests with versions outside of what the broker offers, and versions below what both sides have."""
    highest: dict[tuple[tuple[str | None, ...], int], int] = {}
    alike: set[int] = set()
    for stored, _, number in case.clients:
        if number in alike:
            continue
        if len(stored.clients) == 1:
            alike.add(number)
        for described in stored.template.uses:
            at = case.group(stored.uid, stored.clients[described.client]), described.key
            highest[at] = max(highest.get(at, -1), described.version)
    seen: dict[tuple[ProfileTemplate, Server], tuple[bool, list[TemplateUse]]] = {}

    def worth(stored: StoredProfile) -> bool:
        """Whether a version is wrong, or lower than possible and the client's highest."""
        where = stored.template, stored.server
        if where not in seen:
            seen[where] = doubtful(case, stored)
        wrong, low = seen[where]
        return wrong or any(highest[case.group(stored.uid, stored.clients[one.client]), one.key] == one.version for one in low)

    for profile, _ in case.worth(worth):
        for (client, key, version), use in profile.uses.items():
            if key == API_VERSIONS or use.died or use.refused:
                continue  # these are diagnosed by their effects
            found = case.whole.verdicts(profile, key, version, use)
            ranges = range_in(case.whole.offer(profile), key)
            has = span_of(ranges)
            group = case.group(profile.uid, client)
            if found["not_highest"] and profile.probes and ranges and version != CHOSEN.get(key):
                if highest[group, key] == version:
                    add_use(case, profile, client, use, (key, version), Diagnosis(
                        "pinned_old_version", NOTE,
                        f"{{who}} use{{s}} {call(key, version)} with {{servers}}, although the same software used a higher one "
                        f"and the broker offers {has}, on {{n}}",
                        "Check whether the configuration of this client pins a version or a release.", subject(profile, client),
                    ))  # fmt: skip
            elif (found["above_broker_max"] or found["below_broker_min"]) and profile.probes and not use.served:
                kind = "above_broker_max" if found["above_broker_max"] else "below_broker_min"
                add_use(case, profile, client, use, (key, version), Diagnosis(
                    kind, WARNING,
                    f"{{who}} send{{s}} {call(key, version)} to {{servers}}, which offer{{vs}} {has}; no response was "
                    "captured, on {n}",
                    advice_for(key, version, kind), subject(profile, client),
                ))  # fmt: skip


def doubtful(case: DiagnosisContext, stored: StoredProfile) -> tuple[bool, list[TemplateUse]]:
    """Whether a template has a version that its server rejects; and the uses below the highest version."""
    template, offer, low, wrong = stored.template, case.whole.offer_for(stored), [], False
    common = case.whole.tracker.offers.common(stored.server)
    for described in template.uses:
        if described.key == API_VERSIONS:
            continue
        found = {
            case.whole.verdict(kind, offer, common, described.key, described.version, template.software)
            for kind in described.kinds
        }
        wrong = wrong or bool(found & {"above_broker_max", "below_broker_min"})
        if "not_highest" in found and template.probes:
            low.append(described)
    return wrong, low


def span_of(ranges: tuple[int, int] | None) -> str:
    """`3-13`; `none` if the broker does not name the API."""
    return f"{ranges[0]}-{ranges[1]}" if ranges else "none"


def advice_for(key: int, version: int, kind: str) -> str:
    """Advice about a version that the broker rejects."""
    since = removed_in(key, version)
    if version_range(key) is None:
        return deaths.NO_SUCH_API
    if kind == "above_broker_max":
        return deaths.IGNORES_OFFER
    if since:
        return (
            f"Kafka {since} removed this version (KIP-896): upgrade the client, let it negotiate (ApiVersions), or raise the "
            "release that it is configured for."
        )
    return "The client is too old for this broker: upgrade it."


def add_use(
    case: DiagnosisContext, profile: ConnectionProfile, client: str | None, use: Use, at: tuple[int, int], made: Diagnosis
) -> None:
    """Counts a use of one API and version for a trouble."""
    example = uid(profile.uid, use.died_example if use.died_example is not None else use.example)
    case.add((*case.group(profile.uid, client), *at), profile.uid, example, made)


def refusals(case: DiagnosisContext) -> None:
    """UNSUPPORTED_VERSION in response to APIs other than ApiVersions."""
    refused = once(lambda profile: any(use.refused and key != API_VERSIONS for (_, key, _), use in profile.uses.items()))
    for profile, _ in case.worth(refused):
        for (client, key, version), use in profile.uses.items():
            if not use.refused or key == API_VERSIONS:
                continue
            offer = case.whole.offer(profile)
            ranges = range_in(offer, key)
            inside = ranges is not None and ranges[0] <= version <= ranges[1]
            has = (
                f", though it offers {span_of(ranges)}"
                if inside
                else f", of which it offers {span_of(ranges)}"
                if offer
                else ""
            )
            case.add((*case.group(profile.uid, client), key, version), profile.uid, uid(profile.uid, use.example), Diagnosis(
                "unsupported_version", ERROR,
                f"{{servers}} respond{{vs}} UNSUPPORTED_VERSION (error 35) to {call(key, version)} of {{who}}{has}, on {{n}}",
                "The request needs a feature, or a version, that this broker does not have: finalize the feature "
                "(kafka-features.sh), use settings that its release supports, or upgrade the brokers." if inside
                else "Upgrade the older side, or keep the client from using this API with this broker.",
                subject(profile, client),
            ))  # fmt: skip


def compression(case: DiagnosisContext) -> None:
    """Clients with librdkafka that do not compress because Produce 0 is missing from the broker's ranges."""
    for profile, client in case.profiles():
        known, offer = case.known.of(profile.uid, client), profile.offer
        if known is None or known.family != "librdkafka" or offer is None:
            continue
        first = offer.ranges.get(PRODUCE, (0, 0))[0]
        sent = [(version, use) for (_, key, version), use in profile.uses.items() if key == PRODUCE]
        if first > 0 and sent and all(use.codecs == ONLY_NONE for _, use in sent):
            version, use = sent[0]
            add_use(case, profile, client, use, (PRODUCE, version), Diagnosis(
                "compression_off", WARNING,
                "{who} send{s} uncompressed batches to {servers}, whose versions do not include Produce 0: librdkafka then "
                "sends gzip, snappy and lz4 uncompressed and reports no error, on {n}",
                "If compression.type is set: let the broker or the proxy offer Produce from version 0 (KAFKA-18659), or "
                "upgrade librdkafka.",
                subject(profile, client),
            ))  # fmt: skip


# -- brokers --------------------------------------------------------------------------------------------------------------
def brokers(case: DiagnosisContext) -> None:
    """Brokers whose ranges match no release."""
    for row in case.brokers:
        where = place((row["server_ip"], row["server_port"]))
        who: Row = {"client_ip": None, "client_id": None, "server": where}
        if row["vendor_suspected"]:
            differs = row["differs"]
            some = ", ".join(differs[:DIFFERENCES]) + (
                f" and {len(differs) - DIFFERENCES} more" if len(differs) > DIFFERENCES else ""
            )
            case.add((row["nearest"], tuple(differs)), row["example"].rpartition(".")[0], row["example"], Diagnosis(
                "foreign_ranges", WARNING,
                f"{{servers}} offer{{vs}} versions that no Kafka release offers: the nearest is {row['nearest']}, from which "
                f"{len(differs)} API{' differs' if len(differs) == 1 else 's differ'}: {some}",
                "A proxy that rewrites the ranges, a vendor's broker, or a release that this kcap does not know: clients "
                "may use other versions with it than with the nearest release.", who,
            ))  # fmt: skip


DIFFERENCES: Final = 6
"""Number of APIs named as differences from a release."""


# -- facts ----------------------------------------------------------------------------------------------------------------
def facts(case: DiagnosisContext) -> None:
    """Facts that deserve a line but are no trouble."""
    for profile, client in case.profiles():
        refused = [probe for probe in profile.probes if probe.answer is not None and probe.answer.error == UNSUPPORTED_VERSION]
        if refused and any(probe.answer is not None and probe.answer.offer is not None for probe in profile.probes):
            probe = refused[0]
            case.add((), profile.uid, uid(profile.uid, probe.step.exchange), Diagnosis(
                "newer_than_broker", NOTE,
                "{who} request{s} a later ApiVersions version than {servers} has, read{s} the refusal (error 35 in a "
                "version 0 body) and request{s} an older one, as KIP-511 specifies, on {n}",
                "Nothing is wrong. The refused request costs a round trip for each connection, until the brokers are upgraded.",
                subject(profile, client),
            ))  # fmt: skip
    silent: list[tuple[str | None, StoredProfile]] = []
    reusing: list[tuple[str | None, StoredProfile]] = []
    nameless: list[tuple[str | None, StoredProfile]] = []
    for key, mine in case.known.connections.items():
        known = case.known.software[key]
        if known.is_broker or not all(stored.template.opening and not stored.template.midstream for stored in mine):
            continue
        probes = [
            version for stored in mine for which, _ in stored.template.probes
            for version in [(stored.template.opening[which] if isinstance(which, int) else which)[2]]
        ]  # fmt: skip
        if not probes:
            for stored in mine:
                shared = (stored.address, key.client_id) in case.known.shared
                (reusing if shared else silent).append((key.client_id, stored))
        elif key.software is None and max(probes) < SOFTWARE_SINCE:
            nameless += [(key.client_id, stored) for stored in mine]
    for kind, found, text in (
        ("no_apiversions", silent,
         "{who} send{s} no ApiVersions request, on {n}: the versions are fixed by the client or its configuration, or it "
         "requested the broker's versions before the capture"),
        ("apiversions_reused", reusing,
         "{who} request{s} the broker's versions on other connections, and not on {n}: a library may use the same response "
         "for all of its connections, or two programs share the client id"),
        ("nameless", nameless,
         "{who} request{s} ApiVersions below v3, which does not carry the software's name and version (KIP-511), on {n}"),
    ):  # fmt: skip
        for client_id, stored in found:
            first = min((step[0] for step in stored.template.opening), default=1)
            case.add((), stored.uid, uid(stored.uid, first), Diagnosis(
                kind, NOTE, text, "This is a property of the library. The column of the target shows whether it matters.",
                {"client_ip": stored.address, "client_id": client_id, "server": place(stored.server)},
            ))  # fmt: skip
    clusters: dict[str, list[Row]] = {}
    for row in case.brokers:
        where = place((row["server_ip"], row["server_port"]))
        who: Row = {"client_ip": None, "client_id": None, "server": where}
        if row["answers"] > 1 and len({(g["release_min"], g["release_max"]) for g in row["changed"]}) > 1:
            steps = " then ".join(dict.fromkeys(str(g["release_min"]) for g in row["changed"]))
            case.add((where,), row["example"].rpartition(".")[0], row["example"], Diagnosis(
                "broker_changed", NOTE, f"{where} changed the versions that it offers: {steps}",
                "It was upgraded, or a load balancer's backends differ: clients may use the older versions until "
                "they connect again.", who,
            ))  # fmt: skip
        if row["cluster_id"] is not None and row["role"] == "broker" and row["answers"]:
            clusters.setdefault(row["cluster_id"], []).append(row)
    for cluster, rows in clusters.items():
        if len({(row["release_min"], row["release_max"]) for row in rows}) > 1:
            some = ", ".join(
                f"{place((row['server_ip'], row['server_port']))} "
                + (line(row["release_min"]) if row["release_min"] else "unknown")
                for row in rows
            )
            case.add((cluster,), rows[0]["example"].rpartition(".")[0], rows[0]["example"], Diagnosis(
                "mixed_cluster", NOTE, f"the brokers of cluster {cluster} offer the versions of different releases: {some}",
                "A rolling upgrade, or a proxy before one of them: clients agree on versions with each broker separately.",
                {"client_ip": None, "client_id": None, "server": None},
            ))  # fmt: skip


RULES: Final[tuple[Callable[[DiagnosisContext], None], ...]] = (
    negotiations, strangers, *deaths.RULES, refusals, outside, compression, *listeners.RULES, *addresses.RULES, brokers,
)  # fmt: skip


def diagnose(whole: ConnectionProfiles, offered: Sequence[Row], known: Clients) -> tuple[list[Row], list[Row]]:
    """All troubles, the most severe first; and the facts."""
    case = DiagnosisContext(whole, known, offered)
    for rule in RULES:
        rule(case)
    found = sorted(case.troubles.values(), key=lambda trouble: (
        LEVELS.index(trouble.level), -len(trouble.connections), trouble.kind, trouble.example
    ))  # fmt: skip
    rows = [trouble.row() for trouble in found]
    case.troubles = {}
    facts(case)
    return rows, [fact.row() for fact in case.troubles.values()]
