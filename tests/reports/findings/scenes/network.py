"""Scenes of the network between clients and brokers."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, many, observed


def far_client() -> Observed:
    """Three connections of one client with shortest round trips of 25, 30 and 50 ms to one server, of which the capture point
    sees 1 ms on the client's side; one client of another place has a connection that is quick."""
    links = [
        CONNECTION | {"connection": f"C{at}", "rtt_min_ns": trip * MS, "client_rtt_min_ns": MS, "exchanges": 10 + at,
                      "first_ns": START + at * SECOND, "last_ns": START + (9 - at) * SECOND}
        for at, trip in enumerate((24, 29, 49))
    ]  # fmt: skip
    near = {"client_id": "near", "client_ip": "10.0.0.8"}
    links += [links[0] | near | {"connection": "N1"}, links[0] | near | {"connection": "N2", "tls": True, "rtt_min_ns": MS}]
    nothing = {"client_id": "here", "client_ip": "10.0.0.7", "rtt_min_ns": 0, "client_rtt_min_ns": None}
    links.append(links[0] | nothing | {"connection": "H1"})  # on the broker's host
    rows = many(3, 1.0, connection="C0", latency=0.03) + many(3, 1.0, connection="N1", latency=0.03, **near)
    return observed(rows, connections=links)


def queues() -> Observed:
    """Of 15 segments of a host that were sent again 12 came twice; data was acknowledged 0.5 to 0.8 s late on three
    connections, one with a round trip of 25 ms; a fourth lost what it sent again, and a fifth waited as usual."""
    quiet = CONNECTION | {"client_missing": 0, "server_missing": 0, "rtt_min_ns": MS // 2, "client_rtt_min_ns": 0}
    late = {"retransmitted": 4, "spurious": 4}
    links = [
        quiet | late | {"connection": "C1", "client_resent_ns": 500 * MS, "client_resent_at_ns": START + 3 * SECOND,
                        "rtt_min_ns": 25 * MS},
        quiet | late | {"connection": "C2", "server_resent_ns": 600 * MS, "server_resent_at_ns": START + 5 * SECOND},
        quiet | late | {"connection": "C3", "client_id": "b", "client_resent_ns": 800 * MS, "spurious": 3,
                        "client_resent_at_ns": START + 6 * SECOND},
        quiet | {"connection": "C4", "retransmitted": 2},
        quiet | {"connection": "C5", "retransmitted": 1, "spurious": 1, "client_resent_ns": 9 * MS,
                 "client_resent_at_ns": START + 9 * SECOND},
    ]  # fmt: skip
    return observed([exchange("C1", 1, "Metadata", 3, 0.03)], connections=links)


def lossy(**more: object) -> Row:
    """A connection of 600 packets of which 12 were sent again."""
    return CONNECTION | {"packets": 600, "retransmitted": 12, "first_ns": START + SECOND, "last_ns": START + 9 * SECOND} | more


def holes() -> Observed:
    """Of 1000 packets of a host 20 were sent again and 4 arrived out of order; the capture lacks packets of one exchange.
    Another client of that host lost none, another host lost as much of more."""
    other = CONNECTION | {"client_id": "quiet", "packets": 0}
    links = [
        lossy(connection="C1", out_of_order=3),
        lossy(connection="C2", client_id="b", packets=400, retransmitted=8, out_of_order=1, last_ns=START + 8 * SECOND),
        other | {"connection": "C3", "first_ns": START + SECOND, "last_ns": START + 2 * SECOND},
        lossy(connection="D1", client_ip="10.0.0.8", packets=6001, retransmitted=20, out_of_order=4),
    ]
    return observed([*many(2, 1.0), exchange("C1", 9, "Fetch", 3, flags=["gap"])], connections=links)


def reported() -> Observed:
    """Receivers of a host's connections report 6 holes, and that 4 of 20 retransmissions arrived twice; the capture lacks
    packets of one exchange."""
    links = [lossy(connection="C1", sacked=4, spurious=1), lossy(connection="C2", packets=400, retransmitted=8, sacked=2,
                                                               spurious=3)]  # fmt: skip
    return observed([exchange("C1", 9, "Fetch", 3, flags=["gap"])], connections=links)


def waiting() -> Observed:
    """A host whose connections have one segment on the way at a time: of 90 that were sent again, of 500 packets, a receiver
    reports that 30 arrived twice, and it sees no hole. Packets of another host were captured twice."""
    links = [
        lossy(connection="C1", packets=500, retransmitted=90, duplicated=9, spurious=30),
        lossy(connection="D1", client_ip="10.0.0.8", packets=500, retransmitted=90, duplicated=11, spurious=30),
    ]
    return observed([], connections=links)


def lost_before() -> Observed:
    """Receivers' host: of 20 retransmissions 14 filled a hole, 2 of the other 6 were not needed; 5 segments opened holes."""
    return observed([], connections=[lossy(connection="C1", packets=1000, retransmitted=6, spurious=2, recovered=14,
                                           out_of_order=5)])  # fmt: skip


def interruption() -> Observed:
    """Between two hosts data waits for up to 4 s on two connections, later on a third; a fourth gets a response."""
    quiet = CONNECTION | {"client_missing": 0, "server_missing": 0, "retransmitted": 3}
    links = [
        quiet | {"connection": "C1", "client_resent_ns": 3 * SECOND, "client_resent_at_ns": START + 5 * SECOND},
        quiet | {"connection": "C4", "server_resent_ns": 2 * SECOND, "server_resent_at_ns": START + 9 * SECOND},
        quiet | {"connection": "C2", "client_id": "b", "server_resent_ns": 4 * SECOND,
                 "server_resent_at_ns": START + 6 * SECOND, "retransmitted": 2},
    ]  # fmt: skip
    return observed([exchange("C3", 1, "Metadata", 3, 0.5)], connections=links)


def interruption_or_loss() -> Observed:
    """Data waits for 3 s on a connection; a fourth gets a response meanwhile, and lost 6 of 300 packets, 2 of 8 for nothing."""
    quiet = CONNECTION | {"client_missing": 0, "server_missing": 0}
    links = [
        quiet | {"connection": "C1", "client_resent_ns": 3 * SECOND, "client_resent_at_ns": START + 5 * SECOND,
                 "retransmitted": 5, "spurious": 2},
        quiet | {"connection": "C3", "retransmitted": 8, "spurious": 2, "packets": 300},
    ]  # fmt: skip
    return observed([exchange("C3", 1, "Metadata", 2.5, 0.5)], connections=links)


def stalled(name: str, at: float, size: int, **more: object) -> tuple[list[Row], Row]:
    """A connection with a response at 1 s and a request at `at` seconds that is sent 5 times and never acknowledged."""
    lost = exchange(name, 2, "Produce", at, None, reason="capture_end", request_bytes=size)
    link = CONNECTION | {
        "connection": name, "ended": "open", "closed_by": None, "retransmitted": 5, "client_missing": 0, "server_missing": 0,
        "client_unacked_ns": 6 * SECOND, "last_ns": START + int((at + 6) * SECOND),
    }  # fmt: skip
    return [exchange(name, 1, "Metadata", 1, 0, request_bytes=40, response_bytes=700), lost], link | more


def idle_and_dropped() -> Observed:
    """Two connections without an acknowledgement behind a rest of 9 s and 11 s, while a third works."""
    (one, first), (two, second) = stalled("C1", 10, 90), stalled("C2", 12, 80)
    works = exchange("C3", 1, "Metadata", 11, request_bytes=40)
    return observed([*one, *two, works], connections=[first, second, CONNECTION | {"connection": "C3"}])


def large_and_dropped() -> Observed:
    """Two connections on which requests of 4000 and 5000 bytes are never acknowledged, those of 40 bytes are."""
    (one, first), (two, second) = stalled("C1", 2, 4000), stalled("C2", 3, 5000, client_unacked_ns=SECOND)
    return observed([*one, *two], connections=[first, second])


def large_responses_dropped() -> Observed:
    """The same of responses: 17,000 and 18,000 bytes of the server are pending, and 700 passed."""
    (one, first), (two, second) = stalled("C1", 2, 4000), stalled("C2", 3, 5000)
    more = {"client_unacked_ns": None, "server_unacked_ns": SECOND}
    links = [first | more | {"server_pending": 18_000}, second | more | {"server_pending": 17_000}]
    return observed([*one, *two], connections=links)


def holes_unfilled() -> Observed:
    """Responses of which 1448 and 2896 bytes never come; the client reports the holes until the end."""
    (one, first), (two, second) = stalled("C1", 2, 90), stalled("C2", 3, 80)
    more = {"client_unacked_ns": None, "server_unacked_ns": SECOND, "retransmitted": 0, "sacked": 1}
    links = [first | more | {"server_missing": 1448}, second | more | {"server_missing": 2896}]
    return observed([*one, *two], connections=links)


SCENES = [
    Scene("slow-network", far_client, """
        medium 0.9: each round trip of client app takes 25 ms on the network. Seen 33 times from 0 s to 9 s, 0.825 s lost. Who:
        client_id app. Filter: client_id == "app". Evidence: round_trip_ns 25000000, exchanges 33.
        """, least={"milliseconds": 25.0, "connections": 3}, most={"most_seconds": 0.025,
                                                                                  "usual_seconds": 0.025, "spread": 2.0}),
    Scene("slow-network", queues, """
        medium 0.7: data between 10.0.0.9 (app, b) and its brokers was acknowledged up to 800 ms late on 3 connections,
        though it had not been lost; the shortest round trip takes 500 us. Seen 3 times from 2.2 s to 6 s, 0 s lost.
        Who: client_ips ['10.0.0.9'], client_ids ['app', 'b']. Filter: client_ip == "10.0.0.9". Evidence: connections 3,
        late_ns 800000000, round_trip_ns 500000, retransmitted 15, spurious 12.
        """, kind="queues", least={"late_milliseconds": 500.0, "late_connections": 3, "late_segments": 12, "late_seconds": 3.0,
                                   "late_times": 20, "needless": 0.8}, most={"late": 0.7}),
    Scene("retransmission-bound", holes, """
        medium 0.8: 20 of 1,000 packets between 10.0.0.9 (app, b) and its brokers were retransmissions, 4 segments came out of
        order. Seen 20 times from 1 s to 9 s, 0 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app', 'b']. Filter: client_ip
        == "10.0.0.9". Evidence: retransmitted 20, recovered 0, spurious 0, out_of_order 4, filled 4, sacked 0,
        packets 1000, gaps 1.
        """, kind="out of order", least={"segments": 24, "share": 0.024, "holes": 4}),
    Scene("retransmission-bound", reported, """
        medium 0.8: 20 of 1,000 packets between 10.0.0.9 (app) and its brokers were retransmissions, receivers reported 6 holes
        and 4 duplicates. Seen 20 times from 1 s to 9 s, 0 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app']. Filter:
        client_ip == "10.0.0.9". Evidence: retransmitted 20, recovered 0, spurious 4, out_of_order 0, filled 0, sacked 6,
        packets 1000, gaps 1.
        """, kind="reported", least={"segments": 16, "share": 0.016, "holes": 6}),
    Scene("retransmission-bound", waiting, """
        medium 0.8: 90 of 500 packets between 10.0.0.9 (app) and its brokers were retransmissions, receivers reported 0 holes
        and 30 duplicates. Seen 90 times from 1 s to 9 s, 0 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app']. Filter:
        client_ip == "10.0.0.9". Evidence: retransmitted 90, recovered 0, spurious 30, out_of_order 0, filled 0, sacked 0,
        packets 500, gaps 0.
        """, kind="waiting", least={"segments": 60, "share": 0.12}, most={"copies": 0.198}),
    Scene("retransmission-bound", lost_before, """
        medium 0.8: 20 of 1,000 packets between 10.0.0.9 (app) and its brokers were retransmissions, 14 of them for packets that
        were lost before the capture point, 5 segments came out of order. Seen 20 times from 1 s to 9 s, 0 s lost. Who:
        client_ips ['10.0.0.9'], client_ids ['app']. Filter: client_ip == "10.0.0.9". Evidence: retransmitted 6, recovered 14,
        spurious 2, out_of_order 5, filled 5, sacked 0, packets 1000, gaps 0.
        """, kind="ahead of the capture", least={"segments": 18, "share": 0.018,
                                                                                       "holes": 14}),
    Scene("path-interrupted", interruption, """
        medium 0.4: data between 10.0.0.9 (app, b) and 10.0.0.1:9092 stayed without an acknowledgement for 4.0 s on 2
        connections, in the longest of 2 times, though it was sent again; 1 response passed between them on other connections
        meanwhile. Seen 3 times from 2 s to 9 s, 9 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app', 'b'], server
        10.0.0.1:9092. Filter: client_ip == "10.0.0.9" and server_ip == "10.0.0.1" and server_port == 9092 and request_first_ns
        <= 1790000006000000000 and response_last_ns >= 1790000002000000000 and connection in {"C1", "C2", "C4"}. Evidence:
        interruptions 2, longest_ns 4000000000, connections 2, served_here 1, served_others 0.
        """, least={"seconds": 2.0, "segments": 2}, most={"beside": 0.4}),
    Scene("path-interrupted", interruption_or_loss, """
        info 0.2: data between 10.0.0.9 (app) and 10.0.0.1:9092 stayed without an acknowledgement for 3.0 s on 1
        connection, though it was sent again; 1 response passed between them on other connections meanwhile, and
        other connections of that host lost 6 segments. Seen once from 2 s to 5 s, 3 s lost. Who: client_ips ['10.0.0.9'],
        client_ids ['app'], server 10.0.0.1:9092. Filter: client_ip == "10.0.0.9" and server_ip == "10.0.0.1" and server_port ==
        9092 and request_first_ns <= 1790000005000000000 and response_last_ns >= 1790000002000000000 and connection in
        {"C1"}. Evidence: interruptions 1, longest_ns 3000000000, connections 1, served_here 1, served_others 0,
        lost_beside 6.
        """, kind="loss", least={"losses": 6, "share": 0.02}, most={"lossy": 0.2, "needless": 0.4}),
    Scene("data-not-acknowledged", idle_and_dropped, """
        medium 0.7: 10.0.0.1:9092 acknowledges nothing more on 2 connections of app after 9.0 s and more without a request,
        while other connections worked. Seen 2 times from 10 s to 18 s, 12 s lost. Who: client_ips ['10.0.0.9'], client_ids
        ['app'], server 10.0.0.1:9092. Filter: client_ip == "10.0.0.9" and server_ip == "10.0.0.1" and server_port == 9092 and
        outcome == unanswered and connection in {"C1", "C2"}. Evidence: connections 2, retransmitted 10, quiet_ns 9000000000.
        """, kind="idle", least={"idle_seconds": 9.0}),
    Scene("data-not-acknowledged", large_and_dropped, """
        high 0.7: 10.0.0.1:9092 acknowledges nothing more on 2 connections of app: requests of 4.0 kB and more; the largest that
        came through has 40 B. Seen 2 times from 2 s to 9 s, 12 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app'], server
        10.0.0.1:9092. Filter: client_ip == "10.0.0.9" and server_ip == "10.0.0.1" and server_port == 9092 and outcome ==
        unanswered and connection in {"C1", "C2"}. Evidence: connections 2, retransmitted 10, smallest_bytes 4000,
        answered_bytes 40.
        """, kind="large requests", least={"bytes": 4000, "connections": 2}),
    Scene("data-not-acknowledged", large_responses_dropped, """
        high 0.7: 10.0.0.9 acknowledges nothing more on 2 connections of app: responses of 17.0 kB and more; the largest that
        came through has 700 B. Seen 2 times from 2 s to 9 s, 12 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app'],
        server 10.0.0.1:9092. Filter: client_ip == "10.0.0.9" and server_ip == "10.0.0.1" and server_port == 9092 and connection
        in {"C1", "C2"}. Evidence: connections 2, retransmitted 10, smallest_bytes 17000, answered_bytes 700.
        """, kind="large responses", least={"bytes": 17_000}),
    Scene("data-not-acknowledged", holes_unfilled, """
        high 0.7: 10.0.0.9 acknowledges nothing more on 2 connections of app: it reports holes of 1.4 kB and more (SACK)
        that nothing fills. Seen 2 times from 2 s to 9 s, 12 s lost. Who: client_ips ['10.0.0.9'], client_ids ['app'],
        server 10.0.0.1:9092. Filter: client_ip == "10.0.0.9" and server_ip == "10.0.0.1" and server_port == 9092 and
        connection in {"C1", "C2"}. Evidence: connections 2, retransmitted 0, hole_bytes 1448.
        """, kind="holes", least={"bytes": 1448, "connections": 2}),
]  # fmt: skip
