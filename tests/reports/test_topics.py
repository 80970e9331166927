"""Topics: who writes and reads what, as the recorded programs counted it themselves."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kcap
from kcap.cli.main import main
from kcap.errors import UsageError
from kcap.filter.parse import parse
from kcap.reports.definition import ReportRequest
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.topics import REPORT, verdict
from tests.reports.made import BASE_NS, MS, exchange, partition, report
from tests.support.clusters import CLUSTER, twice


def test_what_the_programs_logged(pcaps: Path) -> None:
    """117 records written and read twice, by clients of 0.8 in format 0: 26 bytes of overhead a message."""
    reported = run(REPORT, ReportInput([str(pcaps / "kafka-0.8-clients.pcap")]), ReportRequest())
    (row,) = reported["rows"]
    assert (row["topic"], row["records_in"], row["records_out"]) == ("orders-10", 117, 234)
    assert row["produce_clients"] == ["app-k8-np", "app-k8-op"]
    assert row["fetch_clients"][0] == "app-k8-sc"
    assert (row["magics"], row["codecs"]) == ([0], ["gzip", "lz4", "none", "snappy"])
    assert row["format_bytes_in"] == 26 * 117
    assert {lag["group_id"] for lag in reported["lags"]} == {"billing.grp50"}


def test_sums_and_lag() -> None:
    rows = [
        exchange(exchange=1, took_ms=1, api="Produce", api_key=0, client_id="p"),
        exchange(exchange=2, took_ms=1, api="Fetch", api_key=1, client_id="c"),
        exchange(exchange=3, took_ms=1, api="OffsetCommit", api_key=8, client_id="c", group_id="g"),
        exchange(exchange=4, took_ms=1),
        exchange(exchange=5, took_ms=1, api="Fetch", api_key=1, client_id="broker-2-fetcher-0"),
    ]
    parts = [
        partition(exchange=5, topic="t", api_key=1),
        partition(exchange=1, topic="t", records=4, batches=2, bytes=200, codec="none", magic=2, producer_id=1),
        partition(exchange=1, topic="t", partition=1, records=2, batches=1, bytes=100, codec="lz4", magic=2),
        partition(
            exchange=2, topic="t", api_key=1, records=4, control_records=1, batches=1, bytes=90, high_watermark=10, lag=6
        ),
        partition(exchange=3, topic="t", api_key=8, committed_offset=7, group_id="g"),
    ]
    reported = report(REPORT, rows, None, parts)
    (row,) = reported["rows"]
    wanted = {
        "topic": "t", "produce_clients": ["p"], "fetch_clients": ["broker-2-fetcher-0", "c"], "consumers": ["c"],
        "groups": ["g"], "produce_requests": 1, "fetch_requests": 2, "records_in": 6, "bytes_in": 300, "records_out": 3,
        "bytes_out": 90, "codecs": ["lz4", "none"],
        "magics": [2], "lag_max": 6, "lag_last": 6, "records_per_batch_in": 2.0, "bytes_per_batch_in": 100.0,
        "format_bytes_in": 61 * 3,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    assert reported["left_out"] == {"no_partitions": 1}
    assert [lag["lag"] for lag in reported["lags"]] == [3]
    assert [(place["partition"], place["bytes_in"]) for place in reported["partitions"]] == [(0, 200), (1, 100)]


def test_records_that_got_an_error_were_sent_and_are_counted_beside() -> None:
    """Such as batches that are sent again and again while too few replicas are in sync."""
    names = ("NONE", "NOT_ENOUGH_REPLICAS", None)
    rows = [exchange(exchange=at, took_ms=1, api="Produce", api_key=0, client_id="p") for at in range(1, 4)]
    parts = [partition(exchange=at, topic="t", records=5, bytes=50, error=name) for at, name in enumerate(names, 1)]
    reported = report(REPORT, rows, None, parts)
    assert [(row["records_in"], row["records_failed"]) for row in reported["rows"]] == [(15, 5)]
    assert reported["verdict"]["sentence"].endswith("Records in are those that were sent: 5 of 15 got an error.")
    (row,) = report(REPORT, rows[:1], None, parts[:1])["rows"]
    assert row["records_failed"] == 0
    assert "were sent" not in report(REPORT, rows[:1], None, parts[:1])["verdict"]["sentence"]


def test_what_brokers_copy_is_read_and_has_sums_of_its_own() -> None:
    """Law: a consumer's records and bytes are none of a replica's, whoever else fetches the same."""
    names = ("c", "broker-2-fetcher-0", "ReplicaFetcherThread-0-1", "raft-client-3", None)
    rows = [exchange(exchange=at, took_ms=1, api="Fetch", api_key=1, client_id=name) for at, name in enumerate(names, 1)]
    parts = [
        partition(exchange=at, topic="t", api_key=1, records=at, control_records=0, batches=1, bytes=10**at)
        for at in range(1, 6)
    ]
    (row,) = report(REPORT, rows, None, parts)["rows"]
    assert (row["records_out"], row["bytes_out"]) == (15, 111_110)
    assert (row["replica_records_out"], row["replica_bytes_out"]) == (9, 11_100)


def test_numbers_of_a_message_may_have_any_64_bits() -> None:
    """Law: no timestamp and no offset makes the report fail."""
    rows = [exchange(exchange=n, took_ms=1, api="Produce", api_key=0, client_id="p") for n in range(1, 9)]
    some = [-(1 << 63), -1, 0, (1 << 63) - 1]
    parts = [
        partition(
            exchange=1 + 2 * at + key, topic="t", api_key=key, max_timestamp_ms=number, timestamp_type="CreateTime",
            high_watermark=number, committed_offset=other, group_id="g", lag=number, records=1, bytes=1, batches=1,
        )
        for at, number in enumerate(some) for key in (0, 1) for other in some
    ]  # fmt: skip
    (row,) = report(REPORT, rows, None, parts)["rows"]
    assert row["behind_ms_max"] > 1 << 61


def test_the_last_lag_is_that_of_each_partitions_last_response() -> None:
    """Partition 0 was 9 behind and caught up to 2; partition 1 ended 4 behind, which is the topic's last lag."""
    rows = [exchange(exchange=n, at_ms=n, took_ms=1, api="Fetch", api_key=1) for n in (1, 2, 3)]
    parts = [
        partition(exchange=number, topic="t", api_key=1, partition=place, lag=lag)
        for number, place, lag in ((1, 0, 9), (2, 1, 4), (3, 0, 2), (3, 1, None))
    ]
    made = report(REPORT, rows, None, parts)
    assert [(row["lag_last"], row["lag_max"]) for row in made["rows"]] == [(4, 9)]
    assert {row["partition"]: (row["lag_last"], row["lag_max"]) for row in made["partitions"]} == {0: (2, 9), 1: (4, 4)}


