"""Rules on producers."""

from base64 import b64encode
from random import Random
from typing import Any

import pytest

from tests.reports.findings.tables import CONNECTION, START, Row, exchange, found, many, observed, shown


def part(connection: str, number: int, **more: Any) -> Row:
    return {"connection": connection, "exchange": number, "api_key": 0, "topic": "t", "partition": 0, "error": "NONE"} | more


def produced(count: int, step: float, client: str = "app", connection: str = "C1", **more: Any) -> tuple[list[Row], list[Row]]:
    rows = [
        exchange(connection, at + 1, "Produce", at * step, client_id=client, record_count=1, batch_count=1)
        for at in range(count)
    ]
    return rows, [part(connection, at + 1, **{k: v(at) if callable(v) else v for k, v in more.items()}) for at in range(count)]


def test_a_record_a_request_quickly_is_told_and_slowly_is_not() -> None:
    assert len(found("tiny-batches", observed(many(200, 0.005, record_count=1, batch_count=1)))) == 1
    assert found("tiny-batches", observed(many(200, 0.5, record_count=1, batch_count=1))) == []
    assert found("tiny-batches", observed(many(200, 0.005, record_count=40, batch_count=1))) == []
    some = observed(many(200, 0.005, record_count=6, batch_count=5))
    assert found("tiny-batches", some) == [], "it joins what comes within its linger.ms"
    assert [row["severity"] for row in found("tiny-batches", some, loud=False)] == ["info"]


def test_compression_off_is_a_fault_only_beside_others_that_compress() -> None:
    raw = produced(20, 0.1, codec="none", bytes=10_000, batches=1, records=5)
    lz4 = produced(20, 0.1, "other", "C2", codec="lz4", bytes=1_000, batches=1, records=5)
    (row,) = found("compression-off", observed(raw[0] + lz4[0], raw[1] + lz4[1]))
    assert row["who"] == {"client_id": "app", "topic": "t"}
    assert found("compression-off", observed(*raw)) == []
    assert len(found("compression-off", observed(*raw), loud=False)) == 1

    def small(size: int) -> list[Row]:
        mine = produced(200, 0.01, codec="none", bytes=size, batches=1, records=1)
        return found("compression-off", observed(mine[0] + lz4[0], mine[1] + lz4[1]))

    assert len(small(1_500)) == 1
    assert small(800) == [], "nothing is won in so small batches"


def test_what_does_not_compress_is_not_asked_to_be_compressed() -> None:
    raw = produced(20, 0.1, codec="none", bytes=10_000, batches=1, records=5)
    lz4 = produced(20, 0.1, "other", "C2", codec="lz4", bytes=1_000, batches=1, records=5)

    def sampled(records: bytes) -> tuple[str, float]:
        said = {"topicData": [{"partitionData": [{"records": b64encode(records).decode()}]}]}
        seen = observed(raw[0] + lz4[0], raw[1] + lz4[1], messages={("C1", 1, "request"): said})
        (row,) = found("compression-off", seen, loud=False)
        return row["severity"], row["evidence"]["saved"]

    assert sampled(b'{"page":"/home"}' * 600) == ("medium", pytest.approx(0.99, abs=0.02))
    assert sampled(Random(1).randbytes(9_600)) == ("info", pytest.approx(0, abs=0.02))
    severity, saved = sampled(Random(1).randbytes(40))
    assert (severity, f"{saved:.0%}") == ("info", "0%"), "what becomes larger saves nothing, and not less than that"


def test_errors_of_partitions_name_topic_and_client() -> None:
    for rule, error in (("message-too-large", "MESSAGE_TOO_LARGE"), ("not-enough-replicas", "NOT_ENOUGH_REPLICAS")):
        rows = produced(4, 1.0, error=error)
        (row,) = found(rule, observed(*rows))
        assert row["who"]["topic"] == "t"
        assert row["count"] == 4
        assert found(rule, observed(*produced(4, 1.0))) == []


