"""Scenes of consumer groups: rebalances, commits, members that stall and that are lost."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, exchange, many, observed


def member(connection: str, number: int, api: str, at: float, took: float = 0.1, **more: Any) -> Row:
    """A request of the group `g`."""
    return exchange(connection, number, api, at, took, **{"group_id": "g", "client_id": connection, **more})


def loop() -> Observed:
    """Members `a` and `b` go through 8 generations and 7, while three of `c` come in one each; `a` leaves three times and `c`
    twice, each to join again. Another group has as many generations, but three members at last."""
    rows = []
    for generation in range(1, 9):
        for name in ("a", "b") if generation > 1 else ("a",):
            at = 10 * generation + (name == "b")
            rows.append(member(name, generation, "JoinGroup", at, generation=generation, member_id=name))
            rows.append(member(name, generation + 100, "SyncGroup", at + 0.2, 0.05, generation=generation, member_id=name))
    rows += [member("a", 200 + at, "LeaveGroup", 15 + 10 * at, member_id="a") for at in range(3)]
    rows += [member("c", 1 + at, "JoinGroup", 10 * at + 2, generation=at, member_id=f"c{at}") for at in (2, 4, 6)]
    rows += [member("c", 11 + at, "LeaveGroup", 10 * at + 7, member_id=f"c{at}") for at in (2, 4)]
    other = [
        member(f"o{name}", generation, "JoinGroup", generation, generation=generation, member_id=f"o{name}", group_id="other")
        for generation in range(1, 7) for name in range(1 + min(generation - 1, 2))
    ]  # fmt: skip
    return observed(rows + other)


def workers() -> Observed:
    """Two workers of Kafka Connect: of 9 generations six come from members that come and go, the others from new tasks."""
    rows = [
        member(name, generation, "JoinGroup", 5 * generation, generation=generation, member_id=name)
        for generation in range(1, 10)
        for name in ("a", "b")
    ]
    rows += [member("a", 20 + at, "LeaveGroup", 50 + at, member_id="a") for at in range(4)]
    said = {("a", 1, "request"): {"protocolType": "connect"}, ("b", 1, "request"): {"protocolType": "connect"}}
    return observed(rows, messages=said)


def consumers() -> Observed:
    """A group of the consumer protocol whose member joins 4 times in 9 epochs: each is the cause of two at most."""
    epochs = (0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 0, 8, 9)
    rows = [
        member("a", at + 1, "ConsumerGroupHeartbeat", at, generation=epoch, member_id="a") for at, epoch in enumerate(epochs)
    ]
    return observed(rows)


def vanishing() -> Observed:
    """A member of the consumer protocol stays for a minute; four join in turns and send nothing more a second later."""
    rows = [member("a", at, "ConsumerGroupHeartbeat", 5 * at, generation=at + 1, member_id="a") for at in range(13)]
    for at in range(1, 5):
        for more, epoch in enumerate((0, 2 * at + 1)):
            rows.append(
                member("v", 2 * at + more, "ConsumerGroupHeartbeat", 10 * at + more, generation=epoch, member_id=f"v{at}")
            )
    return observed(rows)


def one_by_one() -> Observed:
    """12 members, each in a generation of its own, 8 s behind the last."""
    return observed(
        [member(f"C{at}", 1, "JoinGroup", 8 * at, generation=at + 1, member_id=f"m{at}", client_id="job") for at in range(12)]
    )


def late_members() -> Observed:
    """Two JoinGroup requests wait, for 6 s and 8 s; two members hear of the rebalance and do not join, one hears of it once,
    and one before and one behind."""
    rows = [member("w1", 1, "JoinGroup", 10, 8.0), member("w2", 1, "JoinGroup", 12, 6.0), member("w3", 1, "JoinGroup", 12, 5.9)]
    beats = {"error": "REBALANCE_IN_PROGRESS", "generation": 3}
    for name, times in (("x", (11, 14, 17)), ("y", (11, 15)), ("once", (12,)), ("before", (4, 10)), ("behind", (18, 20))):
        rows += [member(name, at + 1, "Heartbeat", time, member_id=name, **beats) for at, time in enumerate(times)]
    return observed(rows)


def undone_rebalance() -> Observed:
    """Two members hear of a rebalance for 7 s and 9 s, and one for 4 s, while no other waits."""
    beats = {"error": "REBALANCE_IN_PROGRESS", "generation": 3}
    rows = [
        member(name, at + 1, "Heartbeat", begin + at, member_id=name, **beats)
        for name, begin, count in (("x", 1, 8), ("y", 2, 10), ("z", 0.5, 5))
        for at in range(count)
    ]
    return observed(rows)


def commits(count: int, step: float, members: int, fetches: int, records: int, **more: Any) -> Observed:
    """Commits of a client in a group, by turns of its members, and its Fetch responses with so many records in all."""
    rows = [exchange("C1", at + 1, "OffsetCommit", at * step, group_id="g", member_id=f"m{at % members}", **more)
            for at in range(count)]  # fmt: skip
    polls = [exchange("C2", at + 1, "Fetch", at * 0.01, record_count=records // fetches) for at in range(fetches)]
    return observed(rows + polls)


def lasting_storm() -> Observed:
    """240 commits of two members in 6 s, of 400 records that 120 Fetch responses brought."""
    return commits(240, 6 / 239, 2, 100, 400)


def storm() -> Observed:
    """260 commits in less than 5 s."""
    return commits(260, 0.01, 1, 100, 100)


def moved_commits() -> Observed:
    """300 commits of a client that fetched 10,000 records and worked on 500 of two partitions."""
    rows = many(300, 0.02, "OffsetCommit", group_id="g")
    polls = many(10, 0.1, "Fetch", connection="C2", record_count=1000)
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 8, "group_id": "g", "topic": "t", "partition": at % 2,
              "committed_offset": 1000 + at * 250 // 299} for at in range(300)]  # fmt: skip
    return observed(rows + polls, parts)


def failed_commits() -> Observed:
    """Four commits that fail in one group, two in another."""
    rows = many(4, 1.0, "OffsetCommit", group_id="g", error="ILLEGAL_GENERATION", latency=0.25)
    return observed(rows + many(2, 1.0, "OffsetCommit", connection="C2", group_id="h", error="UNKNOWN_MEMBER_ID"))


def stalls() -> Observed:
    """A member leaves three times and comes back 2 s later, another once, and one is unknown when it leaves."""
    rows = []
    for name, times in (("a", 3), ("b", 1)):
        for at in range(times):
            rows.append(member(name, 2 * at + 1, "LeaveGroup", 1 + 5 * at, client_id=f"client-{name}"))
            rows.append(member(name, 2 * at + 2, "JoinGroup", 3 + 5 * at, client_id=f"client-{name}"))
    rows += [member("c", 1, "LeaveGroup", 1, error="UNKNOWN_MEMBER_ID"), member("c", 2, "JoinGroup", 9)]
    said = {("a", 1, "request"): {"members": [{"reason": "consumer poll timeout has expired."}]}}
    return observed(rows, messages=said)


def lost_members() -> Observed:
    """Members `b` and `c` send nothing for 11 s and 9 s, and the others have generation 2 by then; `c` comes back."""
    rows = [member(name, 1, "JoinGroup", 1, generation=1, member_id=name) for name in "abc"]
    for name, times in (("a", range(2, 14)), ("b", range(2, 5)), ("c", range(2, 7))):
        rows += [member(name, at, "Heartbeat", at, generation=1, member_id=name) for at in times]
    rows.append(member("a", 50, "JoinGroup", 14, 1.0, generation=2, member_id="a"))
    rows += [member("a", 50 + at, "Heartbeat", at, generation=2, member_id="a") for at in range(16, 30)]
    return observed([*rows, member("c", 90, "JoinGroup", 20, generation=3, member_id="c2")])


def lost_consumers() -> Observed:
    """Members of a group of the consumer protocol: `b` sends nothing for 16 s, `c` is not known any more 7 s later."""

    def beats(name: str, times: range, generation: int, **more: Any) -> list[Row]:
        return [member(name, at, "ConsumerGroupHeartbeat", at, generation=generation, member_id=name, **more) for at in times]

    rows = [*beats("a", range(0, 21, 5), 2), *beats("a", range(21, 60, 5), 3)]
    rows += [*beats("b", range(0, 6, 5), 2), *beats("c", range(0, 6, 5), 2)]
    return observed([*rows, *beats("c", range(12, 13), 2, error="UNKNOWN_MEMBER_ID")])


SCENES = [
    Scene("rebalance-loop", loop, """
        high 0.9: group g (classic protocol) rebalanced 8 times in 1m 11s; a left and joined again and again. Seen 8
        times from 10 s to 81.1 s, 2.55 s lost. Who: group_id g, client_id a, client_ids ['a', 'b', 'c']. Filter:
        group_id == "g". Evidence: rebalances 8, members 5, clients 3, leaves 5.
        """, least={"rebalances": 8, "of_one": 8, "beyond": 5, "again": 2}, most={"seconds_each": 71.1 / 8}),
    Scene("rebalance-loop", workers, """
        high 0.9: group g (classic protocol) rebalanced 6 times in 40.1 s; a left and joined again and again. Seen 6 times from
        5 s to 45.1 s, 1.8 s lost. Who: group_id g, client_id a, client_ids ['a', 'b']. Filter: group_id == "g". Evidence:
        rebalances 6, members 2, clients 2, leaves 4.
        """, kind="Kafka Connect", least={"rebalances": 6, "of_one": 9, "beyond": 4}),
    Scene("rebalance-loop", consumers, """
        high 0.9: group g (consumer protocol (KIP-848)) rebalanced 8 times in 12.1 s; a joined again and again. Seen 8
        times from 0 s to 12.1 s, 0 s lost. Who: group_id g, client_id a. Filter: group_id == "g". Evidence: rebalances
        8, members 1, clients 1, leaves 0.
        """, kind="consumer protocol", least={"rebalances": 8, "of_one": 9, "beyond": 7, "again": 2}),
    Scene("rebalance-loop", vanishing, """
        high 0.9: group g (consumer protocol (KIP-848)) rebalanced 8 times in 1m 0s; v joined again and again. Seen 8
        times from 0 s to 60.1 s, 0 s lost. Who: group_id g, client_id v. Filter: group_id == "g". Evidence: rebalances
        8, members 5, clients 2, leaves 0.
        """, kind="members that vanish",
        least={"rebalances": 8, "of_one": 13, "beyond": 6, "again": 3, "consumer_seconds": 29}),
    Scene("rebalance-loop", one_by_one, """
        low 0.75: group g (classic protocol) had 12 members in 1m 28s, one at a time: each joined when the last had
        gone. Seen 12 times from 0 s to 88.1 s, 0 s lost. Who: group_id g, client_id job. Filter: group_id == "g".
        Evidence: rebalances 12, members 12, clients 1.
        """, kind="one at a time", least={"alone": 11}, most={"alone_seconds": 88.105 / 11}),
    Scene("rebalance-slow", late_members, """
        medium 0.85: a rebalance of group g took 8.0 s: it waited for 2 members (x, y) that knew of it and did not join. Seen 3
        times from 10 s to 18 s, 19.9 s lost. Who: group_id g, client_ids ['x', 'y']. Filter: group_id == "g" and api ==
        JoinGroup and latency >= 5s. Evidence: waiting 3, late 2, heartbeats 5, longest_ns 8000000000.
        """, least={"seconds": 5.9, "heartbeats": 2}),
    Scene("rebalance-slow", undone_rebalance, """
        medium 0.85: a rebalance of group g was not done 10.0 s after it had begun: 2 members (x, y) knew of it and did not
        join. Seen 18 times from 1 s to 11 s, 10 s lost. Who: group_id g, client_ids ['x', 'y']. Filter: group_id == "g" and api
        == Heartbeat and error == REBALANCE_IN_PROGRESS. Evidence: waiting 0, late 2, heartbeats 18, longest_ns 10000000000.
        """, kind="not done", least={"seconds": 7.0, "heartbeats": 8}),
    Scene("commit-storm", lasting_storm, """
        medium 0.9: client app of group g committed offsets 240 times, 40 a second. Seen 240 times from 0 s to 6 s, 0.24 s lost.
        Who: client_id app, group_id g. Filter: client_id == "app" and group_id == "g" and api == OffsetCommit. Evidence:
        commits 240, commits_a_second 40.0, records 400, offsets 400, members 2.
        """, kind="lasting", least={"commits": 240, "a_second": 20.0, "a_record": 0.6,
                                                                      "interval_s": 6.0, "a_fetch": 2.39999}),
    Scene("commit-storm", storm, """
        medium 0.9: client app of group g committed offsets 260 times, 100 a second. Seen 260 times from 0 s to 2.59 s, 0.26 s
        lost. Who: client_id app, group_id g. Filter: client_id == "app" and group_id == "g" and api == OffsetCommit. Evidence:
        commits 260, commits_a_second 100.4, records 100, offsets 100, members 1.
        """, kind="short", least={"many": 260}),
    Scene("commit-storm", moved_commits, """
        medium 0.9: client app of group g committed offsets 300 times, 50 a second. Seen 300 times from 0 s to 5.98 s, 0.3 s
        lost. Who: client_id app, group_id g. Filter: client_id == "app" and group_id == "g" and api == OffsetCommit. Evidence:
        commits 300, commits_a_second 50.2, records 10000, offsets 499, members 1.
        """, kind="fetched ahead", least={"a_record": 300 / 499}),
    Scene("commit-failed", failed_commits, """
        medium 0.9: 4 commits of client app for group g failed with ILLEGAL_GENERATION. Seen 4 times from 0 s to 3.25 s,
        1 s lost. Who: client_id app, group_id g. Filter: client_id == "app" and group_id == "g" and api in
        {OffsetCommit, TxnOffsetCommit} and error in {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID}. Evidence: failed 4.
        """, least={"failures": 4}),
    Scene("poll-stall", stalls, """
        medium 0.95: client client-a left group g 3 times and came back, away for 6.0 s in all; its reason: consumer poll
        timeout has expired.. Seen 3 times from 1 s to 13 s, 6 s lost. Who: client_id client-a, group_id g. Filter: client_id ==
        "client-a" and group_id == "g" and api in {LeaveGroup, JoinGroup, ConsumerGroupHeartbeat, ShareGroupHeartbeat,
        StreamsGroupHeartbeat}. Evidence: stalls 3, away_ns 6000000000.
        info 0.75: client client-b left group g 1 time and came back, away for 2.0 s in all. Seen once from 1 s to 3 s, 2 s
        lost. Who: client_id client-b, group_id g. Filter: client_id == "client-b" and group_id == "g" and api in {LeaveGroup,
        JoinGroup, ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat}. Evidence: stalls 1, away_ns 2000000000.
        """, least={"stalls": 3}),
    Scene("member-lost", lost_members, """
        medium 0.8: group g gave up 2 members that sent nothing for up to 11.0 s and had not left: b at 10.0.0.9, c at 10.0.0.9;
        1 came back. Seen 2 times from 4 s to 15 s, 20 s lost. Who: group_id g, client_ids ['b', 'c']. Filter: group_id == "g".
        Evidence: members 2, silent_ns 11000000000, came_back 1.
        """, kind="classic protocol", least={"seconds": 9.0}),
    Scene("member-lost", lost_consumers, """
        medium 0.8: group g gave up 2 members that sent nothing for up to 16.0 s and had not left: b at 10.0.0.9, c at 10.0.0.9;
        1 came back. Seen 2 times from 5 s to 21 s, 23 s lost. Who: group_id g, client_ids ['b', 'c']. Filter: group_id == "g".
        Evidence: members 2, silent_ns 16000000000, came_back 1.
        """, kind="consumer protocol", least={"seconds": 7.0, "consumer_seconds": 16.0}),
]  # fmt: skip
