"""Rules on consumer groups: where they speak, and where they are silent."""

from typing import Any

import pytest

from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, found, many, observed
from tests.reports.findings.test_refusing import refused


def joins(count: int, step: float, **more: object) -> list[Row]:
    return [
        exchange("C1", at + 1, "JoinGroup", at * step, group_id="g", generation=at + 1, member_id="m", **more)
        for at in range(count)
    ]


def test_a_group_that_rebalances_each_second_is_a_loop_and_a_start_is_none() -> None:
    (row,) = found("rebalance-loop", observed(joins(8, 1.0)))
    assert row["who"]["group_id"] == "g"
    assert row["evidence"]["rebalances"] == 8
    assert found("rebalance-loop", observed(joins(3, 0.3))) == []


def test_rebalances_hours_apart_are_no_loop() -> None:
    assert found("rebalance-loop", observed(joins(8, 3600.0))) == []


def test_connectors_that_are_made_or_changed_are_no_loop_and_workers_that_come_and_go_are() -> None:
    """A worker of Kafka Connect that starts with three connectors joins again five times within seconds."""
    said = {("C1", number, "request"): {"protocolType": "connect"} for number in range(9)}
    alone = [row | {"member_id": "worker-1"} for row in joins(8, 1.0)]
    assert found("rebalance-loop", observed(alone, messages=said)) == []
    assert len(found("rebalance-loop", observed(alone))) == 1, "a consumer has no reason to join again by itself"
    churn = [row | {"member_id": f"worker-{at}"} for at, row in enumerate(alone)]
    (row,) = found("rebalance-loop", observed(churn, messages=said))
    assert row["count"] == 8


def test_a_member_that_leaves_and_comes_back_is_named() -> None:
    leaves = [exchange("C2", at + 1, "LeaveGroup", at + 0.5, group_id="g", client_id="slow") for at in range(4)]
    back = [exchange("C2", at + 9, "JoinGroup", at + 0.7, group_id="g", client_id="slow", generation=at + 1) for at in range(4)]
    (row,) = found("rebalance-loop", observed(joins(8, 1.0) + leaves + back))
    assert row["who"]["client_id"] == "slow"
    assert "slow left and joined again" in row["sentence"]


def test_epochs_of_the_new_protocol_count_with_their_newcomers() -> None:
    beats = [exchange("C1", at, "ConsumerGroupHeartbeat", at, group_id="g", generation=at, member_id="a") for at in range(1, 9)]
    assert found("rebalance-loop", observed(beats)) == [], "epochs without newcomers are reconciliation"
    new = [exchange("C2", at, "ConsumerGroupHeartbeat", at, group_id="g", generation=0, member_id=f"n{at}") for at in range(6)]
    assert found("rebalance-loop", observed(beats + new)) == [], "a deployment, whose members stay"
    left = [row | {"generation": -1, "exchange": 90 + at, "request_first_ns": row["request_first_ns"] + MS}
            for at, row in enumerate(new)]  # fmt: skip
    (row,) = found("rebalance-loop", observed(beats + new + left))
    assert "KIP-848" in row["sentence"]
    assert row["sentence"].endswith("app joined again and again")


def test_members_that_are_replaced_in_two_generations_each_are_no_loop() -> None:
    """Cooperative assignors make a second generation of each change (KIP-429); the sixth member replaces the first one."""
    rows = []
    for step in range(10):
        for generation in (2 * step + 1, 2 * step + 2):
            for member in range(max(0, step - 4), step + 1):
                one = {"generation": generation, "member_id": f"m{member}"}
                rows.append(exchange(f"C{member}", generation, "JoinGroup", generation, group_id="g", **one))
    assert found("rebalance-loop", observed(rows)) == []
    flapping = [row | {"member_id": f"{row['member_id']}-{row['generation'] // 2}"} for row in rows]
    assert len(found("rebalance-loop", observed(flapping))) == 1


def test_consumers_that_are_made_for_each_poll_are_told_to_stay() -> None:
    rows = [exchange(f"C{at}", 1, "JoinGroup", 2 * at, group_id="g", generation=at + 1, member_id=f"m{at}") for at in range(12)]
    (row,) = found("rebalance-loop", observed(rows))
    assert (row["severity"], row["count"], row["who"]) == ("low", 12, {"group_id": "g", "client_id": "app"})
    now_and_then = [exchange(row["connection"], 1, "JoinGroup", 60 * at, group_id="g", generation=at + 1, member_id=f"m{at}")
                    for at, row in enumerate(rows)]  # fmt: skip
    assert found("rebalance-loop", observed(now_and_then)) == [], "jobs of each minute"
    assert found("rebalance-loop", observed(rows[:9])) == []


