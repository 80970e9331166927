"""A group's timeline names what the wire shows, and no more."""

from dataclasses import replace
from typing import Any

import pytest

from kcap.reports.groups.events import Event
from kcap.reports.groups.timeline import fences_of, members_of, protocol_of, rebalances_of
from kcap.reports.text import assigned

S = 1_000_000_000


def event(api: str, at: float, member: str | None, epoch: int | None = 1, took: float = 0.01, **more: Any) -> Event:
    """An exchange of a member whose client is called as it is."""
    plain: dict[str, Any] = {
        "api": api, "client_id": (member or "?").split("-")[0], "client_ip": "10.0.0.1",
        "coordinator": "b1:9092", "first_ns": round(at * S), "last_ns": round((at + took) * S), "error": "NONE",
        "member_id": member, "instance_id": None, "epoch": epoch, "sent_epoch": None,
    }  # fmt: skip
    return Event(**plain | more)


def generation(at: float, number: int, *members: str, apart: float = 0.1, **more: Any) -> list[Event]:
    """Members join one after the other; each gets its response as the last has come."""
    end = at + apart * (len(members) - 1) + 0.01
    joins = [
        event("JoinGroup", at + apart * place, one, number, end - at - apart * place, **more)
        for place, one in enumerate(members)
    ]
    return joins + [event("SyncGroup", end, one, number, assignment={"t": [place]}) for place, one in enumerate(members)]


FIRST = generation(0, 1, "a-1", "b-1")


@pytest.mark.parametrize(
    ("between", "then", "cause", "who"),
    [
        ([event("LeaveGroup", 5, None, None, left=("b-1",))], generation(6, 2, "a-1"), "leave", ["b"]),
        ([event("LeaveGroup", 5, None, None, left=("b-1",), reason="consumer poll timeout has expired.")],
         generation(6, 2, "a-1"), "timeout", ["b"]),
        ([], generation(6, 2, "a-1"), "timeout", ["b"]),
        ([], generation(6, 2, "c-1", "a-1", "b-1"), "join", ["c"]),
        ([event("Heartbeat", 5, "a-1", error="NOT_COORDINATOR")], generation(6, 2, "a-1", "b-1"), "new coordinator", []),
        ([], generation(6, 2, "a-1", "b-1", coordinator="b2:9092"), "new coordinator", []),
        ([], generation(6, 2, "a-1", "b-1"), "rejoin", ["a"]),
        ([], generation(6, 2, "a-1", "b-1", reason="cached metadata has changed"), "metadata change", ["a"]),
        ([], generation(6, 2, "a-1", "b-1", reason="need to revoke partitions"), "revocation", ["a"]),
    ],
)  # fmt: skip
def test_a_rebalance_has_the_cause_that_the_wire_shows(
    between: list[Event], then: list[Event], cause: str, who: list[str]
) -> None:
    row = rebalances_of([*FIRST, *between, *then])[1]
    assert (row["cause"], row["who"], row["generation"]) == (cause, who, 2)


def test_who_is_no_member_yet_looks_for_the_coordinator_before_it_joins() -> None:
    """The topic of offsets of a new cluster is created meanwhile: nothing moved under the group's members."""
    looks = [event("JoinGroup", 0, None, -1, error="NOT_COORDINATOR")]
    (row,) = rebalances_of([*looks, *generation(2, 1, "a-1", fresh=True)])
    assert (row["cause"], row["who"], row["first_ns"]) == ("join", ["a"], 2 * S)
    beats = [event("Heartbeat", 0, "a-1", error="NOT_COORDINATOR")]
    assert rebalances_of([*beats, *generation(2, 5, "a-1")])[0]["cause"] == "new coordinator", "it is one already"


def test_a_group_that_was_empty_has_a_rebalance_from_the_next_join_on() -> None:
    """A connector that fails leaves its group without members; what it is restarted for seconds later is no long rebalance."""
    leaves = [event("LeaveGroup", 2, None, None, left=("a-1",))]
    alone, empty = [*generation(0, 1, "a-1"), *leaves], {"cause": "join", "first_ns": 9 * S}
    row = rebalances_of([*alone, *generation(9, 3, "c-1", fresh=True)])[1]
    assert {name: row[name] for name in empty} == empty
    assert row["duration_ns"] < S
    row = rebalances_of([*alone, *generation(9, 2, "c-1", fresh=True)])[1]
    assert (row["cause"], row["first_ns"]) == ("leave", 2 * S), "it joined before the other left"


