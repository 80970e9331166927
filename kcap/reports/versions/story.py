"""The negotiation of one connection, step by step.

In: connection profiles, and a connection's uid. Out: steps with times, then each API's versions against the broker's range.
Law: times are counted from the connection's first packet; what was not captured is omitted.
"""

from typing import Final

from kcap.errors import UsageError
from kcap.facts.version_verdicts import VERDICTS
from kcap.reports.definition import Row, uid
from kcap.reports.versions.diagnosis import ENDS, call, place, server_of
from kcap.reports.versions.features import described
from kcap.reports.versions.identity import Clients
from kcap.reports.versions.profile import ApiVersionsRequest, ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import range_in
from kcap.schema.errors import ERRORS
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION
from kcap.schema.registry import api_name
from kcap.schema.releases import removed_in

CLOSERS: Final = {"client": "the client", "server": "the broker"}
"""Side of a connection's first FIN or RST -> its name."""


def found(whole: ConnectionProfiles, connection: str) -> ConnectionProfile | None:
    """The connection by its uid, by the name of one of its exchanges, or by a unique beginning of its uid; None for one without
    an exchange."""
    some = [key for key in whole.profiles if key.startswith(connection)]
    if len(some) == 1 or connection in whole.profiles:
        return whole.profiles[connection if connection in whole.profiles else some[0]]
    others = [str(line["connection"]) for line in whole.others if str(line["connection"]).startswith(connection)]
    if len(some) + len(others) > 1:
        raise UsageError(f"--connection {connection!r} is the beginning of several connections")
    if not others:
        raise UsageError(f"there is no connection {connection!r}; kcap connections lists them")
    return None


def of(whole: ConnectionProfiles, connection: str, known: Clients, diagnoses: list[Row]) -> Row:
    """The story. Raises UsageError if no connection, or more than one, has the name."""
    connection = connection.partition(".")[0]
    profile = found(whole, connection)
    connection = profile.uid if profile is not None else connection
    mine = [row for row in diagnoses if any(one.startswith(connection) for one in row["connections"])]
    if profile is None:
        line = next(line for line in whole.others if str(line["connection"]).startswith(connection))
        return {
            "connection": line["connection"], "client_ip": line["client_ip"], "server": place(server_of(line)),
            "steps": [step(None, "", f"no Kafka request: {line['detail'] or line['phase']}; it ended with {line['ended']}")],
            "apis": [], "diagnoses": mine, "lost_ns": 0,
        }  # fmt: skip
    start = int(profile.line.get("first_ns") or 0)
    steps, lost = probing(profile, start)
    client = next(iter(profile.uses), (None, 0, 0))[0]
    who = known.of(profile.uid, client)
    return {
        "connection": profile.uid, "client_ip": profile.identity.client_ip, "client_id": client,
        "server": place(profile.server),
        "software": who.text if who else "", "guessed": bool(who and who.guessed),
        "why": who.why if who else "", "midstream": profile.midstream, "ended": profile.line.get("ended"),
        "steps": steps + openings(profile, start), "apis": apis(profile, whole), "diagnoses": mine, "lost_ns": lost,
    }  # fmt: skip


def step(at_ns: int | None, example: str, text: str) -> Row:
    """One line of the story."""
    return {"at_ns": at_ns, "exchange": example, "text": text}


def probing(profile: ConnectionProfile, start: int) -> tuple[list[Row], int]:
    """The ApiVersions requests, and the time taken by those that did not succeed."""
    steps, lost, before = [], 0, False
    for probe in profile.probes:
        at = probe.step.requested_ns - start if probe.step.requested_ns is not None else None
        verb = "tries again" if before else "requests the versions"
        steps.append(
            step(at, uid(profile.uid, probe.step.exchange), f"the client {verb} with ApiVersions v{probe.step.version}")
        )
        before = True
        text, wasted = response_text(probe, profile)
        if wasted and probe.step.responded_ns is not None and probe.step.requested_ns is not None:
            lost += probe.step.responded_ns - probe.step.requested_ns
        there = probe.step.responded_ns - start if probe.step.responded_ns is not None else None
        steps.append(step(there, uid(profile.uid, probe.step.exchange), text))
    if profile.software is not None and profile.probes:
        steps.append(step(None, "", f"the client reports its software as {profile.software[0]} {profile.software[1]}"))
    if not profile.probes:
        late = ": its beginning was not captured" if profile.midstream else ""
        steps.append(step(None, "", f"the client does not request which versions the broker has{late}"))
    return steps, lost


