"""Shows how each connection negotiated versions: one row each, and its story. Free of widgets.

In: connection profiles. Out: rows, a sheet, a story in lines. Law: sentences and verdicts are those of
`kcap.reports.versions.story`; of too many connections, those with findings are shown first.
"""

from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Final

from kcap import limits
from kcap.facts.api_versions import Offer
from kcap.facts.version_verdicts import VERDICTS
from kcap.output.grid import ELLIPSIS, clean, duration, endpoint
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, counted, lasting, named
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, words, wrapped
from kcap.reports.versions.identity import Clients
from kcap.reports.versions.pages import span
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profile_templates import ProfileTemplate
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION
from kcap.schema.registry import api_name
from kcap.schema.releases import removed_in
from kcap.tui.views.conversations_model import protocol
from kcap.tui.views.sheet import Line, Sheet, paragraph

LEVEL_TONES: Final = {"error": "bad", "warning": "care", "note": "dim"}
VERDICT_TONES: Final = {"ok": "good", "not_highest": "care", "unnegotiated": "care", "": "dim"}
LAST_LEAST: Final = 20
"""Columns for `ok  removed in 4.0`."""
TROUBLE: Final = {"bad": 0, "care": 1}
WRONG: Final = ("above_broker_max", "below_broker_min")


def para(text: str, width: int, tone: str = "", indent: str = "") -> list[Line]:
    """A sentence on as many lines as it needs."""
    return paragraph(clean(text), width, tone, indent)


def question(profile: ConnectionProfile) -> tuple[str, str]:
    """The result of the negotiation in a few words, and its tone."""
    if not profile.probes:
        return ("midstream", "dim") if profile.midstream else ("no ApiVersions request", "care")
    steps = []
    for probe in profile.probes:
        if probe.answer is None:
            steps.append(f"v{probe.step.version} no response")
        elif probe.answer.error == UNSUPPORTED_VERSION:
            steps.append(f"v{probe.step.version} refused")
        else:
            steps.append(f"v{probe.step.version} " + ("error" if probe.answer.error else "ok"))
    good = any(probe.answer is not None and probe.answer.offer is not None for probe in profile.probes)
    return ", ".join(dict.fromkeys(steps)), "bad" if not good else "care" if len(set(steps)) > 1 else "good"


def profile_row(profile: ConnectionProfile, profiles: ConnectionProfiles, known: Clients) -> Row:
    """One connection that spoke Kafka."""
    client_id = next(iter(profile.uses), (None, 0, 0))[0]
    found: set[str] = set()
    gone: str | None = None
    for (_, key, version), use in profile.uses.items():
        if key != API_VERSIONS:  # a refused ApiVersions request that is repeated in a lower version is normal (KIP-511)
            found |= set(profiles.verdicts(profile, key, version, use))
        gone = gone or (removed_in(key, version) if api_name(key) is not None else None)
    library = known.of(profile.uid, client_id)
    api_versions, tone = question(profile)
    wasted = [probe.step for probe in profile.probes if probe.answer is None or probe.answer.error]
    return {
        "connection": profile.uid, "client_ip": profile.identity.client_ip, "client_id": client_id,
        "server": endpoint(*profile.server), "protocol": "",
        "software": f"{library.name or ''} {library.version or ''}".strip() if library is not None else "",
        "api_versions": api_versions, "api_versions_tone": tone,
        "verdict": max(found, key=VERDICTS.index, default=""), "removed_in": gone or "",
        "lost_ns": sum(
            step.responded_ns - step.requested_ns
            for step in wasted
            if step.responded_ns is not None and step.requested_ns is not None
        ) or None,
        "ended": profile.line.get("ended"), "count": sum(use.count for use in profile.uses.values()), "phase": "kafka",
        "first_ns": profile.line.get("first_ns"),
    }  # fmt: skip


def other_row(line: Row) -> Row:
    """One connection without an exchange."""
    server = endpoint(line["server_ip"], line["server_port"]) if line.get("server_ip") else ""
    return {
        "connection": line["connection"], "client_ip": line["client_ip"], "client_id": None, "server": server, "software": "",
        "protocol": protocol(line), "api_versions": "", "api_versions_tone": "care",
        "verdict": "", "removed_in": "", "lost_ns": None, "ended": line["ended"],
        "count": 0, "phase": line["phase"], "first_ns": line["first_ns"],
    }  # fmt: skip


def rows_of(profiles: ConnectionProfiles, known: Clients) -> list[Row]:
    """One row per connection, in order of time."""
    alike: dict[tuple[ProfileTemplate, Offer | None], int] = {}

    def rank(one: StoredProfile | Row) -> int:
        if not isinstance(one, StoredProfile):
            return weight(other_row(one))
        kind = one.template, profiles.offer_for(one)
        if kind not in alike:
            alike[kind] = weight(profile_row(one.open(), profiles, known))
        return alike[kind]

    every: list[StoredProfile | Row] = [*profiles.profiles.stored(), *profiles.others]
    chosen = nsmallest(limits.VIEW_ROWS, every, key=rank)
    rows = [profile_row(one.open(), profiles, known) if isinstance(one, StoredProfile) else other_row(one) for one in chosen]
    return sorted(rows, key=lambda row: (row["first_ns"] or 0, row["connection"]))


