"""Shows the versions report as sheets. Free of widgets.

In: the versions report, rows and stories of connections. Out: sheets: clients, versions that the target release removed or
deprecated, diagnoses, connections with their stories, brokers, the matrix of APIs. Law: verdicts and sentences are the
report's; without a filter each count drills down to as many exchanges.
"""

from collections.abc import Callable, Container
from typing import Final

from kcap.output.grid import clean, endpoint
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, clocked, counted, named, when
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, count, number, words
from kcap.reports.versions.digest import address_text
from kcap.reports.versions.leads import at_broker, client_of, connections_in, of_version, versioned
from kcap.reports.versions.pages import (
    VERDICT_WORDS,
    WHAT,
    features,
    matrix,
    releases,
    removed,
    software,
    span,
    summary,
    verdicts,
    worst_apis,
)
from kcap.reports.versions.readiness import NO, YES
from kcap.tui.versions_source import VersionsPage
from kcap.tui.views.sheet import Down, Line, Sheet
from kcap.tui.views.stories_model import LEVEL_TONES, apis, connections, para

WORKS_TONES: Final = {NO: "bad", YES: "good"}
SOFTWARE_LEAST: Final = 31
"""Cells of a library and its release, the main subject of the view: `apache-kafka-java 4.4.0 (guess)`."""
OTHER_VERDICTS: Final = "version_verdict != ok"


def clients(made: Row) -> Sheet:
    """Clients other than brokers, those that break first."""
    target = made["target"]
    rows = [row for row in made["clients"] if not row["is_broker"]]
    brokers = len(made["clients"]) - len(rows)
    fields = [
        TextColumn(f"with {target}", lambda row: VERDICT_WORDS[row["works_with_target"]], right=False, whole=True,
              tone=lambda row: WORKS_TONES.get(row["works_with_target"], "care")),
        named("client_id", "client", tone=bold), TextColumn("address", address_text, right=False, rank=3),
        named("principal", rank=6), TextColumn("software", lambda row: clean(software(row)), right=False, rank=1,
              least=SOFTWARE_LEAST),
        TextColumn("removed in", removed, right=False, rank=2, tone=lambda _row: "bad",
              down=lambda row: drill_down.every(client_of(row), "removed_in") if removed(row) else client_of(row)),
        counted("connections", "conns", 6), counted("count", "requests", 4, counts=lambda row: row["count"],
                                                 down=versioned),
        TextColumn("verdicts", verdicts, right=False, rank=5, tone=lambda row: "good" if verdicts(row) == "ok" else "care",
              down=lambda row: drill_down.every(client_of(row), OTHER_VERDICTS)
              if verdicts(row) not in ("ok", "-") else client_of(row)),
        TextColumn("APIs (! = removed)", worst_apis, right=False, rank=7),
        clocked("first_ns", "first", 9),
        clocked("last_ns", "last", 8),
    ]  # fmt: skip
    foot = f"{count(brokers, 'more client')} {'is a broker' if brokers == 1 else 'are brokers'}" if brokers else ""
    return Sheet("clients", fields, rows, client_of, "no clients", note=summary(made), foot=foot, detail=client_detail)


def client_detail(row: Row, width: int) -> list[Line]:
    """One client: verdict, library, each API."""
    out = para(row["works_why"], width, WORKS_TONES.get(row["works_with_target"], "care"))
    out += para(f"library: {row['why']}", width, "dim")
    out += para("" if row["negotiates"] else "sent no ApiVersions request", width, "care")
    rows: list[tuple[str, str, str, Line]] = []
    for api in row["apis"]:
        verdict = " ".join(name for name in api["verdicts"] if name != "ok") or ("ok" if api["verdicts"] else "-")
        gone = f"  removed in {api['removed_in']}" if api["removed_in"] else ""
        gone = gone or (f"  deprecated in {api['deprecated_in']}" if api["deprecated_in"] else "")
        end: Line = [(verdict, "good" if verdict == "ok" else "care"), (gone, "bad" if api["removed_in"] else "care")]
        offers = "/".join(span(*one) for one in api["offers"]) or "-"  # brokers of several releases
        rows.append((words(api["api"]), span(api["min"], api["max"]), offers, end))
    return out + apis(rows, width)


def against(made: Row) -> Sheet:
    """Versions that the release rejects or deprecates."""

    def changes(row: Row) -> str:
        return {True: "negotiates another version", False: "keeps this version", None: "unknown"}[row["would_change"]]

    def detail(row: Row, width: int) -> list[Line]:
        out = para(row["why"], width)
        if row["named_though_gone"]:
            out += para("Kafka 4 advertises Produce v0 to v2 for old librdkafka, but rejects them (KAFKA-18659)", width,
                        "care")  # fmt: skip
        return out + para(f"{when(row)}, first in {row['example']}", width, "dim")

    fields = [
        TextColumn("what", lambda row: WHAT[row["what"]], right=False,
              tone=lambda row: "care" if row["what"] == "deprecated" else "bad"),
        named("client_id", "client", tone=bold), TextColumn("address", address_text, right=False, rank=3),
        TextColumn("API", lambda row: f"{row['api']} v{row['version']}", right=False),
        counted("count", "requests", counts=lambda row: row["count"]),
        TextColumn("the client", changes, right=False, rank=1,
              tone=lambda row: {True: "good", False: "bad", None: "care"}[row["would_change"]]),
        named("software", rank=2), named("why", rank=4),
        named("example", rank=5, down=lambda row: drill_down.exchange(row["example"])),
    ]  # fmt: skip
    return Sheet(
        f"against {made['target']}", fields, made["readiness"], of_version,
        f"Kafka {made['target']} supports every version in this capture" if made["clients"] else "no clients", detail=detail,
        connection=lambda row: row["example"].rpartition(".")[0],
    )  # fmt: skip


