"""What went wrong with versions, listeners and protocols, in sentences.

In: the connections of a capture, its clients and brokers. Out: a row a trouble and whom it concerns, with its connections, an
example and advice; the gravest first. Law: a sentence follows from what was seen on the connections it names; a capture that
shows one direction only, or began too late, gives no diagnosis.

Facts: KIP-35, KIP-511 (error 35 with a version 0 body), KIP-896.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kcap.facts.api_versions import SOFTWARE_SINCE
from kcap.facts.brokers import Server
from kcap.reports.definition import uid
from kcap.reports.versions import listeners
from kcap.reports.versions.diagnosis import (
    ENDS,
    ERROR,
    LEVELS,
    NOTE,
    WARNING,
    ClientKey,
    Diagnosis,
    DiagnosisContext,
    Row,
    answered,
    call,
    library,
    named,
    once,
    place,
    subject,
    whole_line,
)
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.profile import ConnectionProfile, Use
from kcap.reports.versions.profile_store import ProfileTemplate, StoredProfile, TemplateUse
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION
from kcap.schema.registry import api_key, version_range
from kcap.schema.releases import removed_in

PRODUCE, FETCH = 0, 1
GONE_PRODUCE: Final = 3
CHOSEN: Final = {
    found: version
    for name, version in (("Produce", 11), ("EndTxn", 4), ("TxnOffsetCommit", 4), ("AddOffsetsToTxn", 4), ("Fetch", 12),
                          ("OffsetCommit", 9), ("OffsetFetch", 9))
    if (found := api_key(name)) is not None
}  # fmt: skip
"""API -> the version that clients choose by themselves: without transactions of version 2 (KIP-890) or topic ids (KIP-516)."""
ONLY_NONE: Final = 1
"""The codecs' bit mask of batches that are all uncompressed."""


# -- ApiVersions ----------------------------------------------------------------------------------------------------------
def questions(case: DiagnosisContext) -> None:
    """Refused and unanswered questions, and what came of them."""
    for profile, client, name in case.profiles():
        if not profile.probes or not whole_line(profile):
            continue
        key, who = (profile.identity.client_ip, client, profile.server), subject(profile, client)
        refused = [probe for probe in profile.probes if probe.answer is not None and probe.answer.error == UNSUPPORTED_VERSION]
        worked = any(probe.answer is not None and probe.answer.offer is not None for probe in profile.probes)
        if refused:
            probe = refused[0]
            at, version = uid(profile.uid, probe.step.exchange), probe.step.version
            if worked:
                kind = library(case.known.get((profile.identity.client_ip, client)), key[:2])
                case.add((version, *kind), profile.uid, at, Diagnosis(
                    "newer_than_broker", NOTE,
                    f"{name}{{others}} is newer than the broker {place(profile.server)}: it requests ApiVersions v{version}, "
                    "is refused with UNSUPPORTED_VERSION and requests an older one, on {n}",
                    "This works and costs a round trip a connection; it ends when the broker is upgraded.", who,
                ))  # fmt: skip
            elif profile.line.get("ended") in ENDS or len(refused) > 1:
                case.add(key, profile.uid, at, Diagnosis(
                    "error_35_loop", ERROR,
                    f"{name} requests ApiVersions v{version}, the broker {place(profile.server)} responds UNSUPPORTED_VERSION "
                    "(error 35, in a version 0 body), and the client does not try an older version, on {n}",
                    "The client must read the refusal as version 0 and try again with version 0 (KIP-511); upgrade or fix "
                    "it, or "
                    "pin it to the broker's release.", who,
                ))  # fmt: skip
        silent = [probe for probe in profile.probes if probe.step.outcome == "unanswered" and probe.step.reason in ENDS]
        if silent and not worked and not refused and not (profile.line.get("server_captured") or 0):
            at = uid(profile.uid, silent[0].step.exchange)
            case.add(key, profile.uid, at, Diagnosis(
                "apiversions_unanswered", ERROR,
                f"{place(profile.server)} closes the connection of {name} at its ApiVersions request without a byte, on {{n}}",
                "A broker before 0.10 does not know the request: pin the client to that release (broker.version.fallback, "
                "api_version). A TLS listener may do so too: compare security.protocol with the listener.", who,
            ))  # fmt: skip


