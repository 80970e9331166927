"""Writes that wait for followers, and brokers that are slow by themselves."""

from typing import Any

import pytest

from kcap.reports.findings.replication import waits_for_replicas
from kcap.reports.findings.served import served
from tests.reports.findings.scenes.replication import beside, polls, writes
from tests.reports.findings.tables import MS, Row, exchange, found, many, observed


def said(*rows: list[Row], **more: Any) -> list[Row]:
    """What both rules about slow writes say."""
    tables = observed([row for some in rows for row in some], **more)
    return found("slow-broker", tables) + found("slow-replication", tables)


def test_all_leaders_that_wait_for_a_follower_are_one_finding() -> None:
    slow = [row for broker in (1, 2, 3) for row in (*writes(broker, 20, 0.1), *beside(broker, 20))]
    (row,) = said(slow)
    assert (row["id"], row["severity"], row["confidence"]) == ("slow-replication", "medium", 0.8)
    assert "60 of 60 writes with acks=all took 100 ms (median) at 3 brokers, while writes with acks=1" in row["sentence"]
    assert "broker_id" not in row["who"], "nothing shows which follower it is"
    assert "RemoteTimeMs" in row["advice"]


def test_writes_that_were_lost_on_the_way_wait_for_no_follower() -> None:
    """A tap beside the broker sees the first copy of a request too, if the broker drops it for its checksum."""
    lost = [row | {"flags": ["retransmitted"]} for row in writes(1, 20, 0.1)]
    assert said(lost, beside(1, 20)) == []


def test_the_fetches_of_followers_name_the_broker_that_all_have_in_common() -> None:
    both = [*writes(1, 20, 0.1), *polls(1, 3, [0.099] * 20), *writes(2, 20, 0.1), *polls(2, 3, [0.099] * 20)]
    (row,) = said(both)
    assert (row["who"]["broker_id"], row["confidence"]) == (3, 0.9)
    itself = [*writes(3, 20, 0.1), *polls(3, 1, [0.099] * 20), *polls(3, 2, [0.097] * 20)]
    (row,) = said(both, itself)
    assert row["who"]["broker_id"] == 3
    assert row["sentence"].endswith("in each case to or from broker 3")
    (row,) = said(both, [*writes(4, 20, 0.1), *polls(4, 5, [0.099] * 20)])
    assert "broker_id" not in row["who"]
    assert "they waited for brokers 3, 5, whose next Fetch comes 99 ms after the records" in row["sentence"]


def test_a_tap_at_the_follower_sees_the_same_as_one_at_the_leader() -> None:
    """The round trip to the leader is then a part of what the follower took."""
    behind = [row | {"rtt_ns": 98_000_000, "request_last_ns": row["request_last_ns"] - 49_000_000,
                     "response_last_ns": row["response_last_ns"] + 49_000_000}
              for row in polls(1, 3, [0.099] * 20)]  # fmt: skip
    (row,) = said(writes(1, 20, 0.1), behind)
    assert row["who"]["broker_id"] == 3
    assert round(row["evidence"]["acknowledged_ns"] / MS) == 99


