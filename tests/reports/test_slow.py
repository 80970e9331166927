"""The slowest, and why: a row for each part that a latency can have."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import kcap
from kcap.filter.parse import parse
from kcap.limits import SLOW_MESSAGE_BYTES
from kcap.reports.definition import ReportRequest, Row
from kcap.reports.run import run
from kcap.reports.slow import REPORT, SOURCE, headed, largest, verdict, why
from kcap.reports.source import ReportInput
from kcap.reports.text import instant
from tests.reports.made import BASE_NS, MS, exchange, report


def slowest(rows: list[Row], **asked: Any) -> list[Row]:
    reported: list[Row] = report(REPORT, rows, ReportRequest(**asked))["rows"]
    return reported


def test_the_slowest_first_and_no_more_than_asked_for() -> None:
    rows = [exchange(exchange=n, took_ms=took) for n, took in enumerate([3, 9, 5, 9], 1)]
    assert [row["exchange"] for row in slowest(rows)] == ["C1.2", "C1.4", "C1.3", "C1.1"]
    assert [row["exchange"] for row in slowest(rows, top=1)] == ["C1.2"]


def test_the_blocker_is_named() -> None:
    """The request that the broker worked on longest, of those that were there first and still unanswered."""
    rows = [
        exchange(exchange=1, at_ms=0, took_ms=2, service_ns=2 * MS),
        exchange(exchange=2, at_ms=1, took_ms=80, service_ns=79 * MS, api="Produce"),
        exchange(exchange=3, at_ms=1, took_ms=81, service_ns=1 * MS, queue_ns=80 * MS),
        exchange(exchange=4, at_ms=3, took_ms=82, service_ns=2 * MS, queue_ns=80 * MS),
    ]
    found = {row["exchange"]: row for row in slowest(rows)}
    assert found["C1.4"]["cause"] == "queue"
    assert found["C1.4"]["why"] == "80.0ms in the queue behind C1.2 (Produce, which took 79.0ms)"


def test_the_throttle_behind_a_mute_is_named() -> None:
    rows = [
        exchange(exchange=1, took_ms=1, throttle_time_ms=500),
        exchange(exchange=2, at_ms=2, took_ms=490, muted_ns=480 * MS),
    ]
    assert slowest(rows)[0]["why"] == "480ms on a connection that was muted after a throttled response by C1.1 (500 ms)"


PARTS = {"rtt_ns": 0, "queue_ns": 0, "service_ns": 0, "long_poll_ns": 0, "throttle_ns": 0, "muted_ns": 0}
CASES = {
    "network": {"rtt_ns": 9}, "queue": {"queue_ns": 9}, "service": {"service_ns": 9},
    "long_poll": {"service_ns": 9, "long_poll_ns": 8}, "throttle": {"service_ns": 9, "throttle_ns": 8},
    "muted": {"service_ns": 9, "muted_ns": 8}, "unknown": {"service_ns": None},
}  # fmt: skip


@pytest.mark.parametrize("cause", CASES)
def test_the_largest_part_is_the_cause(cause: str) -> None:
    found, words = why(exchange(**PARTS | CASES[cause]), None, None, long_polls=True)
    assert found == cause
    assert words


def test_large_messages_and_waits_are_said() -> None:
    service = PARTS | {"service_ns": 9 * MS}
    assert "large message, 1.0 MiB" in why(exchange(response_bytes=SLOW_MESSAGE_BYTES, **service), None, None)[1]
    assert "followers" in why(exchange(api="Produce", acks=-1, **service), None, None)[1]
    assert "followers" not in why(exchange(api="Produce", acks=1, **service), None, None)[1]
    assert "members" in why(exchange(api="JoinGroup", **service), None, None)[1]


def test_what_a_broker_refuses_has_not_waited() -> None:
    """KIP-394: the first JoinGroup of a member gets MEMBER_ID_REQUIRED at once. A Produce that timed out was appended."""
    service = PARTS | {"service_ns": 9 * MS}
    for api, error in (
        ("JoinGroup", "MEMBER_ID_REQUIRED"),
        ("Produce", "NOT_LEADER_OR_FOLLOWER"),
        ("Fetch", "UNKNOWN_TOPIC_ID"),
    ):
        assert why(exchange(api=api, error=error, acks=-1, **service), None, None)[1] == "9.00ms in the broker"
    assert "followers" in why(exchange(api="Produce", error="REQUEST_TIMED_OUT", acks=-1, **service), None, None)[1]


@pytest.mark.parametrize(
    ("brokers", "said"),
    {None: "may have waited for followers (acks=all)", 3: "may have waited for followers (acks=all)", 1: ""}.items(),
)
def test_replicas_are_waited_for_only_where_the_cluster_may_have_them(brokers: int | None, said: str) -> None:
    row = exchange(api="Produce", acks=-1, cluster_brokers=brokers, **PARTS | {"service_ns": 9 * MS})
    assert why(row, None, None)[1] == "9.00ms in the broker: appended" + (said and f", and {said}")


def test_a_cluster_of_one_broker_is_known_by_its_metadata(pcaps: Path) -> None:
    """The programs produced with acks=all to one broker (go-franz) and to three (java-transactions)."""
    found = {}
    for name in ("go-franz", "java-transactions"):
        rows = run(REPORT, ReportInput([str(pcaps / f"{name}.pcap")], only=parse("api == Produce")), ReportRequest())["rows"]
        found[name] = {(row["cluster_brokers"], "followers" in row["why"]) for row in rows if row["cause"] == "service"}
    assert found == {"go-franz": {(1, False)}, "java-transactions": {(3, True)}}


def test_tables_that_were_saved_without_the_number_of_brokers_are_read(pcaps: Path, tmp_path: Path) -> None:
    saved = tmp_path / "rows.parquet"
    parquet.write_table(kcap.open(str(pcaps / "go-franz.pcap")).exchanges().to_arrow(), saved)
    rows = run(REPORT, ReportInput([str(saved)], only=parse("api == Produce")), ReportRequest())["rows"]
    assert {"followers" in row["why"] for row in rows if row["cause"] == "service"} == {True}


def test_long_polls_are_subtracted_and_no_exchange_is_left_out() -> None:
    """Law: exchanges are in the order of their latency less the long poll, unless long polls are asked for."""
    rows = [exchange(exchange=1, took_ms=500, long_poll_ns=499 * MS), exchange(exchange=2, took_ms=400, long_poll_ns=10 * MS)]
    assert [(row["exchange"], row["timed_ns"], row["cause"]) for row in slowest(rows)] == [
        ("C1.2", 390 * MS, "service"), ("C1.1", 1 * MS, "service"),
    ]  # fmt: skip
    assert [(row["exchange"], row["cause"]) for row in slowest(rows, long_polls=True)] == [
        ("C1.1", "long_poll"),
        ("C1.2", "service"),
    ]
    assert report(REPORT, rows)["left_out"] == {}


def test_the_oldest_without_an_answer_stand_beside() -> None:
    rows = [exchange(exchange=n, outcome="unanswered", reason="fin", age_ns=n) for n in (1, 3, 2)]
    reported = report(REPORT, rows)
    assert reported["rows"] == []
    assert [row["age_ns"] for row in reported["unanswered"]] == [3, 2, 1]


def test_the_verdict_names_what_most_of_the_slowest_have_in_common() -> None:
    """Part of the time, API, client and broker, counted; requests without a response are said."""
    one = {"cause": "queue", "timed_ns": 3_000_000, **dict.fromkeys(SOURCE, "x"), "api": "Fetch"}
    two = one | {"cause": "service", "timed_ns": 2_000_000}
    found = verdict([one, one, two], [{"age_ns": 5_000_000_000}], 2)
    assert (found["cause"], found["of_cause"], found["of_source"]) == ("queue", 2, 3)
    assert found["sentence"].startswith(
        "The slowest 3 exchanges took 2.00ms to 3.00ms; 2 spent the largest part of that in the"
    )
    assert found["sentence"].endswith("2 requests have no response, the oldest after 5.00s.")
    assert verdict([], [], 0) == {"sentence": "No request was answered."}


def test_a_row_has_the_time_of_its_request_and_requests_without_a_response_stand_beside() -> None:
    rows = [
        exchange(exchange=1, at_ms=3000, took_ms=7, api="Fetch"),
        exchange(exchange=2, at_ms=1, outcome="unanswered", reason="fin", age_ns=None),
        exchange(exchange=3, at_ms=2, outcome="unanswered", reason="fin", age_ns=0),
        exchange(exchange=4, outcome="orphan", request_first_ns=None, response_first_ns=BASE_NS),
        exchange(exchange=5, outcome="one_way"),
        exchange(exchange=6, outcome="one_way"),
        exchange(exchange=7),
    ]
    reported = report(REPORT, rows)
    (row,) = reported["rows"]
    assert (row["time_ns"], row["time"]) == (BASE_NS + 3000 * MS, instant(BASE_NS + 3000 * MS))
    assert reported["left_out"] == {"unanswered": 2, "one_way": 2, "orphan": 1, "no_latency": 1}
    assert {one["exchange"] for one in reported["unanswered"]} == {"C1.2", "C1.3"}
    assert headed({"connection": "C1", "exchange": 4, "request_first_ns": None, "response_first_ns": BASE_NS}) == {
        "exchange": "C1.4", "time": instant(BASE_NS), "time_ns": BASE_NS,
    }  # fmt: skip
    nothing = headed({"connection": "C1", "exchange": 4, "request_first_ns": None, "response_first_ns": None})
    assert (nothing["time"], nothing["time_ns"]) == (None, None)


def test_where_no_time_was_measured_nothing_is_named() -> None:
    """As of packets of one reading of the clock, and of long polls, whose time does not count."""
    assert why(exchange(**PARTS), None, None) == ("unknown", "no time that the clock of the capture can show")
    poll = exchange(**PARTS | {"service_ns": 9, "long_poll_ns": 9})
    assert why(poll, None, None) == ("unknown", "no time apart from its long poll")


def test_parts_that_are_not_known_are_no_time() -> None:
    """What the parts inside of the service take is no service; without any the service is the whole of it, also where the parts
    are null."""
    assert largest(exchange(service_ns=10, long_poll_ns=3, throttle_ns=4, muted_ns=1)) == ("throttle", 4)
    assert largest(exchange(service_ns=1, queue_ns=None, rtt_ns=None)) == ("service", 1)
    assert largest(exchange(service_ns=0, queue_ns=0, rtt_ns=0))[1] == 0
    assert largest(exchange(service_ns=None, queue_ns=9)) == ("unknown", 0)


def test_the_largest_part_need_not_be_most_of_the_time() -> None:
    """Of 10 ms 4 were in the broker, 3 in the queue and 3 on the network."""
    row = exchange(took_ms=10) | {"service_ns": 4 * MS, "queue_ns": 3 * MS, "rtt_ns": 3 * MS}
    sentence = report(REPORT, [row])["verdict"]["sentence"]
    assert sentence.startswith("The slowest exchange took 10.0ms, the largest part of it in the broker: Metadata of client app")


def test_writes_that_followers_acknowledge_are_not_put_down_to_the_broker_alone() -> None:
    """They are those with acks=all; of a cluster of one broker see above."""

    def said(*writes: Row) -> str:
        sentence: str = report(REPORT, [exchange(exchange=at, took_ms=9, api="Produce", api_key=0, **write)
                                        for at, write in enumerate(writes)])["verdict"]["sentence"]  # fmt: skip
        return sentence

    all_, one = {"acks": -1}, {"acks": 1}
    assert "in the broker, or in its wait for followers (acks=all;" in said(all_)
    assert "in the broker, or in its wait for followers (acks=all;" in said(all_, all_, one)
    for writes in ([one], [all_, one]):
        assert "in the broker" in said(*writes)
        assert "followers" not in said(*writes)


def test_the_verdict_says_the_range_of_the_slowest() -> None:
    rows = [exchange(exchange=number, took_ms=took) for number, took in enumerate((9, 7, 5), 1)]
    assert report(REPORT, rows)["verdict"]["sentence"].startswith("The slowest 3 exchanges took 5.00ms to 9.00ms;")