def weight(row: Row) -> int:
    """A sort key that is lower for more trouble."""
    return TROUBLE.get(row["api_versions_tone"], 2) - 3 * bool(row["verdict"] in WRONG)


def connections(rows: list[Row], number_of: int, story_of: Callable[[str], Row | None]) -> Sheet:
    """Each connection, with its story beside it. `number_of`: total number of connections."""

    def group(row: Row) -> str | None:
        return drill_down.equals("connection", row["connection"]) if row["count"] else None

    fields = [
        named("client_id", "client", tone=bold), named("client_ip", "address", 5), named("server", "broker", 1),
        *([named("protocol", rank=1)] if any(row["protocol"] for row in rows) else []),
        TextColumn("ApiVersions", lambda row: row["api_versions"], right=False, tone=lambda row: row["api_versions_tone"],
              down=lambda row: drill_down.every(group(row), "api == ApiVersions") if row["count"] else None),
        named("verdict", "worst verdict", tone=lambda row: VERDICT_TONES.get(row["verdict"], "bad"),
              down=lambda row: drill_down.every(group(row), drill_down.equals("version_verdict", row["verdict"]))
              if row["verdict"] else group(row)),
        named("removed_in", "removed in", 2, tone=lambda _row: "bad"), named("software", rank=3),
        counted("count", "requests", 4), lasting("lost_ns", "time lost", 6), named("ended", rank=7),
        named("connection", rank=8),
    ]  # fmt: skip

    def detail(row: Row, width: int) -> list[Line]:
        found = story_of(row["connection"])
        return story(found, width) if found is not None else para("computing …", width, "dim")

    foot = f"{len(rows):,} of {number_of:,} connections, worst first" if len(rows) < number_of else ""
    return Sheet(
        "connections", fields, rows, group, "no connections", foot=foot, detail=detail,
        connection=lambda row: row["connection"] if row["count"] else None,
    )  # fmt: skip


def story(connection: Row, width: int) -> list[Line]:
    """The negotiation of a connection, step by step; then its APIs, then what is wrong with it."""
    library = (
        f", {'probably ' if connection.get('guessed') else ''}{connection['software']}" if connection.get("software") else ""
    )
    client = f"client {words(connection['client_id'])}" if connection.get("client_id") else "a client"
    out = para(
        f"{client} of {connection['client_ip']}{library}, with {connection['server']}",
        width,
        "bold",
    )
    if connection.get("midstream"):
        out += para("midstream: the connection began before the capture", width, "care")
    for step in connection["steps"]:
        at = duration(step["at_ns"]) if step["at_ns"] is not None else ""
        first, *rest = wrapped(clean(step["text"]), max(12, width - 9)) or [""]
        out.append([(f"{at:>7}  ", "dim"), (first, tone_of(step["text"]))])
        out += [[(" " * 9 + text, tone_of(step["text"]))] for text in rest]
    if connection["lost_ns"]:
        out += para(f"time lost to failed ApiVersions requests: {duration(connection['lost_ns'])}", width, "care")
    rows: list[tuple[str, str, str, Line]] = []
    for api in connection["apis"]:
        verdict = api["verdict"] or "-"
        gone = f"  removed in {api['removed_in']}" if api["removed_in"] else ""
        end: Line = [(verdict, VERDICT_TONES.get(verdict, "bad")), (gone, "bad")]
        end.append(("  several versions" if api["downgraded"] else "", "care"))
        used = " ".join(f"{version}({count})" for version, count in api["versions"].items())
        rows.append((words(api["api"] or api["api_key"]), used, span(*api["offered"]) if api["offered"] else "none", end))
    out += apis(rows, width)
    for row in connection["diagnoses"]:
        out += [[("", "")], *para(f"{row['level']}: {row['sentence']}", width, LEVEL_TONES.get(row["level"], ""))]
        out += para(f"→ {row['advice']}", width, "key", "  ")
    return out


def apis(rows: Sequence[tuple[str, str, str, Line]], width: int) -> list[Line]:
    """APIs with the versions used and advertised, and their verdicts."""
    if not rows:
        return []
    heads = ("API", "used", "offered")
    widths = [max(len(head), *(len(row[at]) for row in rows)) + 2 for at, head in enumerate(heads)]
    widths[0] = max(8, min(widths[0], width - sum(widths[1:]) - LAST_LEAST))
    widths[1] = max(6, min(widths[1], width - widths[0] - widths[2] - LAST_LEAST))
    out: list[Line] = [[("".join(head.ljust(room) for head, room in zip(heads, widths)) + "verdict", "dim")]]
    for *texts, end in rows:
        cut = [text if len(text) < room - 1 else text[: room - 3] + ELLIPSIS for text, room in zip(texts, widths)]
        line: Line = [("".join(text.ljust(room) for text, room in zip(cut, widths)), "")]
        room = max(0, width - sum(widths))
        for text, tone in end:
            line.append((text[:room], tone))
            room -= len(text[:room])
        out.append(line)
    return out


def tone_of(text: str) -> str:
    """The tone of a step; steps that failed are highlighted."""
    bad = ("refuses", "closes the connection", "resets the connection", "gives no answer", "gets no answer", "no Kafka request")
    return "care" if any(one in text for one in bad) else ""
