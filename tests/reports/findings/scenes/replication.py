"""Scenes of writes that wait for followers."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import MS, Row, exchange, observed


def writes(broker: int, count: int, latency: float, acks: int = -1, at: float = 0.0, step: float = 0.5) -> list[Row]:
    """Produce requests to a broker."""
    name = f"W{broker}{acks}{latency}"
    return [exchange(name, number + 1, "Produce", at + number * step, latency, acks=acks, server_ip=f"10.0.0.{broker}",
                     broker_id=broker) for number in range(count)]  # fmt: skip


def beside(broker: int, count: int, api: str = "Produce") -> list[Row]:
    """Requests that take 2 ms, each sent 10 ms behind one of `writes`."""
    return [exchange(f"B{broker}", number + 1, api, 0.01 + number * 0.5, 0.002, acks=1, server_ip=f"10.0.0.{broker}",
                     broker_id=broker) for number in range(count)]  # fmt: skip


def polls(leader: int, follower: int, behind: list[float]) -> list[Row]:
    """Fetch requests of a follower that get their response when one of `writes` is sent, each so many seconds behind the
    response before it."""
    rows, sent = [], -0.4
    for number, took in enumerate([*behind, 0.0]):
        rows.append(exchange(f"R{leader}{follower}", number + 1, "Fetch", sent, number * 0.5 - sent, record_count=1,
                             server_ip=f"10.0.0.{leader}", client_id=f"broker-{follower}-fetcher-0",
                             client_ip=f"10.0.0.{follower}"))  # fmt: skip
        sent = number * 0.5 + took
    return rows


def quick_alone() -> Observed:
    """Of 20 writes to all replicas ten, one each second, take 100 ms, and one of these 110 ms; those with acks=1 take 2 ms."""
    late = writes(1, 10, 0.1, step=1.0)
    late[4] |= {"latency_ns": 110 * MS, "response_first_ns": late[4]["request_first_ns"] + 110 * MS}
    return observed([*late, *writes(1, 10, 0.002, at=0.5, step=1.0), *beside(1, 20)])


def followed() -> Observed:
    """20 writes to all replicas take 100 ms, 14 of which get their response 1 ms behind the Fetch of broker 3, and none when
    that of broker 2 comes. No other request is there."""
    return observed([*writes(1, 20, 0.1), *polls(1, 2, [0.001] * 20), *polls(1, 3, [0.099] * 14 + [0.09] * 6)])


def several_leaders() -> Observed:
    """Writes to two brokers, all of them to all replicas, take 100 ms; five Heartbeats to each of them take 2 ms."""
    return observed([row for broker in (1, 2)
                     for row in (*writes(broker, 10, 0.1), *beside(broker, 5, "Heartbeat"))])  # fmt: skip


SCENES = [
    Scene("slow-replication", quick_alone, """
        medium 0.8: 10 of 20 writes with acks=all took 100 ms (median) at 10.0.0.1:9092, while writes with acks=1
        there took 2 ms. Seen 10 times from 0 s to 9.1 s, 1.01 s lost. Who: server 10.0.0.1:9092, client_ids ['app'].
        Filter: api == "Produce" and acks == -1 and latency_ns >= 50ms and server_ip == "10.0.0.1" and server_port ==
        9092. Evidence: writes 20, late_writes 10, leaders 1, late_p50_ns 100000000, prompt_p50_ns 2000000.
        """, kind="acks=1 is quick", least={"requests": 20, "milliseconds": 100.0, "times": 50.0, "share": 0.45, "late": 9,
                                            "seconds": 9.1}),
    Scene("slow-replication", followed, """
        medium 0.9: 20 of 20 writes with acks=all took 100 ms (median) at 10.0.0.1:9092; they waited for broker 3,
        whose next Fetch comes 99 ms after the records. Seen 20 times from 0 s to 9.6 s, 2 s lost. Who: broker_id 3,
        server 10.0.0.1:9092, client_ids ['app']. Filter: api == "Produce" and acks == -1 and latency_ns >= 50ms and
        server_ip == "10.0.0.1" and server_port == 9092. Evidence: writes 20, late_writes 20, leaders 1, late_p50_ns
        100000000, acknowledged_ns 99000000, with_followers 14.
        """, kind="followers", least={"requests": 20, "milliseconds": 100.0, "met": 0.7}),
    Scene("slow-replication", several_leaders, """
        medium 0.6: 20 of 20 writes with acks=all took 100 ms (median) at 2 brokers, while other requests there took 2
        ms; followers may be what is slow. Seen 20 times from 0 s to 4.6 s, 2 s lost. Who: client_ids ['app']. Filter:
        api == "Produce" and acks == -1 and latency_ns >= 50ms and ((server_ip == "10.0.0.1" and server_port == 9092)
        or (server_ip == "10.0.0.2" and server_port == 9092)). Evidence: writes 20, late_writes 20, leaders 2,
        late_p50_ns 100000000, prompt_p50_ns 2000000.
        """, kind="several leaders", least={"requests": 20, "times": 50.0, "prompt": 5}),
]  # fmt: skip
