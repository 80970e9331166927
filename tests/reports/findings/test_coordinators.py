"""Moves of coordinators, as clients learn of them."""

from tests.reports.findings.tables import exchange, found, observed


def test_requests_that_are_refused_together_are_of_one_move() -> None:
    homes = [exchange(f"C{n}", 1, "JoinGroup", n, group_id="g", server_ip=f"10.0.0.{n}") for n in (2, 3)]
    commits = [exchange("C1", 5 + at, "OffsetCommit", 8 * at + 0.1, group_id="g", error="NOT_COORDINATOR") for at in (0, 1)]
    pairs = [exchange("C1", 1 + at, "Heartbeat", 8 * at, group_id="g", error="NOT_COORDINATOR") for at in (0, 1)]
    assert found("coordinator-moves", observed(pairs + commits + homes)) == [], (
        "a request sent behind the first that is refused"
    )
    apart = [row | {"request_first_ns": row["request_first_ns"] + 1_000_000_000} for row in commits]
    assert len(found("coordinator-moves", observed(pairs + apart + homes))) == 1
