"""Shows findings as sheets: problems, notes, rules that could not judge. Free of widgets.

In: the result of the report `check`. Out: sheets. Law: a finding leads to the exchanges of its filter; one about connections
without exchanges names their broker.
"""

from collections.abc import Sequence
from typing import Final

from kcap.output.grid import duration
from kcap.reports.common_columns import bold, clocked, counted
from kcap.reports.definition import Row
from kcap.reports.findings.evidence import evidence_line
from kcap.reports.findings.model import EXPLANATIONS, nothing_judged, passed
from kcap.reports.text import TextColumn, clock, figures, listed, wrapped
from kcap.tui.conclusions import problems
from kcap.tui.views.sheet import Down, Line, Sheet, paragraph

TONES: Final = {"critical": "bad", "high": "bad", "medium": "care", "low": "", "info": "dim"}
CLIENTS: Final = ("client_id", "client_ids", "client_ip", "client_ips")
BROKERS: Final = ("server", "servers", "server_ip", "broker_id")
WITHOUT: Final = "none: it is about connections without exchanges; Enter shows the connections"
SENTENCE: Final = 90
"""Characters of a finding that have priority over its client and broker, which it names."""


def first_of(row: Row, names: Sequence[str]) -> str:
    """The first of some entries of a finding's subject."""
    return next((listed(row["who"][name]) for name in names if name in row["who"]), "")


def down(row: Row) -> Down:
    """The exchanges of a finding; none if it is about connections without exchanges."""
    return row["filter"] or None


def server(row: Row) -> tuple[str, int] | None:
    """Address and port of the broker that a finding is about; None if it names none."""
    host, _, port = str(row["who"].get("server") or "").rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else None


def sheets(result: Row) -> list[Sheet]:
    if "ended" in result:
        return [
            findings("problems now", problems(result), "the rules see no problem now"),
            findings("ended", result["ended"], "no problem has ended"),
        ]
    notes = [row for row in result["rows"] if row["severity"] == "info"]
    skipped = [{"rule": rule, "why": why} for rule, why in sorted(result["not_judged"].items())]
    nothing = nothing_judged(result) or "no problem was found in this capture"
    return [
        findings("problems", problems(result), nothing),
        findings("notes", notes, "no notes"),
        Sheet(
            "not judged",
            [TextColumn("rule", lambda row: row["rule"], right=False, whole=True, tone=bold),
             TextColumn("why", lambda row: row["why"], right=False)],
            skipped, lambda _row: None, "every rule could judge this capture",
        ),
    ]  # fmt: skip


def last(row: Row) -> int | None:
    """When a finding was last seen, or when it ended, in ns since the epoch."""
    ended: int | None = row.get("ended_ns") or row["last_ns"]
    return ended


def findings(name: str, rows: list[Row], empty: str) -> Sheet:
    """One line per finding."""
    order = list(TONES)
    fields = [
        TextColumn("severity", lambda row: row["severity"], right=False, whole=True, tone=lambda row: TONES[row["severity"]],
                   key=lambda row: order.index(row["severity"])),
        TextColumn("finding", lambda row: row["sentence"], right=False, tone=bold, least=SENTENCE),
        TextColumn("client", lambda row: first_of(row, CLIENTS), right=False, rank=2),
        TextColumn("broker", lambda row: first_of(row, BROKERS), right=False, rank=3),
        clocked("first_ns", "from", 1),
        TextColumn("to", lambda row: clock(last(row)), right=False, whole=True, rank=5, key=last),
        counted("count", "count", 4, zero=False),
        TextColumn("sure", lambda row: f"{row['confidence']:.0%}", rank=6, key=lambda row: row["confidence"]),
        TextColumn("rule", lambda row: row["id"], right=False, rank=7),
    ]  # fmt: skip
    return Sheet(name, fields, rows, down, empty, detail=detail)


def detail(row: Row, width: int) -> list[Line]:
    """A finding in full."""
    span = "unknown"
    if row["first_ns"] is not None:
        last = row["last_ns"] if row["last_ns"] is not None else row["first_ns"]
        span = f"{clock(row['first_ns'])} to {clock(last)} UTC, {duration(last - row['first_ns'])}"
    around = f" ({more})" if (more := passed(row)) else ""
    parts = {
        "who": figures(row["who"]), "when": span, "evidence": evidence_line(row["evidence"]), "next step": row["advice"],
        EXPLANATIONS: row["instead"],
        "filter": f"{row['filter']}{around}" if row["filter"] else WITHOUT,
        "rule": f"{row['id']}, confidence {row['confidence']:.0%}",
    }  # fmt: skip
    out: list[Line] = paragraph(row["sentence"], width, TONES[row["severity"]] or "bold")
    for head, text in parts.items():
        lines = wrapped(f"{head}: {text}", width, "  ") if text else []
        out += [[(line[: len(head) + 1], "key"), (line[len(head) + 1 :], "")] if not at else [(line, "")]
                for at, line in enumerate(lines)]  # fmt: skip
    return [*out, [("", "")]]
