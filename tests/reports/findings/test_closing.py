"""Rules on connections that brokers close."""

from typing import Any

from kcap.reports.findings.report import check
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, found, observed, shown

CLOSED = CONNECTION | {"closed_by": "server", "ended": "rst"}


def refused(count: int, step: float = 1.0, **more: Any) -> tuple[list[Row], list[Row]]:
    """Connections that begin with ApiVersions, which is answered, and end at a Produce request: exchanges and connections."""
    rows, links = [], []
    for at in range(count):
        rows.append(exchange(f"D{at}", 1, "ApiVersions", at * step))
        dead = {"latency": None, "reason": "rst", "age_ns": MS} | more
        rows.append(exchange(f"D{at}", 2, "Produce", at * step + 0.01, request_bytes=200_000, **dead))
        rows.append(exchange(f"D{at}", 3, "Produce", at * step + 0.02, request_bytes=90, **dead))
        links.append(CLOSED | {"connection": f"D{at}"})
    return rows, links


def test_requests_at_which_a_broker_closes_each_time() -> None:
    rows, links = refused(6)
    metadata = exchange("M", 1, "Metadata", 0.5)
    links.append(CONNECTION | {"connection": "M"})
    (row,) = found("closed-at-request", observed([*rows, metadata], connections=links))
    assert row["count"] == 6
    assert "Produce requests, and answered none" in row["sentence"], "no size is known that it answers"
    small = exchange("M", 2, "Produce", 3, request_bytes=100)
    (row,) = found("closed-at-request", observed([*rows, metadata, small], connections=links))
    assert row["evidence"]["answered_bytes"] == 100
    assert "Produce requests of 200 kB or more, and answered 1" in row["sentence"]
    alike = exchange("M", 2, "Produce", 3, request_bytes=199_000)
    (row,) = found("closed-at-request", observed([*rows, metadata, alike], connections=links))
    assert "kB" not in row["sentence"], "the size is not what sets them apart"
    served = [exchange("M", at, "Produce", at, request_bytes=100) for at in range(2, 6)]
    assert found("closed-at-request", observed([*rows, metadata, *served], connections=links)) == [], "it serves this client"


def test_a_poll_that_is_cut_while_it_waits_for_records_is_no_refusal() -> None:
    rows, links = refused(6)
    polls = [row | {"api": "Fetch", "max_wait_ms": 8000, "age_ns": SECOND} if row["api"] == "Produce" else row for row in rows]
    metadata, links = exchange("M", 1, "Metadata", 0.5), [*links, CONNECTION | {"connection": "M"}]
    assert found("closed-at-request", observed([*polls, metadata], connections=links)) == []
    for more in ({"age_ns": SECOND - 1}, {"max_wait_ms": 1000}, {"max_wait_ms": None}):
        some = [row | more if row["api"] == "Fetch" else row for row in polls]
        assert len(found("closed-at-request", observed([*some, metadata], connections=links))) == 1


def test_a_version_of_which_nothing_is_known_is_none_that_the_broker_does_not_name() -> None:
    rows, links = refused(6, version_verdict=None)
    seen = observed([*rows, exchange("M", 1, "Metadata", 0.5)], connections=[*links, CONNECTION | {"connection": "M"}])
    assert [row["count"] for row in found("closed-at-request", seen)] == [6]


def test_a_request_that_a_client_gives_up_on_or_a_broker_that_stops_is_no_refusal() -> None:
    rows, links = refused(6)
    metadata = exchange("M", 1, "Metadata", 0.5)
    by_client = [link | {"closed_by": "client"} for link in links]
    assert found("closed-at-request", observed([*rows, metadata], connections=by_client)) == []
    rows, links = refused(6, 0.1)
    assert found("closed-at-request", observed([*rows, metadata], connections=links)) == [], "all within a second"
    rows, links = refused(6)
    silent = [row for row in rows if row["api"] != "ApiVersions"]
    assert found("closed-at-request", observed([*silent, metadata], connections=links)) == [], "it answers nothing meanwhile"


def test_a_listener_that_wants_a_login_is_told_by_another_rule() -> None:
    rows, links = refused(6)
    alone = [row for row in rows if row["exchange"] < 3]
    assert found("closed-at-request", observed(alone, connections=links)) == []
    assert len(found("sasl-mechanism-mismatch", observed(alone, connections=links))) == 1
    metadata = exchange("M", 1, "Metadata", 0.5)
    served = observed([*alone, metadata], connections=[*links, CONNECTION | {"connection": "M"}])
    assert found("sasl-mechanism-mismatch", served) == [], "it serves others that have not logged in"
    assert len(found("closed-at-request", served)) == 1


