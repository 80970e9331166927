"""A broker that is slow by itself, and one that waits for its followers."""

from tests.reports.findings.tables import Row, found, many, observed


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


def test_without_proof_of_the_leader_s_speed_nothing_is_said_of_followers() -> None:
    leader = many(20, 0.2, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1)
    late = many(20, 0.2, connection="C3", latency=0.3, server_ip="10.0.0.1", acks=1)
    others = many(20, 0.2, "Metadata", connection="C3", latency=0.002, server_ip="10.0.0.1")
    before = many(5, 0.001, connection="C3", latency=0.002, server_ip="10.0.0.1", acks=1)
    for row in (judged([]), judged(late), judged(others), judged(before), judged(leader, acks=1)):
        assert row["severity"] == "high"
        assert "acks" not in row["sentence"]
        assert "followers" not in row["advice"]