def test_control_records_are_not_read_data(pcaps: Path) -> None:
    """Each transaction ends with a control record in each of its partitions, which no application gets."""
    path = str(pcaps / "java-transactions.pcap")
    partitions = kcap.open(path).table("partitions", ["api_key", "records", "control_records"]).to_arrow().to_pylist()
    read = [row for row in partitions if row["api_key"] == 1 and row["records"]]
    control = sum(row["control_records"] for row in read)
    assert control > 0
    rows = run(REPORT, ReportInput([path]), ReportRequest())["rows"]
    assert sum(row["records_out"] for row in rows) == sum(row["records"] for row in read) - control


def test_a_saved_table_needs_its_partitions() -> None:
    with pytest.raises(UsageError, match="--table partitions"):
        report(REPORT, [exchange(took_ms=1)])


def test_compression_and_drift() -> None:
    """A writer whose clock loses 200 millionths: 200 ppm over two minutes; too little of another topic to tell."""
    rows, parts = [], []
    for number in range(60):
        at_ms = 2000 * number
        rows.append(exchange(exchange=number, at_ms=at_ms, took_ms=1, api="Produce", api_key=0, client_id="p"))
        stamp = (BASE_NS // MS) + round(at_ms * (1 - 200e-6) + 12)
        parts.append(
            partition(
                exchange=number, topic="slow" if number % 2 else "few", batches=1, records=2, bytes=50 + number, codec="zstd",
                magic=2,
                timestamp_type="CreateTime" if number % 2 or number < 9 else "LogAppendTime", max_timestamp_ms=stamp,
                plain_bytes=200 + 4 * number if number != 31 else None,
            )
        )  # fmt: skip
    reported = {row["topic"]: row for row in report(REPORT, rows, None, parts)["rows"]}
    assert reported["few"]["drift_ppm"] is None
    assert abs(reported["slow"]["drift_ppm"] - 200) < 12, "timestamps are whole milliseconds"
    assert reported["few"]["compression_ratio_in"] == 4.0
    assert reported["slow"]["compression_ratio_in"] == 4.0, "batches that do not inflate count on neither side"
    assert "drift" not in reported["slow"]


def test_a_folder_by_api_has_the_whole_report_once_the_advised_command_has_run(pcaps: Path, tmp_path: Path) -> None:
    """Without partitions `topics` says which command writes them; what it writes has the columns of the ratio."""
    path, folder = str(pcaps / "librdkafka-zstd.pcap"), str(tmp_path / "folder")
    assert main(["rows", path, "--partition-by", "api", "-o", folder]) == 0
    with pytest.raises(UsageError) as error:
        run(REPORT, ReportInput([folder]), ReportRequest())
    advised = str(error.value).partition(": kcap ")[2].replace("CAPTURE", path).replace("FOLDER", folder)
    assert main(advised.split()) == 0
    assert (
        run(REPORT, ReportInput([folder]), ReportRequest())["rows"] == run(REPORT, ReportInput([path]), ReportRequest())["rows"]
    )


def test_a_table_saved_without_the_columns_on_request_will_do(pcaps: Path, tmp_path: Path) -> None:
    capture = kcap.open(str(pcaps / "librdkafka-zstd.pcap"))
    pq.write_table(capture.exchanges().to_arrow(), tmp_path / "exchanges.parquet")
    pq.write_table(capture.partitions().to_arrow(), tmp_path / "partitions.parquet")
    saved = run(REPORT, ReportInput([str(tmp_path)]), ReportRequest())["rows"]
    fresh = run(REPORT, ReportInput([str(pcaps / "librdkafka-zstd.pcap")]), ReportRequest())["rows"]
    assert [row.pop("compression_ratio_in") for row in saved] == [None] * len(saved)
    assert fresh[0].pop("compression_ratio_in") == 8.25
    with_control, data = (sum(row.pop("records_out") for row in rows) for rows in (saved, fresh))
    assert with_control > data, "without the column control_records they are among the others"
    beside = {"compression_ratio_in": 0, "records_per_batch_out": 0}
    assert [row | beside for row in saved] == [row | beside for row in fresh]


def test_requests_that_went_astray() -> None:
    """Broker 2 leads partition 0, and no response says otherwise; of partition 1 none says anything."""
    rows = [
        exchange(exchange=1, took_ms=1, api="Metadata", api_key=3, client_id="p", broker_id=1),
        exchange(exchange=2, took_ms=1, api="Produce", api_key=0, client_id="p", broker_id=1),
        exchange(exchange=3, took_ms=1, api="Produce", api_key=0, client_id="p", broker_id=2),
        exchange(exchange=4, took_ms=1, api="Produce", api_key=0, client_id="quiet", broker_id=3, outcome="one_way"),
        exchange(exchange=5, took_ms=1, api="Fetch", api_key=1, client_id="near", broker_id=3),
        exchange(exchange=6, took_ms=1, api="Fetch", api_key=1, client_id="c", broker_id=3),
        exchange(exchange=7, took_ms=1, api="Produce", api_key=0, client_id="p", broker_id=None),
    ]
    refused = "NOT_LEADER_OR_FOLLOWER"
    parts = [
        partition(exchange=1, api_key=3, topic="t", leader_id=2, error="NONE"),
        partition(exchange=1, api_key=3, topic="t", partition=5, leader_id=None, error="LEADER_NOT_AVAILABLE"),
        partition(exchange=2, topic="t", error=refused),
        partition(exchange=2, topic="t", partition=1, error=refused),
        partition(exchange=3, topic="t", error="NONE"),
        partition(exchange=4, topic="t", error=None),
        partition(exchange=5, api_key=1, topic="t", error="NONE"),
        partition(exchange=6, api_key=1, topic="t", error=refused),
        partition(exchange=7, topic="t", error=refused),
    ]
    reported = report(REPORT, rows, None, parts)
    places = [(row["client_id"], row["api"], row["partition"], row["broker_id"], row["leaders"]) for row in reported["routing"]]
    assert places == [("c", "Fetch", 0, 3, [2]), ("p", "Produce", 0, 1, [2]), ("quiet", "Produce", 0, 3, [2])]
    assert [row["refused"] for row in reported["routing"]] == [1, 1, 0]
    assert [row["topic"] for row in reported["rows"]] == ["t"]
    assert reported["rows"][0]["partitions"] == 2, "what Metadata lists is neither written nor read"


def test_leaders_are_told_whatever_the_filter(pcaps: Path) -> None:
    """Metadata does not pass this filter; its word on leaders counts all the same."""
    path = [str(pcaps / "java-transactions.pcap")]
    whole, some = (run(REPORT, ReportInput(path, only=only), ReportRequest()) for only in (None, parse("api == Produce")))
    assert whole["routing"] == some["routing"] == []
    assert some["left_out"] == {}


def test_the_verdict_names_the_busiest_topic_the_largest_lag_and_errors() -> None:
    rows = [
        {
            "topic": "a",
            "bytes_in": 300,
            "bytes_out": 0,
            "replica_bytes_out": 0,
            "errors": 1,
            "records_in": 9,
            "records_failed": 0,
        },
        {
            "topic": "b",
            "bytes_in": 50,
            "bytes_out": 50,
            "replica_bytes_out": 20,
            "errors": 0,
            "records_in": 9,
            "records_failed": 0,
        },
    ]
    lags = [{"group_id": "g", "topic": "a", "partition": 0, "lag": 1200}]
    found = verdict(rows, ["topic"], lags)
    assert (found["topic"], found["share"], found["group_id"], found["lag"], found["errors"]) == ("a", 0.75, "g", 1200, 1)
    assert found["sentence"].startswith("a has 75% of the bytes: 300 B written, 0 B read.")
    copied = verdict(rows[1:], ["topic"], [])["sentence"]
    assert copied == "b has 100% of the bytes: 50 B written, 50 B read, 20 B of that by replicas."
    assert "g: 1,200 records on a-0" in found["sentence"]
    assert verdict([], ["topic"], []) == {"sentence": "No topic was written or read."}


def test_of_several_clusters_no_lag_is_said(pcaps: Path, tmp_path: Path) -> None:
    """Two clusters may have topics and groups of one name: the high watermark of one is not the end of the other's log."""
    source = pcaps / "problems" / "hanging-transaction.pcap"
    one = run(REPORT, ReportInput([str(source)]), ReportRequest())
    assert one["clusters"] == 1
    assert [row["lag"] for row in one["lags"] if row["lag"]]
    paths = [str(twice(source, tmp_path / "two.pcap", 3))]
    both = run(REPORT, ReportInput(paths), ReportRequest())
    assert (both["clusters"], both["lags"], both["partitions"]) == (2, [], [])
    assert "cluster_id" in both["verdict"]["sentence"]
    assert both["verdict"]["group_id"] is None
    each = run(REPORT, ReportInput(paths), ReportRequest(by=("topic", "cluster_id")))["rows"]
    assert [row["records_in"] for row in each] == [one["rows"][0]["records_in"]] * 2
    chosen = ReportInput(paths, only=parse(f'cluster_id == "{CLUSTER.decode()}"'))
    assert run(REPORT, chosen, ReportRequest())["lags"] == one["lags"]