@pytest.mark.parametrize(
    ("what", "rows"),
    [
        ("nothing is late", [*writes(1, 40, 0.01), *beside(1, 40), *polls(1, 3, [0.009] * 40)]),
        ("its own writes are late", [*writes(1, 40, 0.1), *writes(1, 40, 0.1, acks=1), *beside(1, 2)]),
        ("nothing else is there", writes(1, 40, 0.1)),
        ("one broker, and nothing shows its disk", [*writes(1, 40, 0.1), *beside(1, 40, "Heartbeat")]),
        ("followers are quick", [*writes(1, 40, 0.1), *polls(1, 3, [0.001] * 40)]),
        ("a follower is slow, and the leader does not wait for it", [*writes(1, 40, 0.1), *polls(1, 3, [0.05] * 40)]),
        ("few writes", [*writes(1, 10, 0.1), *beside(1, 40)]),
        ("writes fail", [row | {"error": "NOT_ENOUGH_REPLICAS"} for row in writes(1, 40, 0.1)] + beside(1, 40)),
        ("a client sends one behind the other",
         [row | {"queue_ns": 90_000_000} for row in writes(1, 40, 0.1)] + beside(1, 40)),
        ("the network is slow", [row | {"rtt_ns": 99_000_000} for row in writes(1, 40, 0.1)] + beside(1, 40)),
        ("all requests of two brokers are late",
         [row for one in (1, 2) for row in (*writes(one, 40, 0.1), *(row | {"latency_ns": 100_000_000}
                                                                      for row in beside(one, 40, "Heartbeat")))]),
    ],
)  # fmt: skip
def test_writes_that_followers_do_not_hold_up_are_none_of_theirs(what: str, rows: list[Row]) -> None:
    assert said(rows) == [], what


def test_without_a_write_that_its_leader_makes_alone_disks_may_be_it() -> None:
    (row,) = said([row for broker in (1, 2) for row in (*writes(broker, 20, 0.1), *beside(broker, 20, "Heartbeat"))])
    assert (row["id"], row["confidence"]) == ("slow-replication", 0.6)
    assert row["sentence"].endswith("while other requests there took 2 ms; followers may be what is slow")
    assert "LocalTimeMs" in row["advice"]


def test_leaders_that_get_nothing_else_wait_as_those_whose_other_requests_are_in_time() -> None:
    """One leader alone may be slow itself, and so may one whose other requests are late or are not there to compare."""
    quick, lone, third = (writes(broker, 20, 0.1) for broker in (1, 2, 3))
    quick += beside(1, 20, "Heartbeat")
    (row,) = said(quick, lone, third)
    assert (row["id"], row["confidence"], row["count"]) == ("slow-replication", 0.6, 60)
    assert row["sentence"].endswith("at 3 brokers, while other requests at 1 of them took 2 ms; followers may be what is slow")
    late = [row | {"latency_ns": 100 * MS, "response_first_ns": row["request_first_ns"] + 100 * MS}
            for row in beside(2, 4, "Heartbeat")]  # fmt: skip
    assert said(quick, lone, late) == []
    assert said(quick) == []
    assert said(lone, third) == []


def judged(*more: list[Row], acks: int = -1) -> Row:
    """The one finding about broker 1, whose Produce requests with `acks` take 0.3 s, beside other requests that it gets."""
    slow = many(40, 0.1, connection="C1", latency=0.3, server_ip="10.0.0.1", acks=acks)
    peer = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2", acks=acks)
    (row,) = said(slow, peer, *more)
    assert row["who"]["server"] == "10.0.0.1:9092"
    return row


def test_one_leader_that_waits_for_its_followers_is_not_slow_itself() -> None:
    row = judged(many(20, 0.2, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1))
    assert (row["id"], row["severity"]) == ("slow-replication", "medium")


def test_without_proof_of_the_leader_s_speed_its_followers_may_be_the_cause() -> None:
    """Loss between a leader and one follower looks so: other leaders are quick, and nothing else is slow at this one."""
    others = many(20, 0.2, "Metadata", connection="C3", latency=0.002, server_ip="10.0.0.1")
    before = many(5, 0.001, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1)
    for row in (judged([]), judged(others), judged(before)):
        assert (row["id"], row["severity"], row["confidence"]) == ("slow-broker", "medium", 0.4)
        assert row["sentence"].endswith("other brokers 2 ms; its followers may be what is slow")
        assert "RemoteTimeMs" in row["advice"]


def test_commits_wait_for_replicas_as_writes_do() -> None:
    """The coordinator whose partition has the slow follower is the only one that takes long for them."""
    for api, confidence in (("OffsetCommit", 0.4), ("Metadata", 0.8)):
        slow = many(40, 0.1, api, connection="C1", latency=0.3, server_ip="10.0.0.1")
        (row,) = said(slow, many(40, 0.1, api, connection="C2", latency=0.002, server_ip="10.0.0.2"))
        assert (row["id"], row["confidence"]) == ("slow-broker", confidence)


