"""The versions report on a terminal.

In: the report's plain values, or a connection's story. Out: lines. Law: no line is wider than the terminal, long words apart.
"""

from collections import Counter
from typing import Any, Final

from kcap.output.grid import clean, duration
from kcap.reports.definition import instant
from kcap.reports.text import Style, TextColumn, lines, number, words, wrapped
from kcap.reports.versions.pages import WHAT, features, releases, removed, software, span, summary, verdicts, worst_apis

Row = dict[str, Any]
SECOND: Final = 1_000_000_000
SAME_KIND: Final = 3
"""Diagnoses of one kind that are told in full."""
EXPLAINED: Final = 20
"""Clients whose verdict or library is explained; the other forms tell all."""
INDENT: Final = "    "


def clock(time_ns: int) -> str:
    """`11-21 07:43:12` in UTC."""
    return instant(time_ns, SECOND)[5:19].replace("T", " ")


def clients_of(target: str) -> list[TextColumn]:
    """The client table."""
    return [
        TextColumn("client", lambda r: words(r["client_ip"]), False),
        TextColumn("client id", lambda r: words(r["client_id"]), False),
        TextColumn("software", lambda r: clean(software(r)), False),
        TextColumn(f"works with {target}", lambda r: r["works_with_target"], False),
        TextColumn("gone in", removed, False, 1),
        TextColumn("conns", lambda r: number(r["connections"]), True, 2),
        TextColumn("requests", lambda r: number(r["count"]), True, 1),
        TextColumn("verdicts", verdicts, False, 3),
        TextColumn("APIs (! = gone)", worst_apis, False, 4),
        TextColumn("first seen", lambda r: clock(r["first_ns"]), False, 6),
        TextColumn("last seen", lambda r: clock(r["last_ns"]), False, 5),
    ]


AGAINST: Final = [
    TextColumn("what", lambda r: WHAT[r["what"]], False),
    TextColumn("client", lambda r: words(r["client_ip"]), False, 2),
    TextColumn("client id", lambda r: words(r["client_id"]), False),
    TextColumn("API", lambda r: f"{r['api']} v{r['version']}", False),
    TextColumn("requests", lambda r: number(r["count"]), True),
    TextColumn("example", lambda r: r["example"], True),
    TextColumn("why", lambda r: clean(r["why"]), False, 1),
]
BROKERS: Final = [
    TextColumn("broker", lambda r: f"{r['server_ip']}:{r['server_port']}", False),
    TextColumn("node", lambda r: words(r["broker_id"]), True),
    TextColumn("role", lambda r: r["role"], False),
    TextColumn("release", releases, False),
    TextColumn("mode", lambda r: words(r["mode"]), False, 2),
    TextColumn("APIs", lambda r: number(len(r["apis"])), True, 2),
    TextColumn("features", features, False, 3),
    TextColumn("evidence", lambda r: clean(r["why"]), False, 1),
]


def report(made: Row, style: Style) -> list[str]:
    """All of it."""
    out: list[str] = []
    if made["diagnoses"]:
        out.append(style.bold("diagnoses"))
        told_of: Counter[str] = Counter()
        for row in made["diagnoses"]:
            told_of[row["kind"]] += 1
            if told_of[row["kind"]] > SAME_KIND:
                continue
            text = f"{row['level']}: {row['kind']}: {clean(row['sentence'])}"
            told = wrapped(text, style.width, INDENT)
            out += [style.red(line) if row["level"] == "error" else line for line in told]
            out += wrapped(f"{INDENT}-> {row['advice']} ({row['example']})", style.width, INDENT + "   ")
        more = {kind: count - SAME_KIND for kind, count in told_of.items() if count > SAME_KIND}
        out += wrapped("".join(f"{count} more of {kind}; " for kind, count in more.items()).rstrip("; "), style.width)
        out.append("")
    brokers = [row for row in made["clients"] if row["is_broker"]]
    clients = [row for row in made["clients"] if not row["is_broker"]]
    if clients:
        out += [*wrapped(summary(made), style.width), ""]
        out += [
            style.bold("clients"),
            *lines(clients, clients_of(made["target"]), style, lambda r: r["works_with_target"] == "no"),
        ]
        unclear = [
            row for row in clients if row["works_with_target"] != "yes" or row["guessed"] or row["software_name"] is None
        ]
        for row in unclear[:EXPLAINED]:
            out += wrapped(
                f"  {words(row['client_id'])}: {clean(row['works_why'])}. Library: {clean(row['why'])}.", style.width, INDENT
            )
        out.append("")
    if brokers:
        out += [
            style.dim(
                f"{len(brokers)} clients are brokers themselves: {', '.join(words(row['client_id']) for row in brokers)}"[
                    : style.width
                ]
            ),
            "",
        ]
    against = [row for row in made["readiness"] if row["would_change"] is not True]
    replaced = len(made["readiness"]) - len(against)
    if made["readiness"]:
        out += [style.bold(f"what breaks on Kafka {made['target']}")]
        out += lines(against, AGAINST, style, lambda r: r["would_change"] is False)
        if replaced:
            out.append(f"{replaced} more versions that clients replace by themselves")
        out.append("")
    if made["brokers"]:
        out += [style.bold("brokers"), *lines(made["brokers"], BROKERS, style, lambda r: bool(r["vendor_suspected"]))]
    return out


def story(told: Row, style: Style) -> list[str]:
    """One connection."""
    who = f"client {words(told.get('client_id'))} of {told['client_ip']}"
    library = f", {'probably ' if told.get('guessed') else ''}{clean(told['software'])}" if told.get("software") else ""
    head = f"{told['connection']}: {who}{library}, with {told['server']}"
    out = [style.bold(line) for line in wrapped(head, style.width, INDENT)]
    if told.get("midstream"):
        out.append("it had begun before the capture")
    for step in told["steps"]:
        at = duration(step["at_ns"]) if step["at_ns"] is not None else ""
        out += wrapped(f"{at:>9}  {step['exchange'].rpartition('.')[2]:>4}  {clean(step['text'])}", style.width, " " * 17)
    if told["lost_ns"]:
        out.append(f"time lost to ApiVersions requests in vain: {duration(told['lost_ns'])}")
    if told["apis"]:
        columns = [
            TextColumn("API", lambda r: words(r["api"] or r["api_key"]), False),
            TextColumn("used", lambda r: " ".join(f"{v}({c})" for v, c in r["versions"].items()), False),
            TextColumn("offered", lambda r: span(*r["offered"]) if r["offered"] else "none", False),
            TextColumn("verdict", lambda r: words(r["verdict"]), False),
            TextColumn("gone in", lambda r: r["removed_in"] or "", False, 1),
            TextColumn("several versions", lambda r: "yes" if r["downgraded"] else "", False, 2),
        ]
        out += ["", *lines(told["apis"], columns, style, lambda r: r["verdict"] in ("above_broker_max", "below_broker_min"))]
    for row in told["diagnoses"]:
        out += ["", *wrapped(f"{row['level']}: {clean(row['sentence'])}", style.width, INDENT)]
        out += wrapped(f"{INDENT}-> {row['advice']}", style.width, INDENT + "   ")
    return out
