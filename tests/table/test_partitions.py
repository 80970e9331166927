"""The table `partitions` against the decoded messages, the records, and what the recorded programs logged."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.batch import failures
from kcap.columns import PARTITIONS
from kcap.decode.slots import LISTING, NOT_COUNTED, PARTITION_FIELDS, PARTITION_NUMBERS, WITH_PARTITIONS
from kcap.limits import PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE
from tests.cli.running import kcap as run
from tests.fuzz.hostile import CLASSES, Calls, array, string

Json = dict[str, Any]
CAPTURES = (
    "java-transactions", "go-franz", "aiokafka", "quota-0.10", "long-polls", "kafka-0.8-clients", "old-java-new-broker",
    "librdkafka-zstd", "node-platformatic",
)  # fmt: skip
KEYS = {name[:1].lower() + name[1:] for name in PARTITION_FIELDS}
LISTS = {name[:1].lower() + name[1:] for name in PARTITION_NUMBERS}
NOT = {name[:1].lower() + name[1:] for name in NOT_COUNTED}


def mentioned(body: Any, topic: tuple[str | None, str | None] = (None, None)) -> list[tuple[Any, ...]]:
    """(topic, partition, struct) of all partitions in Kafka's JSON of a body."""
    found: list[tuple[Any, ...]] = []
    if not isinstance(body, dict):
        return found
    name = next((body[key] for key in ("name", "topic", "topicName") if isinstance(body.get(key), str)), None)
    if name is not None or "topicId" in body:
        topic = name or None, body.get("topicId")
    for key, inner in body.items():
        if key in NOT or not isinstance(inner, list):
            continue
        for entry in inner:
            number = next((entry[k] for k in entry if k in KEYS), None) if isinstance(entry, dict) else None
            if isinstance(number, int):
                found.append((topic[0] or topic[1], number, entry))
            elif isinstance(entry, int) and key in LISTS:
                found.append((topic[0] or topic[1], entry, {}))
            else:
                found += mentioned(entry, topic)
    return found


def rows_of(path: Path, *more: str) -> list[Json]:
    columns = [column.name for column in PARTITIONS]
    found: list[Json] = kcap.open(path).table("partitions", [*columns, *more]).to_arrow().to_pylist()
    return found


def test_of_records_that_were_not_captured_nothing_is_known(pcaps: Path) -> None:
    """The client left when the head of the response was sent: no record of it, and so no lag, is known."""
    *whole, last = [row for row in rows_of(pcaps / "left-before-records.pcap") if row["api_key"] == 1]
    assert [row["lag"] for row in whole] == [0] * len(whole)
    assert last["high_watermark"] > last["fetch_offset"]
    assert [last[name] for name in ("batches", "records", "bytes", "codec", "lag")] == [None] * 5


def test_partitions_of_a_message_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: of a message with more partitions than the limit the first have rows, of both sides, and a weird says so."""
    said: list[str] = []
    monkeypatch.setattr(failures, "report_row", lambda _report, _batch, at, kind, *_: said.append(f"{kind} {at}"))
    path = tmp_path / "wide.pcap"
    path.write_bytes(CLASSES["one_wide_fetch"][0](PARTITIONS_OF_MESSAGE + 2))
    table = kcap.open(path).table("partitions", ["partition", "fetch_offset", "high_watermark"]).to_arrow()
    assert table["partition"].to_pylist() == list(range(PARTITIONS_OF_MESSAGE))
    assert table["fetch_offset"].null_count == table["high_watermark"].null_count == 0
    assert said == ["partitions_limit 0"]


def test_topics_of_a_message_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: of a message with more topics than the limit the first are listed, and the others' partitions have no rows."""
    said: list[str] = []
    monkeypatch.setattr(failures, "report_row", lambda _report, _batch, at, kind, *_: said.append(f"{kind} {at}"))
    path, calls = tmp_path / "wide.pcap", Calls()
    topics = [string(b"%d" % at) + array([bytes([0, 0, 0, 7])] * (at % 65_536 == 0)) for at in range(2 * TOPICS_OF_MESSAGE + 1)]
    calls.call(24, 0, string(b"x") + bytes(10) + array(topics), bytes(4) + array([]))
    path.write_bytes(calls.connection.file())
    found = kcap.open(path)
    assert found.table("partitions", ["topic", "partition"]).to_arrow().to_pylist() == [
        {"topic": name, "partition": 7} for name in ("0", "65536")
    ]
    (row,) = [row for row in found.exchanges(["api_key", "topics"]).to_arrow().to_pylist() if row["api_key"] == 24]
    assert row["topics"] == [str(at) for at in range(TOPICS_OF_MESSAGE)]
    assert {*said} == {"partitions_limit 0", "topics_limit 0"}