def test_a_server_that_closes_some_connections_of_a_host_before_it_answers() -> None:
    closed = [
        CLOSED | {"connection": f"D{at}", "server_captured": 0, "first_ns": START + at * SECOND, "last_ns": START + at * SECOND}
        for at in range(5)
    ]  # fmt: skip
    asked = [exchange(f"D{at}", 1, "ApiVersions", at, None, reason="rst", age_ns=MS) for at in range(5)]
    served = [exchange("C1", at + 1, "Fetch", at) for at in range(6)]
    (row,) = found("closed-at-once", observed([*asked, *served], connections=closed))
    assert (row["count"], row["who"]["client_ids"], row["who"]["client_ips"]) == (5, ["app"], ["10.0.0.9"])
    host = {"client_ip": "10.0.0.8"}
    rows = [*asked, *served, *(row | {"connection": row["connection"] + "b"} | host for row in asked + served)]
    links = [*closed, *(link | {"connection": link["connection"] + "b"} | host for link in closed)]
    (both,) = found("closed-at-once", observed(rows, connections=links))
    assert (both["count"], both["who"]["client_ips"]) == (10, ["10.0.0.8", "10.0.0.9"])
    later = exchange("E1", 9, "Fetch", 9, None, reason="capture_end", age_ns=MS)
    assert shown(row, [*asked, *served, later]) == asked
    assert found("closed-at-once", observed([*asked, *served], connections=closed[:4])) == []
    assert found("closed-at-once", observed([*asked, *served[:2]], connections=closed)) == [], "it may have been stopped"
    spoken = [link | {"server_captured": 90} for link in closed]
    assert found("closed-at-once", observed([*asked, *served], connections=spoken)) == []
    other = [row | {"api": "ListOffsets"} for row in asked]
    assert found("closed-at-once", observed([*other, *served], connections=closed)) == [], "the request may be what it refuses"


def test_a_server_that_closes_before_a_client_has_sent_a_byte() -> None:
    """As a broker does where max.connections.per.ip is reached: no request names the client."""
    empty = [
        CLOSED | {"connection": f"E{at}", "phase": "empty", "client_id": None, "client_captured": 0, "server_captured": 0,
                  "server_packets": 3, "exchanges": 0, "first_ns": START + at * SECOND, "last_ns": START + at * SECOND + MS}
        for at in range(6)
    ]  # fmt: skip
    served = [exchange("C1", at + 1, "Fetch", at) for at in range(6)]
    (row,) = found("closed-at-once", observed(served, connections=empty))
    assert row["sentence"].endswith("closed 6 connections of 10.0.0.9 without a response, all of them before a request, "
                                    "while it answered others")  # fmt: skip
    assert row["who"] == {"server": "10.0.0.1:9092", "client_ips": ["10.0.0.9"]}
    assert row["evidence"] == {"connections": 6, "early": 6}
    asked = exchange("D9", 1, "ApiVersions", 5, None, reason="rst", age_ns=MS)
    unanswered = CLOSED | {"connection": "D9", "server_captured": 0, "first_ns": START, "last_ns": START + 5 * SECOND}
    (row,) = found("closed-at-once", observed([*served, asked], connections=[*empty, unanswered]))
    assert "7 connections of 10.0.0.9 without a response, 6 of them before a request" in row["sentence"]
    for why, more in {
        "a health check": {"closed_by": "client"},
        "connections.max.idle.ms": {"last_ns": START + 60 * SECOND},
        "a port that refuses": {"server_packets": 1},
        "its beginning is not in the capture": {"began": "midstream"},
        "what the client sent is missing": {"client_missing": 40},
    }.items():
        others = [link | more for link in empty]
        assert found("closed-at-once", observed(served, connections=others)) == [], why
    assert found("closed-at-once", observed([], connections=empty)) == [], "it answers no others"


def test_requests_of_connections_that_the_broker_closed_did_not_time_out() -> None:
    waited = [exchange(f"D{at}", 1, "Metadata", at, None, reason="rst", age_ns=900 * MS) for at in range(3)]
    answered = exchange("C1", 1, "Metadata", 1)
    by_client = [CONNECTION | {"connection": f"D{at}", "closed_by": "client", "server_captured": 0} for at in range(3)]
    assert len(found("request-timeout", observed([*waited, answered], connections=by_client))) == 1
    by_server = [link | {"closed_by": "server"} for link in by_client]
    assert found("request-timeout", observed([*waited, answered], connections=by_server)) == []