def no_response(reason: str | None, profile: ConnectionProfile) -> str:
    """Why a request has no response. `reason` is that of its exchange."""
    if reason in ENDS:
        return f"{CLOSERS.get(profile.line.get('closed_by') or '', 'one side')} closes the connection"
    return "the capture ends before a response" if reason == "capture_end" else "no response was captured"


def response_text(probe: ApiVersionsRequest, profile: ConnectionProfile) -> tuple[str, bool]:
    """The broker's response, and whether the request was in vain."""
    answer = probe.answer
    if answer is None:
        return no_response(probe.step.reason, profile), probe.step.reason in ENDS
    if answer.error == UNSUPPORTED_VERSION and not answer.legible:
        return f"the broker refuses: UNSUPPORTED_VERSION (35) in a body that is not of version {answer.form}", True
    if answer.error == UNSUPPORTED_VERSION:
        apis = f"that names {answer.apis} API" if answer.apis else "that names no API, as of brokers before 2.4"
        return (
            f"the broker refuses, as KIP-511 specifies: UNSUPPORTED_VERSION (35) in a version {answer.form} body {apis}",
            True,
        )
    if answer.error:
        return f"the broker responds {ERRORS.get(answer.error, answer.error)}", True
    text = f"the broker offers versions of {answer.apis} APIs"
    features = answer.features
    if features.get("finalizedFeatures"):
        text += f"; finalized features: {', '.join(described({'finalizedFeatures': features['finalizedFeatures']}))}"
    if features.get("supportedFeatures"):
        names = ", ".join(f"{f.get('name')} {f.get('minVersion')}-{f.get('maxVersion')}" for f in features["supportedFeatures"])
        text += f"; supported: {names}"
    if features.get("zkMigrationReady"):
        text += "; ready for the migration from ZooKeeper"
    return text, False


def openings(profile: ConnectionProfile, start: int) -> list[Row]:
    """The first requests after the ApiVersions requests."""
    out = []
    for one in profile.opening:
        if one.key == API_VERSIONS:
            continue
        at = one.requested_ns - start if one.requested_ns is not None else None
        name = "a SASL token" if one.key < 0 else call(one.key, one.version)
        end = {"answered": "gets a response", "one_way": "requests no response"}.get(one.outcome)
        if end is None:
            end = f"gets no response: {no_response(one.reason, profile)}"
        if one.error:
            end += f" with {ERRORS.get(one.error, one.error)}"
        out.append(step(at, uid(profile.uid, one.exchange), f"{name} {end}"))
    return out


def apis(profile: ConnectionProfile, whole: ConnectionProfiles) -> list[Row]:
    """Each API's versions, as the broker offers them and as the connection used them."""
    rows: dict[int, Row] = {}
    offer = whole.offer(profile)
    for (_, key, version), use in sorted(profile.uses.items(), key=lambda item: item[0][1:]):
        row = rows.setdefault(
            key, {"api": api_name(key), "api_key": key, "offered": range_in(offer, key), "versions": {}, "count": 0,
                  "verdicts": {}, "downgraded": False, "removed_in": None}
        )  # fmt: skip
        row["versions"][str(version)] = row["versions"].get(str(version), 0) + use.count
        row["count"] += use.count
        row["removed_in"] = row["removed_in"] or removed_in(key, version)
        for verdict, count in whole.verdicts(profile, key, version, use).items():
            row["verdicts"][verdict] = row["verdicts"].get(verdict, 0) + count
    for row in rows.values():
        row["downgraded"] = len(row["versions"]) > 1
        row["verdict"] = max(row["verdicts"], key=VERDICTS.index, default=None)
    return list(rows.values())
