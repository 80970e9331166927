"""Offsets that two leaders gave to different records."""

from typing import Any

from tests.reports.findings.tables import SECOND, START, Row, exchange, found, observed

RULE = "records-lost"
SECOND_LEADER = {"server_ip": "10.0.0.2"}


def batch(number: int, at: float, offset: int, records: int = 1, error: str = "NONE", **more: Any) -> tuple[Row, Row]:
    """A Produce of one batch, and its partition; `more` are columns of the partition, or of the exchange where it has them."""
    place = {name: more.pop(name) for name in ("server_ip", "client_id", "connection", "cluster_id") if name in more}
    connection = place.pop("connection", "C1")
    row = exchange(connection, number, "Produce", at, error=error, acks=1, **{"cluster_id": "c", **place})
    part = {
        "connection": connection, "exchange": number, "api_key": 0, "topic": "orders", "partition": 0, "error": error,
        "base_offset": offset, "records": records, "bytes": 80 + number, "magic": 2, "batches": 1, "producer_id": -1,
        "max_timestamp_ms": START // 1_000_000 + int(at * 1000),
    }  # fmt: skip
    return row, part | more


def lost(*batches: tuple[Row, Row]) -> list[Row]:
    return found(RULE, observed([row for row, _ in batches], [part for _, part in batches]), loud=False)


BEFORE = [batch(at, at, 10 + at) for at in range(1, 6)]


def moved(number: int, at: float, offset: int, **more: Any) -> tuple[Row, Row]:
    return batch(number, at, offset, connection="C2", **SECOND_LEADER, **more)


def test_offsets_that_a_new_leader_gives_again_are_records_that_are_lost() -> None:
    (row,) = lost(*BEFORE, moved(1, 6, 14), moved(2, 7, 15, records=3), moved(3, 8, 18))
    assert (row["severity"], row["count"]) == ("critical", 2)
    assert row["evidence"] == {"records": 2, "partitions": 1}
    assert row["sentence"] == (
        "leaders gave 2 offsets of 1 partition of topic orders to two different records each: 2 acknowledged records are lost"
    )
    (row,) = lost(*BEFORE, moved(1, 6, 13, records=3))
    assert row["evidence"]["records"] == 3, "13 to 15 were those of three batches"
    (row,) = lost(*BEFORE, moved(1, 6, 15))
    assert row["sentence"].endswith("1 acknowledged record is lost")


def test_leaders_that_go_on_where_the_last_one_ended_lose_nothing() -> None:
    assert lost(*BEFORE, moved(1, 6, 16), moved(2, 7, 20)) == []
    assert lost(*BEFORE, moved(1, 6, 14, error="NOT_LEADER_OR_FOLLOWER")) == [], "refused"
    assert lost(*BEFORE, moved(1, 6, 14, partition=1)) == []


def test_a_batch_that_is_sent_again_or_captured_twice_is_one() -> None:
    again = {"bytes": 85, "max_timestamp_ms": START // 1_000_000 + 5000}
    assert lost(*BEFORE, moved(1, 6, 15, **again)) == []


def test_a_log_that_begins_again_is_another_one() -> None:
    anew = [moved(at, 20 + at, at - 1) for at in range(1, 20)]
    assert lost(*BEFORE, *anew) == [], "at offset 0"
    gone = batch(9, 10, 0, error="UNKNOWN_TOPIC_OR_PARTITION")
    assert lost(*BEFORE, gone, *anew[3:]) == [], "clients saw it go"
    ids = [(row, part | {"topic_id": "p4PYGqV8QNq4BeiYIeXf-Q"}) for row, part in BEFORE]
    assert lost(*ids, moved(1, 30, 14, topic_id="E9lrRsgOR4OX8XH7OsMjUA")) == [], "it has another id"


def test_offsets_are_those_of_one_cluster_and_of_several_leaders() -> None:
    unknown = [batch(at, at, 10 + at, cluster_id=None) for at in range(1, 6)]
    assert lost(*unknown, moved(1, 6, 14, cluster_id=None)) == [], "two clusters may have topics of one name"
    assert lost(*BEFORE, batch(1, 6, 14, connection="C2")) == [], "the broker is the same"


def test_the_finding_lasts_from_the_first_to_the_last_offset_that_was_given_again() -> None:
    (row,) = lost(*BEFORE, moved(1, 6, 14), moved(2, 7, 15))
    assert row["last_ns"] - row["first_ns"] >= SECOND // 2
