"""Scenes of leaders, replicas and coordinators that move."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, many, observed

MOVED = "NOT_LEADER_OR_FOLLOWER"


def produced(connection: str, number: int, at: float, error: str, partition: int = 0, **more: Any) -> tuple[Row, Row]:
    """A Produce request with its row of partitions."""
    part = {"connection": connection, "exchange": number, "api_key": 0, "topic": "t", "partition": partition, "error": error,
            "records": 7}  # fmt: skip
    return exchange(connection, number, "Produce", at, 0, client_id=connection, **more), part


def tables(*pairs: tuple[Row, Row]) -> Observed:
    """The tables of these."""
    return observed([row for row, _ in pairs], [part for _, part in pairs])


def followed() -> Observed:
    """A client takes 12 s longer than another to follow a partition to its new leader, and 2 s for one that it alone uses; a
    third takes 4 s for such a one."""
    return tables(
        produced("a", 1, 1, "NONE"), produced("a", 2, 2, MOVED), produced("a", 3, 5, MOVED), produced("a", 4, 18, "NONE"),
        produced("a", 5, 19, "NONE"), produced("a", 6, 1, "NONE", 1), produced("a", 7, 3, MOVED, 1),
        produced("a", 8, 5, "NONE", 1), produced("b", 1, 1, "NONE"), produced("b", 2, 2, MOVED), produced("b", 3, 6, "NONE"),
        produced("c", 1, 2, MOVED), produced("d", 1, 2, MOVED, 2), produced("d", 2, 6, "NONE", 2),
        produced("d", 3, 1, "NONE", 2),
    )  # fmt: skip


def metadata(*in_sync: tuple[int, ...]) -> Row:
    """A Metadata response of topic `t`, whose partitions have replicas 1 to 3 and these in sync."""
    parts = [{"partitionIndex": at, "isrNodes": list(nodes), "replicaNodes": [1, 2, 3]} for at, nodes in enumerate(in_sync)]
    return {"topics": [{"name": "t", "partitions": parts}]}


def replicas_missing() -> Observed:
    """From 2 s on broker 3 is not in sync for one partition, and from 4 s on broker 2 not either; until 8 s."""
    times = (0, 2, 4, 8)
    rows = [exchange("C1", at + 1, "Metadata", time) for at, time in enumerate(times)]
    whole = (1, 2, 3)
    states = ((whole, whole, whole), (whole, (1, 2), whole), (whole, (1,), (1, 2)), (whole, (1,), (1, 3)))
    said = {("C1", at + 1, "response"): metadata(*state) for at, state in enumerate(states)}
    write, part = produced("w", 1, 1, "NONE")
    return observed([*rows, write], [part], messages=said)


def no_replica_in_sync() -> Observed:
    """A partition whose replicas are all missing, of a topic that clients are not refused for."""
    rows = [exchange("C1", at + 1, "Metadata", 4 * at) for at in range(3)]
    return observed(rows, messages={("C1", at + 1, "response"): metadata(()) for at in range(3)})


def no_leader() -> Observed:
    """Partitions of two topics have no leader for 8 s: of one no replica is in sync, which another rule says; of the other one
    is, of another partition."""
    rows = [exchange("C1", at + 1, "Metadata", 4 * at, error="LEADER_NOT_AVAILABLE") for at in range(3)]
    lost = {"partitionIndex": 0, "errorCode": 5, "isrNodes": [], "replicaNodes": [1, 2, 3]}
    small = {"partitionIndex": 1, "errorCode": 0, "isrNodes": [1], "replicaNodes": [1, 2, 3]}
    whole = lost | {"isrNodes": [1, 2, 3]}
    response = {"topics": [{"name": "t", "partitions": [lost]}, {"name": "u", "partitions": [whole, small]}]}
    return observed(rows, messages={("C1", at + 1, "response"): response for at in range(3)})


def one_busy_broker() -> Observed:
    """Of 20 MB that three brokers carry 16 pass one of them; a fourth does not respond."""
    sizes = ((8_000_000, 8_000_000), (1_000_000, 1_000_000), (500_000, 1_500_000))
    rows = [
        exchange(f"C{at}", 1 + number, api, 1 + at + number, request_bytes=up // 2, response_bytes=down // 2, broker_id=at,
                 server_ip=f"10.0.0.{at}")
        for at, (up, down) in enumerate(sizes) for number, api in enumerate(("Produce", "Fetch"))
    ]  # fmt: skip
    return observed([*rows, exchange("C9", 1, "Fetch", 1, None, server_ip="10.0.0.9", request_bytes=9_000_000)])


def coordinators_change() -> Observed:
    """Group `g` gets NOT_COORDINATOR four times and is at home at two brokers; group `h` gets it three times over 6 s and is at
    home nowhere; group `i` gets it three times and is at home at one."""
    away = {"error": "NOT_COORDINATOR"}
    rows = many(4, 1.0, "Heartbeat", group_id="g", **away)
    rows += [exchange("D", at + 1, "OffsetCommit", 5 + at, group_id="g", server_ip=f"10.0.0.{at}") for at in (1, 2)]
    rows.append(exchange("D", 9, "OffsetCommit", 5, group_id="g", error="COORDINATOR_LOAD_IN_PROGRESS", client_id="b"))
    rows += many(3, 3.0, "JoinGroup", connection="H", group_id="h", latency=0, **away)
    rows += [*many(3, 3.0, "JoinGroup", connection="I", group_id="i", **away), exchange("I", 9, "JoinGroup", 9, group_id="i")]
    return observed(rows)


def risky_writes() -> Observed:
    """The leaders of a topic moved four times while one client wrote with acks=1 and another with acks=all."""
    pairs = [produced("a", at + 1, at, MOVED, at % 2, acks=1) for at in range(4)]
    pairs += [produced("a", at + 10, 5 + at, "NONE", at % 2, acks=1) for at in range(2)]
    return tables(*pairs, produced("b", 1, 9, "NONE", acks=-1), produced("a", 0, -1, "NONE", 0, acks=0),
                  produced("a", 30, -1, "NONE", 1, acks=0))  # fmt: skip


def versions() -> Observed:
    """A server refuses four Fetch requests of one client, and two of another one that gets others through; of a third one an
    administrator's alone."""
    rows = many(4, 1.0, "Fetch", error="UNSUPPORTED_VERSION", api_version=17)
    rows += many(2, 1.0, "Fetch", connection="C2", client_id="b", error="UNSUPPORTED_VERSION", api_version=17)
    rows.append(exchange("C2", 9, "Fetch", 9, client_id="b", api_version=11))
    rows += many(2, 1.0, "Fetch", connection="C3", client_id="c", error="UNSUPPORTED_VERSION", api_version=17)
    rows += many(9, 1.0, "DescribeCluster", connection="C4", client_id="d", error="UNSUPPORTED_VERSION")
    return observed(rows)


