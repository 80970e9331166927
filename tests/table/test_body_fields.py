"""Fields of bodies beside exchanges: the values that filters test, whatever is filtered, without credentials."""

import json
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.cli.main import main
from kcap.errors import UsageError
from kcap.table.body_fields import body_columns, body_field

FETCH_OFFSET, PARTITION = "request.topics.partitions.fetch_offset", "request.topics.partitions.partition"


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[Any]:
    """What `kcap rows` writes as JSON lines."""
    assert main(["rows", *words, "--format", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_values_are_those_of_the_decoded_message(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pcaps / "java-transactions.pcap"
    found = rows(capsys, str(path), "-Y", "api == Fetch", "--columns", f"{FETCH_OFFSET},connection,exchange,{PARTITION}")
    assert list(found[0]) == [FETCH_OFFSET, "connection", "exchange", PARTITION], "in the order in which they were named"
    decoded = kcap.open(str(path)).filter("api == Fetch")
    expected = []
    for exchange in decoded:
        assert exchange.request is not None
        topics = exchange.request.to_json()["topics"]
        expected.append([one["fetchOffset"] for topic in topics for one in topic["partitions"]] or None)
    assert sorted(map(str, expected)) == sorted(str(row[FETCH_OFFSET]) for row in found)
    assert any(expected)


def test_a_filter_on_the_name_finds_the_value(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(pcaps / "java-transactions.pcap")
    every = rows(capsys, path, "--columns", f"connection,exchange,{FETCH_OFFSET}")
    large = rows(capsys, path, "--columns", f"connection,exchange,{FETCH_OFFSET}", "-Y", f"{FETCH_OFFSET} > 20")
    assert large == [row for row in every if any(value > 20 for value in row[FETCH_OFFSET] or ())]
    assert 0 < len(large) < len(every)


def test_fields_as_tshark_prints_them(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(pcaps / "java-transactions.pcap")
    assert main(["rows", path, "-T", "fields", "-e", "api", "-e", "request.clientSoftwareName", "-c", "2"]) == 0
    assert capsys.readouterr().out == "ApiVersions\tapache-kafka-java\nMetadata\t\n"


def test_credentials_are_masked(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(pcaps / "problems" / "authentication-failed-loop.pcap")
    found = rows(capsys, path, "-Y", "api == SaslAuthenticate", "--columns", "request.auth_bytes,response.error_message")
    assert {str(row["request.auth_bytes"]) for row in found} == {"['(masked)']"}
    assert all("Authentication failed" in row["response.error_message"][0] for row in found)


@pytest.mark.parametrize(
    ("name", "said"),
    [("request.topics.partitions.fetch_ofset", "did you mean request.topics.partitions.fetch_offset"),
     ("request.topic_data", "name one of them: request.topic_data.name"),
     ("request.topic_data.partition_data.records", "rows of --table records")],
)  # fmt: skip
def test_what_is_no_value_is_refused_with_advice(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        body_field(name)


def test_types_are_those_of_the_schema() -> None:
    names = [FETCH_OFFSET, "request.entries.ops.value", "request.topics.name", "request.allow_auto_topic_creation"]
    assert [str(column.type) for column in body_columns(names)] == [
        "list<item: int64>", "list<item: double>", "list<item: string>", "list<item: bool>",
    ]  # fmt: skip
