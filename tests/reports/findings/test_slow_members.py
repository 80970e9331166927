"""Members that work for too long between polls: one finding names them, and what follows for their group is in it or below."""

from typing import Any

from kcap.reports.findings.report import check
from tests.reports.findings.tables import Row, exchange, observed


def of_group(connection: str, number: int, api: str, at: float, took: float = 0.1, **more: Any) -> Row:
    """A request of group `g`."""
    return exchange(
        connection, number, api, at, took, **{"group_id": "g", "client_id": connection, "member_id": connection, **more}
    )


def looping(*more: Row) -> list[Row]:
    """A group of `slow` and `good` with 10 generations in 90 s."""
    return [
        of_group(name, 10 * at, "JoinGroup", 10 * at + 2, generation=at) for at in range(1, 11) for name in ("slow", "good")
    ] + [*more]


def found(rows: list[Row], messages: dict[Any, Any] | None = None) -> list[Row]:
    """What is above info."""
    return [row for row in check(observed(rows, messages=messages or {}))["rows"] if row["severity"] != "info"]


def leaving(times: int) -> list[Row]:
    """`slow` leaves so often, to join again."""
    return [of_group("slow", 10 * at - 1, "LeaveGroup", 10 * at) for at in range(2, 2 + times)]


def test_a_loop_names_the_member_that_left_and_that_is_all() -> None:
    said = {("slow", 19, "request"): {"members": [{"reason": "consumer poll timeout has expired."}]}}
    (row,) = found(looping(*leaving(4)), said)
    assert (row["id"], row["severity"], row["confidence"]) == ("rebalance-loop", "high", 0.95)
    assert row["who"] == {"group_id": "g", "client_id": "slow", "client_ids": ["good", "slow"]}
    assert "client slow left 4 times and came back, away for 8.0 s in all; its reason: consumer poll" in row["sentence"]
    assert "max.poll.interval.ms" in row["advice"]


def test_without_a_loop_the_member_itself_is_the_finding() -> None:
    (row,) = found([row for row in looping(*leaving(2)) if row["request_first_ns"] < looping()[6]["request_first_ns"]])
    assert row["id"] == "poll-stall"


def test_without_the_rule_on_loops_the_member_is_the_finding_as_well() -> None:
    """`--only poll-stall` and `--skip rebalance-loop` say what they can say."""
    rows = observed(looping(*leaving(4)))
    assert [row["id"] for row in check(rows, only=["poll-stall"])["rows"]] == ["poll-stall"]
    rows = observed(looping(*leaving(4)))
    assert "poll-stall" in [row["id"] for row in check(rows, skip=["rebalance-loop"])["rows"]]


def late(name: str, *times: float) -> list[Row]:
    """Heartbeats that say that the group rebalances."""
    return [of_group(name, 500 + at, "Heartbeat", time, error="REBALANCE_IN_PROGRESS") for at, time in enumerate(times)]


def refused(name: str) -> list[Row]:
    """Four commits of a member that was removed."""
    return [of_group(name, 600 + at, "OffsetCommit", 30 + at, error="UNKNOWN_MEMBER_ID") for at in range(4)]


def test_a_loop_names_the_member_that_it_waits_for_and_that_is_all() -> None:
    (row,) = found(looping(*late("slow", 31, 34), of_group("good", 499, "JoinGroup", 30, 8.0, generation=3)))
    assert (row["id"], row["confidence"]) == ("rebalance-loop", 0.9)
    assert "it waited up to 8.0 s for slow, which knew of it and did not join" in row["sentence"]


def test_commits_of_a_late_member_fail_for_that_reason_and_those_of_others_for_another() -> None:
    wait = of_group("good", 1, "JoinGroup", 20, 8.0, generation=3)
    above, below = found([wait, *late("slow", 21, 24), *refused("slow")])
    assert (above["id"], above["severity"]) == ("rebalance-slow", "medium")
    assert (below["id"], below["severity"], below["evidence"]["explained_by"]) == ("commit-failed", "low", "rebalance-slow")
    alone = [row for row in found([wait, *late("slow", 21, 24), *refused("good")]) if row["id"] == "commit-failed"]
    assert [row["severity"] for row in alone] == ["medium"]
