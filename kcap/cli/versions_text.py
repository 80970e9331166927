"""The versions report on a terminal.

In: the report's plain values, or a connection's story. Out: lines. Law: no line is wider than the terminal, except for long
words.
"""

from collections import Counter
from typing import Any, Final

from kcap.output.grid import clean, duration
from kcap.reports.text import Style, TextColumn, instant, lines, number, words, wrapped
from kcap.reports.versions import digest
from kcap.reports.versions.pages import WHAT, brokers_of, features, releases, software, span

Row = dict[str, Any]
SECOND: Final = 1_000_000_000
EXPLAINED: Final = 10
"""Number of clients whose verdict is explained below the table; the other formats explain all."""
FACTS_SHOWN: Final = 8
INNER_LINES: Final = 3
"""Maximum number of lines with the client ids of brokers."""
INDENT: Final = "    "
SOFTWARE_LEAST: Final = len("apache-kafka-java 0.10.2 (guess)")
"""Minimum width of the library: a name without its version is of little use."""


def clock(time_ns: int) -> str:
    """`11-21 07:43:12` in UTC."""
    return instant(time_ns, SECOND)[5:19].replace("T", " ")


def clients_of(target: str) -> list[TextColumn]:
    return [
        TextColumn("client id", lambda r: clean(digest.client_text(r)), False),
        TextColumn("client", digest.address_text, False, 3),
        TextColumn("software", lambda r: clean(software(r)), False, 1, least=SOFTWARE_LEAST),
        TextColumn("principal", lambda r: words(r["principal"]), False, 5),
        TextColumn(f"works with {target}", lambda r: r["works_with_target"], False),
        TextColumn(f"on {target}", lambda r: clean(digest.outcome(r)), False, 0),
        TextColumn("conns", lambda r: number(r["connections"]), True, 2),
        TextColumn("requests", lambda r: number(r["count"]), True, 4),
        TextColumn("supported brokers", brokers_of, False, 7),
        TextColumn("first seen", lambda r: clock(r["first_ns"]), False, 9),
        TextColumn("last seen", lambda r: clock(r["last_ns"]), False, 8),
    ]