def versions_closed_at() -> Observed:
    """A server closes three connections at requests of versions that it does not name."""
    rows = [exchange(f"D{at}", 1, "Fetch", at, None, reason="fin", age_ns=MS, version_verdict="above_broker_max",
                     api_version=17) for at in range(3)]  # fmt: skip
    links = [CONNECTION | {"connection": f"D{at}", "first_ns": START, "last_ns": START + 9 * SECOND} for at in range(3)]
    return observed(rows, connections=links)


SCENES = [
    Scene(
        "leader-change",
        followed,
        """
        medium 0.85: client a took up to 12.0 s to follow topic t to its new leader. Seen 3 times from 2 s to 18 s, 12 s
        lost. Who: client_id a, topic t. Filter: client_id == "a" and topic == "t" and error == NOT_LEADER_OR_FOLLOWER.
        Evidence: errors 3, longest_ns 12000000000.
        info 0.85: client d took up to 4.0 s to follow topic t to its new leader. Seen once from 2 s to 6 s, 4 s lost.
        Who: client_id d, topic t. Filter: client_id == "d" and topic == "t" and error == NOT_LEADER_OR_FOLLOWER.
        Evidence: errors 1, longest_ns 4000000000.
        """,
        least={"seconds": 12.0},
    ),
    Scene(
        "isr-shrink",
        replicas_missing,
        """
        medium 0.85: 2 partitions of topic t have as few as 1 of 3 replicas in sync. Seen 2 times from 2 s to 8 s, 0 s lost.
        Who: topic t, client_ids ['w']. Filter: topic == "t" and api == Metadata. Evidence: partitions 2, in_sync 1, replicas 3.
        """,
        least={"seconds": 6.0},
    ),
    Scene(
        "isr-shrink",
        no_replica_in_sync,
        """
        medium 0.85: 1 partition of topic t has 0 of 3 replicas in sync. Seen once from 0 s to 8 s, 0 s lost. Who: topic t.
        Filter: topic == "t" and api == Metadata. Evidence: partitions 1, in_sync 0, replicas 3.
        """,
        kind="none",
        least={"seconds": 8.0},
    ),
    Scene(
        "isr-shrink",
        no_leader,
        """
        medium 0.85: 1 partition of topic u has 1 of 3 replicas in sync. Seen once from 0 s to 8 s, 0 s lost. Who: topic u.
        Filter: topic == "u" and api == Metadata. Evidence: partitions 1, in_sync 1, replicas 3.
        """,
        kind="without a leader",
    ),
    Scene(
        "hot-broker",
        one_busy_broker,
        """
        low 0.7: broker 10.0.0.0:9092 carries 80% of the bytes of 3 brokers. Seen 2 times from 1 s to 2 s, 0 s lost. Who: server
        10.0.0.0:9092, broker_id 0. Filter: server_ip == "10.0.0.0" and server_port == 9092 and api in {Produce, Fetch}.
        Evidence: bytes 16000000, share 0.8, brokers 3.
        """,
        least={"megabytes": 20.0, "share": 0.8, "brokers": 3},
    ),
    Scene(
        "coordinator-moves",
        coordinators_change,
        """
        medium 0.8: group g got 5 responses that its coordinator was elsewhere or not ready; 2 brokers coordinated it.
        Seen 5 times from 0 s to 5 s, 0.005 s lost. Who: group_id g, client_ids ['app', 'b']. Filter: group_id == "g"
        and error in {NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS}. Evidence: errors 5, not_coordinator 4,
        coordinators 2.
        medium 0.8: group h got 3 responses that its coordinator was elsewhere or not ready, and no other for 6.0 s.
        Seen 3 times from 0 s to 6 s, 0 s lost. Who: group_id h, client_ids ['app']. Filter: group_id == "h" and error
        in {NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS}. Evidence: errors 3, not_coordinator 3, coordinators 0.
        info 0.8: group i got 3 responses that its coordinator was elsewhere or not ready. Seen 3 times from 0 s to 6 s,
        0.003 s lost. Who: group_id i, client_ids ['app']. Filter: group_id == "i" and error in {NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS}. Evidence: errors 3, not_coordinator 3, coordinators 1.
        """,
        least={"errors": 3, "coordinators": 2, "seconds": 6.0, "each": 3.9999},
    ),
    Scene(
        "acks-risk",
        risky_writes,
        """
        medium 0.7: client a wrote 14 records to t with acks=0 while its leaders moved (4 errors). Seen 2 times from -1 s to -1
        s, 0 s lost. Who: client_id a, topic t. Filter: client_id == "a" and topic == "t" and acks == 0. Evidence: records 14,
        acks 0, errors 4.
        medium 0.7: client a wrote 14 records to t with acks=1 while its leaders moved (4 errors). Seen 2 times from 5 s to 6 s,
        0 s lost. Who: client_id a, topic t. Filter: client_id == "a" and topic == "t" and acks == 1. Evidence: records 14, acks
        1, errors 4.
        """,
        least={"errors": 4},
    ),
    Scene(
        "version-refused",
        versions,
        """
        high 0.9: 10.0.0.1:9092 refused 4 requests of client app: Fetch v17. Seen 4 times from 0 s to 3 s, 0 s lost. Who:
        client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and server_ip == "10.0.0.1" and server_port == 9092 and
        api == Fetch and api_version in {17} and (error == UNSUPPORTED_VERSION or reason in {fin, rst}). Evidence: refused 4,
        versions ['Fetch v17'].
        medium 0.9: 10.0.0.1:9092 refused 2 requests of client c: Fetch v17. Seen 2 times from 0 s to 1 s, 0 s lost. Who:
        client_id c, server 10.0.0.1:9092. Filter: client_id == "c" and server_ip == "10.0.0.1" and server_port == 9092 and api
        == Fetch and api_version in {17} and (error == UNSUPPORTED_VERSION or reason in {fin, rst}). Evidence: refused 2,
        versions ['Fetch v17'].
        info 0.9: 10.0.0.1:9092 refused 9 requests of client d: DescribeCluster v9. Seen 9 times from 0 s to 8 s, 0 s lost. Who:
        client_id d, server 10.0.0.1:9092. Filter: client_id == "d" and server_ip == "10.0.0.1" and server_port == 9092 and api
        == DescribeCluster and api_version in {9} and (error == UNSUPPORTED_VERSION or reason in {fin, rst}). Evidence: refused
        9, versions ['DescribeCluster v9'].
        info 0.9: 10.0.0.1:9092 refused 2 requests of client b: Fetch v17. Seen 2 times from 0 s to 1 s, 0 s lost. Who:
        client_id b, server 10.0.0.1:9092. Filter: client_id == "b" and server_ip == "10.0.0.1" and server_port == 9092 and api
        == Fetch and api_version in {17} and (error == UNSUPPORTED_VERSION or reason in {fin, rst}). Evidence: refused 2,
        versions ['Fetch v17'].
        """,
        least={"refused": 4},
    ),
    Scene(
        "version-refused",
        versions_closed_at,
        """
        high 0.9: 10.0.0.1:9092 refused 3 requests of client app: Fetch v17. Seen 3 times from 0 s to 2 s, 0 s lost. Who:
        client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and server_ip == "10.0.0.1" and server_port == 9092 and
        api == Fetch and api_version in {17} and (error == UNSUPPORTED_VERSION or reason in {fin, rst}). Evidence: refused 3,
        versions ['Fetch v17'].
        """,
        kind="closed",
        least={"refused": 3},
    ),
]
