"""The versions report as a document, for Markdown and HTML.

In: the report's plain values. Out: a document of sentences and tables. Law: equal rows are combined if there are many, and
omissions are reported; a figure links to the exchanges that it counts.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from kcap.cli.report_formats import Block, Document, Section, Sentences
from kcap.cli.versions_text import clock
from kcap.limits import PAGE_ROWS
from kcap.output.grid import clean, endpoint
from kcap.reports import drill_down
from kcap.reports.definition import Row
from kcap.reports.text import Target, TextColumn, number, words
from kcap.reports.versions import digest, leads
from kcap.reports.versions.pages import VERDICT_WORDS, WHAT, apis, brokers_of, features, matrix, releases, software

MATRIX_BROKERS: Final = 20
"""Maximum number of brokers whose ranges are shown side by side."""


def text(head: str, value: Callable[[Row], Any], down: Callable[[Row], Target | None] | None = None) -> TextColumn:
    """A column of words."""
    return TextColumn(head, lambda row: words(value(row)), right=False, down=down)


def counted(head: str, name: str, down: Callable[[Row], Target | None] | None = None) -> TextColumn:
    """A column of numbers. Those of several clients on one line have no link, since no short filter selects their exchanges."""
    one = None if down is None else lambda row: down(row) if row.get("clients", 1) == 1 else None
    return TextColumn(head, lambda row: number(row[name]), down=one)


def perhaps(head: str, value: Callable[[Row], str | None]) -> TextColumn:
    """A column of words that is omitted if no row has any."""
    return TextColumn(head, lambda row: clean(value(row) or ""), right=False, rank=1)


def seen(row: Row) -> str:
    """The time from the first request to the last, in UTC."""
    return f"{clock(row['first_ns'])} - {clock(row['last_ns'])}"


EXAMPLE: Final = text("example", lambda row: row["example"], lambda row: drill_down.exchange(row["example"]))
ADDRESS: Final = text("address", digest.address_text)
CLIENT: Final = text("client id", digest.client_text)
SEEN: Final = text("seen", seen)
DIAGNOSES: Final = (
    text("level", lambda row: row["level"]), text("kind", lambda row: row["kind"]),
    text("what happens", lambda row: row["sentence"]), text("advice", lambda row: row["advice"]),
    counted("connections", "count"), EXAMPLE,
)  # fmt: skip
AGAINST: Final = (
    text("what", lambda row: WHAT[row["what"]]), CLIENT, ADDRESS, text("software", lambda row: row["software"]),
    text("API", lambda row: f"{row['api']} v{row['version']}"), counted("requests", "count", leads.of_version), SEEN, EXAMPLE,
    text("why", lambda row: row["why"]),
)  # fmt: skip
BROKERS: Final = (
    text("address", lambda row: endpoint(row["server_ip"], row["server_port"]), leads.at_broker),
    text("node", lambda row: row["broker_id"]), text("role", lambda row: row["role"]), text("release", releases),
    perhaps("mode", lambda row: row["mode"]), perhaps("features", features),
    text("evidence", lambda row: row["why"], lambda row: drill_down.exchange(row["example"])),
)  # fmt: skip
FACTS: Final = (
    text("kind", lambda row: row["kind"]), text("fact", lambda row: row["sentence"]), counted("connections", "count"), EXAMPLE,
)  # fmt: skip


def clients_of(target: str) -> tuple[TextColumn, ...]:
    return (
        text("verdict", lambda row: VERDICT_WORDS[row["works_with_target"]]), CLIENT, ADDRESS,
        perhaps("principal", lambda row: row["principal"]), text("software", software), counted("connections", "connections"),
        counted("requests", "count", leads.versioned), text(f"on {target}", digest.outcome), text("APIs", apis),
        text("why", lambda row: f"{row['works_why']}. Library: {row['why']}."),
        perhaps("brokers", lambda row: brokers_of(row).strip("-")), SEEN,
    )  # fmt: skip


def offered(at: int, row: Row) -> str:
    """The range of an API that a broker offers."""
    return str(row["ranges"][at])


def document(made: Row, *, every: bool = False) -> Document:
    """The report; `every`: each client has a row of its own, however many there are."""
    target, room = made["target"], digest.EVERYTHING if every else PAGE_ROWS
    clients, more = digest.clients(made, every=every, shown=room)
    against, untold = digest.against(made, every=every, shown=room)
    heads, ranges = matrix([row for row in made["brokers"] if row["apis"]][:MATRIX_BROKERS])
    spans = [text(head, partial(offered, at)) for at, head in enumerate(heads[1:])]
    blocks: list[Block] = [
        Sentences([clean(sentence) for sentence in made["answer"]]),
        Section(made["diagnoses"][:room], DIAGNOSES, "What failed, and why", red=lambda row: row["level"] == "error"),
        left(made["diagnoses"], room, "diagnoses"),
        Section(clients, clients_of(target), f"Clients and Kafka {target}", red=lambda row: row["works_with_target"] == "no"),
        Sentences([in_json(more, "clients"), sentence(digest.inner(made)), sentence(digest.replaced(made))]),
        Section(against, AGAINST, f"What breaks on Kafka {target}", red=lambda row: row["what"] != "deprecated"),
        Sentences([in_json(untold, "versions")]),
        Section(made["brokers"][:room], BROKERS, "Brokers: what each address offers, and the releases that offer the same"),
        left(made["brokers"], room, "brokers"),
        Section(made["facts"][:room], FACTS, "Facts: what is worth a line and no trouble"),
        left(made["facts"], room, "facts"),
        Section(
            [{"api": row[0], "ranges": row[1:]} for row in ranges], (text("API", lambda row: row["api"]), *spans),
            "Versions by broker: first and last of each API",
        ),
    ]  # fmt: skip
    return Document(f"versions: {', '.join(made['captures'])}", blocks)


def left(rows: Sequence[Row], room: int, what: str) -> Sentences:
    """Number of rows that a table lacks."""
    return Sentences([in_json(len(rows) - room, what)])


def in_json(count: int, what: str) -> str:
    """The sentence about omitted rows."""
    return f"{count:,} more {what} are in the JSON form." if count > 0 else ""


def sentence(words_: str) -> str:
    return f"{clean(words_)}." if words_ else ""
