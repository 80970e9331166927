"""Scenes of proxies of which the capture has both sides."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, observed

FRONT, BACK = "10.0.0.7", "10.0.0.1"


def side(
    name: str, server: str, at: float, count: int, latency: float, late: float = 0.0, **more: object
) -> tuple[Row, list[Row]]:
    """A connection of `count` Produce requests, a second apart, each `late` seconds after those of the other side."""
    first = START + int((at + late) * SECOND)
    link = CONNECTION | {"connection": name, "server_ip": server, "exchanges": count, "first_ns": first,
                         "last_ns": first + count * SECOND, **more}  # fmt: skip
    rows = [exchange(name, number + 1, "Produce", at + number + late, latency, server_ip=server, client_id=link["client_id"])
            for number in range(count)]  # fmt: skip
    return link, rows


def both(name: str, at: float, count: int, took: float, own: float, **more: object) -> list[tuple[Row, list[Row]]]:
    """A connection to a proxy, which takes `own` seconds of the time of a request, half of them before it sends it on."""
    return [side(f"{name}F", FRONT, at, count, took, **more), side(f"{name}B", BACK, at, count, took - own, own / 2, **more)]


def tables(*some: tuple[Row, list[Row]]) -> Observed:
    """The tables of these connections: each request writes to the offset of its number."""
    every = [row for _, rows in some for row in rows]
    parts = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
              "error": "NONE", "base_offset": row["exchange"]} for row in every]  # fmt: skip
    return observed(every, parts, [link for link, _ in some])


def slow_proxy() -> Observed:
    """A proxy takes 60 ms of the 100 ms of 20 requests; a third connection goes to the broker without it."""
    return tables(*both("C", 1, 14, 0.1, 0.06), *both("D", 2, 6, 0.1, 0.06), side("E", BACK, 1, 14, 0.01, client_id="direct"))


def quick_proxy() -> Observed:
    """A proxy takes 1 ms of the 100 ms of 12 requests."""
    return tables(*both("C", 1, 12, 0.1, 0.001))


SCENES = [
    Scene(
        "proxy-both-sides",
        slow_proxy,
        """
        medium 0.95: 10.0.0.7:9092 sends the requests of 2 connections on to 10.0.0.1:9092, and the capture has both sides; it
        takes 60 ms of its own for a request, the server behind it 40 ms (medians). Seen 20 times from 1 s to 15 s, 1.2 s lost.
        Who: server 10.0.0.7:9092. Filter: server_ip == "10.0.0.7" and server_port == 9092. Evidence: connections 2, exchanges
        20, proxy_ns 60000000, behind_ns 40000000.
        """,
        least={"milliseconds": 60.0, "share": 0.6, "exchanges": 20},
    ),
    Scene(
        "proxy-both-sides",
        quick_proxy,
        """
        info 0.95: 10.0.0.7:9092 sends the requests of 1 connection on to 10.0.0.1:9092, and the capture has both sides; it
        takes 1 ms of its own for a request, the server behind it 99 ms (medians). Seen 12 times from 1 s to 13 s, 0 s lost.
        Who: server 10.0.0.7:9092. Filter: server_ip == "10.0.0.7" and server_port == 9092. Evidence:
        connections 1, exchanges 12, proxy_ns 1000000, behind_ns 99000000.
        """,
        kind="quick",
    ),
]