AGAINST: Final = [
    TextColumn("what", lambda r: WHAT[r["what"]], False),
    TextColumn("client id", lambda r: clean(digest.client_text(r)), False),
    TextColumn("client", digest.address_text, False, 2),
    TextColumn("API", lambda r: f"{r['api']} v{r['version']}", False),
    TextColumn("requests", lambda r: number(r["count"]), True),
    TextColumn("example", lambda r: r["example"], True),
    TextColumn("why", lambda r: clean(r["why"]), False, wraps=True),
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


def report(made: Row, style: Style, *, every: bool = False) -> list[str]:
    """The whole report: the summary, failures, the clients, what breaks, the brokers, the facts. `every`: no rows
    are combined."""
    out = [line for text in made["answer"] for line in wrapped(clean(text), style.width, INDENT)] + [""]
    out += failures(made, style, digest.EVERYTHING if every else digest.DIAGNOSES_SHOWN)
    clients, more = digest.clients(made, every=every)
    if clients:
        out += [style.bold("clients")]
        out += lines(clients, clients_of(made["target"]), style, lambda r: r["works_with_target"] == "no")
        out += [f"and {more:,} more clients: --all shows them"] if more else []
        unclear = [row for row in clients if digest.needs_words(row, made["target"])]
        for row in unclear[: digest.EVERYTHING if every else EXPLAINED]:
            text = f"  {digest.client_text(row)}: {row['works_why']}. Library: {row['why']}."
            out += wrapped(clean(text), style.width, INDENT)
        out.append("")
    inner = digest.inner(made)
    if inner:
        names = wrapped(clean(inner), style.width, INDENT)
        out += [*map(style.dim, names if every else names[:INNER_LINES]), ""]
    against, untold = digest.against(made, every=every)
    replaced = digest.replaced(made)
    if against or replaced:
        out += [style.bold(f"what breaks on Kafka {made['target']}")]
        out += lines(against, AGAINST, style, lambda r: r["would_change"] is False) if against else []
        out += [f"and {untold:,} more: --all shows them"] if untold else []
        out += [replaced, ""] if replaced else [""]
    if made["brokers"]:
        some = made["brokers"] if every else made["brokers"][: digest.BROKERS_SHOWN]
        out += [style.bold("brokers"), *lines(some, BROKERS, style, lambda r: bool(r["vendor_suspected"]))]
        out += (
            [f"and {len(made['brokers']) - len(some):,} more brokers: --all shows them"]
            if len(made["brokers"]) > len(some)
            else []
        )
    if made["facts"]:
        out += [*([""] if out[-1] else []), style.bold("facts")]
        for row in made["facts"][:FACTS_SHOWN]:
            out += [style.dim(line) for line in wrapped(f"{clean(row['sentence'])} ({row['example']})", style.width, INDENT)]
        if len(made["facts"]) > FACTS_SHOWN:
            out.append(f"and {len(made['facts']) - FACTS_SHOWN:,} more facts: --format json has them")
    return out


def failures(made: Row, style: Style, shown: int) -> list[str]:
    """The diagnoses, the most severe first."""
    if not made["diagnoses"]:
        return []
    out = [style.bold("what failed, and why")]
    for row in made["diagnoses"][:shown]:
        sentence = wrapped(f"{row['level']}: {row['kind']}: {clean(row['sentence'])}", style.width, INDENT)
        out += [style.red(line) if row["level"] == "error" else line for line in sentence]
        out += wrapped(f"{INDENT}-> {row['advice']} ({row['example']})", style.width, INDENT + "   ")
    rest = Counter(row["kind"] for row in made["diagnoses"][shown:])
    if rest:
        text = ", ".join(f"{count} of {kind}" for kind, count in rest.items())
        out += wrapped(f"and {sum(rest.values()):,} more: {text}; --all shows them", style.width)
    return [*out, ""]


def story(made: Row, style: Style) -> list[str]:
    who = f"client {words(made.get('client_id'))} of {made['client_ip']}"
    library = f", {'probably ' if made.get('guessed') else ''}{clean(made['software'])}" if made.get("software") else ""
    head = f"{made['connection']}: {who}{library}, with {made['server']}"
    out = [style.bold(line) for line in wrapped(head, style.width, INDENT)]
    if made.get("midstream"):
        out.append("the connection began before the capture")
    for step in made["steps"]:
        at = duration(step["at_ns"]) if step["at_ns"] is not None else ""
        out += wrapped(f"{at:>9}  {step['exchange'].rpartition('.')[2]:>4}  {clean(step['text'])}", style.width, " " * 17)
    if made["lost_ns"]:
        out.append(f"time lost to ApiVersions requests without a usable response: {duration(made['lost_ns'])}")
    if made["apis"]:
        columns = [
            TextColumn("API", lambda r: words(r["api"] or r["api_key"]), False),
            TextColumn("used", lambda r: " ".join(f"{v}({c})" for v, c in r["versions"].items()), False),
            TextColumn("offered", lambda r: span(*r["offered"]) if r["offered"] else "none", False),
            TextColumn("verdict", lambda r: words(r["verdict"]), False),
            TextColumn("removed in", lambda r: r["removed_in"] or "", False, 1),
            TextColumn("several versions", lambda r: "yes" if r["downgraded"] else "", False, 2),
        ]
        out += ["", *lines(made["apis"], columns, style, lambda r: r["verdict"] in ("above_broker_max", "below_broker_min"))]
    for row in made["diagnoses"]:
        out += ["", *wrapped(f"{row['level']}: {clean(row['sentence'])}", style.width, INDENT)]
        out += wrapped(f"{INDENT}-> {row['advice']}", style.width, INDENT + "   ")
    return out


def settled(name: str, at: int) -> TextColumn:
    """The column of a broker in an explanation."""
    return TextColumn(name, lambda row: number(row["versions"][at]) or "none", True, 0, True)


def explanation(made: Row, style: Style) -> list[str]:
    """Which versions clients settle on with releases."""
    out: list[str] = []
    for one in made["rows"]:
        who = f"client '{one['client_id']}', {one['library']}" if one["client_id"] is not None else one["library"]
        out += [style.bold(line) for line in wrapped(clean(f"{who} (versions from {one['source']})"), style.width, INDENT)]
        last = one["brokers"][-1]
        text = (
            f"breaks on {last}: {', '.join(map(str, one['broken']))}"
            if one["broken"]
            else f"settles with {last} on each API it uses"
            if one["unproven"] is None
            else f"cannot be judged: {one['unproven']}"
        )
        out += wrapped(text if one["client_id"] is not None else f"with {last}", style.width, INDENT)
        heads = [settled(name, at) for at, name in enumerate(one["brokers"])]
        columns = [
            TextColumn("API", lambda row: words(row["api"]), False),
            TextColumn("used", lambda row: " ".join(map(str, row["used"])), False, 3),
            *heads,
            TextColumn("implements", lambda row: span(*row["implements"]) if row["implements"] else "-", False, 4),
            TextColumn("lost", lambda row: "; ".join(row["lost"]), False, 1),
            TextColumn("gained", lambda row: "; ".join(f"no more: {text}" for text in row["gained"]), False, 5),
        ]
        out += lines(one["rows"], columns, style, lambda row: bool(row["used"]) and not row["works"])
        for text in dict.fromkeys(text for row in one["rows"] for text in row["lost"]):
            names = ", ".join(str(row["api"]) for row in one["rows"] if text in row["lost"])
            out += wrapped(f"  {text}: {names}", style.width, INDENT)
        if len(one["steps"]) > 1:
            out += ["", *(f"step {number_}: {step['step']}" for number_, step in enumerate(one["steps"], 1))]
        out.append("")
    return out
