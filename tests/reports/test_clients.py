"""Clients: what each of them did."""

from pathlib import Path

from pyarrow.parquet import write_table

import kcap
from kcap.reports.clients import REPORT
from kcap.reports.definition import ReportRequest
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.topics import REPORT as TOPICS
from tests.reports.made import exchange, report


def test_a_client_in_one_row() -> None:
    rows = [
        exchange(exchange=1, took_ms=1, software_name="lib", software_version="1", principal="alice"),
        exchange(exchange=2, took_ms=1, api="Produce", api_key=0, topics=["a"], topic_ids=[None], record_count=5,
                 batch_count=1, records_bytes=90, codecs=["zstd"], magics=[2], producer_id=4, error="X"),
        exchange(connection="C2", took_ms=1, api="Fetch", api_key=1, topics=["b", None], topic_ids=[None, "id"], group_id="g",
                 record_count=7, throttle_time_ms=3),
        exchange(connection="C2", exchange=2, outcome="unanswered"),
        exchange(connection="C3", client_id=None, outcome="orphan", api=None, api_key=None),
        exchange(connection="C4", client_id=None, took_ms=1),
    ]  # fmt: skip
    reported = report(REPORT, rows)
    first, second = reported["rows"]
    assert reported["left_out"] == {"orphan": 1}
    wanted = {
        "client_ip": "10.0.0.1", "client_id": "app", "software_name": "lib", "software_version": "1", "connections": 2,
        "requests": 4, "apis": ["Fetch", "Metadata", "Produce"], "topics_in": ["a"], "topics_out": ["b", "id"],
        "groups": ["g"], "principals": ["alice"], "errors": 1, "throttled": 1, "unanswered": 1, "records_in": 5,
        "records_out": 7, "bytes_in": 90, "codecs_in": ["zstd"], "magics_in": [2], "idempotent": True,
    }  # fmt: skip
    assert {name: first[name] for name in wanted} == wanted
    assert (second["client_id"], second["requests"], second["topics_in"]) == (None, 1, [])


def test_control_records_are_none_that_a_client_read(pcaps: Path) -> None:
    """As in the report of topics."""
    given = [str(pcaps / "java-transactions.pcap")]
    of_clients, of_topics = (run(one, ReportInput(given), ReportRequest())["rows"] for one in (REPORT, TOPICS))
    assert {row["client_id"]: row["records_out"] for row in of_clients} == {"shop-tx": 0, "shop-tx-rc": 120, "shop-tx-in": 60}
    assert sum(row["records_out"] for row in of_topics) == 180


def test_saved_partitions_need_not_have_control_records(pcaps: Path, tmp_path: Path) -> None:
    capture = kcap.open(str(pcaps / "java-transactions.pcap"))
    for name, table in (("exchanges", capture.exchanges()), ("partitions", capture.partitions())):
        write_table(table.to_arrow(), tmp_path / f"{name}.parquet")
    saved = [str(tmp_path / f"{name}.parquet") for name in ("exchanges", "partitions")]
    rows = run(REPORT, ReportInput(saved), ReportRequest())["rows"]
    assert [row["records_out"] for row in rows] == [0, 142, 60]


def test_a_client_of_a_topic() -> None:
    rows = [
        exchange(exchange=1, took_ms=1, topics=["a", "b"], topic_ids=[None, None]),
        exchange(exchange=2, took_ms=1),
        exchange(exchange=3, outcome="orphan"),
    ]
    reported = report(REPORT, rows, ReportRequest(by=("topic", "client_id")))
    assert [(row["topic"], row["client_id"], row["requests"]) for row in reported["rows"]] == [("a", "app", 1), ("b", "app", 1)]
    assert reported["left_out"] == {"orphan": 1, "no_topic": 1}


def test_the_busiest_clients_are_those_of_the_whole_report() -> None:
    """Also one without a client id; what is left out is counted over all."""
    rows = [
        exchange(exchange=number, connection=f"C{name}", client_id=name, topics=[f"t{name}"], topic_ids=[None], took_ms=1,
                 api="Produce", api_key=0, codecs=["zstd"], magics=[2])
        for name, count in (("a", 1), (None, 3), ("b", 2), ("c", 1))
        for number in range(count)
    ] + [exchange(exchange=9, outcome="orphan")]  # fmt: skip
    whole, some = report(REPORT, rows), report(REPORT, rows, ReportRequest(busiest=2))
    assert [row["client_id"] for row in some["rows"]] == [None, "b"]
    assert some["rows"] == whole["rows"][:2]
    assert some["left_out"] == whole["left_out"] == {"orphan": 1}


def test_brokers_and_controllers_come_last() -> None:
    """By their client ids, by their APIs, and by what the same node sends to the same controller; never by a bare number."""
    node = {"client_id": "1", "client_ip": "10.0.0.2", "server_ip": "10.0.0.3", "server_port": 9093, "error": "NONE"}
    rows = [
        *(exchange(connection="C1", exchange=at, took_ms=1, client_id="broker-2-fetcher-0") for at in range(9)),
        *(exchange(connection="C2", exchange=at, took_ms=1, api="BrokerHeartbeat", api_key=63, **node) for at in range(2)),
        exchange(connection="C3", took_ms=1, api="CreateTopics", api_key=19, **node),
        exchange(connection="C4", took_ms=1, api="CreateTopics", api_key=19, **node | {"client_ip": "10.0.0.9"}),
        exchange(connection="C5", took_ms=1),
    ]  # fmt: skip
    reported = report(REPORT, rows)["rows"]
    assert [(row["client_ip"], row["client_id"], row["requests"], row["broker_requests"]) for row in reported] == [
        ("10.0.0.1", "app", 1, 0), ("10.0.0.9", "1", 1, 0), ("10.0.0.1", "broker-2-fetcher-0", 9, 9), ("10.0.0.2", "1", 3, 3),
    ]  # fmt: skip
    (row,) = report(REPORT, rows, ReportRequest(by=("api_version",)))["rows"]
    assert (row["requests"], row["broker_requests"]) == (14, 12)
