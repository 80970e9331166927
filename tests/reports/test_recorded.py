"""Recorded expressions are made as they would be without the recording."""

from collections.abc import Callable
from typing import Any

import ibis
import pyarrow as pa
import pytest

from kcap.reports.findings.columns import COLUMNS
from kcap.reports.findings.observed import Observed
from kcap.reports.findings.report import rules
from kcap.reports.findings.running import Runner
from kcap.reports.recorded import Recorded, Replay, functions, name_of, table
from kcap.reports.throttle_compliance import COLUMNS as THROTTLE
from kcap.reports.throttle_compliance import compliance
from kcap.table.schema import arrow_schema, choose


def made_table(name: str) -> Any:
    """An Ibis table with all columns of a table of kcap, any of which may be null, as in a view of DuckDB."""
    fields = [field.with_nullable(True) for field in arrow_schema(name, choose(name, None))]
    return ibis.table(ibis.Schema.from_pyarrow(pa.schema(fields)), name)


def test_a_recording_makes_what_ibis_makes_itself() -> None:
    def busy(rows: Any) -> Any:
        functions_ = functions(rows)
        some = rows.filter(rows.api.isin(["Fetch", "Produce"]), ~(rows.latency_ns >= 5) | (rows["error"] != "NONE"))
        some = some.mutate(
            half=some.latency_ns / 2 - 1, rest=7 - some.latency_ns % 3, name=functions_.coalesce("=" + some.client_id, "-"),
            before=some.exchange.lag(1).over(group_by="connection", order_by="exchange"),
        )  # fmt: skip
        grouped = some.group_by("name")
        return grouped.aggregate(n=some.count(where=some.half > 1), most=(-some.rest).max(), at=some.before.min())

    recorded, real = busy(table("exchanges")), busy(made_table("exchanges"))
    assert ibis.to_sql(Replay(made_table)(recorded), dialect="duckdb") == ibis.to_sql(real, dialect="duckdb")
    throttles = compliance(table("exchanges"))
    assert Replay(made_table)(throttles).equals(compliance(made_table("exchanges"))), THROTTLE


def test_equal_recordings_have_one_name_and_others_another() -> None:
    def one(limit: Any, column: str = "a") -> Recorded:
        rows = table("t")
        found: Recorded = rows.filter(rows[column] > limit).select("a", "b")
        return found

    assert name_of(one(1)) == name_of(one(1))
    assert len({name_of(made) for made in (one(1), one(2), one("1"), one(1.0), one(True), one(None), one(1, "b"))}) == 7
    assert name_of(table("t").a) != name_of(table("u").a)
    assert name_of(table("t").f("ab", "c")) != name_of(table("t").f("a", "bc"))
    assert name_of(table("t").f(["a"], "b")) != name_of(table("t").f(["a", "b"]))


def test_what_needs_rows_or_a_schema_is_refused() -> None:
    rows = table("t")
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(rows.a == 1)
    with pytest.raises(TypeError, match="no items"):
        list(rows.columns)
    with pytest.raises(TypeError, match="function cannot be recorded"):
        rows.aggregate(n=lambda some: some.count())


CALL = {
    "client_id": "a", "group_id": "g", "transactional_id": "t", "server_ip": "s", "error": "NONE", "outcome": "answered",
    "reason": None, "api_version": 9, "connection": "c", "exchange": 1, "server_port": 1, "principal": None, "n": 1,
    "first_ns": 1, "last_ns": 1, "latency_ns": 1, "records": 1, "batches": 1, "request_bytes": 10**9, "response_bytes": 1,
    "most_request_bytes": 10**9, "most_response_bytes": 1, "most_queue_ns": 10**12, "broker_id": 1,
}  # fmt: skip
FLOW = {
    "client_id": "a", "topic": "t", "n": 1, "bytes": 1, "batches": 1, "records": 1, "first_ns": 1, "last_ns": 2, "newest": 2,
    "oldest": 0, "doubtful": 1, "behind": 9, "lag": 1000, "early_ms": -(10**9), "late_ms": 0,
}  # fmt: skip
SUMMARIES = {
    "calls": [CALL | {"api": api} for api in ("Produce", "Fetch", "Metadata", "JoinGroup", "OffsetCommit")],
    "links": [], "span": (0, 10**12), "quality": {"throttled": 1, "gaps": 0},
    "errors_of_partitions": {"NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE", "INVALID_TIMESTAMP"},
    "flows": [FLOW | {"api": "Produce", "codec": "none"}, FLOW | {"api": "Fetch", "codec": "lz4"}],
}  # fmt: skip
"""Of a capture that has everything, so that no rule stops at its summary."""


def questions(rule: str, wrap: Callable[[str], Any]) -> list[Any]:
    """What a rule asks of tables, as Ibis expressions."""
    asked: list[Any] = []
    replay = Replay(made_table)

    def run(expression: Any) -> list[dict[str, Any]]:
        asked.append(replay(expression))
        return []

    exchanges, partitions, connections, brokers = map(wrap, COLUMNS)
    seen = Observed(Runner(run), exchanges, partitions, connections, brokers).of_clients()
    seen.__dict__.update(SUMMARIES)
    one = rules()[rule]
    list(one.find(seen, one.thresholds))
    return asked


@pytest.mark.parametrize("rule", sorted(rules()))
def test_every_question_of_a_rule_is_the_same_when_recorded(rule: str) -> None:
    """Law: the SQL that is kept of a rule is that of its expressions."""
    real, recorded = questions(rule, made_table), questions(rule, table)
    assert len(real) == len(recorded)
    assert all(one.equals(other) for one, other in zip(real, recorded, strict=True))