def test_a_topic_with_one_replica_has_no_followers() -> None:
    def severity(replicas: list[int]) -> str:
        slow = many(40, 0.1, connection="C1", latency=0.3, server_ip="10.0.0.1", acks=-1)
        peer = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2", acks=-1)
        parts = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
                  "error": "NONE"} for row in slow]  # fmt: skip
        topics = [{"name": name, "partitions": [{"replicaNodes": nodes}]} for name, nodes in (("t", replicas), ("u", [1, 2]))]
        messages = {("C3", 1, "response"): {"topics": topics}}
        (row,) = found("slow-broker", observed([*slow, *peer, exchange("C3", 1, "Metadata", 0)], parts, messages=messages))
        return str(row["severity"])

    assert severity([1, 2]) == "medium"
    assert severity([1]) == "high"
    assert severity([]) == "medium", "nothing is known of them"


def test_a_broker_whose_own_writes_are_late_is_slow_itself() -> None:
    late = many(20, 0.2, connection="C3", latency=0.3, server_ip="10.0.0.1", acks=1)
    for row in (judged(late), judged(acks=1)):
        assert (row["id"], row["severity"]) == ("slow-broker", "high")
        assert "acks" not in row["sentence"]
        assert "followers" not in row["advice"]


def test_a_broker_is_slow_for_its_own_writes_though_its_peers_wait_for_it() -> None:
    """A broker that is paused again and again is what others wait for as a follower: all writes to all replicas are late."""
    rows = [row for broker in (1, 2, 3) for row in writes(broker, 20, 0.1)]
    rows += writes(3, 20, 0.1, acks=1) + beside(1, 20) + beside(2, 20)
    own, others = said(rows)
    assert (own["id"], own["who"]["server"]) == ("slow-broker", "10.0.0.3:9092")
    assert (others["id"], others["evidence"]["leaders"]) == ("slow-replication", 2)


def followers(to_all: int, alone: int, quick_at: tuple[float, ...]) -> bool | None:
    """Whether late writes to a broker, so many with acks=all and with acks=1, are taken for waiting for its followers, where
    one with acks=1 is sent at each of these times and gets its response at once."""
    rows = many(to_all, 1.0, latency=0.3, acks=-1) + many(alone, 1.0, connection="C2", latency=0.3, acks=1)
    rows += [exchange("C3", at + 1, "Produce", time, 0.002, acks=1) for at, time in enumerate(quick_at)]
    rows += many(40, 1.0, connection="C4", latency=0.002, acks=1, server_ip="10.0.0.2")
    seen = observed(rows)
    return waits_for_replicas(seen, *served(seen, {"milliseconds": 50})).get(("10.0.0.1", 9092), False)


def test_nine_of_ten_late_writes_ask_for_all_replicas_and_half_of_them_have_a_quick_one_beside() -> None:
    beside_them = tuple(at + 0.1 for at in range(20))
    assert followers(40, 0, beside_them)
    assert followers(40, 0, beside_them[1:]) is None, "fewer than half"
    assert followers(36, 4, beside_them), "nine of ten"
    assert followers(35, 5, beside_them) is False
    later = tuple(at + 0.4 for at in range(20))
    assert followers(40, 0, later) is None, "the quick ones were sent when the others had responses"
    assert followers(0, 0, beside_them) is False, "none is late"


def test_a_quick_write_to_all_replicas_proves_nothing_of_the_leader() -> None:
    slow = many(40, 1.0, latency=0.3, acks=-1)
    quick = [exchange("C3", at + 1, "Produce", at + 0.1, 0.002, acks=-1) for at in range(40)]
    seen = observed(slow + quick)
    assert waits_for_replicas(seen, *served(seen, {"milliseconds": 50})) == {("10.0.0.1", 9092): None}