def test_batches_that_producers_split() -> None:
    def severity(records: int | None, software: str, version: str | None = None) -> str:
        rows, parts = produced(4, 1.0, error="MESSAGE_TOO_LARGE")
        rows = [row | {"software_name": software, "software_version": version} for row in rows]
        (row,) = found("message-too-large", observed(rows, [part | {"records": records} for part in parts]))
        return str(row["severity"])

    assert severity(9, "apache-kafka-java") == "medium"
    assert severity(1, "apache-kafka-java") == "high", "there is nothing to split"
    assert severity(9, "librdkafka") == "high"
    assert severity(9, "kafka-python", "3.0.12") == severity(None, "kafka-python", "3.0.12") == "medium"
    rows, parts = produced(3, 1.0)
    for refused, severity_ in ((0, "low"), (2, "high")):
        part = [part | {"error": "MESSAGE_TOO_LARGE"} if at == refused else part for at, part in enumerate(parts)]
        (row,) = found("message-too-large", observed(rows, part))
        assert (row["severity"], row["sentence"].endswith("; later ones were taken")) == (severity_, refused == 0)
    assert severity(9, "kafka-python", "2.3.1") == severity(9, "kafka-python") == "high", "these do not"
    rows, parts = produced(4, 1.0, error="MESSAGE_TOO_LARGE")
    rows = [row | {"software_name": "apache-kafka-java"} for row in rows]
    (row,) = found("message-too-large", observed(rows, [part | {"records": None} for part in parts]))
    assert (row["severity"], row["confidence"]) == ("medium", 0.6), "packets that were cut before the records"
    one = [part | {"records": None if at else 1} for at, part in enumerate(parts)]
    (row,) = found("message-too-large", observed(rows, one))
    assert row["severity"] == "high", "one of them is known to be a single record"


def test_a_topic_that_takes_writes_again_had_too_few_replicas_for_a_while() -> None:
    def judged(acks: int | None, parts: list[Row]) -> tuple[str, bool]:
        rows = [exchange("C1", at + 1, "Produce", float(at), acks=acks) for at in range(len(parts))]
        (row,) = found("not-enough-replicas", observed(rows, [part | {"exchange": at + 1} for at, part in enumerate(parts)]))
        return row["severity"], "later writes to each succeeded" in row["sentence"]

    bad, good = (
        {"connection": "C1", "topic": "t", "partition": 0, "error": error} for error in ("NOT_ENOUGH_REPLICAS", "NONE")
    )
    other = {"partition": 1}
    assert judged(-1, [bad, bad, good]) == ("high", True)
    assert judged(-1, [bad, bad | other, good, good | other]) == ("high", True)
    assert judged(-1, [bad, bad | other, good]) == ("critical", False), "one partition still refuses"
    assert judged(-1, [good, bad, bad]) == ("critical", False)
    assert judged(1, [bad, bad, good]) == ("critical", False), "acks=1 needs no replicas"
    assert judged(None, [bad, bad, good]) == ("critical", False)


def test_a_constant_distance_of_timestamps_is_a_clock_and_a_varying_one_is_not() -> None:
    off = -3 * 3600 * 1000

    def stamp(at: int) -> int:
        return START // 1_000_000 + at * 100 + off

    (row,) = found("client-clock-skew", observed(*produced(30, 0.1, max_timestamp_ms=stamp)))
    assert row["evidence"]["off_ms"] == off
    assert found("client-clock-skew", observed(*produced(30, 0.1, max_timestamp_ms=lambda at: stamp(at) - at * 600_000))) == []
    assert found("client-clock-skew", observed(*produced(30, 0.1, max_timestamp_ms=lambda at: stamp(at) - off))) == []


def test_timestamps_of_records_that_a_program_copies_are_no_clock() -> None:
    """As those that MirrorMaker, Kafka Streams or Flink have from what they read, behind by as much as they are."""

    def late(at: int) -> int:
        return START // 1_000_000 + at * 100 - 900_000

    def beside(topic: str, host: str, **more: Any) -> list[Row]:
        rows, parts = produced(30, 0.1, max_timestamp_ms=late)
        read = exchange("C2", 1, "Fetch", 0.5, client_id="in", client_ip=host)
        links = [CONNECTION, CONNECTION | {"client_id": "in", "client_ip": host}]
        links = [link | {"connection": f"C{at + 1}"} for at, link in enumerate(links)]
        fetched = part("C2", 1, api_key=1) | {"topic": topic, "max_timestamp_ms": late(0) + 20_000} | more
        return found("client-clock-skew", observed([*rows, read], [*parts, fetched], links))

    assert beside("in", "10.0.0.9") == []
    assert len(beside("t", "10.0.0.9")) == 1, "these are the producer's own"
    assert len(beside("in", "10.0.0.8")) == 1
    assert len(beside("in", "10.0.0.9", max_timestamp_ms=late(0) + 890_000)) == 1
    assert len(beside("in", "10.0.0.9", max_timestamp_ms=late(0) + 1_800_000)) == 1, "ahead, and what is written is behind"


