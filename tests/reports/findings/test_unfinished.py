"""Rebalances that still wait when the capture ends."""

from typing import Any

from tests.reports.findings.tables import SECOND, Row, exchange, found, observed, shown


def member(name: str, *, joined: float = 0.0, waits: float | None = None, until: float = 30.0, **more: Any) -> list[Row]:
    """A member of group `g` that joined and sends heartbeats; from `waits` on its JoinGroup request waits until the end."""
    mine = {"group_id": "g", "client_id": name, "member_id": f"{name}-1", "client_ip": "10.0.0.9"} | more
    rows = [exchange(name, 1, "JoinGroup", joined, 0.5, generation=1, **mine)]
    end = until if waits is None else waits
    rows += [exchange(name, 2 + at, "Heartbeat", joined + 1 + at, generation=1, **mine) for at in range(int(end - joined) - 1)]
    if waits is not None:
        rows.append(
            exchange(name, 99, "JoinGroup", waits, None, reason="capture_end", age_ns=int((30 - waits) * SECOND), **mine)
        )
    return rows


def other(until: float = 29.0) -> list[Row]:
    """What a client of the coordinator does that is no member."""
    return [exchange("O", at + 1, "Metadata", at, client_id="other") for at in range(int(until))]


def said(*rows: Row) -> list[Row]:
    return found("rebalance-slow", observed(rows))


def test_members_that_wait_for_one_that_went_silent() -> None:
    rows = [*member("a", waits=20.0), *member("b", waits=22.0), *member("c", until=15.0), *other()]
    (row,) = said(*rows)
    assert row["sentence"] == (
        "a rebalance of group g was not done when the capture ended: 2 members (a, b) had waited for the response to JoinGroup "
        "for up to 10.0 s; it waits for 1 member (c) that did not join, and sent nothing for 16.0 s"
    )
    assert (row["severity"], row["who"], row["count"]) == ("medium", {"group_id": "g", "client_ids": ["c"]}, 2)
    assert len(shown(row, [{"reason": None, "group_id": None} | one for one in rows])) == 2


def test_members_that_wait_for_one_that_knows_of_it() -> None:
    late = member("c")
    knows = [
        one | {"error": "REBALANCE_IN_PROGRESS"} if one["request_first_ns"] > late[20]["request_first_ns"] else one
        for one in late
    ]
    (row,) = said(*member("a", waits=20.0), *member("b", waits=22.0), *knows, *other())
    assert row["sentence"].endswith("it waits for 1 member (c) that knew of it and did not join")
    assert row["evidence"]["late"] == 1
    assert row["evidence"]["heartbeats"] > 2


def test_a_member_that_left_or_is_unknown_is_not_named() -> None:
    gone = exchange("c", 90, "LeaveGroup", 16.0, group_id="g", client_id="c", member_id="c-1")
    refused = exchange("c", 90, "Heartbeat", 16.0, group_id="g", client_id="c", member_id="c-1", error="UNKNOWN_MEMBER_ID")
    for last in (gone, refused):
        (row,) = said(*member("a", waits=20.0), *member("b", waits=22.0), *member("c", until=15.0), last, *other())
        assert row["sentence"].endswith("the capture does not show for which member")
        assert (row["confidence"], row["who"]["client_ids"]) == (0.7, ["a", "b"])
    (row,) = said(*member("a", waits=20.0), *other())
    assert row["severity"] == "low", "one that joins a group of which the capture shows nothing else"


def test_what_is_no_rebalance_that_waits() -> None:
    silent = member("c", until=15.0)
    assert said(*member("a", waits=26.0), *silent, *other()) == [], "it has waited for four seconds"
    due = exchange("O", 99, "Metadata", 25.0, None, reason="capture_end", age_ns=5 * SECOND, client_id="other")
    assert said(*member("a", waits=20.0), *silent, *other(19.0), due) == [], "the coordinator responds to no request"
    (row,) = said(*member("a", waits=20.0), *silent, *other(19.0))
    assert row["confidence"] == 0.7, "none was sent to it meanwhile"
    (row,) = said(*member("a", waits=20.0), *silent, *other(28.0), due)
    assert row["confidence"] == 0.85, "it responded to others for long enough"
    closed = [row | {"reason": "fin"} if row["outcome"] == "unanswered" else row for row in member("a", waits=20.0)]
    assert said(*closed, *silent, *other()) == [], "the client gave up"
    assert said(*member("a"), *silent, *other()) == []