def test_commits_after_each_record_are_a_storm_and_those_by_time_are_not() -> None:
    (row,) = found("commit-storm", observed(many(300, 0.01, "OffsetCommit", group_id="g")))
    assert row["evidence"]["commits"] == 300
    (row,) = found("commit-storm", observed(many(100, 0.01, "OffsetCommit", group_id="g")), loud=False)
    assert row["severity"] == "info", "a burst does the coordinator no harm"
    (row,) = found("commit-storm", observed(many(150, 0.04, "OffsetCommit", group_id="g")))
    assert row["severity"] == "medium", "it outlasts the interval of automatic commits"
    assert found("commit-storm", observed(many(100, 5.0, "OffsetCommit", group_id="g"))) == []


def test_clients_that_fetch_ahead_commit_as_far_as_they_are() -> None:
    """librdkafka had fetched 6,254 records when it had committed 1,353 times, once for each record."""

    def committed(step: int) -> list[Row]:
        fetch = [exchange("C2", at + 1, "Fetch", at * 0.1, record_count=500) for at in range(20)]
        parts = [{"connection": "C1", "exchange": at + 1, "api_key": 8, "group_id": "g", "topic": "t", "partition": at % 2,
                  "committed_offset": at // 2 * step} for at in range(300)]  # fmt: skip
        return found("commit-storm", observed(fetch + many(300, 0.01, "OffsetCommit", group_id="g"), parts))

    (row,) = committed(1)
    assert row["evidence"]["offsets"] == 298
    assert committed(50) == [], "one commit for each fetched batch"


def test_members_that_share_a_client_id_are_no_storm_together() -> None:
    commits = many(300, 0.03, "OffsetCommit", group_id="g")
    assert len(found("commit-storm", observed([row | {"member_id": "m"} for row in commits]))) == 1
    each = [row | {"member_id": f"m{at % 20}"} for at, row in enumerate(commits)]
    assert found("commit-storm", observed(each)) == []
    alone = [row | {"connection": f"C{at % 20}"} for at, row in enumerate(commits)]
    assert found("commit-storm", observed(alone)) == [], "without ids of members each connection is one"


def test_failed_commits_are_told_from_the_third_on() -> None:
    rows = many(3, 1.0, "OffsetCommit", group_id="g", error="ILLEGAL_GENERATION")
    assert len(found("commit-failed", observed(rows))) == 1
    assert found("commit-failed", observed(rows[:2])) == []
    (row,) = found("commit-failed", observed([row | {"error": "OFFSET_METADATA_TOO_LARGE"} for row in rows]))
    assert "metadata" in row["advice"], "its membership is as it was"


def test_a_member_that_does_not_poll_leaves_and_comes_back() -> None:
    def seen(then: str, error: str = "NONE") -> list[Row]:
        rows = []
        for at in range(3):
            rows.append(exchange("C1", 2 * at + 1, "LeaveGroup", at * 5, group_id="g", error=error))
            rows.append(exchange("C1" if then == "same" else f"D{at}", 2 * at + 2, "JoinGroup", at * 5 + 2, group_id="g"))
        return found("poll-stall", observed(rows))

    (row,) = seen("same")
    assert (row["who"], row["count"]) == ({"client_id": "app", "group_id": "g"}, 3)
    assert seen("other") == [], "processes that end and others that begin"
    assert seen("same", "UNKNOWN_MEMBER_ID") == [], "its session was over before it left"


def test_processes_that_run_one_after_the_other_are_no_loop() -> None:
    rows = [exchange(f"C{at}", 1, "JoinGroup", at * 2, group_id="g", generation=at + 1) for at in range(8)]
    assert found("rebalance-loop", observed(rows)) == []
    assert (
        len(found("rebalance-loop", observed([row | {"connection": "C1", "exchange": at} for at, row in enumerate(rows)]))) == 1
    )


def test_commits_of_batches_are_no_storm_however_quick_the_batches_come() -> None:
    commits = many(300, 0.02, "OffsetCommit", group_id="g")
    batches = many(300, 0.02, "Fetch", connection="C2", record_count=3)
    assert found("commit-storm", observed(commits + batches)) == []
    (row,) = found("commit-storm", observed(commits + many(100, 0.02, "Fetch", connection="C2", record_count=3)))
    assert row["evidence"]["records"] == 300


def test_a_commit_for_each_poll_of_one_record_is_worth_knowing_and_no_more() -> None:
    """Spring for Apache Kafka commits once a poll by default, and records that come singly make a poll each."""
    commits = many(300, 0.02, "OffsetCommit", group_id="g")
    singly = many(300, 0.02, "Fetch", connection="C2", record_count=1)
    (row,) = found("commit-storm", observed(commits + singly), loud=False)
    assert (row["severity"], row["evidence"]["records"]) == ("info", 300)
    (row,) = found("commit-storm", observed(commits + singly[:150]))
    assert row["severity"] == "medium", "two commits for each Fetch"
    polls = many(900, 0.006, "Fetch", connection="C3", record_count=0)
    (row,) = found("commit-storm", observed(commits + singly[:150] + polls))
    assert row["severity"] == "medium", "polls that bring no records need no commit"
    (row,) = found("commit-storm", observed(commits + singly + polls), loud=False)
    assert row["severity"] == "info"
    unknown = [row | {"record_count": None} for row in polls]
    (row,) = found("commit-storm", observed(commits + singly[:150] + unknown), loud=False)
    assert row["severity"] == "info", "what was not captured may have had records"


def test_members_that_start_one_after_the_other_are_no_loop() -> None:
    rows = []
    for generation in range(1, 7):
        for member in range(generation):
            at = generation + member / 100
            one = {"generation": generation, "member_id": f"m{member}"}
            rows.append(exchange(f"C{member}", generation, "JoinGroup", at, group_id="g", **one))
    assert found("rebalance-loop", observed(rows)) == [], "each generation has one member more"
    same = [row | {"member_id": "m0"} for row in rows if row["connection"] == "C0"]
    assert len(found("rebalance-loop", observed(same))) == 1


def heartbeats(member: str, times: range, generation: int, **more: object) -> list[Row]:
    """Heartbeats of a member on a connection of its own, one a second."""
    rows = [exchange(member, at + 10, "Heartbeat", at, group_id="g", generation=generation, member_id=member) for at in times]
    return [row | more for row in rows]


def joined(member: str, at: float, generation: int, took: float = 0.01) -> Row:
    return exchange(member, int(at), "JoinGroup", at, took, group_id="g", generation=generation, member_id=member)


def test_a_member_that_goes_silent_and_whose_group_goes_on_without_it() -> None:
    first = [joined("a", 1, 1), joined("b", 1, 1), *heartbeats("a", range(2, 14), 1)]
    second = [joined("a", 16, 2), *heartbeats("a", range(17, 30), 2)]
    dies = heartbeats("b", range(2, 6), 1)
    (row,) = found("member-lost", observed([*first, *dies, *second]))
    assert row["count"] == 1
    assert row["evidence"]["silent_ns"] == 11 * SECOND + 10 * MS
    assert row["evidence"]["came_back"] == 0
    back = exchange("b", 99, "JoinGroup", 25, group_id="g", generation=3, member_id="b-again")
    (row,) = found("member-lost", observed([*first, *dies, *second, back]))
    assert row["evidence"]["came_back"] == 1, "its connection is used again"
    leaves = exchange("b", 99, "LeaveGroup", 6, group_id="g", member_id="b")
    assert found("member-lost", observed([*first, *dies, leaves, *second])) == []
    assert found("member-lost", observed([*first, *dies, *heartbeats("a", range(16, 30), 1)])) == [], "no later generation"
    lives = heartbeats("b", range(2, 14), 1)
    assert found("member-lost", observed([*first, *lives, joined("b", 15, 2), *second])) == []


def test_a_member_that_was_silent_for_less_than_its_session_is_given_up_for_another_cause() -> None:
    """KafkaJS at work sends a heartbeat between records; one that does not join in time is given up by the rebalance."""
    first = [joined("a", 1, 1), joined("b", 1, 1), *heartbeats("a", range(2, 15), 1)]
    rows = [*first, *heartbeats("b", range(2, 4), 1), joined("a", 15, 2), *heartbeats("a", range(16, 30), 2)]
    for session, times in ((10_000, 1), (30_000, 0)):
        said = {(name, number, "request"): {"sessionTimeoutMs": session} for name, number in (("a", 1), ("b", 1), ("a", 15))}
        assert len(found("member-lost", observed(rows, messages=said))) == times


def test_a_member_that_waits_for_its_coordinator_is_not_silent() -> None:
    """The coordinator stands still for 7 s, gives the member up as it goes on, and then tells it so."""
    first = [joined("a", 1, 1), joined("b", 1, 1), *heartbeats("a", range(2, 20), 1)]
    last = exchange("b", 99, "Heartbeat", 3, 7.0, group_id="g", generation=1, member_id="b", error="UNKNOWN_MEMBER_ID")
    second = [joined("a", 10.1, 2), *heartbeats("a", range(11, 30), 2)]
    assert found("member-lost", observed([*first, *heartbeats("b", range(2, 3), 1), last, *second])) == []
    quick = last | {"response_first_ns": last["request_first_ns"] + MS, "latency_ns": MS}
    assert len(found("member-lost", observed([*first, *heartbeats("b", range(2, 3), 1), quick, *second]))) == 1


def test_a_member_is_not_lost_by_a_coordinator_that_stands_still() -> None:
    """It waits for records meanwhile, on another connection, and sends heartbeats between them."""
    beats = [*heartbeats("b", range(2, 6), 1), *heartbeats("b", range(14, 15), 1, error="UNKNOWN_MEMBER_ID")]
    rows = [joined("b", 1, 1), *beats]
    (row,) = found("member-lost", observed(rows))
    assert (row["count"], row["evidence"]["silent_ns"], row["evidence"]["came_back"]) == (1, 9 * SECOND, 1)
    waits = [exchange("C9", n + 1, "Produce", 5.2 + n / 10, 8.5 - n / 10) for n in range(4)]
    assert found("member-lost", observed([*rows, *waits])) == []
    others = [exchange("C8", n + 1, "Produce", 5 + n / 2) for n in range(20)]
    assert len(found("member-lost", observed([*rows, *waits, *others]))) == 1, "it responds to others"


def test_a_member_is_not_lost_by_a_coordinator_that_is_restarted() -> None:
    rows = [joined("b", 1, 1), *heartbeats("b", range(2, 6), 1), joined("c", 14, 2)]
    links = [CONNECTION | {"connection": name, "server_packets": 9} for name in "bc"]
    assert len(found("member-lost", observed(rows, connections=links))) == 1
    down = [refused(5.5 + at) for at in range(4)]
    assert found("member-lost", observed(rows, connections=[*links, *down])) == []


def test_a_member_of_kip_848_has_to_miss_three_heartbeats() -> None:
    def beats(member: str, times: range, generation: int) -> list[Row]:
        return heartbeats(member, times, generation, api="ConsumerGroupHeartbeat")

    alive = [*beats("a", range(0, 20, 5), 2), *beats("a", range(20, 60, 5), 3)]
    (row,) = found("member-lost", observed([*alive, *beats("b", range(0, 6, 5), 2)]))
    assert row["evidence"]["silent_ns"] == 15 * SECOND
    behind = [*beats("b", range(0, 11, 5), 2), *beats("b", range(25, 60, 5), 3)]
    assert found("member-lost", observed([*alive, *behind])) == [], "it has missed two when the others are at the next epoch"
    left = heartbeats("b", range(7, 8), -1, api="ConsumerGroupHeartbeat")
    assert found("member-lost", observed([*alive, *beats("b", range(0, 6, 5), 2), *left])) == []
    minute = [CONNECTION | {"connection": name, "last_ns": START + 60 * SECOND} for name in "abc"]
    quick = [*beats("a", range(0, 11, 5), 2), *beats("a", range(11, 60, 5), 3), *beats("b", range(0, 4, 3), 2)]
    (row,) = found("member-lost", observed(quick, connections=minute))
    assert row["evidence"]["silent_ns"] == 8 * SECOND, "no other joined or left, and it sends nothing for a minute"
    other = exchange("c", 1, "ConsumerGroupHeartbeat", 9, group_id="g", generation=0, member_id="c")
    assert found("member-lost", observed([*quick, other], connections=minute)) == [], "the epoch may be that of c"
    back = beats("b", range(14, 60, 5), 3)
    assert found("member-lost", observed([*quick, *back], connections=minute)) == []


@pytest.mark.parametrize("api", ["ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"])
def test_a_member_that_comes_back_and_is_unknown_was_lost(api: str) -> None:
    """KIP-848, KIP-932, KIP-1071: the group gave it up, whether or not another shows a later epoch."""

    def seen(error: str, *more: Row) -> list[Row]:
        rows = [*heartbeats("b", range(2), 2, api=api), *heartbeats("b", range(10, 11), 2, api=api, error=error)]
        return found("member-lost", observed([*rows, *more]))

    (row,) = seen("UNKNOWN_MEMBER_ID")
    assert (row["count"], row["evidence"]["silent_ns"], row["evidence"]["came_back"]) == (1, 9 * SECOND, 1)
    assert seen("NONE") == []
    assert seen("UNKNOWN_MEMBER_ID", *heartbeats("b", range(3, 4), -1, api=api)) == [], "it had left"
    fetches = [exchange("b", at + 30, "ShareFetch", at, group_id="g", member_id="b") for at in range(2, 10)]
    assert seen("UNKNOWN_MEMBER_ID", *fetches) == [], "it sent other requests"


def test_requests_about_records_behind_the_leave_are_no_sign_of_life() -> None:
    """A share consumer closes its session when it has left."""
    rows = [
        *heartbeats("b", range(3), 2, api="ShareGroupHeartbeat"),
        *heartbeats("b", range(3, 4), -1, api="ShareGroupHeartbeat"),
    ]
    last = exchange("b", 99, "ShareAcknowledge", 3.5, group_id="g", member_id="b")
    others = [
        *heartbeats("a", range(20), 2, api="ShareGroupHeartbeat"),
        *heartbeats("a", range(20, 40), 3, api="ShareGroupHeartbeat"),
    ]
    assert found("member-lost", observed([*rows, last, *others])) == []
    assert len(found("member-lost", observed([*rows[:3], last, *others]))) == 1


@pytest.mark.parametrize("api", ["ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"])
def test_members_leave_groups_of_each_protocol_and_come_back(api: str) -> None:
    def seen(*epochs: int) -> list[Row]:
        rows = [
            exchange("C1", at + 1, api, at * 2, group_id="g", member_id="m", generation=epoch)
            for at, epoch in enumerate(epochs)
        ]
        return found("poll-stall", observed(rows))

    (row,) = seen(0, 1, -1, 0, 2, -1, 0)
    assert (row["count"], row["evidence"]["away_ns"]) == (2, 4 * SECOND)
    assert seen(0, 1, 2, 3, -1) == []


@pytest.mark.parametrize(
    ("api", "loud"), [("ConsumerGroupHeartbeat", 1), ("StreamsGroupHeartbeat", 1), ("ShareGroupHeartbeat", 0)]
)
def test_members_that_come_and_go_stop_others_where_partitions_have_one_reader(api: str, loud: int) -> None:
    rows = heartbeats("a", range(40), 0, api=api)
    rows = [row | {"generation": at // 4 * 2} if at % 4 else row | {"generation": 0} for at, row in enumerate(rows)]
    assert len(found("rebalance-loop", observed(rows))) == loud


def test_a_rebalance_that_waits_for_a_member_at_work_is_slow() -> None:
    def seen(latency: float, beats: int, group: str = "g") -> list[Row]:
        error: dict[str, Any] = {"error": "REBALANCE_IN_PROGRESS", "member_id": "m1", "client_id": "worker", "group_id": group}
        heard = [exchange("C1", at + 1, "Heartbeat", 1 + at * 3, **error) for at in range(beats)]
        return found("rebalance-slow", observed([*heard, exchange("C2", 1, "JoinGroup", 0, latency, group_id="g")]))

    (row,) = seen(12.0, 4)
    assert (row["who"], row["lost_ns"]) == ({"group_id": "g", "client_ids": ["worker"]}, 12 * SECOND)
    assert row["evidence"] == {"waiting": 1, "late": 1, "heartbeats": 4, "longest_ns": 12 * SECOND}
    assert seen(2.0, 2) == [], "members join when they next poll"
    assert seen(12.0, 1) == [], "it joined at once: the group was empty, and the broker waits for more members"
    assert seen(12.0, 2, "h") == [], "another group"


def test_a_rebalance_that_nobody_else_waits_for_is_not_done_either() -> None:
    """Of three members one was stopped and given up; the others heard of the rebalance and never joined again."""

    def said(count: int, step: float) -> list[Row]:
        beats = many(count, step, "Heartbeat", group_id="g", generation=1, member_id="m", error="REBALANCE_IN_PROGRESS")
        return found("rebalance-slow", observed(beats))

    (row,) = said(9, 1.0)
    assert (
        row["sentence"]
        == "a rebalance of group g was not done 8.0 s after it had begun: 1 member (app) knew of it and did not join"
    )
    assert said(3, 1.0) == [], "its work takes as long"
