"""Rules on share groups."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.findings.report import check
from kcap.reports.findings.sharing import LOST, Range, common, size_of
from kcap.reports.findings.source import observed as observed_of
from kcap.reports.source import ReportInput
from tests.reports.findings.tables import SECOND, Row, exchange, found, observed

ACCEPT, RELEASE = 1, 2
RANGES = st.lists(st.tuples(st.sampled_from("TU"), st.integers(0, 1), st.integers(0, 30), st.integers(0, 30)), max_size=8)


def acquires(first: int, last: int, count: int = 1, lock_ms: int = 3000) -> Row:
    """A ShareFetch response."""
    some = [{"firstOffset": first, "lastOffset": last, "deliveryCount": count}]
    return {
        "acquisitionLockTimeoutMs": lock_ms,
        "responses": [{"topicId": "T", "partitions": [{"partitionIndex": 0, "acquiredRecords": some}]}],
    }


def acknowledges(first: int, last: int, *kinds: int, topic: str = "T") -> Row:
    """A ShareAcknowledge or ShareFetch request."""
    some = [{"firstOffset": first, "lastOffset": last, "acknowledgeTypes": list(kinds) or [ACCEPT]}]
    return {"topics": [{"topicId": topic, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": some}]}]}


def mine(number: int, api: str, at: float, took: float = 0.0, **more: Any) -> Row:
    return exchange("C1", number, api, at, took, group_id="g", member_id="m", **more)


def refused(held: float, request: Row, error: str = LOST, records: int = 9, lock_ms: int = 3000) -> list[Row]:
    """What is said of records that are acknowledged `held` seconds after they came."""
    rows = [mine(1, "ShareFetch", 0, 0, record_count=records), mine(2, "ShareAcknowledge", held, error=error)]
    said = {("C1", 1, "response"): acquires(0, 8, lock_ms=lock_ms), ("C1", 2, "request"): request}
    return found("share-lock-expired", observed(rows, messages=said))


def test_an_acknowledgement_behind_the_end_of_the_lock_is_too_late() -> None:
    (row,) = refused(5, acknowledges(0, 8))
    assert "too late 1 time: up to 5.0 s after it got them, and their locks last 3.0 s" in row["sentence"]
    assert row["evidence"] == {"refused": 1, "too_late": 1, "held_ns": 5 * SECOND, "lock_ns": 3 * SECOND}
    assert (row["severity"], row["who"]) == ("high", {"client_id": "app", "group_id": "g"})
    assert refused(5, acknowledges(0, 8), error="NONE") == []


@pytest.mark.parametrize(
    ("held", "request_", "more"),
    [
        (2, acknowledges(0, 8), {}),
        (5, acknowledges(0, 8, topic="other"), {}),
        (5, acknowledges(9, 12), {}),
        (5, acknowledges(0, 8), {"records": 0}),
        (5, acknowledges(0, 8), {"lock_ms": 0}),
        (5, {}, {}),
    ],
    ids=["in-time", "other-topic", "other-records", "no-fetch", "no-timeout", "no-message"],
)
def test_where_the_time_is_not_proven_no_cause_is_named(held: float, request_: Row, more: dict[str, Any]) -> None:
    (row,) = refused(held, request_, **more)
    assert "too late" not in row["sentence"]
    assert (row["severity"], row["evidence"]["too_late"], row["lost_ns"]) == ("medium", 0, 0)


def delivered(counts: list[int], kind: int | None = RELEASE) -> list[Row]:
    """Deliveries of one record, each followed by an acknowledgement."""
    rows: list[Row] = []
    parts: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}
    for at, count in enumerate(counts):
        number = 2 * at + 1
        rows += [mine(number, "ShareFetch", at, record_count=1), mine(number + 1, "ShareAcknowledge", at + 0.5)]
        parts.append({"connection": "C1", "exchange": number, "api_key": 78, "group_id": "g", "topic": "t", "topic_id": "T",
                      "partition": 0, "delivery_count": count})  # fmt: skip
        said["C1", number, "response"] = acquires(7, 7, count)
        if kind is not None:
            said["C1", number + 1, "request"] = acknowledges(7, 7, kind)
    return found("share-redelivery", observed(rows, parts, messages=said))


def test_a_record_that_is_delivered_again_and_again_is_told() -> None:
    (row,) = delivered([1, 2, 3, 4, 5])
    assert row["sentence"] == (
        "share group g got 1 record of topic t again and again, up to 5 times each; app released them in 3 requests"
    )
    assert (row["severity"], row["count"], row["evidence"]["records"]) == ("high", 3, 1)
    (row,) = delivered([1, 2, 3])
    assert row["severity"] == "medium", "the last delivery is the fifth, where nothing else is set"
    assert delivered([1, 2, 1, 2, 1, 2]) == [], "once more is what share groups are for"


@pytest.mark.parametrize("kind", [ACCEPT, None])
def test_a_release_is_told_of_members_that_release(kind: int | None) -> None:
    (row,) = delivered([1, 2, 3], kind)
    assert "released" not in row["sentence"]
    assert row["evidence"]["released"] == 0


def test_records_beside_those_that_are_released_are_not_said_to_be() -> None:
    """An acknowledgement has a type for each record; of three that come again, one is released."""
    rows = [mine(number, api, number, record_count=3) for number, api in
            ((1, "ShareFetch"), (2, "ShareAcknowledge"), (3, "ShareFetch"), (4, "ShareAcknowledge"))]  # fmt: skip
    parts = [{"connection": "C1", "exchange": number, "api_key": 78, "topic": "t", "topic_id": "T", "partition": 0,
              "delivery_count": 3} for number in (1, 3)]  # fmt: skip

    def how(*kinds: int) -> str:
        said = {("C1", number, "response"): acquires(5, 7, 3) for number in (1, 3)}
        said |= {("C1", number, "request"): acknowledges(5, 7, *kinds) for number in (2, 4)}
        (row,) = found("share-redelivery", observed(rows, parts, messages=said))
        return str(row["sentence"]).partition("; ")[2]

    assert how(RELEASE) == how(RELEASE, RELEASE, RELEASE) == "app released them in 2 requests"
    assert how(ACCEPT, RELEASE, ACCEPT) == "app released 1 of them in 2 requests"
    assert how(ACCEPT, ACCEPT, ACCEPT) == ""


@given(RANGES, RANGES)
def test_what_ranges_have_in_common(some: list[Range], others: list[Range]) -> None:
    def each(ranges: list[Range]) -> set[tuple[str, int, int]]:
        return {(topic, part, offset) for topic, part, first, last in ranges for offset in range(first, last + 1)}

    assert each(common(some, others)) == each(some) & each(others)


@given(RANGES)
def test_each_record_counts_once(some: list[Range]) -> None:
    each = {(topic, part, offset) for topic, part, first, last in some for offset in range(first, last + 1)}
    assert size_of(some) == len(each)


def test_records_without_end_are_counted_at_once() -> None:
    assert size_of([("T", 0, 0, 2**62), ("T", 0, 5, 2**62 + 1)]) == 2**62 + 2


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("share-lock-expired", {"share-lock-expired": 2, "share-redelivery": 1}),
        ("share-acknowledged-by-fetch", {"share-lock-expired": 1}),
        ("share-redelivery", {"share-redelivery": 6}),
        ("share-poll-stall", {"share-lock-expired": 4, "share-redelivery": 3, "poll-stall": 3}),
        ("share-member-lost", {"member-lost": 1}),
        ("healthy-share-group", {}),
        ("healthy-streams-group", {}),
    ],
)
def test_captures_have_what_was_planted_and_no_more(pcaps: Path, name: str, rules: dict[str, int]) -> None:
    with observed_of(ReportInput([str(pcaps / "problems" / f"{name}.pcap")])) as seen:
        rows = [row for row in check(seen)["rows"] if row["severity"] != "info"]
    assert {row["id"]: row["count"] for row in rows} == rules
