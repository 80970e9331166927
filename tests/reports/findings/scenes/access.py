"""Scenes of clients that may not come in: logins, mechanisms, authorization, TLS, listeners, addresses."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, many, observed

FAILED: Row = {"error": "SASL_AUTHENTICATION_FAILED", "sasl_mechanism": "PLAIN"}


def link(name: str, at: float, **more: Any) -> Row:
    """A connection that a server closes, from `at` seconds on for a millisecond."""
    first = START + int(at * SECOND)
    return CONNECTION | {"connection": name, "closed_by": "server", "first_ns": first, "last_ns": first + MS} | more


def failed_logins() -> Observed:
    """The login of one client fails four times, that of another one once, that of a third once, which gets in at last."""
    rows = many(4, 1.0, "SaslAuthenticate", latency=0.5, **FAILED)
    rows += many(1, 1.0, "SaslAuthenticate", connection="C2", client_id="b", **FAILED)
    rows += many(1, 1.0, "SaslAuthenticate", connection="C3", client_id="c", **FAILED)
    rows.append(exchange("C3", 9, "Metadata", 9, client_id="c"))
    return observed(rows, messages={("C1", 1, "response"): {"errorMessage": "Invalid credentials"}})


def closed_logins() -> Observed:
    """A server closes four connections of one client behind its token, three of one that gets in otherwise, one of another."""
    rows, links = [], []
    for client, count, api in (("a", 4, "SaslAuthenticate"), ("b", 3, "SaslToken"), ("c", 1, "SaslAuthenticate")):
        for at in range(count):
            name = f"{client}{at}"
            who = None if api == "SaslToken" else client
            rows.append(exchange(name, 2, api, 1 + at, None, reason="fin", age_ns=MS, client_id=who, sasl_mechanism="PLAIN",
                                 request_first_packet=len(rows)))  # fmt: skip
            links.append(link(name, 1 + at, client_id=client))
    rows.append(exchange("S", 1, "Metadata", 9, client_id="b"))
    return observed(rows, connections=[*links, CONNECTION | {"connection": "S", "client_id": "b"}])


def given_up() -> Observed:
    """A client closes four connections behind the response to SaslHandshake; another one two."""
    rows, links = [], []
    for client, count in (("a", 4), ("b", 2)):
        for at in range(count):
            name = f"{client}{at}"
            rows += [exchange(name, 1, "ApiVersions", 1 + at, client_id=client),
                     exchange(name, 2, "SaslHandshake", 1.1 + at, client_id=client, sasl_mechanism="OAUTHBEARER")]  # fmt: skip
            links.append(link(name, 1 + at, client_id=client, closed_by="client"))
    return observed(rows, connections=links)


def no_login() -> Observed:
    """A broker closes connections of two clients at the first request behind ApiVersions, three and one, which never begin
    SASL; a third one has waited half a second."""
    rows: list[Row] = []
    for client, count, age in (("a", 3, 499), ("b", 1, 1), ("c", 4, 500)):
        for at in range(count):
            name = f"{client}{at}"
            rows += [exchange(name, 1, "ApiVersions", 1 + at, client_id=client),
                     exchange(name, 2, "Metadata", 1.1 + at, None, reason="fin", age_ns=age * MS,
                              client_id=client)]  # fmt: skip
    return observed(rows)


def no_login_of_two() -> Observed:
    """The same of two clients with two connections and one."""
    rows: list[Row] = []
    for client, count in (("a", 2), ("b", 1)):
        for at in range(count):
            rows += [exchange(f"{client}{at}", 1, "ApiVersions", 1 + at, client_id=client),
                     exchange(f"{client}{at}", 2, "Metadata", 1.1 + at, None, reason="rst", age_ns=MS,
                              client_id=client)]  # fmt: skip
    return observed(rows)


def wrong_mechanism() -> Observed:
    """A client asks twice for a mechanism that the broker does not enable."""
    rows = many(2, 1.0, "SaslHandshake", error="UNSUPPORTED_SASL_MECHANISM")
    said = {("C1", 1, "request"): {"mechanism": "PLAIN"}, ("C1", 1, "response"): {"mechanisms": ["GSSAPI", "OAUTHBEARER"]}}
    return observed(rows, messages=said)


def sessions_over() -> Observed:
    """A broker closes three connections at requests 10 s and more behind a login that lasts 10 s; two of another client 9.9 s
    behind one."""
    rows: list[Row] = []
    links: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}
    for client, laters in (("a", (10.5, 10.0, 12.0)), ("b", (9.9, 11.0))):
        for at, later in enumerate(laters):
            name = f"{client}{at}"
            rows += [exchange(name, 1, "SaslAuthenticate", 1 + at, 0, client_id=client),
                     exchange(name, 2, "Fetch", 1 + at + later, None, reason="fin", age_ns=MS, client_id=client,
                              request_first_packet=10 * at + 7)]  # fmt: skip
            links.append(link(name, 1 + at, client_id=client))
            said[name, 1, "response"] = {"sessionLifetimeMs": 10_000}
    return observed(rows, connections=links, messages=said)


def sessions_alike() -> Observed:
    """A broker closes three connections 10.0 to 10.5 s behind their logins, which give no lifetime, and one 20 s behind."""
    rows: list[Row] = []
    links: list[Row] = []
    for at, later in enumerate((10.5, 10.0, 20.0, 10.0)):
        name = f"C{at}"
        rows += [exchange(name, 1, "SaslAuthenticate", 1 + at, 0, api_version=0),
                 exchange(name, 2, "Fetch", 1 + at + later, None, reason="fin", age_ns=MS,
                          request_first_packet=10 * at + 7)]  # fmt: skip
        links.append(link(name, 1 + at))
    return observed(rows, connections=links)


def unresolved() -> Observed:
    """A client looks the coordinator of its group up four times in 3 s, and connects to no other server than the one that names
    it."""
    rows = many(4, 1.0, "FindCoordinator")
    said: dict[tuple[str, int, str], Row] = {("C1", at, "request"): {"key": "g"} for at in range(1, 5)}
    said["C1", 1, "response"] = {"host": "plum", "port": 9092}
    brokers = [{"host": host, "port": 9092, "broker_id": node} for node, host in enumerate(("plum", "pear"))]
    return observed([exchange("C1", 9, "Metadata", 0), *rows], brokers=brokers, messages=said)


def one_address() -> Observed:
    """A Metadata response has two brokers at one address, where two requests for a partition get an error of leadership, and
    one of a group another."""
    rows = [exchange("C1", 1, "Metadata", 0), *many(2, 1.0, "Produce", connection="C2"),
            exchange("C3", 1, "Heartbeat", 2, error="NOT_COORDINATOR", client_id="b", group_id="g")]  # fmt: skip
    parts = [{"connection": "C2", "exchange": at, "topic": "t", "partition": 0, "error": "NOT_LEADER_OR_FOLLOWER"}
             for at in (1, 2)]  # fmt: skip
    brokers = [{"host": "10.0.0.1", "port": 9092, "broker_id": node} for node in (1, 2)]
    said = {("C1", 1, "response"): {"brokers": [{"nodeId": node, "host": "10.0.0.1", "port": 9092} for node in (1, 2)]}}
    return observed(rows, parts, brokers=brokers, messages=said)


def denied() -> Observed:
    """A principal is denied a topic in three responses to two APIs of two clients; a nameless one a group."""
    error = {"error": "TOPIC_AUTHORIZATION_FAILED", "principal": "User:a"}
    rows = [*many(2, 1.0, "Produce", **error), *many(1, 1.0, "Fetch", connection="C2", client_id="b", **error),
            exchange("C3", 1, "JoinGroup", 5, error="GROUP_AUTHORIZATION_FAILED")]  # fmt: skip
    return observed(rows)


def questions() -> Observed:
    """A client is refused the metadata of a topic three times within 1 s, and another two times."""
    rows = many(3, 0.5, "Metadata", error="TOPIC_AUTHORIZATION_FAILED", principal="User:a")
    rows += many(2, 2.0, "Metadata", connection="C2", client_id="b", error="TOPIC_AUTHORIZATION_FAILED", principal="User:b")
    return observed(rows)


def confused() -> Observed:
    """Two plaintext connections of one client get a TLS alert, one of another; three TLS clients get nothing."""
    links = [link(f"A{at}", at, server_captured=7, client_captured=90) for at in (2, 1)]
    links.append(link("B", 3, server_captured=5, client_id="b"))
    links.append(link("E", 3, server_captured=8, client_id="e"))
    hello = {"phase": "tls", "client_id": None, "exchanges": 0, "server_captured": 0, "server_packets": 2}
    links += [link(f"T{at}", 4 + at, **hello, server_port=9093) for at in range(3)]
    links += [link("U", 4, **hello, server_port=9094), link("V", 4, **hello | {"server_packets": 0}, server_port=9095)]
    return observed([], connections=links)


def unreachable() -> Observed:
    """Three connections to an address that brokers advertise are refused or not answered, one to another such address; a broker
    responds at one that none advertises. A third address accepted some connection, a fourth one is of no broker."""
    dead = {"phase": "empty", "client_id": None, "exchanges": 0, "server_packets": 1, "ended": "rst", "server_captured": 0,
            "closed_by": "server"}  # fmt: skip
    links = [CONNECTION | {"connection": "S", "server_ip": "10.9.9.9", "server_packets": 40}]
    for at in range(3):
        more = dead if at else dead | {"server_packets": 0, "ended": "open"}
        links.append(link(f"A{at}", 1 + at, **more))
        links.append(link(f"C{at}", 1 + at, **dead, server_ip="10.0.0.3"))
        links.append(link(f"D{at}", 1 + at, **dead, server_ip="10.0.0.4"))
    links += [link("B", 1, **dead, server_ip="10.0.0.2"), link("K", 1, server_ip="10.0.0.3", server_captured=0)]
    brokers = [{"host": f"10.0.0.{node}", "port": 9092, "broker_id": node} for node in (1, 2, 3)]
    return observed([exchange("S", 1, "Metadata", 0, server_ip="10.9.9.9")], connections=links, brokers=brokers)


def controller() -> Observed:
    """A client at a listener that offers neither Produce nor Metadata, on two connections."""
    rows = [exchange(f"C{at}", 1, "ApiVersions", at, client_id="a") for at in range(2)]
    offered = [{"apiKey": key, "minVersion": 0, "maxVersion": 1} for key in (18, 52, 53)]
    links = [CONNECTION | {"connection": f"C{at}", "client_missing": 0, "client_skipped": 0} for at in range(2)]
    return observed(rows, connections=links, messages={("C0", 1, "response"): {"apiKeys": offered}})


SCENES = [
    Scene(
        "authentication-failed-loop",
        failed_logins,
        """
        high 0.95: the login of client app with PLAIN failed 4 times: Invalid credentials. Seen 4 times from 0 s to 3.5 s, 2 s
        lost. Who: client_id app. Filter: client_id == "app" and sasl_mechanism == "PLAIN" and error ==
        SASL_AUTHENTICATION_FAILED. Evidence: failures 4.
        medium 0.95: the login of client b with PLAIN failed 1 time. Seen once from 0 s to 0.001 s, 0.001 s lost. Who: client_id
        b. Filter: client_id == "b" and sasl_mechanism == "PLAIN" and error == SASL_AUTHENTICATION_FAILED. Evidence: failures 1.
        info 0.95: the login of client c with PLAIN failed 1 time. Seen once from 0 s to 0.001 s, 0.001 s lost. Who: client_id
        c. Filter: client_id == "c" and sasl_mechanism == "PLAIN" and error == SASL_AUTHENTICATION_FAILED. Evidence: failures 1.
        """,
        kind="refused",
        least={"failures": 4},
    ),
    Scene(
        "authentication-failed-loop",
        closed_logins,
        """
        high 0.75: 10.0.0.1:9092 closed 4 connections of client a during its login with PLAIN, without a response to the SASL
        token. Seen 4 times from 1 s to 4 s, 0 s lost. Who: client_id a, server 10.0.0.1:9092. Filter: client_id == "a" and
        server_ip == "10.0.0.1" and server_port == 9092 and api in {SaslAuthenticate, SaslToken} and reason in {fin, rst} and
        request_first_packet in {0, 1, 2, 3}. Evidence: closed 4.
        medium 0.75: 10.0.0.1:9092 closed 3 connections of client b during its login with PLAIN, without a response to the SASL
        token. Seen 3 times from 1 s to 3 s, 0 s lost. Who: client_id b, server 10.0.0.1:9092. Filter: server_ip == "10.0.0.1"
        and server_port == 9092 and api in {SaslAuthenticate, SaslToken} and reason in {fin, rst} and request_first_packet in
        {4, 5, 6}. Evidence: closed 3.
        medium 0.75: 10.0.0.1:9092 closed 1 connection of client c during its login with PLAIN, without a response to the SASL
        token. Seen once from 1 s to 1 s, 0 s lost. Who: client_id c, server 10.0.0.1:9092. Filter: client_id == "c" and
        server_ip == "10.0.0.1" and server_port == 9092 and api in {SaslAuthenticate, SaslToken} and reason in {fin, rst} and
        request_first_packet in {7}. Evidence: closed 1.
        """,
        kind="closed",
        least={"failures": 3},
    ),
    Scene(
        "login-given-up",
        given_up,
        """
        high 0.8: client a closed 4 connections to 10.0.0.1:9092 before the first token of its login with OAUTHBEARER. Seen 4
        times from 1 s to 4.1 s, 0 s lost. Who: client_id a, server 10.0.0.1:9092. Filter: client_id == "a" and sasl_mechanism
        == "OAUTHBEARER" and server_ip == "10.0.0.1" and server_port == 9092 and api == SaslHandshake. Evidence: connections 4.
        """,
        least={"connections": 4},
    ),
    Scene(
        "sasl-mechanism-mismatch",
        no_login,
        """
        high 0.7: 10.0.0.1:9092 closed 3 connections of client a at the first request after ApiVersions; the client never began
        SASL. Seen 3 times from 1 s to 3.1 s, 0 s lost. Who: client_id a, server 10.0.0.1:9092. Filter: client_id == "a" and
        outcome == unanswered. Evidence: closed 3, closed_of_all 4.
        medium 0.7: 10.0.0.1:9092 closed 1 connection of client b at the first request after ApiVersions; the client never
        began SASL. Seen once from 1 s to 1.1 s, 0 s lost. Who: client_id b, server 10.0.0.1:9092. Filter: client_id == "b" and
        outcome == unanswered. Evidence: closed 1, closed_of_all 4.
        """,
        kind="no login",
        least={"closed": 3},
    ),
    Scene(
        "sasl-mechanism-mismatch",
        no_login_of_two,
        """
        medium 0.7: 10.0.0.1:9092 closed 2 connections of client a at the first request after ApiVersions; the client never
        began SASL. Seen 2 times from 1 s to 2.1 s, 0 s lost. Who: client_id a, server 10.0.0.1:9092. Filter: client_id == "a"
        and outcome == unanswered. Evidence: closed 2, closed_of_all 3.
        medium 0.7: 10.0.0.1:9092 closed 1 connection of client b at the first request after ApiVersions; the client never
        began SASL. Seen once from 1 s to 1.1 s, 0 s lost. Who: client_id b, server 10.0.0.1:9092. Filter: client_id == "b" and
        outcome == unanswered. Evidence: closed 1, closed_of_all 3.
        """,
        kind="no login of two",
        least={"closed": 3},
    ),
    Scene(
        "sasl-mechanism-mismatch",
        wrong_mechanism,
        """
        high 0.95: client app requested 2 times the SASL mechanism PLAIN; the broker enables GSSAPI, OAUTHBEARER. Seen 2 times
        from 0 s to 1.001 s, 0.002 s lost. Who: client_id app. Filter: client_id == "app" and api == SaslHandshake. Evidence:
        refused 2, mechanism PLAIN, offered ['GSSAPI', 'OAUTHBEARER'].
        """,
        kind="another mechanism",
    ),
    Scene(
        "sasl-session-expired",
        sessions_over,
        """
        medium 0.9: 10.0.0.1:9092 closed 3 connections of client a at a request after the end of its SASL session, which lasts
        10.0 s; the client does not log in again. Seen 3 times from 11.5 s to 15 s, 0 s lost. Who: client_id a, server
        10.0.0.1:9092. Filter: client_id == "a" and server_ip == "10.0.0.1" and server_port == 9092 and reason in {fin, rst} and
        request_first_packet in {7, 17, 27}. Evidence: closed 3, lifetime_ns 10000000000, soonest_ns 10000000000.
        """,
        least={"connections": 3},
    ),
    Scene(
        "authorization-denied",
        denied,
        """
        medium 0.95: TOPIC_AUTHORIZATION_FAILED for principal User:a: 3 responses to Fetch, Produce of app, b. Seen 3 times from
        0 s to 1.001 s, 0 s lost. Who: principal User:a, client_ids ['app', 'b']. Filter: principal == "User:a" and error ==
        TOPIC_AUTHORIZATION_FAILED. Evidence: denied 3.
        medium 0.95: GROUP_AUTHORIZATION_FAILED for principal unknown: 1 response to JoinGroup of app. Seen once from 5 s to
        5.001 s, 0 s lost. Who: client_ids ['app']. Filter: error == GROUP_AUTHORIZATION_FAILED and !principal. Evidence: denied
        1.
        """,
    ),
    Scene(
        "authorization-denied",
        questions,
        """
        medium 0.95: TOPIC_AUTHORIZATION_FAILED for principal User:a: 3 responses to Metadata of app. Seen 3 times from 0 s to
        1.001 s, 0 s lost. Who: principal User:a, client_ids ['app']. Filter: principal == "User:a" and error ==
        TOPIC_AUTHORIZATION_FAILED. Evidence: denied 3. low 0.95: TOPIC_AUTHORIZATION_FAILED for principal User:b: 2
        responses to Metadata of b. Seen 2 times from 0 s to 2.001 s, 0 s lost. Who: principal User:b, client_ids ['b'].
        Filter: principal == "User:b" and error == TOPIC_AUTHORIZATION_FAILED. Evidence: denied 2.
        """,
        least={"errors": 3, "seconds": 1.001},
        kind="questions",
    ),
    Scene(
        "tls-plaintext-confusion",
        confused,
        """
        high 0.75: a TLS client at 10.0.0.9 gets nothing back from 10.0.0.1:9093, which closes (3 connections). Seen 3 times
        from 4 s to 6.001 s, 0 s lost. Who: server 10.0.0.1:9093, client_ips ['10.0.0.9']. Filter: none. Evidence: connections
        3, response_bytes 0.
        high 0.95: client app sends plaintext requests to 10.0.0.1:9092, which responds with a TLS alert (2 connections). Seen 2
        times from 1 s to 2.001 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092, client_ips ['10.0.0.9']. Filter:
        server_ip == "10.0.0.1" and server_port == 9092 and client_id == "app". Evidence: connections 2, response_bytes 7.
        medium 0.95: client b sends plaintext requests to 10.0.0.1:9092, which responds with a TLS alert (1 connection). Seen
        once from 3 s to 3.001 s, 0 s lost. Who: client_id b, server 10.0.0.1:9092, client_ips ['10.0.0.9']. Filter: server_ip
        == "10.0.0.1" and server_port == 9092 and client_id == "b". Evidence: connections 1, response_bytes 5.
        """,
        least={"connections": 2, "alerts": 1},
    ),
    Scene(
        "wrong-advertised-listener",
        unreachable,
        """
        high 0.9: brokers advertise 10.0.0.1:9092, which accepted none of 3 connections; brokers respond at 10.9.9.9:9092, which
        none advertises. Seen 3 times from 1 s to 3.001 s, 0 s lost. Who: server 10.0.0.1:9092, broker_id 1, client_ips
        ['10.0.0.9'], client_ids ['app']. Filter: none. Evidence: refused 3.
        """,
        least={"refused": 3},
    ),
    Scene(
        "sasl-session-expired",
        sessions_alike,
        """
        medium 0.7: 10.0.0.1:9092 closed 4 connections of client app at a request after the end of its SASL session,
        which lasts 10.0 s, as its connections suggest; the client does not log in again. Seen 4 times from 11.5 s to
        23 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and server_ip ==
        "10.0.0.1" and server_port == 9092 and reason in {fin, rst} and request_first_packet in {7, 17, 27, 37}.
        Evidence: closed 4, lifetime_ns 10000000000, soonest_ns 10000000000.
        """,
        least={"connections": 4, "alike": 3, "share": 0.75, "seconds": 10.5},
        kind="without a lifetime",
    ),
    Scene(
        "wrong-advertised-listener",
        unresolved,
        """
        medium 0.6: client app got the coordinator plum:9092 4 times from 10.0.0.1:9092 in 3.0 s, and never connected
        there. Seen 4 times from 0 s to 3 s, 3 s lost. Who: server 10.0.0.1:9092, client_ids ['app'], client_ips
        ['10.0.0.9']. Filter: server_ip == "10.0.0.1" and server_port == 9092 and api == FindCoordinator. Evidence:
        lookups 4, clients 1, advertised ['plum:9092'].
        """,
        least={"lookups": 4, "seconds": 3.0, "a_second": 4 / 3},
        kind="never tried",
    ),
    Scene(
        "wrong-advertised-listener",
        one_address,
        """
        high 0.95: brokers 1, 2 advertise one address, 10.0.0.1:9092: a request for one of them may reach another, and
        3 errors in responses say so. Seen 3 times from 0 s to 1 s, 0 s lost. Who: server 10.0.0.1:9092, client_ids
        ['app', 'b']. Filter: server_ip == "10.0.0.1" and server_port == 9092 and error in {NOT_LEADER_OR_FOLLOWER,
        FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_COORDINATOR}. Evidence: brokers [1, 2], errors 3.
        """,
        kind="one address",
    ),
    Scene(
        "listener-is-controller",
        controller,
        """
        high 0.9: client a connected to 10.0.0.1:9092, a controller's listener: it offers neither Produce nor Metadata. Seen 2
        times from 0 s to 1 s, 0 s lost. Who: client_id a, server 10.0.0.1:9092. Filter: client_id == "a" and server_ip ==
        "10.0.0.1". Evidence: connections 2, apis_offered 3.
        """,
    ),
]