def worked(profile: ConnectionProfile) -> bool:
    """Whether a connection did more than request ApiVersions, and got responses."""
    return answered(profile) and any(key != API_VERSIONS for _, key, _ in profile.uses)


def silence(case: DiagnosisContext) -> None:
    """Clients that do not request ApiVersions, or do not name themselves."""
    by: dict[ClientKey, list[StoredProfile]] = {}
    for stored, client, _ in case.clients:
        by.setdefault((stored.identity.client_ip, client), []).append(stored)
    is_whole, works = once(whole_line), once(worked)
    asked = once(lambda profile: [probe.step.version for probe in profile.probes])
    first = once(lambda profile: profile.opening[0].exchange if profile.opening else 1)
    question = once(lambda profile: profile.probes[0].step.exchange)
    for (ip, client), some in by.items():
        if not all(map(is_whole, some)):
            continue
        spoke, versions = [stored for stored in some if works(stored)], {one for stored in some for one in asked(stored)}
        if not spoke:
            continue
        who: Row = {"client_ip": ip, "client_id": client}
        known = case.known.get((ip, client))
        name = named(ip, client, known)
        if not versions:
            for stored in spoke:
                case.add((ip, client), stored.uid, uid(stored.uid, first(stored)), Diagnosis(
                    "no_apiversions", WARNING,
                    f"{name} never requests the broker's versions (ApiVersions): its versions are fixed, on {{n}}",
                    "It breaks on the first release that drops one of them; let it negotiate (api.version.request, no "
                    "api_version, "
                    "a newer library) before the brokers are upgraded.", who,
                ))  # fmt: skip
        elif max(versions) < SOFTWARE_SINCE and min(versions) >= 0:
            version = max(versions)
            kind = library(known, (ip, client))
            for stored in spoke:
                if asked(stored):
                    case.add((version, *kind), stored.uid, uid(stored.uid, question(stored)), Diagnosis(
                        "nameless", NOTE,
                        f"{name}{{others}} requests ApiVersions v{version} at most, which does not carry its name and "
                        "version, on {n}",
                        "An old or pinned library; brokers count it as unknown software (KIP-511).", who,
                    ))  # fmt: skip


# -- versions -------------------------------------------------------------------------------------------------------------
def outside(case: DiagnosisContext) -> None:
    """Versions outside of what the broker offered, and what became of the connection."""
    highest: dict[tuple[str, str | None, int], int] = {}
    for stored, _, _ in case.clients:
        for described in stored.template.uses:
            at = stored.identity.client_ip, stored.clients[described.client], described.key
            highest[at] = max(highest.get(at, -1), described.version)
    seen: dict[tuple[ProfileTemplate, Server], tuple[bool, list[TemplateUse]]] = {}

    def worth(stored: StoredProfile) -> bool:
        """Whether a version is wrong, or lower than it might be and the client's highest."""
        where = stored.template, stored.server
        if where not in seen:
            seen[where] = doubtful(case, stored)
        wrong, low = seen[where]
        ip, ids = stored.identity.client_ip, stored.clients
        return wrong or any(highest[ip, ids[one.client], one.key] == one.version for one in low)

    for profile, _, name in case.worth(worth):
        for (one, key, version), use in profile.uses.items():
            if key == API_VERSIONS:
                continue
            gone = named_though_gone(case, profile, key, version, use)
            if gone:
                add_use(case, profile, one, use, key, version, Diagnosis(
                    "advertised_but_removed", ERROR,
                    f"{name} sends {call(key, version)}, which {place(profile.server)} names among its versions and refuses by "
                    f"closing "
                    "the connection, on {n}",
                    "Kafka 4 names Produce 0-2 only so that librdkafka keeps compression on (KAFKA-18659) and takes 3 and "
                    "later "
                    "(KIP-896): upgrade the client.", subject(profile, one),
                ))  # fmt: skip
                continue
            found = case.whole.verdicts(profile, key, version, use)
            offer = case.whole.offer(profile)
            ranges = offer.ranges.get(key) if offer is not None else None
            has = f"{ranges[0]}-{ranges[1]}" if ranges else "none"
            for verdict, kind in (("above_broker_max", "above_broker_max"), ("below_broker_min", "below_broker_min")):
                if not found[verdict]:
                    continue
                end = ", which closes the connection" if use.died else ""
                told = f"although the broker offered {has}" if profile.probes else f"the broker has {has}"
                since = removed_in(key, version)
                if version_range(key) is None:
                    kind = "unknown_api"
                advice = (
                    "The client ignores what the broker offers (as librdkafka 2.6.0 did with Fetch 12): upgrade or pin it."
                    if verdict == "above_broker_max"
                    else f"Kafka {since} dropped it (KIP-896): upgrade the client, or let it negotiate."
                    if since
                    else "The client is too old for this broker: upgrade it."
                )  # fmt: skip
                add_use(case, profile, one, use, key, version, Diagnosis(
                    kind, ERROR if use.died or use.refused else WARNING,
                    f"{name} sends {call(key, version)} to {place(profile.server)}, {told}{end}, on "
                    f"{{n}}", advice, subject(profile, one),
                ))  # fmt: skip
            if found["not_highest"] and profile.probes and ranges and is_pinned(profile, one, key, version, highest):
                add_use(case, profile, one, use, key, version, Diagnosis(
                    "pinned_old_version", NOTE,
                    f"{name} uses {call(key, version)} with {place(profile.server)}, although the same software uses a higher "
                    f"one and "
                    f"the broker offers {has}, on {{n}}",
                    "Look for a pinned version in its configuration.", subject(profile, one),
                ))  # fmt: skip


