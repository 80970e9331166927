"""Rules on what a cluster cannot serve."""

from typing import Any

import pytest

from tests.reports.findings.tables import Row, exchange, found, many, observed, shown


def test_a_failed_disk_is_one_finding_of_its_broker() -> None:
    rows = [
        *many(4, 1.0, "Produce", error="KAFKA_STORAGE_ERROR"),
        exchange("C2", 1, "Fetch", 9, error="KAFKA_STORAGE_ERROR", client_id="reader"),
        exchange("C3", 1, "Produce", 9, error="KAFKA_STORAGE_ERROR", server_ip="10.0.0.2"),
        exchange("C2", 2, "Fetch", 10),
    ]
    parts = [
        {"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
         "error": row["error"]} for row in rows
    ]  # fmt: skip
    findings = {row["who"]["server"]: row for row in found("disk-failed", observed(rows, parts))}
    assert findings.keys() == {"10.0.0.1:9092", "10.0.0.2:9092"}
    row = findings["10.0.0.1:9092"]
    assert (row["severity"], row["evidence"]) == ("critical", {"errors": 5, "clients": 2, "topics": ["t"]})
    assert shown(row, rows) == rows[:5]
    assert found("disk-failed", observed(rows[6:], parts[6:])) == []


def no_leader(count: int, step: float, *, first: dict[str, list[int]], last: dict[str, list[int]]) -> list[Row]:
    def says(partitions: dict[str, list[int]]) -> dict[str, Any]:
        every = [
            {"name": name, "errorCode": 5 if None in bad else 0,
             "partitions": [{"partitionIndex": at, "errorCode": 5 if at in bad else 0} for at in range(4)]}
            for name, bad in partitions.items()
        ]  # fmt: skip
        return {"topics": every}

    rows = many(count, step, "Metadata", error="LEADER_NOT_AVAILABLE")
    said = {("C1", 1, "response"): says(first), ("C1", count, "response"): says(last)}
    return found("no-leader", observed(rows, messages=said))


def test_partitions_without_a_leader_are_those_that_stay_without() -> None:
    (row,) = no_leader(10, 1.0, first={"t": [0, 1], "u": [2]}, last={"t": [1, 3], "u": []})
    assert (row["who"]["topic"], row["evidence"]) == ("t", {"partitions": 1, "errors": 10, "clients": 1})
    assert "9.0 s" in row["sentence"]


@pytest.mark.parametrize(
    ("count", "step", "why"),
    [
        (10, 0.1, "a topic that was being created"),
        (4, 3.0, "too few"),
        (10, 60.0, "now and then, as topics come"),
    ],
)
def test_a_leader_that_comes_soon_is_no_finding(count: int, step: float, why: str) -> None:
    assert no_leader(count, step, first={"t": [0]}, last={"t": [0]}) == [], why


def test_topics_that_are_created_one_by_one_have_their_leaders() -> None:
    assert no_leader(10, 1.0, first={"t1": [0]}, last={"t9": [0]}) == []


def test_clients_that_find_no_coordinator_are_one_finding() -> None:
    """One broker, and `offsets.topic.replication.factor` is 3."""
    error: dict[str, Any] = {"error": "COORDINATOR_NOT_AVAILABLE"}
    rows = many(10, 1.0, "FindCoordinator", **error)
    rows += [exchange("C2", at + 1, "FindCoordinator", at, client_id="other", **error) for at in range(8)]
    (row,) = found("no-coordinator", observed(rows))
    assert (row["who"], row["count"]) == ({"client_ids": ["app", "other"]}, 18)
    assert "offsets.topic.replication.factor" in row["advice"]
    assert shown(row, [*rows, exchange("C3", 1, "FindCoordinator", 2)]) == rows
    of_transactions = {("C1", 1, "request"): {"keyType": 1}}
    (row,) = found("no-coordinator", observed(rows[:10], messages=of_transactions))
    assert "transaction.state.log.replication.factor" in row["advice"]
    assert found("no-coordinator", observed(many(10, 0.1, "FindCoordinator", **error))) == [], "it was being created"
    assert found("no-coordinator", observed(many(10, 60.0, "FindCoordinator", **error))) == [], "now and then"


