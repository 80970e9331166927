"""A broker that is slow by itself, and one that waits for its followers."""

from kcap.reports.findings.replication import waits_for_replicas
from kcap.reports.findings.serving import served
from tests.reports.findings.tables import Row, exchange, found, many, observed


def judged(alone: list[Row], acks: int = -1) -> Row:
    """The finding about broker 10.0.0.1, whose Produce requests with `acks` take 0.3 s, beside other requests that it gets."""
    slow = many(40, 0.1, connection="C1", latency=0.3, server_ip="10.0.0.1", acks=acks)
    peer = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2", acks=-1)
    (row,) = found("slow-broker", observed(slow + alone + peer))
    assert row["who"]["server"] == "10.0.0.1:9092"
    return row


def test_a_broker_that_waits_for_its_followers_is_not_slow_itself() -> None:
    leader = many(20, 0.2, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1)
    row = judged(leader)
    assert row["severity"] == "medium"
    assert "with acks=all" in row["sentence"]
    assert "followers" in row["advice"]


def test_without_proof_of_the_leader_s_speed_its_followers_may_be_the_cause() -> None:
    """Loss between a leader and one follower looks so: other leaders are quick, and nothing else is slow at this one."""
    others = many(20, 0.2, "Metadata", connection="C3", latency=0.002, server_ip="10.0.0.1")
    before = many(5, 0.001, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1)
    for row in (judged([]), judged(others), judged(before)):
        assert (row["severity"], row["confidence"]) == ("medium", 0.4)
        assert row["sentence"].endswith("other brokers 2 ms; its followers may be what is slow")
        assert "RemoteTimeMs" in row["advice"]


def test_a_topic_with_one_replica_has_no_followers() -> None:
    def said(replicas: list[int]) -> str:
        slow = many(40, 0.1, connection="C1", latency=0.3, server_ip="10.0.0.1", acks=-1)
        peer = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2", acks=-1)
        parts = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
                  "error": "NONE"} for row in slow]  # fmt: skip
        topics = [{"name": name, "partitions": [{"replicaNodes": nodes}]} for name, nodes in (("t", replicas), ("u", [1, 2]))]
        messages = {("C3", 1, "response"): {"topics": topics}}
        (row,) = found("slow-broker", observed([*slow, *peer, exchange("C3", 1, "Metadata", 0)], parts, messages=messages))
        return str(row["severity"])

    assert said([1, 2]) == "medium"
    assert said([1]) == "high"
    assert said([]) == "medium", "nothing is known of them"


def test_a_broker_whose_own_writes_are_late_is_slow_itself() -> None:
    leader = many(20, 0.2, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1)
    late = many(20, 0.2, connection="C3", latency=0.3, server_ip="10.0.0.1", acks=1)
    for row in (judged(late), judged(leader, acks=1)):
        assert row["severity"] == "high"
        assert "acks" not in row["sentence"]
        assert "followers" not in row["advice"]


def followers(to_all: int, alone: int, quick_at: tuple[float, ...]) -> bool | None:
    """Whether late writes to a broker, so many with acks=all and with acks=1, are taken for waiting for its followers, where
    one with acks=1 is sent at each of these times and gets its response at once."""
    rows = many(to_all, 1.0, latency=0.3, acks=-1) + many(alone, 1.0, connection="C2", latency=0.3, acks=1)
    rows += [exchange("C3", at + 1, "Produce", time, 0.002, acks=1) for at, time in enumerate(quick_at)]
    rows += many(40, 1.0, connection="C4", latency=0.002, acks=1, server_ip="10.0.0.2")
    seen = observed(rows)
    return waits_for_replicas(seen, *served(seen, {"milliseconds": 50}, "Produce"), ("10.0.0.1", 9092))


def test_nine_of_ten_late_writes_ask_for_all_replicas_and_half_of_them_have_a_quick_one_beside() -> None:
    beside = tuple(at + 0.1 for at in range(20))
    assert followers(40, 0, beside)
    assert followers(40, 0, beside[1:]) is None, "fewer than half"
    assert followers(36, 4, beside), "nine of ten"
    assert followers(35, 5, beside) is False
    later = tuple(at + 0.4 for at in range(20))
    assert followers(40, 0, later) is None, "the quick ones were sent when the others had responses"
    assert followers(0, 0, beside) is False, "none is late"


def test_a_quick_write_to_all_replicas_proves_nothing_of_the_leader() -> None:
    slow = many(40, 1.0, latency=0.3, acks=-1)
    quick = [exchange("C3", at + 1, "Produce", at + 0.1, 0.002, acks=-1) for at in range(40)]
    seen = observed(slow + quick)
    assert waits_for_replicas(seen, *served(seen, {"milliseconds": 50}, "Produce"), ("10.0.0.1", 9092)) is None