def doubtful(case: DiagnosisContext, stored: StoredProfile) -> tuple[bool, list[TemplateUse]]:
    """Whether a template has a version that its server does not take; and the uses below the highest version."""
    template, offer, low, wrong = stored.template, case.whole.offer_for(stored), [], False
    for described in template.uses:
        if described.key == API_VERSIONS:
            continue
        found = {
            case.whole.verdict(kind, offer, described.key, described.version, template.software) for kind in described.kinds
        }
        gone = described.key == PRODUCE and described.version < GONE_PRODUCE and described.died
        wrong = wrong or gone or bool(found & {"above_broker_max", "below_broker_min"})
        if "not_highest" in found and template.probes:
            low.append(described)
    return wrong, low


def is_pinned(
    profile: ConnectionProfile, client: str | None, key: int, version: int, highest: dict[tuple[str, str | None, int], int]
) -> bool:
    """Whether a client uses no higher version of this API anywhere, and has no reason of its own for that."""
    return version != CHOSEN.get(key) and highest[profile.identity.client_ip, client, key] == version


def add_use(
    case: DiagnosisContext, profile: ConnectionProfile, client: str | None, use: Use, key: int, version: int, made: Diagnosis
) -> None:
    """Counts a use to a trouble."""
    example = uid(profile.uid, use.died_example if use.died_example is not None else use.example)
    case.add((profile.identity.client_ip, client, profile.server, key, version), profile.uid, example, made)


def named_though_gone(case: DiagnosisContext, profile: ConnectionProfile, key: int, version: int, use: Use) -> bool:
    """A Produce of versions 0-2 that a broker names and does not take."""
    offer = case.whole.offer(profile)
    if key != PRODUCE or version >= GONE_PRODUCE or not use.died or offer is None:
        return False
    first, _ = offer.ranges.get(PRODUCE, (GONE_PRODUCE, 0))
    since = removed_in(FETCH, 0)  # went in the same release, and is not named for anybody's sake
    return first == 0 and since is not None and offer.ranges.get(FETCH, (0, 0))[0] > 0


def compression(case: DiagnosisContext) -> None:
    """Librdkafka without compression for want of Produce 0 in the broker's ranges."""
    for profile, client, name in case.profiles():
        known, offer = case.known.get((profile.identity.client_ip, client)), profile.offer
        if known is None or known.family != "librdkafka" or offer is None:
            continue
        first = offer.ranges.get(PRODUCE, (0, 0))[0]
        sent = [(version, use) for (_, key, version), use in profile.uses.items() if key == PRODUCE]
        if first > 0 and sent and all(use.codecs == ONLY_NONE for _, use in sent):
            version, use = sent[0]
            add_use(case, profile, client, use, PRODUCE, version, Diagnosis(
                "compression_off", WARNING,
                f"{name} sends uncompressed batches to {place(profile.server)}, which does not name Produce 0: librdkafka then "
                f"turns "
                "gzip, snappy and lz4 off without a word, on {n}",
                "If compression.type is set: let the broker or the proxy name Produce from 0 (KAFKA-18659), or upgrade "
                "librdkafka.",
                subject(profile, client),
            ))  # fmt: skip


