"""Scenes of what a cluster cannot serve."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, exchange, many, observed


def disks() -> Observed:
    """Two topics on a disk that failed, in three requests of two clients."""
    rows = [exchange(f"C{at}", 1, "Produce", at, 0.01, client_id="ab"[at % 2], error="KAFKA_STORAGE_ERROR") for at in range(3)]
    parts = [{"connection": f"C{at}", "exchange": 1, "api_key": 0, "topic": topic, "partition": 0,
              "error": "KAFKA_STORAGE_ERROR"} for at, topic in ((0, "u"), (1, "t"), (2, "t"))]  # fmt: skip
    return observed(rows, parts)


def no_leaders() -> Observed:
    """Two clients get LEADER_NOT_AVAILABLE six and seven times over 10 and 12 s: two partitions of topic `t`, the whole of `u`;
    of another one the errors at last are those of another partition."""
    rows: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}

    def response(whole: str, *partitions: int) -> Row:
        parts = [{"partitionIndex": number, "errorCode": 5} for number in partitions]
        parts.append({"partitionIndex": 9, "errorCode": 0})
        return {
            "topics": [{"name": "t", "errorCode": 0, "partitions": parts}, {"name": whole, "errorCode": 5, "partitions": []}]
        }

    for client, count, ends in (("a", 6, ((0, 1), (0, 1))), ("b", 7, ((1, 2), (1, 3))), ("c", 6, ((4,), (5,)))):
        rows += many(count, 2.0, "Metadata", connection=client, client_id=client, error="LEADER_NOT_AVAILABLE")
        whole = "u" if client == "a" else f"v-{client}"
        said[client, 1, "response"] = response(whole, *ends[0])
        said[client, count, "response"] = response(whole if client == "a" else "w", *ends[1])
    return observed(rows, messages=said)


def no_coordinators() -> Observed:
    """Two clients get COORDINATOR_NOT_AVAILABLE for their groups six and five times, another one for its transactions."""
    rows: list[Row] = []
    for client, count in (("a", 6), ("b", 5), ("c", 8)):
        rows += many(count, 2.0, "FindCoordinator", connection=client, client_id=client, error="COORDINATOR_NOT_AVAILABLE")
    return observed(rows, messages={("c", 1, "request"): {"keyType": 1}})


def polls(node: int, times: list[float], error: str, leader: int | None = None) -> tuple[list[Row], dict[Any, Row]]:
    """Fetch requests of a node for the metadata of the cluster with their responses, which name this leader."""
    rows = [exchange(f"{error[:1]}{node}", at + 1, "Fetch", time, 0.0, client_id=f"raft-client-{node}", error=error,
                     server_ip=f"10.0.1.{node}") for at, time in enumerate(times)]  # fmt: skip
    part: Row = {} if leader is None else {"currentLeader": {"leaderId": leader, "leaderEpoch": 3}}
    message = {"responses": [{"partitions": [{"errorCode": 6, **part}]}]}
    return rows, {(row["connection"], row["exchange"], "response"): message for row in rows}


def quorum(*some: tuple[list[Row], dict[Any, Row]]) -> Observed:
    """The tables of these."""
    return observed([row for rows, _ in some for row in rows], messages={k: v for _, said in some for k, v in said.items()})


def majority_lost() -> Observed:
    """Between two Fetch requests that succeed no controller leads for 7 s, as three requests of two nodes learn."""
    return quorum(polls(1, [0, 9], "NONE"), polls(1, [2, 4], "NOT_LEADER_OR_FOLLOWER", -1),
                  polls(2, [3], "NOT_LEADER_OR_FOLLOWER"))  # fmt: skip


def leader_lost() -> Observed:
    """Controllers name the leader that is gone for 1.5 s, up to the last request."""
    return quorum(polls(1, [0], "NONE"), polls(1, [2, 3.5], "NOT_LEADER_OR_FOLLOWER", 13),
                  polls(2, [3, 3.1], "NOT_LEADER_OR_FOLLOWER", 13))  # fmt: skip


SCENES = [
    Scene(
        "disk-failed",
        disks,
        """
        critical 0.95: 10.0.0.1:9092 cannot use the disk of 2 topics (t, u): KAFKA_STORAGE_ERROR for 3 requests. Seen 3 times
        from 0 s to 2 s, 0.03 s lost. Who: server 10.0.0.1:9092, client_ids ['a', 'b']. Filter: server_ip == "10.0.0.1" and
        server_port == 9092 and error == KAFKA_STORAGE_ERROR. Evidence: errors 3, clients 2, topics ['t', 'u'].
        """,
    ),
    Scene(
        "no-leader",
        no_leaders,
        """
        high 0.9: 2 partitions of topic t had no leader for 12.0 s: LEADER_NOT_AVAILABLE in 13 Metadata responses. Seen 13 times
        from 0 s to 12 s, 12 s lost. Who: topic t, client_ids ['a', 'b']. Filter: api == Metadata and error ==
        LEADER_NOT_AVAILABLE. Evidence: partitions 2, errors 13, clients 2.
        high 0.9: topic u had no leader for 10.0 s: LEADER_NOT_AVAILABLE in 6 Metadata responses. Seen 6 times from 0 s to 10 s,
        10 s lost. Who: topic u, client_ids ['a']. Filter: client_id == "a" and api == Metadata and error ==
        LEADER_NOT_AVAILABLE. Evidence: partitions 1, errors 6, clients 1.
        """,
        least={"errors": 6, "seconds": 10.0},
        most={"seconds": 1.6667},
    ),
    Scene(
        "no-coordinator",
        no_coordinators,
        """
        high 0.9: 1 client found no transaction coordinator for 14.0 s: COORDINATOR_NOT_AVAILABLE for 8 FindCoordinator
        requests. Seen 8 times from 0 s to 14.001 s, 14.001 s lost. Who: client_ids ['c']. Filter: client_id == "c" and api ==
        FindCoordinator and error == COORDINATOR_NOT_AVAILABLE. Evidence: errors 8, clients 1.
        high 0.9: 2 clients found no group coordinator for 10.0 s: COORDINATOR_NOT_AVAILABLE for 11 FindCoordinator requests.
        Seen 11 times from 0 s to 10.001 s, 10.001 s lost. Who: client_ids ['a', 'b']. Filter: api == FindCoordinator and error
        == COORDINATOR_NOT_AVAILABLE. Evidence: errors 11, clients 2.
        """,
        least={"errors": 6, "seconds": 10.001},
    ),
    Scene(
        "no-controller",
        majority_lost,
        """
        high 0.85: no controller led the cluster for 7.0 s: 3 Fetch requests of 2 nodes for its metadata got
        NOT_LEADER_OR_FOLLOWER, and none succeeded. Seen 3 times from 2 s to 9 s, 7 s lost. Who: topic __cluster_metadata.
        Filter: topic == "__cluster_metadata" and error == NOT_LEADER_OR_FOLLOWER. Evidence: errors 3, nodes 2, controllers 2.
        """,
        kind="majority lost",
        least={"errors": 3, "longest": 7.0, "nodes": 2},
    ),
    Scene(
        "no-controller",
        leader_lost,
        """
        info 0.85: no controller led the cluster for 1.5 s: 4 Fetch requests of 2 nodes for its metadata got
        NOT_LEADER_OR_FOLLOWER, and none succeeded; the responses name controller 13. Seen 4 times from 2 s to 3.5 s, 1.5 s
        lost. Who: topic __cluster_metadata, broker_id 13. Filter: topic == "__cluster_metadata" and error ==
        NOT_LEADER_OR_FOLLOWER. Evidence: errors 4, nodes 2, controllers 2.
        """,
        kind="leader lost",
        least={"errors": 4, "seconds": 1.5},
    ),
]
