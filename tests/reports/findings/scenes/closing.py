"""Scenes of connections that come to nothing."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, observed


def link(name: str, at: float, **more: object) -> Row:
    """A connection that a server resets, from `at` seconds on for a millisecond."""
    first = START + int(at * SECOND)
    return (
        CONNECTION
        | {"connection": name, "closed_by": "server", "ended": "rst", "first_ns": first, "last_ns": first + MS}
        | more
    )


def sent(name: str, number: int, api: str, at: float, **more: object) -> Row:
    """A request without a response on such a connection."""
    return exchange(name, number, api, at, None, **{"reason": "rst", "age_ns": MS, **more})


def closed_at_produce() -> Observed:
    """A broker closes five connections at Produce requests of 200 kB and more, and answers one of 90 kB; those behind are not
    looked at. It closes four of another client."""
    rows: list[Row] = []
    links = [CONNECTION | {"connection": "M"}]
    for client, count in (("app", 5), ("few", 4)):
        for at in range(count):
            name = f"{client}{at}"
            more = {"client_id": client}
            rows += [exchange(name, 1, "ApiVersions", 1 + at, **more),
                     sent(name, 2, "Produce", 1.1 + at, request_bytes=204_000 - 1000 * at, **more),
                     sent(name, 3, "Produce", 1.2 + at, request_bytes=90, **more)]  # fmt: skip
            links.append(link(name, 1 + at, client_id=client))
    served = [exchange("M", 1, "Metadata", 0.5), exchange("M", 2, "Produce", 3, request_bytes=90_000)]
    return observed([*rows, *served], connections=links)


def closed_at_one_way() -> Observed:
    """A broker closes five connections of a client a second behind Produce requests with acks=0, of 24 that it gets; four of
    another client, and six of a third one later than a second."""
    rows: list[Row] = []
    links, parts = [CONNECTION | {"connection": "M"}], []
    for client, count, behind in (("app", 5, 1.0), ("few", 4, 1.0), ("late", 6, 1.1)):
        for at in range(count):
            name, end = f"{client}{at}", START + int((1.1 + at) * SECOND) + int(behind * SECOND)
            more = {"client_id": client, "outcome": "one_way", "error": None}
            rows += [exchange(name, number, "Produce", 1.1 + at - 0.1 * (5 - number), None, **more)
                     for number in range(1 if at else 2, 6)]  # fmt: skip
            links.append(link(name, 1 + at, client_id=client) | {"closed_ns": end, "ended": "fin"})
            parts.append({"connection": name, "exchange": 5, "api_key": 0, "topic": "t", "partition": 0})
    served = [exchange("M", number, "Metadata", at) for number, at in enumerate((0.5, 6), 1)]
    return observed([*rows, *served], parts, connections=links)


def closed_at_once() -> Observed:
    """A server closes six connections of two hosts behind ApiVersions, which answers others of both from a second behind the
    first to a second before the last; and five of a third host, which it answers later."""
    rows: list[Row] = []
    links: list[Row] = []
    for host, (count, clients) in enumerate(((6, ("a", "b")), (5, ("c",)), (5, ("d",)))):
        for at in range(count):
            name, more = f"H{host}{at}", {"client_ip": f"10.0.0.{8 + host}", "client_id": clients[at % len(clients)]}
            rows.append(sent(name, 1, "ApiVersions", 1 + at, **more))
            links.append(link(name, 1 + at, server_captured=0, **more) | {"last_ns": START + (1 + at) * SECOND})
    for host, (first, last) in enumerate(((2.0, 5.0), (2.0, 4.0), (2.1, 5.0))):
        rows += [exchange(f"S{host}", number, "Fetch", at, 0, client_ip=f"10.0.0.{8 + host}")
                 for number, at in enumerate((first, last), 1)]  # fmt: skip
    return observed(rows, connections=links)


def closed_early() -> Observed:
    """A server that answers others of a host closes six of its connections 1 ms after the handshake, before a byte."""
    nothing = {"phase": "empty", "client_id": None, "exchanges": 0, "client_captured": 0, "server_captured": 0}
    links = [link(f"E{at}", 1 + at, **nothing, server_packets=2, client_missing=0) for at in range(6)]
    return observed([exchange("S", number, "Fetch", at, 0) for number, at in enumerate((1, 6), 1)], connections=links)


def reset_in_use() -> Observed:
    """A server resets two connections of a client behind 12 and 11 responses, with three requests on the way, and one of
    another client; a third client gets responses all the time."""
    rows: list[Row] = []
    links: list[Row] = []
    for name, client, served, waiting in (("C1", "app", 12, 2), ("C2", "app", 11, 1), ("C3", "other", 12, 1)):
        rows += [exchange(name, number, "Produce", 1 + number / 8, client_id=client) for number in range(1, served + 1)]
        rows += [sent(name, served + number, "Produce", 4, client_id=client) for number in range(1, waiting + 1)]
        links.append(link(name, 1, client_id=client, closed_ns=START + 5 * SECOND))
    alive = [exchange("S", number, "Fetch", at, 0, client_id="reader") for number, at in enumerate((1, 6), 1)]
    return observed([*rows, *alive], connections=links)


def reset_sealed() -> Observed:
    """A server resets two encrypted connections of one host behind 18 packets, and one of another host; a third one goes on."""
    sealed = {"phase": "tls", "tls": True, "client_id": None, "exchanges": 0, "server_packets": 18}
    links = [link(f"C{at}", 1, **sealed, client_ip=f"10.0.0.{9 - at // 2}", client_unacked_ns=3 * MS,
                  last_ns=START + (4 + at) * SECOND, closed_ns=START + (4 + at) * SECOND) for at in range(3)]  # fmt: skip
    return observed([], connections=[*links, CONNECTION | sealed | {"connection": "S"}])


def refused(name: str, at: float, **more: object) -> Row:
    """A connection that is refused."""
    nothing = {"phase": "empty", "client_id": None, "exchanges": 0, "client_captured": 0, "server_captured": 0}
    return link(name, at, **{**nothing, "server_packets": 1, **more})


def cannot_connect() -> Observed:
    """One server refuses seven connections of two hosts, another one refuses two and does not answer two, a third does not
    answer three, and the last refuses two. A server that accepts is in the capture."""
    links = [refused(f"A{at}", 1 + at, client_ip=f"10.0.0.{8 + (at > 2)}") for at in range(7)]
    links += [refused(f"B{at}", 2 + at, server_ip="10.0.0.2", **({} if at % 2 else {"server_packets": 0, "ended": "open"}))
              for at in range(4)]  # fmt: skip
    links += [refused(f"C{at}", 3 + at, server_ip="10.0.0.3", server_packets=0, ended="open") for at in range(3)]
    links += [refused(f"D{at}", 4 + at, server_ip="10.0.0.4") for at in range(2)]
    return observed([], connections=[*links, CONNECTION | {"connection": "S", "server_ip": "10.0.0.5", "server_packets": 40}])


def half_open() -> Observed:
    """Connections that a client resets behind two packets of the server, as a health check does, were accepted; so were those
    that end in one packet of the server and no reset."""
    links = [refused(f"A{at}", 1 + at, server_packets=2) for at in range(4)]
    return observed([], connections=[*links, *(refused(f"B{at}", at, server_ip="10.0.0.2", ended="open") for at in range(4))])


def answers_nothing() -> Observed:
    """One server closes six connections of two clients at their first request, over 5 s, and another two of one client."""
    rows: list[Row] = []
    links: list[Row] = []
    for server, times, clients in ((1, range(6), ("b", "a")), (2, range(2), ("c",))):
        for at in times:
            more = {
                "server_ip": f"10.0.0.{server}",
                "client_id": clients[at % len(clients)],
                "client_ip": f"10.0.0.{8 + at % 2}",
            }
            rows.append(sent(f"S{server}{at}", 1, "Metadata", 1 + at, api_version=0, **more))
            links.append(link(f"S{server}{at}", 1 + at, server_captured=0, **more) | {"last_ns": START + (1 + at) * SECOND})
    return observed(rows, connections=links)


def no_kafka() -> Observed:
    """One server answers two clients with bytes that are no Kafka on three connections, another one client on two, a third
    with fewer bytes than a response has."""
    strange = {"closed_by": "server", "server_missing": 0, "client_missing": 0}
    links = [
        CONNECTION | strange | {"connection": f"D{server}{at}", "server_ip": f"10.0.0.{server}", "client_id": client,
                                "server_captured": size + at, "server_skipped": size + at,
                                "first_ns": START + (1 + at) * SECOND, "last_ns": START + (2 + at) * SECOND}
        for server, size, clients in ((1, 101, "aba"), (2, 8, "cc"), (3, 6, "cc")) for at, client in enumerate(clients)
    ]  # fmt: skip
    return observed([], connections=links)


SCENES = [
    Scene(
        "closed-at-request",
        closed_at_produce,
        """
        high 0.75: 10.0.0.1:9092 closed 5 connections of client app at Produce requests of 200 kB or more, and answered 1. Seen
        5 times from 1.1 s to 5.1 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and
        server_ip == "10.0.0.1" and server_port == 9092 and api == Produce and outcome == unanswered. Evidence: closed 5,
        smallest_bytes 200000, answered_bytes 90000.
        """,
        least={"connections": 5, "seconds": 4.0},
        most={"answered": 0.2},
    ),
    Scene(
        "closed-at-request",
        closed_at_one_way,
        """
        high 0.75: 10.0.0.1:9092 closed 5 connections of client app right after a Produce request with acks=0 for topic t, as a
        broker does that refuses one. Seen 5 times from 1.1 s to 5.1 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092.
        Filter: client_id == "app" and server_ip == "10.0.0.1" and server_port == 9092 and api == Produce and outcome ==
        one_way. Evidence: closed 5.
        """,
        kind="Produce without a response",
        least={"connections": 5, "seconds": 4.0},
    ),
    Scene(
        "closed-at-once",
        closed_at_once,
        """
        medium 0.7: 10.0.0.1:9092 accepted and closed 11 connections of 2 hosts (a and 2 more) without a response, while it
        answered others. Seen 11 times from 1 s to 6 s, 0 s lost. Who: server 10.0.0.1:9092, client_ips ['10.0.0.8',
        '10.0.0.9'], client_ids ['a', 'b', 'c']. Filter: server_ip == "10.0.0.1" and server_port == 9092 and api == ApiVersions
        and exchange == 1 and outcome == unanswered. Evidence: connections 11, clients 3.
        """,
        least={"connections": 5},
    ),
    Scene(
        "closed-at-once",
        closed_early,
        """
        medium 0.7: 10.0.0.1:9092 accepted and closed 6 connections of 10.0.0.9 without a response, all of them before a
        request, while it answered others. Seen 6 times from 1 s to 6.001 s, 0 s lost. Who: server 10.0.0.1:9092, client_ips
        ['10.0.0.9']. Filter: none. Evidence: connections 6, early 6.
        """,
        kind="before a byte",
        least={"connections": 6},
        most={"seconds": 0.001},
    ),
    Scene(
        "connection-reset",
        reset_in_use,
        """
        medium 0.6: 10.0.0.1:9092 reset 2 connections of client app with 3 requests on the way, while its other connections went
        on. Seen 2 times from 4 s to 5 s, 2 s lost. Who: client_id app, client_ips ['10.0.0.9'], server 10.0.0.1:9092. Filter:
        client_id == "app" and server_ip == "10.0.0.1" and server_port == 9092 and outcome == unanswered and connection in
        {"C1", "C2"}. Evidence: reset 2, unanswered 3, answered_before 23.
        """,
        least={"connections": 2, "answered": 11},
    ),
    Scene(
        "connection-reset",
        reset_sealed,
        """
        medium 0.5: 10.0.0.1:9092 reset 2 encrypted connections of 10.0.0.9 with data of the client that was not acknowledged,
        while its other connections went on. Seen 2 times from 4 s to 5 s, 0.006 s lost. Who: server 10.0.0.1:9092, client_ips
        ['10.0.0.9']. Filter: none. Evidence: reset 2.
        """,
        kind="encrypted",
        least={"connections": 2, "answered": 12},
    ),
    Scene(
        "connect-failed",
        cannot_connect,
        """
        high 0.8: 10.0.0.1:9092 refused 7 connections of 2 hosts, and accepted none. Seen 7 times from 1 s to 7.001 s, 0
        s lost. Who: server 10.0.0.1:9092, client_ips ['10.0.0.8', '10.0.0.9']. Filter: none. Evidence: connections 7,
        refused 7.
        medium 0.7: 10.0.0.2:9092 refused or did not answer 4 connections of 10.0.0.9, and accepted none; other brokers
        respond to it. Seen 4 times from 2 s to 5.001 s, 0 s lost. Who: server 10.0.0.2:9092, client_ips ['10.0.0.9'].
        Filter: none. Evidence: connections 4, refused 2.
        medium 0.7: 10.0.0.3:9092 did not answer 3 connections of 10.0.0.9, and accepted none; other brokers respond to
        it. Seen 3 times from 3 s to 5.001 s, 0 s lost. Who: server 10.0.0.3:9092, client_ips ['10.0.0.9']. Filter:
        none. Evidence: connections 3, refused 0.
        """,
        least={"connections": 3},
    ),
    Scene("connect-failed", half_open, "", kind="accepted"),
    Scene(
        "answers-nothing",
        answers_nothing,
        """
        high 0.7: 10.0.0.1:9092 accepted 6 connections of 2 clients of 2 hosts and closed each at its first request, without a
        response to anything. Seen 6 times from 1 s to 6 s, 0 s lost. Who: server 10.0.0.1:9092, client_ips ['10.0.0.8',
        '10.0.0.9']. Filter: server_ip == "10.0.0.1" and server_port == 9092 and exchange == 1 and outcome == unanswered.
        Evidence: connections 6, clients 2.
        medium 0.7: 10.0.0.2:9092 accepted 2 connections of client c and closed each at its first request, without a response to
        anything. Seen 2 times from 1 s to 2 s, 0 s lost. Who: client_id c, server 10.0.0.2:9092, client_ips ['10.0.0.8',
        '10.0.0.9']. Filter: server_ip == "10.0.0.2" and server_port == 9092 and exchange == 1 and outcome == unanswered.
        Evidence: connections 2, clients 1.
        """,
        least={"connections": 2, "often": 6, "seconds": 1.0},
    ),
    Scene(
        "server-not-kafka",
        no_kafka,
        """
        high 0.85: 10.0.0.1:9092 answers 2 clients with up to 103 B that are no Kafka response, on 3 connections. Seen 3 times
        from 1 s to 4 s, 0 s lost. Who: server 10.0.0.1:9092, client_ips ['10.0.0.9']. Filter: server_ip == "10.0.0.1" and
        server_port == 9092. Evidence: connections 3, response_bytes 103.
        high 0.85: 10.0.0.2:9092 answers client c with up to 9 B that are no Kafka response, on 2 connections. Seen 2 times from
        1 s to 3 s, 0 s lost. Who: client_id c, server 10.0.0.2:9092, client_ips ['10.0.0.9']. Filter: server_ip == "10.0.0.2"
        and server_port == 9092. Evidence: connections 2, response_bytes 9.
        """,
        least={"connections": 2, "bytes": 8},
    ),
]