# -- frames and brokers ---------------------------------------------------------------------------------------------------
def headers(case: DiagnosisContext) -> None:
    """Requests that do not decode as their headers say, and cost the connection."""
    for profile, client, name in case.worth(lambda stored: stored.uid in case.whole.malformed):
        what = case.whole.malformed.get(profile.uid)
        died = [(key, version, use) for (_, key, version), use in profile.uses.items() if use.died]
        if what is None or not died or not whole_line(profile):
            continue
        key, version, use = died[0]
        if not {"ok", "not_highest", "unnegotiated"} & case.whole.verdicts(profile, key, version, use).keys():
            continue  # it was refused for its version
        case.add((profile.identity.client_ip, client, profile.server, key, version), profile.uid,
                 uid(profile.uid, use.died_example or use.example), Diagnosis(
            "malformed_request", ERROR,
            f"{name} sends {call(key, version)} with a body that does not read as such ({what}), and {place(profile.server)} "
            f"closes, "
            "on {n}",
            "Compare header and body with `kcap schema`: flexible versions have compact lengths and tagged fields, and a "
            "header of "
            "version 2 (KIP-482).", subject(profile, client),
        ))  # fmt: skip


def brokers(case: DiagnosisContext) -> None:
    """Brokers that differ, and responses that no release gives."""
    clusters: dict[str, list[Row]] = {}
    for row in case.brokers:
        where = place((row["server_ip"], row["server_port"]))
        who: Row = {"client_ip": None, "client_id": None, "server": where}
        one = row["example"].rpartition(".")[0]
        if row["vendor_suspected"]:
            case.add((where,), one, row["example"], Diagnosis(
                "foreign_ranges", WARNING, f"{where} offers versions that no Kafka release offers: {row['why']}",
                "A vendor's broker, a proxy that rewrites the ranges, or a release newer than kcap's facts: versions that "
                "clients "
                "negotiate with it are not those of Kafka's own release.", who,
            ))  # fmt: skip
        if row["answers"] > 1 and len({(g["release_min"], g["release_max"]) for g in row["changed"]}) > 1:
            steps = " then ".join(dict.fromkeys(str(g["release_min"]) for g in row["changed"]))
            case.add((where,), one, row["example"], Diagnosis(
                "broker_changed", NOTE, f"{where} changed what it offers: {steps}", "It was upgraded, or a load balancer's "
                "backends differ: clients may keep the older ranges until they connect again.", who,
            ))  # fmt: skip
        if row["cluster_id"] is not None and row["role"] == "broker":
            clusters.setdefault(row["cluster_id"], []).append(row)
    for cluster, rows in clusters.items():
        spans = {(row["release_min"], row["release_max"]) for row in rows}
        if len(spans) > 1:
            some = ", ".join(
                f"{place((row['server_ip'], row['server_port']))} {row['release_min'] or 'unknown'}" for row in rows
            )
            case.add((cluster,), rows[0]["example"].rpartition(".")[0], rows[0]["example"], Diagnosis(
                "mixed_cluster", NOTE, f"the brokers of cluster {cluster} are of different releases: {some}",
                "A rolling upgrade: clients use other versions with each of them until it is done.",
                {"client_ip": None, "client_id": None, "server": None},
            ))  # fmt: skip


RULES: Final[tuple[Callable[[DiagnosisContext], None], ...]] = (
    questions, silence, outside, compression, *listeners.RULES, headers, brokers,
)  # fmt: skip


def diagnose(whole: ConnectionProfiles, offered: Sequence[Row], known: dict[ClientKey, Software]) -> list[Row]:
    """All troubles, the gravest first."""
    case = DiagnosisContext(whole, known, offered)
    for rule in RULES:
        rule(case)
    found = sorted(case.troubles.values(), key=lambda trouble: (LEVELS.index(trouble.level), -len(trouble.connections)))
    return [trouble.row() for trouble in found]