def test_a_host_that_cannot_connect_to_a_port_of_kafka() -> None:
    refused = CLOSED | {
        "phase": "empty", "client_id": None, "exchanges": 0, "server_packets": 1, "client_captured": 0, "server_captured": 0,
    }  # fmt: skip
    tried = [refused | {"connection": f"D{at}"} for at in range(3)]
    (row,) = found("connect-failed", observed([], connections=tried))
    assert row["sentence"] == "10.0.0.1:9092 refused 3 connections of 10.0.0.9, and accepted none"
    both = [*tried, *(link | {"connection": link["connection"] + "b", "client_ip": "10.0.0.8"} for link in tried)]
    (row,) = found("connect-failed", observed([], connections=both))
    assert row["sentence"] == "10.0.0.1:9092 refused 6 connections of 2 hosts, and accepted none"
    assert row["who"]["client_ips"] == ["10.0.0.8", "10.0.0.9"]
    silent = [link | {"server_packets": 0, "ended": "open"} for link in tried]
    (row,) = found("connect-failed", observed([], connections=silent))
    assert "did not answer" in row["sentence"]
    elsewhere = CONNECTION | {"connection": "E1", "server_port": 9192, "server_packets": 0}
    unheard = found("connect-failed", observed([], connections=[*silent, elsewhere]))
    assert unheard == [], "of a host's other connection no packet comes back either: one direction was captured"
    heard = elsewhere | {"server_packets": 40}
    (row,) = found("connect-failed", observed([], connections=[*silent, heard]))
    assert row["severity"] == "medium"
    assert row["sentence"].endswith("and accepted none; other brokers respond to it")
    (row,) = found("connect-failed", observed([], connections=[*both, heard]))
    assert row["severity"] == "high", "not to the other host"
    assert found("connect-failed", observed([], connections=tried[:2])) == []
    peer = CONNECTION | tried[0] | {"connection": "P", "phase": "kafka", "client_id": "raft-client-2", "server_packets": 9}
    votes = [exchange("P", 1, "Vote", 1, client_id="raft-client-2")]
    restarted = observed(votes, connections=[*tried, peer]).of_clients()
    assert found("connect-failed", restarted) == [], "a controller that was restarted accepted its peers"
    other = [link | {"server_port": 8080} for link in tried]
    assert found("connect-failed", observed([], connections=other)) == [], "no port of Kafka"
    accepted = CONNECTION | {"connection": "C1", "server_packets": 9}
    assert found("connect-failed", observed([], connections=[*tried, accepted])) == [], "a broker that was restarted"
    one_way = [*silent, accepted | {"server_packets": 0}]
    assert found("connect-failed", observed([], connections=one_way)) == [], "the capture has no packet of the server"
    advertised = [{"host": "10.0.0.1", "port": 9092, "broker_id": 1}]
    assert found("connect-failed", observed([], connections=tried, brokers=advertised)) == [], "another rule says that"


def test_a_name_may_have_addresses_of_both_versions_of_ip() -> None:
    def severity(server: str, client: str, served: str, port: int = 9092) -> str:
        dead = {"phase": "empty", "ended": "rst", "client_id": None, "exchanges": 0, "server_captured": 0, "server_packets": 1}
        tried = [CONNECTION | dead | {"connection": f"C{at}", "server_ip": server, "client_ip": client} for at in range(3)]
        works = CONNECTION | {"connection": "W", "server_ip": served, "server_port": port}
        (row,) = found("connect-failed", observed([], connections=[*tried, works]), loud=False)
        assert row["sentence"].endswith("; this port responds by IPv4") is (row["severity"] != "high")
        return str(row["severity"])

    assert severity("::1", "::1", "127.0.0.1") == "info", "both are localhost"
    assert severity("::1", "::1", "10.0.0.1") == "medium"
    assert severity("fd00::1", "fd00::9", "10.0.0.1") == "medium"
    assert severity("fd00::1", "fd00::9", "10.0.0.1", 9093) == "high", "another port"


def test_a_server_whose_bytes_are_no_kafka() -> None:
    strange = CONNECTION | {"server_captured": 103, "server_skipped": 103, "server_missing": 0, "client_missing": 0}
    links = [strange | {"connection": f"D{at}"} for at in range(2)]
    (row,) = found("server-not-kafka", observed([], connections=links))
    assert (row["who"]["server"], row["who"]["client_ips"]) == ("10.0.0.1:9092", ["10.0.0.9"])
    (both,) = found("server-not-kafka", observed([], connections=[links[0], links[1] | {"client_ip": "10.0.0.8"}]))
    assert both["who"]["client_ips"] == ["10.0.0.8", "10.0.0.9"]
    assert found("server-not-kafka", observed([], connections=[link | {"server_captured": 110} for link in links])) == []
    assert found("server-not-kafka", observed([], connections=[link | {"server_missing": 4} for link in links])) == []
    answered = exchange("C1", 1, "Metadata", 1)
    assert found("server-not-kafka", observed([answered], connections=links)) == [], "it has answered as Kafka does"