def test_timestamps_that_stand_still_are_no_clock() -> None:
    """As those of the same records, which a program reads again after each of its crashes."""
    again = produced(30, 1.0, max_timestamp_ms=lambda at: START // 1_000_000 - 900_000 + at % 5)
    assert found("client-clock-skew", observed(*again)) == []


def test_timestamps_of_all_producers_that_are_off_by_the_same_show_the_capture_s_clock() -> None:
    year = 365 * 86_400_000

    def late(at: int) -> int:
        return START // 1_000_000 + at * 100 - year

    one, of_one = produced(30, 0.1, max_timestamp_ms=late)
    two, of_two = produced(30, 0.1, "other", "C2", max_timestamp_ms=late)
    seen = observed(one + two, of_one + of_two)
    assert (found("client-clock-skew", seen), len(found("client-clock-skew", seen, loud=False))) == ([], 2)
    links = [CONNECTION | {"connection": f"C{at}", "client_id": name, "client_ip": f"10.0.0.{at}"}
             for at, name in enumerate(("app", "other"), 1)]  # fmt: skip
    for apart, whose in (
        (links, "so that it is the capture's clock"),
        (links[:1], "on one host: it is its clock or the capture's"),
    ):
        said = found("client-clock-skew", observed(one + two, of_one + of_two, apart), loud=False)
        assert [row["sentence"].partition("; those of all producers are, ")[2] for row in said] == [whose] * 2
    two, of_two = produced(30, 0.1, "other", "C2", max_timestamp_ms=lambda at: late(at) + year)
    (row,) = found("client-clock-skew", observed(one + two, of_one + of_two))
    assert row["who"]["client_id"] == "app"


def test_one_partition_with_nearly_all_records_is_told_and_even_ones_are_not() -> None:
    skewed = produced(60, 0.1, partition=lambda at: at % 3, records=lambda at: 100 if at % 3 == 0 else 2)
    (row,) = found("skewed-partitions", observed(*skewed))
    few = produced(12, 0.1, partition=lambda at: at % 3, records=lambda at: 300 if at % 3 == 0 else 2)
    assert found("skewed-partitions", observed(*few)) == [], "a sticky partitioner fills few batches unevenly"
    assert (row["who"]["topic"], row["who"]["partition"]) == ("t", 0)
    assert found("skewed-partitions", observed(*produced(30, 0.1, partition=lambda at: at % 3, records=50))) == []


def test_a_topic_of_which_one_partition_alone_is_written_to() -> None:
    """A constant key: how many partitions there are stands in Metadata responses alone."""
    rows, parts = produced(30, 0.1, partition=2, records=50)

    def seen(partitions: int, *more: Row) -> list[Row]:
        asked = exchange("C9", 1, "Metadata", 0, response_bytes=300)
        said = {
            ("C9", 1, "response"): {
                "topics": [{"name": "t", "partitions": [{"partitionIndex": at} for at in range(partitions)]}]
            }
        }
        return found("skewed-partitions", observed([asked, *rows, *more], parts, messages=said), loud=False)

    (row,) = seen(6)
    assert row["severity"] == "info", "a client may have its own partition"
    assert row["sentence"].endswith("got 100% of 1,500 records; 1 partition of 6 was written to")
    assert seen(2) == []
    assert found("skewed-partitions", observed(rows, parts), loud=False) == [], "it may have one"
    half = [row | {"client_id": "other"} if row["exchange"] % 2 else row for row in rows]
    rows = half
    (row,) = seen(6)
    assert row["severity"] == "info", "a sticky partitioner that has not gone on yet"
    for part in parts:
        part["bytes"] = 65_536
    (row,) = seen(6)
    assert (row["severity"], row["who"]["client_ids"]) == ("medium", ["app", "other"]), "two clients with one partition"


def test_old_formats_are_told_by_their_versions() -> None:
    modern = exchange("C2", 1, "Fetch", 0, api_version=12)
    old = many(3, 1.0, api_version=2)
    (row,) = found("down-conversion", observed([*old, modern]))
    assert shown(row, [*old, modern]) == old
    assert row["evidence"]["versions"] == ["Produce v2"]
    assert found("down-conversion", observed(many(3, 1.0, api_version=3))) == []
    offers = {("C9", 1, "response"): {"apiKeys": [{"apiKey": 0, "minVersion": 0, "maxVersion": 2}]}}
    old = [*old, exchange("C9", 1, "ApiVersions", 0, api_version=0)]
    assert found("down-conversion", observed(old, messages=offers)) == [], "a broker before 0.11 stores these formats"
    assert found("down-conversion", observed(old)) == [], "what the broker offers is not in the capture"
    offers = {("C9", 1, "response"): {"apiKeys": [{"apiKey": 0, "minVersion": 0, "maxVersion": 9}]}}
    (row,) = found("down-conversion", observed(old, messages=offers))
    assert row["confidence"] == 0.9, "it offers versions of 0.11 and later"
    assert len(found("down-conversion", observed(many(3, 1.0, api_version=2)))) == 1, "a client that does not ask for versions"
    later = [CONNECTION | {"connection": "C1", "began": "midstream"}]
    assert found("down-conversion", observed(many(3, 1.0, api_version=2), connections=later)) == [], "it may have asked before"
    among = many(1, 1.0, "UpdateMetadata", connection="C7", api_version=1, client_id="0")
    assert found("down-conversion", observed(many(3, 1.0, api_version=2) + among)) == [], "so brokers before 0.11 speak"
    beside = [CONNECTION | {"connection": "C1"}, CONNECTION | {"connection": "C6", "client_id": None, "began": "midstream"}]
    assert found("down-conversion", observed(many(3, 1.0, api_version=2), connections=beside)) == [], "it was not seen whole"
    elsewhere = [beside[0], beside[1] | {"server_ip": "10.0.0.2"}]
    assert len(found("down-conversion", observed(many(3, 1.0, api_version=2), connections=elsewhere))) == 1, "another broker"
    newer = [row | {"api_version": 7} for row in among]
    (row,) = found("down-conversion", observed(many(3, 1.0, api_version=2) + newer, connections=beside))
    assert row["confidence"] == 0.9, "no earlier broker takes this version of UpdateMetadata"
    replicas = many(3, 1.0, "Fetch", connection="C8", api_version=3, client_id="ReplicaFetcherThread-0-1")
    assert found("down-conversion", observed(many(3, 1.0, api_version=2) + replicas)) == []


def test_a_producer_for_each_record() -> None:
    rows = [exchange(f"C{at}", 1, "Produce", at * 0.1, record_count=1) for at in range(30)]
    assert len(found("producer-per-record", observed(rows))) == 1
    assert found("producer-per-record", observed(many(30, 0.1, record_count=1))) == []
    fleet = [row | {"client_ip": f"10.0.1.{at}"} for at, row in enumerate(rows)]
    assert found("producer-per-record", observed(fleet)) == [], "instances of a service that write once each"
    refused = [row | {"outcome": "unanswered", "reason": "fin", "latency_ns": None} for row in rows]
    assert found("producer-per-record", observed(refused)) == [], "the broker closes, and the producer connects anew"


def test_batches_that_the_broker_compresses_anew() -> None:
    def seen(stored: str) -> list[Row]:
        rows = many(3, 1.0) + many(3, 1.0, "Fetch", connection="C2")
        put = [{"connection": "C1", "exchange": at + 1, "api_key": 0, "topic": "t", "partition": 0, "codec": "lz4",
                "base_offset": at * 10, "magic": 2} for at in range(3)]  # fmt: skip
        got = [{"connection": "C2", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 0, "codec": stored,
                "fetch_offset": at * 10, "magic": 2} for at in range(3)]  # fmt: skip
        return found("recompression", observed(rows, put + got))

    (row,) = seen("gzip")
    assert (row["evidence"]["written"], row["evidence"]["stored"]) == ("lz4", "gzip")
    assert seen("lz4") == []


def test_sequence_numbers_that_are_out_of_order() -> None:
    rows = many(4, 1.0)
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 0, "topic": "t", "partition": 0,
              "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"} for at in range(4)]  # fmt: skip
    assert len(found("sequence-errors", observed(rows, parts))) == 1
    assert found("sequence-errors", observed(rows, [part | {"error": "NONE"} for part in parts])) == []


def test_what_is_sent_behind_a_batch_without_a_response_is_out_of_order_until_it_is_sent_again() -> None:
    def seen(*errors: str | None, numbers: tuple[int, ...] = (0, 1, 2, 3)) -> str:
        rows = [exchange("C1", at + 1, "Produce", at, 0.001 if error else None, reason=None if error else "rst")
                for at, error in enumerate(errors)]  # fmt: skip
        parts = [part("C1", at + 1, error=error, base_sequence=numbers[at], records=1) for at, error in enumerate(errors)]
        (row,) = found("sequence-errors", observed(rows, parts), loud=False)
        return str(row["severity"])

    late = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert seen(None, late, late) == "low"
    assert seen("NONE", None, late, late) == "low"
    assert seen(None, late, late, numbers=(0, 0, 0)) == "high", "it is the batch itself that is refused"
    assert seen("NONE", late, late, None) == "high", "it was sent later"
    assert seen(None, "NONE", late, late, numbers=(0, 0, 2, 3)) == "high", "it was sent again, and taken"
    assert seen(None, "NONE", late, late) == "high", "the broker did not wait for it"
