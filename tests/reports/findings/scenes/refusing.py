"""Scenes of brokers that accept no connection for a while."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, observed


def stopped() -> Observed:
    """A broker takes writes to two partitions until 10 s, refuses four connections of two hosts from 10.5 to 12 s and does not
    answer the three SYN of a fifth, sent up to 13 s; the next write succeeds at another broker, at 14 s to one partition and at
    13.5 s to the other. It refused two more before, and accepted one in between. Writes to a third partition were few in the
    last 5 s, those to a fourth had ended."""
    rows: list[Row] = []
    parts: list[Row] = []
    links: list[Row] = []

    def write(name: str, partition: int, at: float, **more: object) -> None:
        number = len(rows) + 1
        rows.append(exchange(name, number, "Produce", at, 0, **{"broker_id": 1, **more}))
        parts.append({"connection": name, "exchange": number, "api_key": 0, "topic": "t", "partition": partition,
                      "error": "NONE"})  # fmt: skip

    for step in range(5):
        write("A", 0, 6 + step)
        write("A", 1, 5.75 + step)
        write("B", 3, 6 + step)
    for step in range(4):
        write("A", 2, 6 + step)
        write("A", 2, 1 + step)
    there = {"server_ip": "10.0.0.2", "broker_id": 2}
    write("E", 0, 14, **there)
    write("E", 1, 13.5, **there)
    write("E", 2, 15, **there)
    links += [
        CONNECTION | {"connection": "A", "closed_by": "server", "server_packets": 40}, CONNECTION | {"connection": "B",
        "server_packets": 40}, CONNECTION | {"connection": "E", "server_packets": 40, "server_ip": "10.0.0.2"},
    ]  # fmt: skip
    dead = {"phase": "empty", "client_id": None, "exchanges": 0, "server_packets": 1, "ended": "rst", "closed_by": "server"}
    for at, time in enumerate((1.0, 1.2, 10.5, 11.0, 11.5, 12.0, 12.5)):
        first = START + int(time * SECOND)
        links.append(CONNECTION | dead | {"connection": f"R{at}", "client_ip": f"10.0.0.{8 + at % 2}", "first_ns": first,
                                          "last_ns": first + MS})  # fmt: skip
    links[-1] |= {"server_packets": 0, "ended": "open", "closed_by": None, "packets": 3, "last_ns": START + 13 * SECOND}
    links.append(
        CONNECTION | {"connection": "G", "server_packets": 9, "first_ns": START + 2 * SECOND, "last_ns": START + 3 * SECOND}
    )
    return observed(rows, parts, connections=links)


SCENES = [
    Scene(
        "broker-unavailable",
        stopped,
        """
        medium 0.85: broker 10.0.0.1:9092 accepted no connection for at least 2.5 s: 5 connections of 2 hosts were refused or
        not answered, tried 7 times; no write to 2 partitions succeeded for up to 4.0 s. Seen 5 times from 10.5 s to 13 s, 4 s
        lost. Who: server 10.0.0.1:9092, broker_id 1, client_ips ['10.0.0.8', '10.0.0.9']. Filter: server_ip == "10.0.0.1" and
        server_port == 9092. Evidence: connections 5, tries 7, refused 4, refusing_ns 2500000000, partitions 2, unwritten_ns
        4000000000.
        """,
        least={"refused": 7, "seconds": 2.5, "unwritten": 4.0},
    ),
]