def test_a_server_that_closes_every_connection_and_never_responds() -> None:
    closed = [
        CLOSED | {"connection": f"D{at}", "server_captured": 0, "first_ns": START + at * SECOND, "last_ns": START + at * SECOND}
        for at in range(5)
    ]  # fmt: skip
    dead = {"reason": "fin", "age_ns": MS, "api_version": 0}
    sent = [exchange(f"D{at}", 1, "Metadata", at, None, request_first_packet=at + 1, **dead) for at in range(5)]
    (row,) = found("answers-nothing", observed(sent, connections=closed))
    assert (row["count"], row["severity"], row["who"]["server"]) == (5, "high", "10.0.0.1:9092")
    (both,) = found("answers-nothing", observed(sent, connections=[*closed[:4], closed[4] | {"client_ip": "10.0.0.8"}]))
    assert both["who"]["client_ips"] == ["10.0.0.8", "10.0.0.9"]
    other = exchange("E1", 1, "Metadata", 9, None, request_first_packet=9, **dead)
    by_client = CONNECTION | {"connection": "E1", "server_captured": 0}
    (row,) = found("answers-nothing", observed([*sent, other], connections=[*closed, by_client]))
    assert shown(row, [*sent, other]) == sent
    (row,) = found("answers-nothing", observed(sent[:2], connections=closed[:2]))
    assert row["severity"] == "medium"
    assert found("answers-nothing", observed(sent[:1], connections=closed[:1])) == []
    at_once = [link | {"first_ns": START, "last_ns": START + MS} for link in closed]
    assert found("answers-nothing", observed(sent, connections=at_once)) == [], "a server that is being stopped"
    served = CONNECTION | {"connection": "C1"}
    assert found("answers-nothing", observed(sent, connections=[*closed, served])) == [], "it answers others"
    lost = [link | {"server_missing": 90} for link in closed]
    assert found("answers-nothing", observed(sent, connections=lost)) == [], "its bytes are not in the capture"
    proxied = [link | {"detail": "PROXY protocol v2"} for link in closed]
    (row,) = found("answers-nothing", observed(sent, connections=proxied))
    assert "which begin with a PROXY protocol header" in row["sentence"]
    assert "send-proxy" in row["advice"]
    (row,) = found("answers-nothing", observed(sent, connections=[*proxied[1:], closed[0]]))
    assert "PROXY" not in row["sentence"] + row["advice"], "it closes without such a header as well"
    without = [row | {"outcome": "one_way", "reason": None} for row in sent]
    assert found("answers-nothing", observed(without, connections=closed)) == [], "acks=0 wants no response"


def reset(name: str, served: int = 10) -> tuple[list[Row], Row]:
    """A connection with responses from 1 s on, which the server resets at 5 s with two Produce requests on the way."""
    rows = [exchange(name, number, "Produce", 1 + number / 100) for number in range(1, served + 1)]
    rows += [exchange(name, served + last, "Produce", 4.9, None, reason="rst", age_ns=100 * MS) for last in (1, 2)]
    return rows, CLOSED | {"connection": name, "closed_ns": START + 5 * SECOND}


