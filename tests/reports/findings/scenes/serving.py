"""Scenes of brokers and connections: who is slow, what is cut, who waits behind whom."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, observed


def refusals(times: tuple[float, ...], client: str = "app", partition: int = 0, topic: str = "t") -> list[tuple[Row, Row]]:
    """Produce requests that a broker refuses since it does not lead the partition."""
    return [
        (exchange(f"{client}{partition}{topic}", at + 1, "Produce", time, client_id=client),
         {"connection": f"{client}{partition}{topic}", "exchange": at + 1, "api_key": 0, "topic": topic, "partition": partition,
          "error": "NOT_LEADER_OR_FOLLOWER"}) for at, time in enumerate(times)
    ]  # fmt: skip


def tables(*some: list[tuple[Row, Row]]) -> Observed:
    """The tables of these."""
    pairs = [pair for one in some for pair in one]
    return observed([row for row, _ in pairs], [part for _, part in pairs])


def one_move() -> Observed:
    """Fourteen errors of one client and partition in 10.6 s, a second apart at most: one move that it does not follow. Another
    topic has an error of each of two clients, which is how they learn of it."""
    times = [begin + at for begin in (1, 6.8) for at in (0, 0.8, 1.6, 2.4, 3.2, 4, 4.8)]
    return tables(refusals(tuple(round(at, 1) for at in times)), refusals((1,), "b", 0, "u"), refusals((1.2,), "c", 0, "u"))


def many_moves() -> Observed:
    """Errors of one client and partition at five times that are far apart, and at one of another partition."""
    return tables(refusals((1, 11, 21, 31, 41)), refusals((2,), "app", 1))


def refused_in_between() -> Observed:
    """One broker refuses a partition five times and serves it in between; no other one does."""
    times = (1, 11, 21, 31, 41)
    good = [(row | {"connection": "G"}, part | {"connection": "G", "error": "NONE"}) for row, part in
            refusals([at + 5 for at in times])]  # fmt: skip
    return tables(refusals(times), good)


def served(place: int, latencies: list[float], step: float = 0.25, **more: Any) -> list[Row]:
    """Metadata requests to a broker, that take so long."""
    return [exchange(f"C{place}", at + 1, "Metadata", at * step, latency, server_ip=f"10.0.0.{place}", broker_id=place, **more)
            for at, latency in enumerate(latencies)]  # fmt: skip


def slow_broker() -> Observed:
    """Of 40 requests to broker 1 ten take 100 ms, two of them each 2 s and one of these 110 ms, the others 2 ms; those to two
    of its peers take 20 ms. In two of these seconds, those to a third peer take 90 ms, which are too few to compare."""
    slow = [0.1, 0.1, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002] * 5
    slow[16] = 0.11
    return observed([*served(1, slow), *served(2, [0.02] * 40), *served(3, [0.02] * 40), *served(4, [0.09] * 10)])


def slow_administration() -> Observed:
    """What administrators do takes long at one of two brokers, which may be the controller; Metadata does not."""
    slow = [row | {"api": "CreateTopics", "connection": "A"} for row in served(1, [0.3] * 40)]
    quick = [row | {"api": "CreateTopics", "connection": "B"} for row in served(2, [0.002] * 40)]
    return observed([*slow, *quick, *served(1, [0.002] * 40), *served(2, [0.002] * 40)])


def behind_polls() -> Observed:
    """Six and five requests of two connections wait for 200 ms behind a Fetch, over 5 s and 4 s; four of a third one."""
    rows = []
    for name, count in (("C1", 6), ("C2", 5), ("C3", 4)):
        rows.append(exchange(name, 1, "Fetch", 0, 1.0))
        rows += [exchange(name, at + 2, "Metadata", at, 0.4, queue_ns=200 * MS) for at in range(count)]
    return observed(rows)


def given_up() -> Observed:
    """Two Produce requests and a Heartbeat are given up 600 ms later, and two get REQUEST_TIMED_OUT; another client has one."""
    rows: list[Row] = [exchange("C0", 1, "Metadata", 0)]
    for at, api in enumerate(("Produce", "Heartbeat", "Produce")):
        rows.append(exchange(f"D{at}", 1, api, 1 + at, None, reason="fin", age_ns=(600 + at) * MS))
    rows += [exchange("C0", 2 + at, "Produce", 5 + at, 30.0, error="REQUEST_TIMED_OUT") for at in range(2)]
    rows += [exchange("E0", 1, "Metadata", 0, client_id="b"), exchange("E1", 1, "Produce", 1, None, client_id="b", reason="rst",
                                                                      age_ns=SECOND)]  # fmt: skip
    links = [CONNECTION | {"connection": f"D{at}", "server_captured": 0} for at in range(3)]
    links += [CONNECTION | {"connection": name} for name in ("C0", "E0")]
    return observed(rows, connections=[*links, CONNECTION | {"connection": "E1", "client_id": "b", "server_captured": 0}])


def cut_when_idle() -> Observed:
    """Five connections are closed 4.0 to 5.0 s behind their last response, and the client opens another; one that is closed
    with a busy one does not count."""
    rows: list[Row] = []
    links: list[Row] = []
    for at, pause in enumerate((4.0, 5.0, 4.6, 4.4, 4.5, 4.5)):
        begin = START + at * 10 * SECOND
        rows.append(exchange(f"C{at}", 1, "Produce", at * 10, 0))
        end = begin + int(pause * SECOND)
        links.append(CONNECTION | {"connection": f"C{at}", "closed_by": "server", "first_ns": begin, "last_ns": end + 100 * MS,
                                   "closed_ns": end})  # fmt: skip
    rows.append(exchange("B", 1, "Fetch", 52, 0))
    links.append(CONNECTION | {"connection": "B", "first_ns": START, "last_ns": START + 54_800 * MS})
    return observed([*rows, exchange("L", 1, "Metadata", 70, 0)],
                    connections=[*links, CONNECTION | {"connection": "L", "first_ns": START + 70 * SECOND,
                                                       "last_ns": START + 70 * SECOND}])  # fmt: skip


def cut_at_several_servers() -> Observed:
    """Two connections of a client to one server and one to another are closed 4.5 s behind their last response, and opened
    again; of another client one to each of three."""
    rows: list[Row] = []
    links: list[Row] = []
    for client, servers in (("app", (1, 1, 2)), ("b", (1, 2, 3))):
        for at, server in enumerate((*servers, *sorted({*servers}))):
            place = {"client_id": client, "server_ip": f"10.0.0.{server}"}
            begin, name = START + at * 10 * SECOND, f"{client}{at}"
            end = begin + (4_500 if at < 3 else 0) * MS
            rows.append(exchange(name, 1, "Produce", at * 10, 0, **place))
            closed = {"closed_by": "server", "closed_ns": end} if at < 3 else {"closed_by": None, "ended": "open"}
            links.append(CONNECTION | place | {"connection": name, "first_ns": begin, "last_ns": end} | closed)
    return observed(rows, connections=links)


def not_opened_again() -> Observed:
    """Three connections are closed 4.5 s behind their last response, two of them at one time; none is opened behind that."""
    rows, links = [], []
    for at, begin in enumerate((0, 10, 10)):
        first = START + begin * SECOND
        rows.append(exchange(f"C{at}", 1, "Produce", begin, 0))
        links.append(CONNECTION | {"connection": f"C{at}", "closed_by": "server", "first_ns": first,
                                   "last_ns": first + 4600 * MS, "closed_ns": first + 4500 * MS})  # fmt: skip
    return observed(rows, connections=links)


def connections_all_the_time() -> Observed:
    """One host opens 30 connections in 5 s for 5 exchanges each, of which 12 do work; another one 19 of them, and each lasts
    for 0.1 s."""
    links, rows = [], []
    for host, count in ((9, 30), (8, 19)):
        for at in range(count):
            first = START + at * 4_900_000_000 // 29
            links.append(CONNECTION | {"connection": f"H{host}{at}", "client_ip": f"10.0.0.{host}", "exchanges": 5,
                                       "client_id": "app" if host == 9 else "b", "first_ns": first,
                                       "last_ns": first + 100 * MS})  # fmt: skip
    rows = [exchange(f"H9{at}", 1, "Produce" if at < 12 else "CreateTopics", at * 0.1) for at in range(30)]
    return observed(rows, connections=links)


SCENES = [
    Scene("not-leader", one_move, """
        medium 0.85: requests for topic t went 14 times to a broker that does not lead the partition. Seen 14 times from 1
        s to 11.6 s, 0.014 s lost. Who: topic t. Filter: topic == "t" and error == NOT_LEADER_OR_FOLLOWER. Evidence:
        errors 14, partitions 1, clients 1.
        info 0.85: requests for topic u went 2 times to a broker that does not lead the partition. Seen 2 times from 1 s
        to 1.2 s, 0.002 s lost. Who: topic u. Filter: topic == "u" and error == NOT_LEADER_OR_FOLLOWER. Evidence: errors
        2, partitions 1, clients 2.
        """, kind="one move", least={"errors": 14, "each": 13.9999, "lasting": 10.6}, most={"seconds": 1.0}),
    Scene("not-leader", many_moves, """
        medium 0.85: requests for topic t went 6 times to a broker that does not lead the partition. Seen 6 times from 1
        s to 41 s, 0.006 s lost. Who: topic t. Filter: topic == "t" and error == NOT_LEADER_OR_FOLLOWER. Evidence:
        errors 6, partitions 2, clients 1.
        """, kind="many moves", least={"moves": 5, "errors": 6}),
    Scene("not-leader", refused_in_between, """
        medium 0.5: requests for topic t went 5 times to a broker that did not lead the partition then, and no other is seen to.
        Seen 5 times from 1 s to 41 s, 0.005 s lost. Who: topic t. Filter: topic == "t" and error == NOT_LEADER_OR_FOLLOWER.
        Evidence: errors 5, partitions 1, clients 1.
        """, kind="by turns", least={"moves": 5, "errors": 5}),
    Scene("slow-broker", slow_broker, """
        high 0.8: broker 10.0.0.1:9092 takes 100 ms for Metadata (95th percentile), other brokers 20 ms. Seen 40 times from 0 s
        to 9.75 s, 1.07 s lost. Who: server 10.0.0.1:9092, broker_id 1. Filter: server_ip == "10.0.0.1" and server_port == 9092
        and api in {Metadata}. Evidence: p95_ns 100000000, others_p95_ns 20000000, apis ['Metadata'].
        """, least={"requests": 40, "times": 5.0, "milliseconds": 100.0, "share": 9 / 40,
                                                    "late": 9, "seconds": 8.35, "alone": 61 / 101}),
    Scene("slow-broker", slow_administration, "", kind="administration"),
    Scene("head-of-line", behind_polls, """
        medium 0.85: 11 requests of client app waited 200 ms on average behind Fetch on the same connection. Seen 11 times from
        0 s to 5 s, 2.2 s lost. Who: client_id app, connection C1. Filter: client_id == "app" and queue_ns >= 100ms. Evidence:
        requests 11, queue_ns 2200000000.
        """, least={"requests": 5, "milliseconds": 200.0, "seconds": 5.0}),
    Scene("request-timeout", given_up, """
        high 0.85: 5 requests of client app were not answered in time; 2 got REQUEST_TIMED_OUT. Seen 5 times from 1 s to 6 s,
        61.803 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and (outcome == unanswered or error
        == REQUEST_TIMED_OUT or flags == late). Evidence: requests 5, timed_out 2, longest_wait_ns 602000000.
        """, least={"requests": 5, "milliseconds": 600.0}),
    Scene("idle-disconnect", cut_when_idle, """
        low 0.8: 5 connections of client app to 10.0.0.1:9092 were closed by the other side after 4.5 s without a request, and
        opened again. Seen 5 times from 0 s to 44.6 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id ==
        "app" and server_ip == "10.0.0.1" and server_port == 9092 and connection in {"C0", "C1", "C2", "C3", "C4"}. Evidence:
        connections 5, idle_ns 4500000000.
        """, least={"connections": 5, "seconds": 4.0}, most={"spread": 0.5 / 4.5, "together": 0.2}),
    Scene("idle-disconnect", cut_at_several_servers, """
        low 0.8: 3 connections of client app to 2 servers were closed by the other side after 4.5 s without a request,
        and opened again. Seen 3 times from 0 s to 24.5 s, 0 s lost. Who: client_id app. Filter: client_id == "app"
        and connection in {"app0", "app1", "app2"}. Evidence: connections 3, idle_ns 4500000000, servers 2.
        """, least={"connections": 3}, kind="several servers"),
    Scene("idle-disconnect", not_opened_again, "", kind="not opened again"),
    Scene("connection-churn", connections_all_the_time, """
        medium 0.85: client app opened 30 connections, 6 a second, with 5.0 exchanges each. Seen 30 times from 0 s to 5 s, 0 s
        lost. Who: client_id app. Filter: client_id == "app". Evidence: connections 30, connections_a_second 6.0, exchanges 150.
        """, least={"connections": 30, "a_second": 6.0, "share": 0.4},
          most={"exchanges": 5, "seconds": 0.1}),
]  # fmt: skip