def test_members_that_reach_one_coordinator_by_two_addresses_are_at_no_new_one() -> None:
    """As behind a load balancer, and where the capture has both sides of it: the last join of the one generation and the first
    of the next are at two addresses."""
    old = [*generation(0, 1, "a-1", coordinator="lb:9092"), *generation(0.5, 1, "b-1", coordinator="b1:9092")]
    new = [*generation(6, 2, "a-1", coordinator="lb:9092"), *generation(6.5, 2, "b-1", coordinator="b1:9092")]
    assert rebalances_of([*old, *new])[1]["cause"] == "rejoin"
    moved = generation(6, 2, "a-1", "b-1", coordinator="b2:9092")
    assert rebalances_of([*old, *moved])[1]["cause"] == "new coordinator"


def test_a_rebalance_waits_for_the_member_that_is_given_up() -> None:
    """b does not join: the others get their responses when its session is over, not when the last of them has joined."""
    late = [event("JoinGroup", 6 + place / 10, one, 2, 7 - place / 10) for place, one in enumerate(("c-1", "a-1"))]
    row = rebalances_of([*FIRST, *late])[1]
    assert (row["cause"], row["causes"]) == ("join", ["join", "timeout"])
    assert (row["waited_for"], row["waited_ns"]) == ("b", 7 * S)
    row = rebalances_of([*FIRST, *generation(6, 2, "c-1", "a-1")])[1]
    assert row["waited_for"] == "a", "its JoinGroup was the last and was answered at once"


def test_nothing_waits_for_a_member_whose_group_was_empty_meanwhile() -> None:
    """The group came to a generation without members when it gave the only one up; the broker waits for more members
    (group.initial.rebalance.delay.ms)."""
    joined = event("JoinGroup", 20, "b", 3, took=0.3)
    *_, row = rebalances_of([*generation(1, 1, "a"), joined])
    assert (row["generation"], row["waited_for"]) == (3, None)
    *_, row = rebalances_of([*generation(1, 1, "a"), replace(joined, epoch=2)])
    assert row["waited_for"] == "a", "it is given up as the other joins"


def test_the_first_rebalance_of_a_group_that_is_older_than_the_capture_has_no_known_cause() -> None:
    assert rebalances_of(generation(0, 7, "a-1"))[0]["cause"] == "unknown"
    assert rebalances_of(generation(0, 7, "a-1", fresh=True))[0]["cause"] == "join"
    asked = event("JoinGroup", 0, "a-1", -1, error="MEMBER_ID_REQUIRED")
    assert rebalances_of([asked, *generation(1, 1, "a-1")])[0]["cause"] == "join"


def test_members_stand_still_from_their_join_to_their_assignment_and_wait_for_the_last() -> None:
    (row,) = rebalances_of(generation(0, 1, "a-1", "b-1", apart=3))
    assert (row["waited_for"], row["waited_ns"]) == ("b", 3 * S)
    assert {one["client_id"]: one["stopped_ns"] for one in row["stopped"]} == {"a": 3_020_000_000, "b": 20_000_000}
    assert row["lost_ns"] == sum(one["stopped_ns"] for one in row["stopped"])
    assert row["duration_ns"] == 3_020_000_000


def test_a_static_member_that_comes_back_is_no_rebalance_but_the_other_is_fenced() -> None:
    back = event("JoinGroup", 3, "a-2", 1, instance_id="slot")
    fenced = event("Heartbeat", 4, "a-1", None, error="FENCED_INSTANCE_ID", instance_id="slot")
    events = [*generation(0, 1, "a-1"), back, event("SyncGroup", 3.1, "a-2", 1, assignment={"t": [0]}), fenced]
    assert [row["generation"] for row in rebalances_of(events)] == [1]
    assert [row["instance_id"] for row in fences_of(events)] == ["slot"]
    assert [row["member_id"] for row in members_of(events)] == ["a-1", "a-2"]


def test_members_have_each_change_of_their_assignment() -> None:
    rows = members_of([*FIRST, *generation(6, 2, "a-1")])
    assert [one["generation"] for one in rows[0]["assignments"]] == [1, 2]
    assert (rows[1]["first_ns"], len(rows[1]["assignments"])) == (int(0.1 * S), 1)


