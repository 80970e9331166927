"""Tables in which something is wrong, made by hand; and what the rules say of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from kcap.filter.parse import parse
from kcap.filter.row_predicate import condition
from kcap.reports.findings.columns import COLUMNS
from kcap.reports.findings.model import RULES
from kcap.reports.findings.observed import Observed
from kcap.reports.findings.report import check
from kcap.reports.findings.running import Runner
from kcap.reports.findings.source import Statements
from kcap.reports.plans import CompiledPlan
from kcap.reports.recorded import table
from kcap.table.schema import arrow_schema, choose
from tests.reports.made import engine

Row = dict[str, Any]
SECOND, MS = 1_000_000_000, 1_000_000
START = 1_790_000_000 * SECOND
EXCHANGE: Row = {
    "client_id": "app", "client_ip": "10.0.0.9", "client_port": 40000, "server_ip": "10.0.0.1", "server_port": 9092,
    "tls": False,
    "capture": "a.pcap", "outcome": "answered", "error": "NONE", "error_code": 0, "version_verdict": "ok", "flags": [],
    "api_version": 9,
    "time": 0,
}  # fmt: skip
CONNECTION: Row = {
    "client_id": "app", "client_ip": "10.0.0.9", "client_port": 40000, "server_ip": "10.0.0.1", "server_port": 9092,
    "phase": "kafka",
    "began": "syn", "ended": "fin", "closed_by": "client", "tls": False, "packets": 100, "exchanges": 10,
    "client_captured": 1000, "server_captured": 1000,
    "first_ns": START, "last_ns": START + 10 * SECOND, "rtt_min_ns": 50_000, "client_rtt_min_ns": 10_000,
}  # fmt: skip


def exchange(connection: str, number: int, api: str, at: float, latency: float | None = 0.001, **more: Any) -> Row:
    """An exchange `at` seconds into the capture; `latency` is in seconds, None without a response."""
    first = START + int(at * SECOND)
    row = EXCHANGE | {
        "connection": connection,
        "exchange": number,
        "api": api,
        "request_first_ns": first,
        "request_last_ns": first,
    }
    if latency is None:
        row |= {"outcome": "unanswered", "error": None, "error_code": None}
    else:
        took = int(latency * SECOND)
        row |= {"response_first_ns": first + took, "response_last_ns": first + took, "latency_ns": took, "rtt_ns": 0,
        "queue_ns": 0,
                "service_ns": took}  # fmt: skip
    return row | more


def many(count: int, step: float, api: str = "Produce", **more: Any) -> list[Row]:
    """Exchanges of one connection, `step` seconds apart."""
    return [exchange(more.get("connection", "C1"), at + 1, api, at * step, **{k: v for k,
        v in more.items() if k != "connection"})
            for at in range(count)]  # fmt: skip


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table of kcap; columns that a row leaves out are null, zero where they may not be."""
    schema = arrow_schema(name, choose(name, None))
    zeros: dict[str, Any] = {"int64": 0, "int32": 0, "int16": 0, "string": "", "bool": False}
    full = []
    for row in rows:
        out = {}
        for field in schema:
            value = row.get(field.name)
            if value is None and not field.nullable:
                value = [] if pa.types.is_list(field.type) else zeros.get(str(field.type), 0)
            out[field.name] = value
        full.append(out)
    return pa.Table.from_pylist(full, schema)


def observed(
    exchanges: Sequence[Row], partitions: Sequence[Row] = (), connections: Sequence[Row] | None = None,
        brokers: Sequence[Row] = (),
    messages: Mapping[tuple[str, int, str], Row] | None = None,
) -> Observed:  # fmt: skip
    """The rules' view of these rows; without connections there is one for each that exchanges name."""
    if connections is None:
        names = dict.fromkeys(row["connection"] for row in exchanges)
        connections = [CONNECTION | {"connection": name} for name in names]
    given = dict(zip(COLUMNS, (exchanges, partitions, connections, brokers), strict=True))
    mine = {name: table_of(name, rows) for name, rows in given.items()}

    def run_over() -> Statements:
        if VIEWS.get("exchanges") is not mine["exchanges"]:
            VIEWS.update(mine)
            for name, rows in mine.items():
                engine().register(name, rows)
        return compiled()

    lookup = messages or {}
    return Observed(
        OfRows(run_over), *map(table, COLUMNS), lambda connection, number, side: lookup.get((connection, number, side))
    )


class OfRows(Runner):
    """Runs expressions over the rows of one scene: the engine is that of all scenes."""

    def __init__(self, over: Callable[[], Statements]) -> None:
        """`over` makes the rows of this scene those of the engine."""
        self._over = over

    def __call__(self, expression: Any) -> list[Row]:
        return self._over()(expression)

    def hold(self, name: str, expression: Any, *, view: bool = False) -> Any:
        return self._over().hold(name, expression, view=view)

    def names(self, name: str, values: Sequence[str]) -> Any:
        return self._over().names(name, values)


VIEWS: dict[str, pa.Table] = {}
"""The tables that the engine has now."""


@cache
def compiled() -> Statements:
    """What runs expressions: each is compiled once, which takes a hundred times as long as to run it over a few rows."""
    return Statements(engine(), CompiledPlan(("tests",)), engine().viewed)


def found(rule: str, seen: Observed, *, loud: bool = True) -> list[Row]:
    """The findings of one rule, by default those above `info`."""
    assert rule in RULES
    return [row for row in check(seen, only=[rule])["rows"] if row["severity"] != "info" or not loud]


def shown(finding: Row, rows: Iterable[Row]) -> list[Row]:
    """Exchanges that the display filter of a finding lets pass."""
    passes = condition(parse(finding["filter"]))
    return [row for row in rows if passes(row)]
