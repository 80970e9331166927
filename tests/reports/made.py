"""Tables of exchanges and partitions made row by row, and reports over them."""

import atexit
from functools import cache
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import ibis
import pyarrow as pa
from hypothesis import strategies as st

from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.columns import PARTITIONS as DECLARED
from kcap.reports.definition import Report, ReportRequest, Row, Tables
from kcap.reports.run import expressions_of, finished
from kcap.reports.source import Engine
from kcap.table.schema import TYPES

PARTITIONS = (*DECLARED, *ON_REQUEST["partitions"])
MS = 1_000_000
BASE_NS = 1_795_240_800_000_000_000
PLAIN: Row = {column.name: None for column in (*EXCHANGES, *ON_REQUEST["exchanges"])} | {
    "connection": "C1", "exchange": 1, "client_ip": "10.0.0.1", "client_port": 40_000, "server_ip": "10.0.0.2",
    "server_port": 9092, "tls": False, "outcome": "answered", "flags": [], "api_key": 3, "api": "Metadata", "api_version": 1,
    "client_id": "app", "time": BASE_NS // 1000,
}  # fmt: skip


def exchange(**values: Any) -> Row:
    """A row of exchanges; `at_ms` and `took_ms` set its times."""
    at, took = values.pop("at_ms", 0), values.pop("took_ms", None)
    row = dict(PLAIN) | {"request_first_ns": BASE_NS + round(at * MS), "request_last_ns": BASE_NS + round(at * MS)}
    if took is not None:
        answered = BASE_NS + round((at + took) * MS)
        row |= {"response_first_ns": answered, "response_last_ns": answered, "latency_ns": round(took * MS)}
        row |= {"rtt_ns": 0, "queue_ns": 0, "service_ns": round(took * MS)}
    return row | values


def partition(**values: Any) -> Row:
    """A row of partitions."""
    plain = {column.name: None for column in PARTITIONS}
    return plain | {"connection": "C1", "exchange": 1, "time": BASE_NS // 1000, "api_key": 0, "partition": 0} | values


@cache
def engine() -> Engine:
    """One DuckDB for all tests: starting one takes a fifth of a second."""
    folder = mkdtemp(prefix="kcap-test-")
    made = Engine(folder)
    atexit.register(rmtree, folder, ignore_errors=True)
    atexit.register(made.close)
    return made


def arrow(rows: list[Row], columns: Any) -> pa.Table:
    """Rows as an Arrow table."""
    return pa.table({column.name: pa.array([row[column.name] for row in rows], TYPES[column.type]) for column in columns})


def table(rows: list[Row], columns: Any) -> Any:
    """Rows as an Ibis table."""
    return ibis.memtable(arrow(rows, columns))


def tables(exchanges: list[Row], partitions: list[Row] | None = None) -> Tables:
    """The tables of a report."""
    every = table(exchanges, EXCHANGES)
    return Tables(every, every, None if partitions is None else table(partitions, PARTITIONS))


def report(what: Report, exchanges: list[Row], asked: ReportRequest | None = None, partitions: list[Row] | None = None) -> Row:
    """A report over them."""
    request, duckdb = asked or ReportRequest(), engine()
    duckdb.register("exchanges", arrow(exchanges, EXCHANGES))
    if partitions is not None:
        duckdb.register("partitions", arrow(partitions, PARTITIONS))
    sql = statements(what, request, partitions is not None)
    return finished({name: duckdb.rows(one) for name, one in sql.items()}, what, request)


@cache
def statements(what: Report, request: ReportRequest, joined: bool) -> dict[str, str]:
    """The SQL of a report over the views: to compile it takes a hundred times as long as to run it over a few rows."""
    every, parts = engine().viewed("exchanges"), engine().viewed("partitions") if joined else None
    return {name: engine().sql(one) for name, one in expressions_of(Tables(every, every, parts), what, request).items()}


SOME: dict[str, st.SearchStrategy[Any]] = {
    "api": st.sampled_from(["Fetch", "Produce", None]),
    "api_version": st.sampled_from([None, 0, 11]),
    "client_id": st.sampled_from([None, "", "app", "other"]),
    "client_ip": st.sampled_from(["10.0.0.1", "10.0.0.9"]),
    "outcome": st.sampled_from(["answered", "answered", "answered", "unanswered", "one_way", "orphan"]),
    "latency_ns": st.one_of(st.none(), st.integers(-5, 50), st.integers(0, 40_000_000_000)),
    "long_poll_ns": st.sampled_from([None, 0, 0, 0, 7]),
    "age_ns": st.one_of(st.none(), st.integers(0, 10**10)),
    "throttle_time_ms": st.sampled_from([None, 0, 0, 5, 700]),
    "error": st.sampled_from([None, "NONE", "NONE", "NOT_LEADER_OR_FOLLOWER"]),
    "request_bytes": st.one_of(st.none(), st.integers(0, 10**6)),
    "response_bytes": st.one_of(st.none(), st.integers(0, 10**9)),
    "topics": st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2),
    "request_first_ns": st.one_of(st.none(), st.integers(BASE_NS, BASE_NS + 10**10)),
}


@st.composite
def exchanges(draw: st.DrawFn) -> list[Row]:
    """Some rows, numbered."""
    drawn = draw(st.lists(st.fixed_dictionaries(SOME), max_size=25))
    rows = []
    for number, values in enumerate(drawn, 1):
        code = {None: None, "NONE": 0}.get(values["error"], 6)
        ids = [None] * len(values["topics"])
        rows.append(exchange(connection=f"C{number % 3}", exchange=number, error_code=code, topic_ids=ids, **values))
    return rows


PARTS: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["a", "b", None]),
    "partition": st.integers(0, 2),
    "api_key": st.sampled_from([0, 1, 3, 8]),
    "error": st.sampled_from([None, "NONE", "NONE", "NOT_LEADER_OR_FOLLOWER"]),
    "records": st.sampled_from([None, 0, 3]),
    "batches": st.sampled_from([None, 1]),
    "bytes": st.sampled_from([None, 70, 900]),
    "codec": st.sampled_from([None, "none", "zstd"]),
    "magic": st.sampled_from([None, 1, 2]),
    "lag": st.sampled_from([None, 0, 40]),
    "high_watermark": st.sampled_from([None, 9, 100]),
    "committed_offset": st.sampled_from([None, 5]),
    "group_id": st.sampled_from([None, "g"]),
    "leader_id": st.sampled_from([None, 1, 2]),
    "plain_bytes": st.sampled_from([None, 1000]),
    "control_records": st.sampled_from([None, 0, 1]),
    "producer_id": st.sampled_from([None, 7]),
    "base_sequence": st.sampled_from([None, 0, 4]),
}


@st.composite
def partitions(draw: st.DrawFn, of: list[Row]) -> list[Row]:
    """Partitions of some rows."""
    some = st.lists(st.fixed_dictionaries(PARTS), max_size=2)
    return [partition(connection=row["connection"], exchange=row["exchange"], **values) for row in of for values in draw(some)]
