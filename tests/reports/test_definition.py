"""What reports group by."""

import ibis
import pytest

from kcap.errors import UsageError
from kcap.reports.definition import (
    Grouping,
    ReportRequest,
    first_of,
    group_name,
    is_broker,
    key_of,
    keys_of,
    nearest_ns,
    of_brokers,
    of_replicas,
    report_of,
    slowest,
    step_of,
    uid,
)
from kcap.reports.latency import REPORT
from tests.reports.made import engine, exchange, tables


def test_names() -> None:
    assert key_of("version").column == "api_version"
    assert key_of("topic").columns == ("topics", "topic_ids")
    assert key_of("time:10s").step_ns == 10_000_000_000
    assert key_of("flags").entry
    assert key_of("partition", frozenset({"partition"})).name == "partition"


@pytest.mark.parametrize("name", ["apo", "time:", "time:0s", "time:5", "time:xs", "partition"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError, match="--by"):
        key_of(name)


def test_a_row_is_named_by_its_values() -> None:
    keys = [key_of("client_ip"), key_of("client_id"), key_of("version")]
    assert group_name({"client_ip": "10.0.0.1", "client_id": "", "api_version": None}, keys) == '10.0.0.1, "", -'


def test_a_name_twice() -> None:
    with pytest.raises(UsageError, match="twice"):
        keys_of(REPORT, ReportRequest(by=("api", "api")))


def test_the_default() -> None:
    assert [key.name for key in keys_of(REPORT, ReportRequest())] == ["api"]


def test_steps() -> None:
    assert [step_of(f"time:1{unit}") for unit in ("us", "ms", "s", "m", "h")] == [10**3, 10**6, 10**9, 60 * 10**9, 3600 * 10**9]


def test_a_topic_without_a_name_goes_by_its_id() -> None:
    """Law: a row stands once for each topic, not at all for none."""
    rows = [
        exchange(exchange=1, topics=["a", None], topic_ids=[None, "id"]), exchange(exchange=2),
        exchange(exchange=3, topics=[], topic_ids=[]),
        exchange(exchange=4, topics=["b", "b"], topic_ids=["id", None]),
    ]  # fmt: skip
    made = Grouping([key_of("topic")]).rows(tables(rows).every)
    found = [(row["exchange"], row["by_topic"]) for row in engine().rows(made.select("exchange", "by_topic"))]
    assert sorted(found) == [(1, "a"), (1, "id"), (4, "b")]


def test_halves_go_up() -> None:
    assert [nearest_ns(value) for value in (None, 0.5, 1.5, 2.4, -0.5)] == [None, 1, 2, 2, 0]


def test_an_exchange_has_a_name() -> None:
    assert uid("C1", 7) == "C1.7"


def test_ties_go_to_the_first_by_name() -> None:
    rows = [
        exchange(connection=c, exchange=n, latency_ns=value, client_id=client)
        for c, n, value, client in [
            ("B", 1, 5, None),
            ("A", 2, 5, None),
            ("A", 9, 5, None),
            ("A", 1, None, "x"),
            ("C", 1, 4, None),
        ]
    ]
    made = tables(rows).every
    found = engine().rows(made.group_by("client_id").aggregate(worst=slowest(made, made.latency_ns)))
    assert {row["client_id"]: row["worst"] for row in found} == {
        None: {"value": -5, "connection": "A", "exchange": 2}, "x": None,
    }  # fmt: skip
    found = engine().rows(first_of(made, ["client_id"], made.latency_ns))
    assert {(row["client_id"], row["connection"], row["exchange"]) for row in found} == {(None, "C", 1), ("x", "A", 1)}


def test_ids_that_brokers_use_among_each_other() -> None:
    """Law: a column of ids and one id say the same."""
    copies = ["broker-1-fetcher-0", "ReplicaFetcherThread-0-2", "raft-client-3"]
    others = ["AddPartitionsManager-client-1", "broker-2-txn-marker-sender", "Persister-client-3"]
    names = [*copies, *others, "app", None, "broker-of-mine", "my-fetcher-1", "client-of-broker-1-fetcher-0"]
    table = ibis.memtable({"client_id": names}, schema={"client_id": "string"})
    found = table.mutate(broker=of_brokers(table), replica=of_replicas(table)).to_pyarrow().to_pylist()
    assert {row["client_id"] for row in found if row["broker"]} == {*copies, *others}
    assert {row["client_id"] for row in found if row["replica"]} == {*copies}
    assert [name for name in names if is_broker(name)] == [*copies, *others]


def test_reports_by_name() -> None:
    assert report_of("latency") is REPORT
    assert {report_of(name).name for name in ("stats", "slow", "throttle", "throttled", "errors", "topics", "clients")} == {
        "stats", "slow", "throttle", "throttled", "errors", "topics", "clients",
    }  # fmt: skip
    with pytest.raises(ModuleNotFoundError):
        report_of("nothing")
