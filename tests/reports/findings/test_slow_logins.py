"""The rule on logins that a broker takes long for."""

from typing import Any

from tests.reports.findings.tables import SECOND, Row, exchange, found, many, observed


def logins(count: int, latency: float, first: float = 0.0, **more: Any) -> list[Row]:
    """Login requests on connections of their own, 2 s apart."""
    return [
        exchange(f"L{first:g}.{at}", 2, "SaslAuthenticate", first + 2 * at, latency, sasl_mechanism="SCRAM-SHA-256", **more)
        for at in range(count)
    ]


def said(*rows: list[Row]) -> list[Row]:
    return found("login-slow", observed([row for some in rows for row in some]))


METADATA = many(20, 1.0, "Metadata")


def test_slow_logins_are_compared_with_other_requests() -> None:
    (row,) = said(logins(4, 5.0), logins(6, 0.004, 20.0), METADATA)
    assert row["sentence"] == (
        "4 of 10 login requests took broker 10.0.0.1:9092 5.0 s (median), and other requests 1 ms meanwhile"
    )
    assert (row["severity"], row["confidence"]) == ("medium", 0.8)
    assert row["who"] == {"server": "10.0.0.1:9092", "client_ids": ["app"]}
    assert row["evidence"] == {
        "logins": 4, "login_requests": 10, "longest_ns": 5 * SECOND, "median_ns": 5 * SECOND, "others_median_ns": 1_000_000,
    }  # fmt: skip


def test_without_other_requests_it_is_less_sure() -> None:
    (row,) = said(logins(4, 5.0))
    assert row["sentence"] == "4 of 4 login requests took broker 10.0.0.1:9092 5.0 s (median)"
    assert (row["severity"], row["confidence"]) == ("low", 0.5)


def test_it_is_silent_where_nothing_shows_that_the_login_is_slow() -> None:
    assert said(logins(4, 0.9), METADATA) == []
    assert said(logins(2, 5.0), METADATA) == [], "too few"
    assert said(logins(4, 5.0), logins(20, 0.004, 20.0), METADATA) == [], "a small part of them"
    assert said(logins(4, 5.0), many(20, 1.0, "Metadata", latency=1.0)) == [], "the broker is slow with everything"
    assert said(logins(4, 5.0, error="SASL_AUTHENTICATION_FAILED", error_code=58), METADATA) == [], "delayed on purpose"
    assert said(logins(4, 5.0, flags=["retransmitted"]), METADATA) == [], "the network took the time"


def test_a_broker_that_stands_still_makes_no_login_slow() -> None:
    """Requests of all kinds wait for the same response times: broker-stall speaks of that."""
    waits = [exchange(f"M{at}", 1, "Metadata", 10 + at / 4, 6 - at / 4) for at in range(8)]
    slow = [exchange(f"L{at}", 2, "SaslAuthenticate", 10.1 + at / 4, 5.9 - at / 4) for at in range(4)]
    usual = many(40, 0.2, "Metadata")
    rows = observed([*usual, *waits, *slow])
    assert [row["id"] for row in (*found("broker-stall", rows), *found("login-slow", rows))] == ["broker-stall"]