API_LEAST: Final = 20
"""Cells of an API among the ranges of brokers: with fewer, `DescribeGroups` and `DescribeConfigs` look the same."""
FINDING_LEAST: Final = 44
"""Cells of a diagnosis that have priority over the example: its first words name an address, whose port would be cut."""


def diagnoses(made: Row, spoke: Container[str]) -> Sheet:
    """What went wrong, and what to do. `spoke`: connections that have exchanges."""

    def there(row: Row) -> list[str]:
        return [uid for uid in row["connections"] if uid in spoke]

    def group(row: Row) -> Down:
        return connections_in(uids) if (uids := there(row)) else None

    def detail(row: Row, width: int) -> list[Line]:
        out: list[Line] = [[(row["level"], LEVEL_TONES.get(row["level"], "")), (f"  {row['kind']}", "bold")]]
        out += [*para(row["sentence"], width), [("", "")], *para(f"→ {row['advice']}", width, "key", "  "), [("", "")]]
        return out + para("connections: " + ", ".join(row["connections"]), width, "dim", "  ")

    fields = [
        named("level", tone=lambda row: LEVEL_TONES.get(row["level"], "")), named("kind", "diagnosis", tone=bold),
        TextColumn("finding", lambda row: clean(row["sentence"]), right=False, least=FINDING_LEAST),
        counted("count", "conns", 1), named("example", rank=3,
            down=lambda row: drill_down.exchange(row["example"]) or group(row)),
    ]  # fmt: skip
    return Sheet(
        "diagnoses", fields, made["diagnoses"], group, "no problems with versions, listeners or protocols", detail=detail,
        connection=lambda row: next(iter(there(row)), None),
    )  # fmt: skip


# -- brokers ----------------------------------------------------------------------------------------------------------
def brokers(made: Row) -> Sheet:
    """Each address, and the releases with the same offer."""
    rows = made["brokers"]
    known = [row for row in rows if row["answers"] and row["release_min"]]
    mixed = len({row["release_min"] for row in known if row["role"] == "broker"}) > 1
    fields = [
        TextColumn("broker", lambda row: endpoint(row["server_ip"], row["server_port"]), right=False, tone=bold),
        named("broker_id", "node", right=True), named("role", rank=2), named("mode", rank=3),
        TextColumn("release", releases, right=False, tone=lambda row: "care" if row["vendor_suspected"] else "good"),
        TextColumn("APIs", lambda row: number(len(row["apis"])), rank=4, key=lambda row: len(row["apis"])),
        TextColumn("features", features, right=False, rank=5), named("why", "evidence", 1), named("cluster_id", "cluster", 6),
    ]  # fmt: skip
    note = "brokers of different releases: a rolling upgrade, or several clusters" if mixed else ""
    return Sheet("brokers", fields, rows, at_broker, "no ApiVersions response in this capture", note=note, detail=broker_detail)


def broker_detail(row: Row, width: int) -> list[Line]:
    """One broker: the guess, its evidence, its offer."""
    out = para(f"{endpoint(row['server_ip'], row['server_port'])}: {releases(row)}", width, "bold")
    out += para(row["why"], width)
    if row["vendor_suspected"]:
        out += para("no Apache Kafka release advertises these versions: a vendor's broker, or a proxy", width, "care")
    steps = {span(change["release_min"], change["release_max"]): change["example"] for change in row.get("changed", ())}
    for step, example in steps.items() if len(steps) > 1 else ():
        out += para(f"advertised {step}, last in {example}", width, "care")
    room = max(1, width // 34)
    cells = [f"{words(api['api'] or api['api_key']):<26.25}{span(api['min'], api['max']):<7}" for api in row["apis"]]
    return [*out, *([("".join(cells[at : at + room]), "dim")] for at in range(0, len(cells), room))]


def offers(made: Row) -> Sheet:
    """Each API's range by broker; differences are highlighted."""
    named_ranges = [row for row in made["brokers"] if row["apis"]]
    heads, texts = matrix(named_ranges)
    roles = [row.get("role") for row in named_ranges]
    rows = [
        {"api": row[0], "ranges": row[1:], "same": len({*zip(roles, row[1:])}) == len({*roles})}  # controllers have fewer APIs
        for row in texts
    ]

    def column(at: int, broker: Row) -> TextColumn:
        def leads(row: Row) -> str:
            return drill_down.every(drill_down.equals("api", row["api"]), at_broker(broker))

        return TextColumn(heads[at + 1], lambda row: row["ranges"][at], right=False, rank=at, down=leads,
                     tone=lambda row: "" if row["same"] else "care", whole=True)  # fmt: skip

    fields: list[TextColumn] = [named("api", "API", tone=bold, least=API_LEAST)]
    fields += [column(at, broker) for at, broker in enumerate(named_ranges)]
    differ = sum(not row["same"] for row in rows)
    note = f"{count(differ, 'API')} {'differs' if differ == 1 else 'differ'} between nodes of one role" if differ else ""
    return Sheet(
        "ranges",
        fields,
        rows,
        lambda row: drill_down.equals("api", row["api"]),
        "no ApiVersions response in this capture",
        note=note,
    )


def sheets(page: VersionsPage, story: Callable[[str], Row | None]) -> list[Sheet]:
    """All sections. `story`: how a connection negotiated versions, None if that is not known now."""
    made = page.made
    return [
        clients(made),
        against(made),
        diagnoses(made, page.spoke),
        connections(page.rows, page.connections, story),
        brokers(made),
        offers(made),
    ]
