"""The negotiation of one connection, step by step.

In: what was gathered, and a connection's uid. Out: steps with times, then each API's versions against the broker's range. Law:
times are counted from the connection's first packet; what was not captured is not told.
"""

from typing import Any, Final

from kcap.errors import UsageError
from kcap.facts.version_verdicts import VERDICTS
from kcap.reports.definition import uid
from kcap.reports.versions.diagnosis import call, place, server_of
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.profile import ApiVersionsRequest, ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import range_in
from kcap.schema.errors import ERRORS
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION
from kcap.schema.registry import api_name
from kcap.schema.releases import removed_in

Row = dict[str, Any]
UNAVAILABLE: Final = {"fin": "closes the connection", "rst": "resets the connection", "capture_end": "has not answered yet"}


def found(whole: ConnectionProfiles, connection: str) -> ConnectionProfile | None:
    """The connection by its uid, or by as much of it as says which; None for one without an exchange."""
    some = [key for key in whole.talks if key.startswith(connection)]
    if len(some) == 1 or connection in whole.talks:
        return whole.talks[connection if connection in whole.talks else some[0]]
    others = [str(line["connection"]) for line in whole.others if str(line["connection"]).startswith(connection)]
    if len(some) + len(others) > 1:
        raise UsageError(f"--connection {connection!r} is the beginning of several connections")
    if not others:
        raise UsageError(f"there is no connection {connection!r}; kcap connections lists them")
    return None


def of(whole: ConnectionProfiles, connection: str, known: dict[tuple[str, str | None], Software], diagnoses: list[Row]) -> Row:
    """The story. Raises UsageError where no connection, or more than one, is called so."""
    talk = found(whole, connection)
    mine = [row for row in diagnoses if any(one.startswith(connection) for one in row["connections"])]
    if talk is None:
        line = next(line for line in whole.others if str(line["connection"]).startswith(connection))
        return {
            "connection": line["connection"], "client_ip": line["client_ip"], "server": place(server_of(line)),
            "steps": [step(None, "", f"no Kafka request: {line['detail'] or line['phase']}; it ended with {line['ended']}")],
            "apis": [], "diagnoses": mine, "lost_ns": 0,
        }  # fmt: skip
    start = int(talk.line.get("first_ns") or 0)
    steps, lost = asked(talk, start)
    client = next(iter(talk.uses), (None, 0, 0))[0]
    who = known.get((talk.identity.client_ip, client))
    return {
        "connection": talk.uid, "client_ip": talk.identity.client_ip, "client_id": client, "server": place(talk.server),
        "software": " ".join(filter(None, (who.name, who.version))) if who else "", "guessed": bool(who and who.guessed),
        "why": who.why if who else "", "midstream": talk.midstream, "ended": talk.line.get("ended"),
        "steps": steps + openings(talk, start), "apis": apis(talk, whole), "diagnoses": mine, "lost_ns": lost,
    }  # fmt: skip


def step(at_ns: int | None, example: str, text: str) -> Row:
    """One line of the story."""
    return {"at_ns": at_ns, "exchange": example, "text": text}


def asked(talk: ConnectionProfile, start: int) -> tuple[list[Row], int]:
    """The questions for versions, and the time that went into those that did not succeed."""
    steps, lost, before = [], 0, False
    for ask in talk.asks:
        at = ask.step.asked_ns - start if ask.step.asked_ns is not None else None
        again = "asks again" if before else "asks"
        steps.append(step(at, uid(talk.uid, ask.step.exchange), f"the client {again} with ApiVersions v{ask.step.version}"))
        before = True
        text, wasted = told(ask)
        if wasted and ask.step.told_ns is not None and ask.step.asked_ns is not None:
            lost += ask.step.told_ns - ask.step.asked_ns
        there = ask.step.told_ns - start if ask.step.told_ns is not None else None
        steps.append(step(there, uid(talk.uid, ask.step.exchange), text))
    if talk.software is not None and talk.asks:
        steps.append(step(None, "", f"the client calls itself {talk.software[0]} {talk.software[1]}"))
    if not talk.asks:
        late = ": its beginning was not captured" if talk.midstream else ""
        steps.append(step(None, "", f"the client does not ask which versions the broker has{late}"))
    return steps, lost


def told(ask: ApiVersionsRequest) -> tuple[str, bool]:
    """What came back, and whether it was in vain."""
    answer = ask.answer
    if answer is None:
        reason = ask.step.reason or ""
        return f"the broker {UNAVAILABLE.get(reason, 'gives no answer that was captured')}", reason in ("fin", "rst")
    if answer.error == UNSUPPORTED_VERSION:
        apis = f"and names {answer.apis} API" if answer.apis else "and names no API, as brokers before 2.4 do"
        return f"the broker refuses: UNSUPPORTED_VERSION (35) in a version {answer.form} body {apis}", True
    if answer.error:
        return f"the broker answers {ERRORS.get(answer.error, answer.error)}", True
    text = f"the broker names {answer.apis} APIs"
    features = answer.features
    if features.get("finalizedFeatures"):
        names = ", ".join(f"{f.get('name')} {f.get('maxVersionLevel')}" for f in features["finalizedFeatures"])
        text += f"; finalized features: {names}"
    if features.get("supportedFeatures"):
        names = ", ".join(f"{f.get('name')} {f.get('minVersion')}-{f.get('maxVersion')}" for f in features["supportedFeatures"])
        text += f"; supported: {names}"
    if features.get("zkMigrationReady"):
        text += "; ready for the migration from ZooKeeper"
    return text, False


def openings(talk: ConnectionProfile, start: int) -> list[Row]:
    """What the connection did first, behind the questions."""
    out = []
    for one in talk.opening:
        if one.key == API_VERSIONS:
            continue
        at = one.asked_ns - start if one.asked_ns is not None else None
        name = "a SASL token" if one.key < 0 else call(one.key, one.version)
        end = {"answered": "is answered", "one_way": "wants no answer"}.get(one.outcome)
        if end is None:
            end = f"gets no answer: the broker's side {UNAVAILABLE.get(one.reason or '', one.reason or 'was not captured')}"
        if one.error:
            end += f" with {ERRORS.get(one.error, one.error)}"
        out.append(step(at, uid(talk.uid, one.exchange), f"{name} {end}"))
    return out


def apis(talk: ConnectionProfile, whole: ConnectionProfiles) -> list[Row]:
    """Each API's versions, as the broker offers and as the connection used them."""
    rows: dict[int, Row] = {}
    offer = whole.offer(talk)
    for (_, key, version), use in sorted(talk.uses.items(), key=lambda item: item[0][1:]):
        row = rows.setdefault(
            key, {"api": api_name(key), "api_key": key, "offered": range_in(offer, key), "versions": {}, "count": 0,
                  "verdicts": {}, "downgraded": False, "removed_in": None}
        )  # fmt: skip
        row["versions"][str(version)] = row["versions"].get(str(version), 0) + use.count
        row["count"] += use.count
        row["removed_in"] = row["removed_in"] or removed_in(key, version)
        for verdict, count in whole.verdicts(talk, key, version, use).items():
            row["verdicts"][verdict] = row["verdicts"].get(verdict, 0) + count
    for row in rows.values():
        row["downgraded"] = len(row["versions"]) > 1
        row["verdict"] = max(row["verdicts"], key=VERDICTS.index, default=None)
    return list(rows.values())