def quorum(*more: Row, gap: float = 8.0, leader: int = -1, nodes: int = 2) -> Row | None:
    """What is said of Fetch requests for the cluster's metadata that succeed each second but for a time from 3 s on, in which
    `nodes` of them are not responded to by the leader."""
    rows = [exchange("R1", at + 1, "Fetch", at, client_id="raft-client-1", error="NONE") for at in (0, 1, 2)] + [
        exchange("R1", 4, "Fetch", 3 + gap, client_id="raft-client-1", error="NONE")
    ]
    bad = [
        exchange(f"B{node}", at + 1, "Fetch", 3 + at * gap / 4, client_id=f"raft-client-{node}", error="NOT_LEADER_OR_FOLLOWER")
        for node in range(nodes) for at in range(3)
    ]  # fmt: skip
    response = {"responses": [{"partitions": [{"currentLeader": {"leaderId": leader}}]}]}
    seen = observed([*rows, *bad, *more], messages={(row["connection"], row["exchange"], "response"): response for row in bad})
    return next(iter(found("no-controller", seen, loud=False)), None)


def test_a_quorum_without_a_leader_is_a_problem_when_it_elects_none() -> None:
    row = quorum()
    assert row is not None
    assert (row["severity"], row["evidence"]) == ("high", {"errors": 6, "nodes": 2, "controllers": 1})
    assert "majority of the voters" in row["advice"]
    election = quorum(gap=2.5)
    assert election is not None
    assert election["severity"] == "info"


def test_voters_name_the_leader_that_they_lost_while_they_look_for_another() -> None:
    row = quorum(leader=13)
    assert row is not None
    assert row["sentence"].endswith("and none succeeded; the responses name controller 13")
    assert row["who"]["broker_id"] == 13


def test_clients_that_list_all_topics_are_not_named_as_those_of_one_without_a_leader() -> None:
    response = {"topics": [{"name": "t", "errorCode": 0, "partitions": [{"partitionIndex": 0, "errorCode": 5}]}]}
    requests: dict[str, dict[str, Any]] = {
        "lists": {"topics": None}, "names": {"topics": [{"name": "t"}]}, "old": {"topics": []},
        "other": {"topics": [{"name": "u"}]},
        "ids": {"topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "name": None}]},
    }  # fmt: skip
    rows, said = list[Row](), dict[tuple[str, int, str], Row]()
    for client, request in requests.items():
        rows += many(10, 1.0, "Metadata", error="LEADER_NOT_AVAILABLE", connection=client, client_id=client)
        said |= {(client, at, "response"): response for at in (1, 10)} | {(client, 10, "request"): request}
    (row,) = found("no-leader", observed(rows, messages=said))
    assert (row["who"], row["count"]) == ({"topic": "t", "client_ids": ["ids", "names"]}, 50)
    writes = {
        "connection": "lists",
        "exchange": 50,
        "api_key": 0,
        "topic": "t",
        "partition": 0,
        "error": "NOT_LEADER_OR_FOLLOWER",
    }
    write = exchange("lists", 50, "Produce", 5.0, client_id="lists", error="NOT_LEADER_OR_FOLLOWER")
    (row,) = found("no-leader", observed([*rows, write], [writes], messages=said))
    assert row["who"]["client_ids"] == ["ids", "lists", "names"], "it writes the topic"


def test_one_node_that_reaches_no_leader_accuses_no_quorum() -> None:
    row = quorum(nodes=1, leader=13)
    assert row is not None
    assert row["severity"] == "info"
    assert row["sentence"].startswith("a node reached no controller that leads for 8.0 s")


def test_a_quorum_that_serves_one_node_has_a_leader() -> None:
    going_on = [exchange("R2", at, "Fetch", at * 0.9, client_id="raft-client-2", error="NONE") for at in range(1, 14)]
    assert quorum(*going_on) is None
    assert quorum(gap=0.9) is None


def test_a_follower_that_asks_a_broker_which_does_not_lead_is_no_quorum() -> None:
    rows = many(20, 0.5, "Fetch", client_id="broker-1-fetcher-0", error="NOT_LEADER_OR_FOLLOWER")
    assert found("no-controller", observed(rows)) == []
