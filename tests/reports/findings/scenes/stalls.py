"""Scenes of brokers that send nothing for a while."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, exchange, observed

BROKERS = [{"host": f"10.0.0.{node}", "port": 9092, "broker_id": node} for node in (1, 2)]


def beats(first: float, last: float, number: int = 1, **more: object) -> list[Row]:
    """A Heartbeat each 50 ms from the first time to the last, in seconds, each with its response 2 ms behind it."""
    count = round((last - first) / 0.05) + 1
    place = {"client_ip": "10.0.0.8", "broker_id": 1, "connection": "C1", "throttle_time_ms": 0} | more
    return [exchange(place["connection"], number + at, "Heartbeat", first + at * 0.05, 0.002) | place for at in range(count)]


def waiting(times: tuple[float, ...], until: float, number: int, **more: object) -> list[Row]:
    """Heartbeats that are sent at these times and all get their response at one time."""
    place = {"client_ip": "10.0.0.8", "broker_id": 1, "connection": "C1", "throttle_time_ms": 0} | more
    return [
        exchange(place["connection"], number + at, "Heartbeat", time, until - time) | place for at, time in enumerate(times)
    ]


def one_pause() -> Observed:
    """A broker is silent once, while three requests of one connection wait that are sent over 0.1 s. One that waits for long
    as well is sent shortly before the end, one was sent again by TCP."""
    late = waiting((1.125, 1.175, 1.225), 3.0, 50)
    slow = exchange("C1", 70, "Heartbeat", 2.9, 1.3, client_ip="10.0.0.8")
    again = waiting((1.13,), 3.0, 71, flags=["retransmitted"])
    return observed([*beats(0, 1), *late, slow, *again, *beats(3.5, 4, 80)])


def several_pauses() -> Observed:
    """A broker is silent for 1.5 s, 2.5 s and 1.25 s; in the longest time two hosts wait, one of them on two connections, of
    which the first request was sent before. Its peer responds all the time, and is never slow."""
    here = {"connection": "C2", "client_ip": "10.0.0.9"}
    rows = [
        *beats(0, 1), *waiting((1.1, 1.15, 1.2), 2.502, 100), *beats(2.55, 3, 200),
        *waiting((2.9, 3.1, 3.2, 3.3), 5.502, 300), *waiting((3.4,), 5.502, 1, **here),
        *waiting((3.5,), 5.502, 1, **here | {"connection": "C3"}), *beats(5.55, 6, 400),
        *waiting((6.1, 6.15, 6.2, 6.22), 7.252, 500), *beats(7.3, 8, 600),
        *beats(0, 8, connection="P1", server_ip="10.0.0.2", broker_id=2),
    ]  # fmt: skip
    return observed(rows, brokers=BROKERS)


def replicas_alone() -> Observed:
    """What waits first on each connection waits for all replicas; and a Fetch of another broker is overdue by 1 s, but a
    minute later."""
    writes = waiting((1.1, 1.15, 1.2), 3.502, 50, api="Produce", acks=-1)
    poll = exchange("R1", 1, "Fetch", 60, 1.5, max_wait_ms=500, client_id="broker-2-fetcher-0")
    return observed([*beats(0, 1), *writes, poll, *beats(3.55, 4, 80)], brokers=BROKERS)


SCENES = [
    Scene("broker-stall", one_pause, """
        medium 0.6: broker 10.0.0.1:9092 sent no response to anyone for 2.0 s, while 3 requests from 1 host waited; its median
        is 2 ms. Seen 3 times from 1.002 s to 3 s, 5.475 s lost. Who: server 10.0.0.1:9092, broker_id 1. Filter: server_ip ==
        "10.0.0.1" and server_port == 9092 and latency_ns >= 1000ms. Evidence: silences 1, longest_ns 1998000000, requests 3,
        connections 1, hosts 1, median_ns 2000000.
        """, kind="one connection",
          least={"seconds": 1.775, "requests": 3, "spread": 0.1, "times": 500.0, "often": 36, "alone": 0.6}),
    Scene("broker-stall", several_pauses, """
        medium 0.85: broker 10.0.0.1:9092 sent no response to anyone for 2.5 s in the longest of 3 times, while 6 requests from
        2 hosts waited; its median is 2 ms. Seen 13 times from 1.002 s to 7.252 s, 22.006 s lost. Who: server 10.0.0.1:9092,
        broker_id 1. Filter: server_ip == "10.0.0.1" and server_port == 9092 and latency_ns >= 1000ms. Evidence: silences 3,
        longest_ns 2499999999, requests 13, connections 3, hosts 2, median_ns 2000000.
        """, kind="several", least={"several": 0.85}),
    Scene("broker-stall", replicas_alone, """
        info 0.4: broker 10.0.0.1:9092 sent no response to anyone for 2.5 s, while 3 requests from 1 host waited; its median is
        2 ms; each connection waited for a write to all replicas, which other brokers may hold up. Seen 3 times from 1.002 s to
        3.502 s, 7.056 s lost. Who: server 10.0.0.1:9092, broker_id 1. Filter: server_ip == "10.0.0.1" and server_port == 9092
        and latency_ns >= 1000ms. Evidence: silences 1, longest_ns 2499999999, requests 3, connections 1, hosts 1, median_ns
        2000000.
        """, kind="replicas"),
]  # fmt: skip
