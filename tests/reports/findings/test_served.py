"""The broker's own time of requests, and which are late."""

from kcap.reports.findings.served import often_late, served
from tests.reports.findings.tables import MS, START, Row, exchange, observed

LIMIT = {"milliseconds": 50, "late": 5, "seconds": 2, "share": 0.5}


def test_what_waits_on_purpose_is_no_part_of_a_broker_s_time() -> None:
    rows = [
        exchange("C1", 1, "Produce", 0, 0.1, acks=-1, rtt_ns=10 * MS, throttle_ns=5 * MS, muted_ns=6 * MS, long_poll_ns=9 * MS),
        exchange("C1", 2, "Produce", 1, 0.02, acks=1),
        exchange("C1", 3, "Heartbeat", 2, 0.02),
        exchange("C1", 4, "Fetch", 3, 0.5),
        exchange("C1", 5, "CreateTopics", 4, 0.5),
        exchange("C1", 6, "Produce", 5, 0.2, acks=-1, flags=["retransmitted"]),
    ]
    seen = observed(rows)
    chosen, late = served(seen, LIMIT)
    values = seen.run(chosen.mutate(late=late).select("exchange", "own", "elapsed", "to_all", "late").order_by("exchange"))
    assert [tuple(row.values()) for row in values] == [
        (1, 70 * MS, 80 * MS, True, True), (2, 20 * MS, 20 * MS, False, False), (3, 20 * MS, 20 * MS, False, False),
    ]  # fmt: skip
    (fetch,) = seen.run(served(seen, LIMIT, "Fetch")[0].select("exchange"))
    assert fetch["exchange"] == 4


def test_many_are_late_by_their_number_or_by_the_time_that_they_take() -> None:
    row = {"n": 10, "slow": 5, "slow_ns": 0, "first_ns": START, "last_ns": START + 10_000 * MS, "late_ns": START,
           "late_until_ns": START + 2_000 * MS}  # fmt: skip
    assert often_late(row, LIMIT)
    assert not often_late(row | {"slow": 4}, LIMIT), "few"
    assert not often_late(row | {"late_until_ns": START + 1_999 * MS}, LIMIT), "one moment"
    assert not often_late(row | {"n": 11}, LIMIT)
    assert often_late(row | {"n": 11, "slow_ns": 5_000 * MS}, LIMIT), "they take half of the time"


def test_connections_whose_throttles_are_not_known_are_left_out_where_quotas_are_at_work() -> None:
    rows = [
        exchange("C1", 1, "Produce", 0, 0.5, throttle_time_ms=None),
        exchange("C1", 2, "Heartbeat", 1, 0.5),
        exchange("C2", 1, "Produce", 0, 0.5, throttle_time_ms=0),
        exchange("C3", 1, "Produce", 0, 0.5, throttle_time_ms=None, api_version=0),
    ]

    def compared(*more: Row) -> list[str]:
        seen = observed([*rows, *more])
        return sorted({row["connection"] for row in seen.run(served(seen, LIMIT)[0].select("connection"))})

    assert compared() == ["C1", "C2", "C3"], "no quota"
    throttled = exchange("C4", 1, "Produce", 2, 0.5, throttle_time_ms=700)
    assert compared(throttled) == ["C2", "C3", "C4"], "C1 may be muted; the oldest version has no throttles"