@pytest.mark.parametrize("listed", [False, True], ids=["", "with-leaders"])
@pytest.mark.parametrize("name", CAPTURES)
def test_every_partition_of_every_message_is_a_row(pcaps: Path, name: str, listed: bool) -> None:
    """Law: the rows of an exchange are the partitions that its messages name; errors and watermarks are theirs. Metadata is
    about all partitions there are: its rows are there where leaders are asked for."""
    rows = defaultdict(list)
    for row in rows_of(pcaps / f"{name}.pcap", *(["leader_id"] if listed else [])):
        rows[row["connection"], row["exchange"]].append(row)
    seen = 0
    for exchange in kcap.open(pcaps / f"{name}.pcap"):
        if exchange.row["api"] not in WITH_PARTITIONS or (exchange.row["api"] == LISTING and not listed):
            continue
        mine = rows.pop((exchange.row["connection"], exchange.row["exchange"]), [])
        request = mentioned(exchange.request.to_json() if exchange.request else None)
        response = mentioned(exchange.response.to_json() if exchange.response else None)
        wanted = {(topic, number) for topic, number, _ in request + response}
        assert {
            (row["topic_id"] if row["topic_id"] in dict(wanted) else row["topic"], row["partition"]) for row in mine
        } == wanted
        assert len(mine) == len(wanted), "nobody here names a partition twice"
        by_number = {
            (row["topic_id"] if row["topic_id"] in dict(wanted) else row["topic"], row["partition"]): row for row in mine
        }
        for topic, number, struct in response:
            row = by_number[topic, number]
            assert row["error_code"] == struct.get("errorCode", struct.get("partitionErrorCode", row["error_code"]))
            if "highWatermark" in struct and struct["highWatermark"] >= 0:
                assert row["high_watermark"] == struct["highWatermark"]
            seen += 1
        for topic, number, struct in request:
            if "fetchOffset" in struct:
                assert by_number[topic, number]["fetch_offset"] == struct["fetchOffset"]
    assert not rows, "rows of exchanges that name no partition"
    assert seen


@pytest.mark.parametrize("name", CAPTURES)
def test_sums_are_those_of_the_records(pcaps: Path, name: str) -> None:
    """Law: `records` of an exchange's partition counts the rows that the table `records` has; `lag` follows."""
    counts: dict[Any, int] = defaultdict(int)
    last: dict[Any, int] = {}
    for record in kcap.open(pcaps / f"{name}.pcap").table("records").to_arrow().to_pylist():
        key = record["connection"], record["exchange"], record["topic"], record["partition"]
        counts[key] += 1
        if record["offset"] is not None:
            last[key] = max(last.get(key, 0), record["offset"])
    for row in rows_of(pcaps / f"{name}.pcap"):
        key = row["connection"], row["exchange"], row["topic"], row["partition"]
        assert (row["records"] or 0) == counts.pop(key, 0)
        assert row["crc_ok"] in (None, True)
        if row["lag"] is not None:
            position = last[key] + 1 if key in last else row["fetch_offset"]
            assert row["lag"] == row["high_watermark"] - position
    assert not counts


@pytest.mark.parametrize("name", ["java-transactions", "go-franz", "aiokafka", "librdkafka-zstd", "quota-3.9", "long-polls"])
def test_produced_counts_are_what_programs_logged(pcaps: Path, truths: dict[str, dict[str, Any]], name: str) -> None:
    """The records that brokers took, by topic and partition, hold those that each program says it sent."""
    taken: dict[tuple[str, int], int] = defaultdict(int)
    for row in rows_of(pcaps / f"{name}.pcap"):
        if row["api_key"] == 0 and row["error_code"] == 0:
            taken[row["topic"], row["partition"]] += row["records"]
    logged = truths[f"{name}.pcap"]["produced"]
    assert logged
    for entry in logged:
        assert taken[entry["topic"], entry["partition"]] >= entry["records"]


def test_sessions_tell_where_a_fetch_reads_from(pcaps: Path) -> None:
    """KIP-227: an incremental fetch names no partition, its answer does; the offset is what an earlier request said."""
    rows = [row for row in rows_of(pcaps / "long-polls.pcap") if row["api_key"] == 1]
    assert len(rows) > 20
    assert all(row["fetch_offset"] is not None for row in rows)
    assert {row["lag"] for row in rows if row["error_code"] == 0} == {0}, "nobody lags behind here"


def test_delivery_counts_are_the_largest_of_the_acquired_records(pcaps: Path) -> None:
    """KIP-932: a ShareFetch response has a count for each range of records; without any there is none."""
    path, counts = pcaps / "problems" / "share-redelivery.pcap", list[int]()
    rows = {(row["connection"], row["exchange"]): row["delivery_count"] for row in rows_of(path)}
    for exchange in kcap.open(path):
        if exchange.row["api"] != "ShareFetch" or exchange.response is None:
            continue
        for topic in exchange.response.to_json()["responses"]:
            for part in topic["partitions"]:
                acquired = [one["deliveryCount"] for one in part["acquiredRecords"]]
                assert rows[exchange.row["connection"], exchange.row["exchange"]] == max(acquired, default=None)
                counts += acquired
    assert [counts.count(number) for number in range(2, 7)] == [2, 2, 2, 2, 0]


def test_refused_acknowledgements_of_a_share_fetch_are_errors_of_their_partitions(pcaps: Path) -> None:
    """KIP-932: a ShareFetch acknowledges records and brings others; each has an error code of its own."""
    path = pcaps / "problems" / "share-acknowledged-by-fetch.pcap"
    refused = {(row["partition"], row["error"]) for row in rows_of(path) if row["error_code"]}
    assert refused == {(1, "INVALID_RECORD_STATE")}
    for exchange in kcap.open(path):
        if exchange.row["api"] == "ShareFetch" and exchange.response is not None:
            for topic in exchange.response.to_json()["responses"]:
                assert not any(part["errorCode"] for part in topic["partitions"])


def test_columns_are_as_declared(pcaps: Path) -> None:
    """The command gives what Python gives."""
    done = run("rows", pcaps / "aiokafka.pcap", "--table", "partitions", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(lines[0]) == [column.name for column in PARTITIONS]
    python = rows_of(pcaps / "aiokafka.pcap")
    assert [{**line, "time": None} for line in lines] == [{**row, "time": None} for row in python]
    few = run("rows", pcaps / "aiokafka.pcap", "--table", "partitions", "--format", "csv", "--columns", "partition,topic")
    assert few.stdout.splitlines()[0] == b"partition,topic"
