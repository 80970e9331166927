"""Rules on quotas."""

from tests.reports.findings.tables import CONNECTION, MS, SECOND, Row, exchange, found, many, observed


def throttled(count: int, next_after: float) -> list[Row]:
    """Responses that throttle for a second, each followed by a request after so many seconds."""
    rows = []
    for at in range(count):
        begin = at * 10.0
        more = {"api_key": 0, "api_version": 9}
        rows.append(exchange("C1", 2 * at + 1, "Produce", begin, throttle_time_ms=1000, throttle_ns=0, **more))
        rows.append(exchange("C1", 2 * at + 2, "Produce", begin + next_after, throttle_time_ms=0, throttle_ns=0, **more))
    return rows


def test_a_client_that_waits_is_clean() -> None:
    seen = observed(throttled(8, 1.5))
    assert found("throttled-disobedient", seen) == []
    (row,) = found("throttled-obedient", seen, loud=False)
    assert (row["severity"], row["evidence"]["complied"], row["evidence"]["muting"]) == ("info", 8, 8)
    assert row["lost_ns"] == 8000 * MS


def test_a_client_that_goes_on_is_named() -> None:
    seen = observed(throttled(8, 0.2))
    (row,) = found("throttled-disobedient", seen)
    assert row["evidence"]["complied"] == 0
    assert found("throttled-obedient", seen, loud=False) == []


def test_a_client_that_leaves_its_throttled_connections_does_not_wait() -> None:
    rows = [row | {"connection": f"C{row['exchange']}"} for row in throttled(8, 0.2)]
    links = [CONNECTION | {"connection": row["connection"], "closed_ns": row["response_last_ns"] + 100 * MS} for row in rows]
    seen = observed(rows, connections=links)
    (row,) = found("throttled-disobedient", seen)
    assert (row["evidence"]["left"], row["evidence"]["elsewhere"]) == (8, 8)
    assert row["lost_ns"] == 800 * MS, "no longer than the connections lasted"
    assert found("throttled-obedient", seen, loud=False) == []
    by_server = observed(rows, connections=[link | {"closed_by": "server"} for link in links])
    assert found("throttled-disobedient", by_server) == []
    waited = observed(rows, connections=[link | {"closed_ns": link["closed_ns"] + SECOND} for link in links])
    assert found("throttled-disobedient", waited) == []


def test_without_throttles_nothing_is_said() -> None:
    seen = observed([row | {"throttle_time_ms": 0} for row in throttled(8, 0.2)])
    assert found("throttled-disobedient", seen) == found("throttled-obedient", seen, loud=False) == []


def test_a_quota_that_is_too_small_is_worth_knowing() -> None:
    rows = many(10, 1.0, throttle_time_ms=900, api_key=0, throttle_ns=0)
    (row,) = found("quota-too-small", observed(rows), loud=False)
    assert row["severity"] == "info"
    assert found("quota-too-small", observed(many(10, 1.0, throttle_time_ms=9, api_key=0, throttle_ns=0)), loud=False) == []


def test_throttles_at_the_same_time_count_once() -> None:
    """Three connections that are each throttled a fifth of their time, and one whose pipelined requests are all throttled."""
    quota = {"api_key": 0, "api_version": 9, "throttle_ns": 0}
    apart = [
        exchange(f"C{link}", at, "Produce", at * 1.0, throttle_time_ms=200, **quota) for link in range(3) for at in range(1, 9)
    ]
    assert found("quota-too-small", observed(apart), loud=False) == []
    piped = [exchange("C1", at, "Produce", 0.01 * at, throttle_time_ms=1000 - 10 * at, **quota) for at in range(10)]
    (row,) = found("quota-too-small", observed(piped), loud=False)
    assert row["evidence"]["throttle_ms"] > 9000
    assert 0.9 < row["evidence"]["share"] <= 1
    assert row["lost_ns"] <= SECOND


def test_connections_that_do_not_name_their_software_are_those_of_the_clients_only_program() -> None:
    rows = throttled(4, 0.2)
    other = [row | {"connection": "C2"} for row in rows]
    named = [row | {"software_name": "platformatic-kafka"} for row in rows]
    (row,) = found("throttled-disobedient", observed(named + other))
    assert (row["evidence"]["throttles"], row["who"]["software"]) == (8, "platformatic-kafka")
    second = [row | {"connection": "C3", "software_name": "kgo"} for row in rows]
    assert len(found("throttled-disobedient", observed(named + other + second))) == 3