def test_connections_in_use_that_a_server_resets_while_others_go_on() -> None:
    both = [reset(name) for name in ("C1", "C2")]
    rows, links = [row for some, _ in both for row in some], [link for _, link in both]
    others = [exchange("C9", 1, "Fetch", 1.0, client_id="reader"), exchange("C9", 2, "Fetch", 6.0, client_id="reader")]
    (row,) = found("connection-reset", observed([*rows, *others], connections=links))
    assert row["sentence"] == (
        "10.0.0.1:9092 reset 2 connections of client app with 4 requests on the way, while its other connections went on"
    )
    assert (row["severity"], row["confidence"], row["count"]) == ("medium", 0.6, 2)
    assert row["evidence"] == {"reset": 2, "unanswered": 4, "answered_before": 20}
    assert shown(row, [*rows, *others]) == [row for row in rows if row["outcome"] == "unanswered"]
    for some, many, why in (
        ([*rows, *others], [link | {"closed_by": "client"} for link in links], "the client gave them up"),
        ([*rows, *others], [link | {"ended": "fin"} for link in links], "they were closed in order"),
        ([*rows, others[0]], links, "nothing says that the broker was still there"),
        ([*rows, exchange("C9", 2, "Fetch", 6.0)], links, "a connection that began later says nothing of the broker"),
        ([*rows, exchange("C9", 1, "Fetch", 1.0, server_port=9093), exchange("C9", 2, "Fetch", 6.0, server_port=9093)], links,
         "another broker"),
        ([*both[0][0], *others], links[:1], "one of them"),
        ([row | ({"api": "CreateTopics"} if row["outcome"] == "unanswered" else {}) for row in rows] + others, links,
         "a request that the broker never answers this client"),
    ):  # fmt: skip
        assert found("connection-reset", observed(some, connections=many)) == [], why
    more = [row | {"client_id": "b"} for row in rows]
    beside = [row | {"connection": row["connection"] + "b"} for row in more]
    mine = [*links, *(link | {"connection": link["connection"] + "b", "client_id": "b"} for link in links)]
    (row,) = found("connection-reset", observed([*rows, *beside, *others], connections=mine))
    assert row["who"] == {"client_ids": ["app", "b"], "client_ips": ["10.0.0.9"], "server": "10.0.0.1:9092"}
    assert "reset 4 connections of 2 clients (app, b)" in row["sentence"]
    third = {"server_ip": "10.0.0.3"}
    away = [row | third for row in beside] + [row | third | {"connection": "C8"} for row in others]
    mine = [*links, *(link | third for link in mine[2:])]
    (row,) = found("connection-reset", observed([*rows, *away, *others], connections=mine))
    assert row["sentence"].startswith("2 servers reset 4 connections of 2 clients (app, b) with 8 requests on the way")
    assert (row["evidence"]["servers"], "common" in row["advice"]) == (2, True), "one host, several servers"
    apart = [row | ({"client_ip": "10.0.0.8"} if row["client_id"] == "b" else {}) for row in away]
    hosts = [link | ({"client_ip": "10.0.0.8"} if link["client_id"] == "b" else {}) for link in mine]
    assert len(found("connection-reset", observed([*rows, *apart, *others], connections=hosts))) == 2, "nothing in common"
    fresh = [reset(name, 9) for name in ("C1", "C2")]
    seen = observed([*(row for some, _ in fresh for row in some), *others], connections=[link for _, link in fresh])
    assert found("connection-reset", seen) == [], "hardly used before"


def test_encrypted_connections_in_use_that_a_server_resets_while_others_go_on() -> None:
    sealed = CONNECTION | {"phase": "tls", "tls": True, "client_id": None, "exchanges": 0, "server_packets": 40}
    lost = sealed | {"closed_by": "server", "ended": "rst", "last_ns": START + 5 * SECOND, "closed_ns": START + 5 * SECOND,
                     "client_unacked_ns": 2 * MS}  # fmt: skip
    dead, other = [lost | {"connection": name} for name in ("C1", "C2")], sealed | {"connection": "C9"}
    (row,) = check(observed([], connections=[*dead, other]), only=["connection-reset"])["rows"]
    assert row["sentence"] == (
        "10.0.0.1:9092 reset 2 encrypted connections of 10.0.0.9 with data of the client that was not acknowledged, while its "
        "other connections went on"
    )
    assert (row["severity"], row["confidence"], row["count"], row["filter"]) == ("medium", 0.5, 2, "")
    for more, why in (
        ({"last_ns": START + 6 * SECOND}, "the server closed in order first, or packets were on their way still"),
        ({"client_unacked_ns": None}, "nothing shows that the client waited"),
        ({"closed_by": "client"}, "the client gave them up"),
        ({"server_packets": 15}, "hardly used before"),
        ({"tls_alerts": ["client: unknown_ca"]}, "the handshake failed"),
    ):
        assert found("connection-reset", observed([], connections=[*(one | more for one in dead), other])) == [], why
    assert found("connection-reset", observed([], connections=[dead[0], other])) == [], "one of them"
    for more, why in (
        ({"last_ns": START + 5 * SECOND}, "nothing says that the server was still there"),
        ({"first_ns": START + 6 * SECOND}, "it began later"),
        ({"server_port": 9093}, "another server"),
        ({"client_unacked_ns": 3 * SECOND}, "its client waits as well"),
    ):
        assert found("connection-reset", observed([], connections=[*dead, other | more])) == [], why
