"""The versions report as Markdown, and as one HTML file that needs nothing else.

In: the report's plain values. Out: text. Law: what comes from the wire is escaped; the page loads nothing from anywhere.
"""

from collections.abc import Sequence
from typing import Any, Final

from kcap.output.escaping import html_text, markdown_text
from kcap.reports.definition import instant
from kcap.reports.versions import digest

Row = dict[str, Any]
Section = tuple[str, str, list[str], list[list[str]]]
"""Title, a sentence, heads, rows."""
STYLE: Final = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #8884}
th{border-bottom:2px solid #8888}
tr.no td:first-child,tr.error td:first-child{border-left:4px solid #c0392b}
tr.unknown td:first-child,tr.warning td:first-child{border-left:4px solid #d29922}
tr.yes td:first-child{border-left:4px solid #2e8b57}
p.sum{font-size:1.05rem}
"""
PAGE_ROWS: Final = 500
"""Rows of a page's table; JSON has all."""
MATRIX_BROKERS: Final = 20
"""Brokers whose ranges stand side by side."""
APIS_SHOWN: Final = 4
"""Of a client where there is one line for it."""
VERDICT_WORDS: Final = {"yes": "works", "no": "breaks", "unknown": "unknown"}
WHAT: Final = {"removed": "removed", "not_yet": "not there yet", "unstable": "not final", "deprecated": "deprecated"}


def text_of(value: Any) -> str:
    """A value without control characters."""
    return "-" if value is None or value == "" else "".join(c if c.isprintable() else "?" for c in str(value))


def span(low: int, high: int) -> str:
    """`3-9`, `3`."""
    return str(low) if low == high else f"{low}-{high}"


def software(row: Row) -> str:
    """A client's library; a guess is marked."""
    name = " ".join(filter(None, (row["software_name"], row["software_version"])))
    return (f"{name} (guess)" if row["guessed"] else name) or "unknown"


def releases(row: Row) -> str:
    """A broker's releases."""
    if row["release_min"] is None:
        return f"none fits, near {row['nearest']}"
    return (
        str(row["release_min"]) if row["release_min"] == row["release_max"] else f"{row['release_min']} - {row['release_max']}"
    )


def apis(row: Row) -> str:
    """The APIs of a client, the removed ones marked."""
    return ", ".join(
        f"{api['api']} {span(api['min'], api['max'])}" + (f" (gone in {api['removed_in']})" if api["removed_in"] else "")
        for api in row["apis"]
    )


def summary(made: Row) -> str:
    """The first sentence of the answer: how many clients there are, and how many break."""
    return str(made["answer"][0])


def sections(made: Row, *, every: bool = False) -> list[Section]:
    """The parts of a page, the answer aside; `every`: each client by itself, however many there are."""
    target, room = made["target"], PAGE_ROWS if not every else digest.EVERYTHING
    some, more = digest.clients(made, every=every, shown=room)
    clients = [
        [VERDICT_WORDS[r["works_with_target"]], text_of(digest.client_text(r)), digest.address_text(r), text_of(r["principal"]),
         software(r), str(r["connections"]), str(r["count"]), digest.outcome(r), apis(r),
         f"{r['works_why']}. Library: {r['why']}.", brokers_of(r), f"{instant(r['first_ns'])} - {instant(r['last_ns'])}"]
        for r in some
    ]  # fmt: skip
    worst, untold = digest.against(made, every=every, shown=room)
    against = [
        [WHAT[r["what"]], text_of(digest.client_text(r)), digest.address_text(r), text_of(r["software"]),
         f"{r['api']} v{r['version']}",
         str(r["count"]), f"{instant(r['first_ns'])} - {instant(r['last_ns'])}", r["example"], r["why"]]
        for r in worst
    ]  # fmt: skip
    brokers = [
        [f"{r['server_ip']}:{r['server_port']}", text_of(r["broker_id"]), r["role"], releases(r), text_of(r["mode"]),
         features(r), r["why"]]
        for r in made["brokers"][:room]
    ]  # fmt: skip
    found = [
        [r["level"], r["kind"], text_of(r["sentence"]), r["advice"], str(r["count"]), text_of(r["example"])]
        for r in made["diagnoses"][:room]
    ]
    offering = [row for row in made["brokers"] if row["apis"]]
    facts = [[r["kind"], text_of(r["sentence"]), str(r["count"]), text_of(r["example"])] for r in made["facts"][:room]]
    out: list[Section] = [
        ("What failed, and why", f"The gravest first{left(len(made['diagnoses']) - len(found), 'diagnoses')}.",
         ["level", "kind", "what happens", "advice", "connections", "example"], found),
        (f"Clients and Kafka {target}", beside(made, f"Clients that break first{left(more, 'clients')}"),
         ["verdict", "client id", "address", "principal", "software", "connections", "requests", f"on {target}", "APIs", "why",
          "brokers", "seen"], clients),
        (f"What breaks on Kafka {target}", f"Versions that it does not take, or calls deprecated{left(untold, 'versions')}.",
         ["what", "client id", "address", "software", "API", "requests", "seen", "example", "why"], against),
        ("Brokers", "What each address offers, and the releases that offer the same.",
         ["address", "node", "role", "release", "mode", "features", "evidence"], brokers),
        ("Facts", "What is worth a line and no trouble.", ["kind", "fact", "connections", "example"], facts),
        ("Versions by broker", "First and last version of each API.", *matrix(offering[:MATRIX_BROKERS])),
    ]  # fmt: skip
    return [section for section in out if section[3]]


def beside(made: Row, sentence: str) -> str:
    """A sentence, and those of what has no row."""
    return " ".join(f"{text_of(text)}." for text in (sentence, digest.inner(made), digest.replaced(made)) if text)


def left(number: int, what: str) -> str:
    """What is left out, in words."""
    return f"; {number:,} more {what} are in the JSON form" if number else ""


def brokers_of(row: Row) -> str:
    """The oldest and the newest broker that the client's library works with."""
    oldest, newest = row["oldest_broker"], row["newest_broker"]
    return f"{oldest or 'not known'} to {newest}" if newest else "-"


def features(row: Row) -> str:
    """A broker's finalized features, with the names of their levels."""
    return ", ".join(map(text_of, row["finalized"])) or "-"


def worst_apis(row: Row) -> str:
    """The APIs of a client worth a look: those that are gone first, then those with a verdict, then the busiest."""
    some = sorted(row["apis"], key=lambda a: (not a["removed_in"], set(a["verdicts"]) <= {"ok"}, -a["count"]))[:APIS_SHOWN]
    text = " ".join(f"{a['api']} {span(a['min'], a['max'])}" + ("!" if a["removed_in"] else "") for a in some)
    return text + (" ..." if len(row["apis"]) > APIS_SHOWN else "")


def removed(row: Row) -> str:
    """The first release that drops something the client uses."""
    some = [a["removed_in"] for a in row["apis"] if a["removed_in"]]
    return min(some, key=lambda text: [int(part) for part in text.split(".")]) if some else ""


def verdicts(row: Row) -> str:
    """Verdicts other than ok, with their counts."""
    total: dict[str, int] = {}
    for api in row["apis"]:
        for name, count in api["verdicts"].items():
            total[name] = total.get(name, 0) + count
    return " ".join(f"{name}:{count:,}" for name, count in total.items() if name != "ok") or ("ok" if total else "-")


def matrix(brokers: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """API by broker."""
    names: dict[int, str] = {api["api_key"]: api["api"] or str(api["api_key"]) for row in brokers for api in row["apis"]}
    ranges = [{api["api_key"]: span(api["min"], api["max"]) for api in row["apis"]} for row in brokers]
    heads = ["API", *(f"{row['server_ip']}:{row['server_port']}" for row in brokers)]
    return heads, [[names[key], *(one.get(key, "-") for one in ranges)] for key in sorted(names)]


def markdown(made: Row, *, every: bool = False) -> str:
    """The report for a wiki or an issue."""
    out = [f"# Kafka versions: {', '.join(map(cell, made['captures']))}", ""]
    for text in made["answer"]:
        out += [cell(text_of(text)), ""]
    for title, sentence, heads, rows in sections(made, every=every):
        out += [f"## {title}", "", cell(sentence), "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        out += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
        out.append("")
    return "\n".join(out)


def cell(text: str) -> str:
    """A text that stays in its cell."""
    return markdown_text(text)


def html(made: Row, *, every: bool = False) -> str:
    """One file."""
    parts = [f"<h1>Kafka versions: {html_text(', '.join(made['captures']))}</h1>"]
    parts += [f'<p class="sum">{html_text(text_of(text))}</p>' for text in made["answer"]]
    classes = {"works": "yes", "breaks": "no", "unknown": "unknown", "removed": "no", "not there yet": "no", "not final": "no"}
    for title, sentence, heads, rows in sections(made, every=every):
        head = "".join(f"<th>{html_text(name)}</th>" for name in heads)
        body = "".join(
            f'<tr class="{html_text(classes.get(row[0], row[0] if "failed" in title else ""))}">'
            + "".join(f"<td>{html_text(text)}</td>" for text in row) + "</tr>\n"
            for row in rows
        )  # fmt: skip
        parts.append(
            f'<h2>{html_text(title)}</h2>\n<p>{html_text(sentence)}</p>\n<div class="scroll"><table>'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Kafka versions</title><style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