def beat(at: float, member: str, sent: int, epoch: int, **more: Any) -> Event:
    """A heartbeat of KIP-848."""
    return event("ConsumerGroupHeartbeat", at, member, epoch, sent_epoch=sent, **more)


def test_workers_of_connect_have_connectors_and_tasks() -> None:
    given = event("SyncGroup", 0, "a-1", assignment={"sink": [-1, 0], "copy": [2]}, protocol_type="connect")
    (row,) = members_of([given])
    change = row["assignments"][0]
    assert (change["connectors"], change["tasks"], change["topics"]) == (["sink"], ["sink-0", "copy-2"], given.assignment)
    assert assigned(change) == "connectors sink; tasks sink-0,copy-2"
    (row,) = members_of([replace(given, assignment={})])
    assert assigned(row["assignments"][0]) == "nothing"


def test_members_of_streams_groups_have_tasks() -> None:
    (row,) = members_of([event("StreamsGroupHeartbeat", 0, "a-1", assignment={"0": [0, 1], "1": [0]})])
    assert row["assignments"][0]["tasks"] == ["0_0", "0_1", "1_0"]
    assert assigned(row["assignments"][0]) == "tasks 0_0,0_1,1_0"
    (row,) = members_of([beat(0, "a-1", 0, 1, assignment={"t": [0, 1]})])
    assert assigned(row["assignments"][0]) == "t 0,1"


def test_a_member_of_the_new_protocol_waits_for_the_one_that_has_its_partitions() -> None:
    events = [
        beat(0, "a-1", 0, 1, assignment={"t": [0, 1]}), beat(5, "b-1", 0, 2, assignment={}),
        beat(7, "a-1", 1, 2, assignment={"t": [0]}), beat(8, "b-1", 2, 2, assignment={"t": [1]}), beat(9, "b-1", -1, -1),
    ]  # fmt: skip
    first, second, third = rebalances_of(events)
    assert protocol_of(events) == "consumer"
    assert (first["cause"], first["waited_for"]) == ("join", None)
    assert (second["cause"], second["waited_for"], second["lost_ns"]) == ("join", "a", 3_010_000_000)
    assert (third["cause"], third["who"], third["lost_ns"]) == ("leave", ["b"], 0)


def test_members_of_a_share_group_wait_for_no_other() -> None:
    """KIP-932: several read one partition, so that none is released first."""
    events = [
        beat(0, "a-1", 0, 1, assignment={"t": [0, 1]}), beat(5, "b-1", 0, 2, assignment={}),
        beat(7, "a-1", 1, 2, assignment={"t": [0]}), beat(8, "b-1", 2, 2, assignment={"t": [1]}),
    ]  # fmt: skip
    rows = rebalances_of([replace(one, api="ShareGroupHeartbeat") for one in events])
    assert [(row["cause"], row["waited_for"]) for row in rows] == [("join", None), ("join", None)]
    assert rows[1]["lost_ns"] == 3_010_000_000


def test_a_member_that_never_gets_partitions_and_stays_lost_no_known_time() -> None:
    (row,) = rebalances_of([beat(0, "a-1", 0, 1, assignment={}), beat(9, "a-1", 1, 1, error="UNRELEASED_INSTANCE_ID")])
    assert (row["waited_ns"], row["lost_ns"], row["stopped"]) == (None, 0, [])


@pytest.mark.parametrize(("error", "cause"), [("FENCED_MEMBER_EPOCH", "timeout"), ("NOT_COORDINATOR", "new coordinator")])
def test_errors_of_heartbeats_are_causes(error: str, cause: str) -> None:
    rows = rebalances_of([beat(0, "a-1", 0, 1, assignment={"t": [0]}), beat(5, "a-1", 1, 1, error=error)])
    assert [row["cause"] for row in rows] == ["join", cause]


def test_nothing_is_no_rebalance() -> None:
    assert rebalances_of([]) == []
    assert protocol_of([]) == "classic"


def test_work_grows_with_the_events_and_not_with_their_square() -> None:
    """Twenty thousand joins; comparing each with each would take minutes."""
    beats = [beat(at, f"m{at}-1", 0, at, assignment={"t": [0]}) for at in range(20_000)]
    assert len(rebalances_of(beats)) == len(beats)
    assert len(rebalances_of([one for at in range(5_000) for one in generation(at, at + 1, f"m{at}-1")])) == 5_000
