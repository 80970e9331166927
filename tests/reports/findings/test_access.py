"""Rules on logins, rights, TLS and addresses."""

from typing import Any

from kcap.limits import NAMES_MOST
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, many, observed, shown


def test_a_login_that_fails_again_and_again_is_a_loop_and_one_failure_is_worth_knowing() -> None:
    rows = many(4, 1.0, "SaslAuthenticate", error="SASL_AUTHENTICATION_FAILED", sasl_mechanism="PLAIN")
    (row,) = found("authentication-failed-loop", observed(rows))
    assert row["who"] == {"client_id": "app"}
    assert row["sentence"] == "the login of client app with PLAIN failed 4 times"
    (row,) = found("authentication-failed-loop", observed([row | {"sasl_mechanism": None} for row in rows]))
    assert row["sentence"] == "the login of client app failed 4 times", "its SaslHandshake is not in the capture"
    inside = [rows[0], exchange("C1", 9, "Metadata", 5)]
    assert found("authentication-failed-loop", observed(inside)) == []
    assert len(found("authentication-failed-loop", observed(inside), loud=False)) == 1


def test_a_client_that_never_gets_in_is_a_problem_however_seldom_it_tries() -> None:
    versions = exchange("C1", 1, "ApiVersions", 0)
    failed = exchange("C1", 2, "SaslAuthenticate", 1, error="SASL_AUTHENTICATION_FAILED", sasl_mechanism="PLAIN")
    (row,) = found("authentication-failed-loop", observed([versions, failed]))
    assert (row["severity"], row["count"]) == ("medium", 1)


def test_a_login_that_the_server_ends_by_closing_is_a_failed_login() -> None:
    """Brokers before SaslAuthenticate (KIP-152) have no other way; a raw token carries no client id."""
    step = {"reason": "fin", "age_ns": 1_000_000, "sasl_mechanism": "PLAIN", "version_verdict": None}
    raw = [exchange(f"C{at}", 2, "SaslToken", at, None, **step, client_id=None) for at in range(3)]
    links = [CONNECTION | {"connection": f"C{at}", "closed_by": "server"} for at in range(3)]
    (row,) = found("authentication-failed-loop", observed(raw, connections=links))
    assert (row["severity"], row["count"], row["who"]["client_id"]) == ("high", 3, "app")
    asked = [row | {"api": "SaslAuthenticate", "client_id": "app"} for row in raw]
    (row,) = found("authentication-failed-loop", observed(asked, connections=links))
    assert shown(row, [*asked, exchange("C9", 1, "SaslAuthenticate", 9, reason=None)]) == asked
    (row,) = found("authentication-failed-loop", observed(asked[:1], connections=links))
    assert row["severity"] == "medium", "it never gets in"
    inside = [*asked[:1], exchange("C9", 1, "Metadata", 9)]
    assert found("authentication-failed-loop", observed(inside, connections=links)) == [], "a server that was being stopped"
    left = [link | {"closed_by": "client"} for link in links]
    assert found("authentication-failed-loop", observed(raw, connections=left)) == [], "the client left"
    newer = [row | {"version_verdict": "above_broker_max"} for row in asked]
    assert found("authentication-failed-loop", observed(newer, connections=links)) == [], "its version is the reason"


def test_a_client_that_has_no_token_gives_its_login_up() -> None:
    """The KDC refuses the ticket, and the broker never hears of it."""
    begun = [exchange(f"C{at}", 1, "SaslHandshake", at, sasl_mechanism="GSSAPI") for at in range(3)]
    links = [CONNECTION | {"connection": f"C{at}", "closed_by": "client", "client_missing": 0, "client_skipped": 0}
             for at in range(3)]  # fmt: skip
    (row,) = found("login-given-up", observed(begun, connections=links))
    assert (row["count"], row["severity"], "Kerberos" in row["advice"]) == (3, "high", True)
    assert shown(row, [*begun, exchange("C9", 1, "Metadata", 9, sasl_mechanism=None)]) == begun
    silent = [
        (begun[:2], links),
        (begun, [link | {"closed_by": "server"} for link in links]),
        (begun, [link | {"client_missing": 40} for link in links]),
        ([row | {"error": "UNSUPPORTED_SASL_MECHANISM"} for row in begun], links),
        (begun + [exchange(f"C{at}", 2, "SaslToken", at + 0.1, sasl_mechanism="GSSAPI") for at in range(3)], links),
    ]
    for rows, connections in silent:
        assert found("login-given-up", observed(rows, connections=connections)) == []


def test_what_to_check_depends_on_the_mechanism() -> None:
    def advice(mechanism: str) -> str:
        rows = many(4, 1.0, "SaslAuthenticate", error="SASL_AUTHENTICATION_FAILED", sasl_mechanism=mechanism)
        (row,) = found("authentication-failed-loop", observed(rows))
        return str(row["advice"])

    assert "keytab" in advice("GSSAPI")
    assert "password" in advice("PLAIN")


def test_filters_of_many_findings_are_made_of_one_query() -> None:
    def queries(clients: int) -> int:
        step = {"reason": "fin", "age_ns": 1_000_000, "sasl_mechanism": "PLAIN"}
        rows = [exchange(f"C{at}", 2, "SaslAuthenticate", at, None, **step, client_id=f"c{at}") for at in range(clients)]
        links = [CONNECTION | {"connection": f"C{at}", "closed_by": "server"} for at in range(clients)]
        seen, made = observed(rows, connections=links), []
        run, seen.run = seen.run, lambda expression: made.append(1) or run(expression)  # type: ignore[method-assign, func-returns-value]
        assert len(found("authentication-failed-loop", seen)) == clients
        return len(made)

    assert queries(30) == queries(3)


def test_a_client_that_does_not_log_in_again_before_its_session_is_over() -> None:
    """KIP-368: the response of the login has the lifetime, and the broker closes at the first request behind it."""

    def judged(after: float, lifetime: int | None = 4000, **more: object) -> list[Row]:
        rows, said = [], {}
        for at in range(2):
            rows.append(exchange(f"C{at}", 1, "SaslAuthenticate", at * 9))
            rows.append(exchange(f"C{at}", 2, "Produce", at * 9 + after, None, reason="fin", age_ns=1_000_000))
            said[f"C{at}", 1, "response"] = {"sessionLifetimeMs": lifetime}
        links = [CONNECTION | {"connection": f"C{at}", "closed_by": "server"} | more for at in range(2)]
        return found("sasl-session-expired", observed(rows, connections=links, messages=said))

    (row,) = judged(4.2)
    assert (row["count"], row["evidence"]["lifetime_ns"]) == (2, 4_000_000_000)
    assert judged(3.9) == [], "the session was not over"
    assert judged(4.2, 0) == [], "it has no end"
    assert judged(4.2, None) == [], "the response was not captured"
    assert judged(4.2, closed_by="client") == []


def test_a_mechanism_that_is_not_enabled_is_named_with_those_that_are() -> None:
    rows = many(2, 1.0, "SaslHandshake", error="UNSUPPORTED_SASL_MECHANISM")
    said = {("C1", 1, "request"): {"mechanism": "PLAIN"}, ("C1", 1, "response"): {"mechanisms": ["SCRAM-SHA-512"]}}
    (row,) = found("sasl-mechanism-mismatch", observed(rows, messages=said))
    assert "PLAIN; the broker enables SCRAM-SHA-512" in row["sentence"]


def test_connections_that_die_behind_apiversions_without_a_login_hint_at_sasl() -> None:
    rows = []
    for at in range(4):
        rows.append(exchange(f"C{at}", 1, "ApiVersions", at))
        rows.append(exchange(f"C{at}", 2, "Metadata", at + 0.01, None, reason="fin", age_ns=1_000_000))
    (row,) = found("sasl-mechanism-mismatch", observed(rows))
    assert row["confidence"] < 0.9
    assert "never began SASL" in row["sentence"]
    logged_in = [*rows, *(exchange(f"C{at}", 3, "SaslHandshake", at + 0.005) for at in range(4))]
    assert found("sasl-mechanism-mismatch", observed(logged_in)) == []
    once = [row for row in rows if row["connection"] == "C0" or row["api"] == "Metadata"]
    unknown = [row | {"version_verdict": "unknown"} if row["connection"] != "C0" else row for row in once]
    (row,) = found("sasl-mechanism-mismatch", observed(unknown))
    assert row["count"] == 4, "KafkaJS asks for the versions on its first connection alone"
    never = [row | {"client_id": "old"} if row["api"] == "Metadata" else row for row in once]
    (row,) = found("sasl-mechanism-mismatch", observed(never))
    assert "at the first request;" in row["sentence"], "aiokafka 0.8 never asks for them"
    other = [row | {"client_id": "once"} for row in rows if row["connection"] == "C0"]
    severity = {
        one["who"]["client_id"]: one["severity"] for one in found("sasl-mechanism-mismatch", observed(rows[2:] + other))
    }
    assert severity == {"app": "high", "once": "medium"}, "what others meet there speaks for one connection"
    assert found("sasl-mechanism-mismatch", observed(other)) == []
    at_once = [*rows, *(row | {"exchange": 3} for row in rows if row["api"] == "Metadata")]
    (row,) = found("sasl-mechanism-mismatch", observed(at_once))
    assert (row["evidence"]["closed"], row["count"]) == (4, 8), "a client may send several requests before it waits"
    answered = [*at_once, *(exchange(f"C{at}", 4, "Metadata", at + 0.02) for at in range(4))]
    assert found("sasl-mechanism-mismatch", observed(answered)) == [], "a request behind them has a response"
    refused = [row | {"version_verdict": "above_broker_max"} if row["api"] == "Metadata" else row for row in rows]
    assert found("sasl-mechanism-mismatch", observed(refused)) == [], (
        "a version that the broker does not take is another reason"
    )


def test_a_right_that_is_missing_names_the_principal() -> None:
    rows = many(2, 1.0, "Produce", error="TOPIC_AUTHORIZATION_FAILED", principal="alice")
    (row,) = found("authorization-denied", observed(rows))
    assert row["who"]["principal"] == "alice"
    (row,) = found("authorization-denied", observed(rows[:1]))
    assert row["sentence"] == "TOPIC_AUTHORIZATION_FAILED for principal alice: 1 response to Produce of app"


def test_who_asks_once_what_there_is_may_be_an_operator() -> None:
    def severity(times: int, step: float, api: str = "Metadata", client: str = "app") -> str:
        rows = many(times, step, api, error="TOPIC_AUTHORIZATION_FAILED", principal="alice")
        rows = [row | {"client_id": f"{client}-{at}" if client == "tool" else client} for at, row in enumerate(rows)]
        (row,) = found("authorization-denied", observed(rows), loud=False)
        return str(row["severity"])

    assert severity(1, 1.0) == severity(2, 5.0) == severity(1, 1.0, "ListOffsets") == "low", "or a program that ended"
    assert severity(1, 1.0, "DescribeGroups") == severity(2, 5.0, "ListGroups") == "info"
    assert severity(4, 0.25) == "low", "tries of one command"
    assert severity(3, 0.5) == severity(3, 0.5, "DescribeGroups") == "medium", "it goes on"
    assert severity(5, 1.0, client="tool") == "low", "each tool asks once"
    assert severity(1, 1.0, "InitProducerId") == "medium", "it has work to do"


def test_what_a_right_is_missing_for_is_named_where_a_request_is_about_one_thing_alone() -> None:
    def said(api: str, kind: str, **more: Any) -> str:
        rows = many(3, 1.0, api, error=f"{kind}_AUTHORIZATION_FAILED", principal="alice")
        request = more.pop("request", {})
        seen = observed([row | more for row in rows], messages={("C1", 1, "request"): request} if request else {})
        (row,) = found("authorization-denied", seen)
        return str(row["sentence"].rpartition(" of ")[2])

    assert said("Produce", "TOPIC", topics=["orders"]) == "app (topic orders)"
    assert said("Metadata", "TOPIC", topics=["orders", "bills"]) == "app", "either may be the one"
    assert said("JoinGroup", "GROUP", group_id="billing") == "app (group billing)"
    assert said("InitProducerId", "TRANSACTIONAL_ID", transactional_id="tx") == "app (transactional id tx)"
    assert said("FindCoordinator", "GROUP", request={"key": "billing"}) == "app (group billing)"
    assert said("FindCoordinator", "GROUP", request={"coordinatorKeys": ["a", "b"]}) == "app"
    assert said("CreateAcls", "CLUSTER") == "app"


def test_plaintext_at_a_tls_port_and_tls_at_a_plaintext_port() -> None:
    plain = [CONNECTION | {"connection": f"C{at}", "server_captured": 7, "exchanges": 1} for at in range(3)]
    hello = [CONNECTION | {"connection": f"D{at}", "server_captured": 0, "phase": "tls", "tls": True, "client_id": None,
                           "server_port": 9093, "server_packets": 3} for at in range(3)]  # fmt: skip
    rows = found("tls-plaintext-confusion", observed([], connections=plain + hello))
    sure = {row["who"].get("client_id"): row["confidence"] for row in rows}
    assert sure.keys() == {"app", None}
    assert sure["app"] > sure[None], "who is behind a ClientHello is not known"
    hosts = [row | {"client_ip": f"10.0.1.{at}"} for row in hello for at in range(30)]
    (row,) = found("tls-plaintext-confusion", observed([], connections=hosts))
    assert row["sentence"].startswith("TLS clients at 30 hosts get nothing back from 10.0.0.1:9093")
    assert row["who"]["client_ips"] == sorted({link["client_ip"] for link in hosts})[:NAMES_MOST]
    assert found("tls-plaintext-confusion", observed([], connections=[CONNECTION | {"connection": "C1"}])) == []
    unseen = [row | {"server_packets": 0} for row in hello]
    assert found("tls-plaintext-confusion", observed([], connections=unseen)) == [], "one direction was captured"
    speaks = CONNECTION | {"connection": "E", "phase": "tls", "tls": True, "client_id": None, "server_port": 9093}
    rows = found("tls-plaintext-confusion", observed([], connections=[*hello, speaks]))
    assert rows == [], "the listener speaks TLS: something ended these handshakes"


def test_tls_probes_of_a_plaintext_listener_are_no_client_with_wrong_settings() -> None:
    """A health check or a person tries at even times, or few times; Kafka's clients try again within a second or two."""

    def severity(*times: float) -> str:
        hellos = [
            CONNECTION | {"connection": f"H{at}", "phase": "tls", "tls": True, "client_id": None, "server_captured": 0,
                          "exchanges": 0, "server_packets": 3, "first_ns": START + int(time * SECOND)}
            for at, time in enumerate(times)
        ]  # fmt: skip
        (row,) = found("tls-plaintext-confusion", observed([], connections=hellos), loud=False)
        assert row["sentence"].endswith("tries again as a health check does") == (row["severity"] == "info")
        return str(row["severity"])

    assert severity(0, 5, 10, 15, 20.5) == "info"
    assert severity(0, 7, 30) == "info", "by hand"
    assert severity(0, 0.1, 0.3, 0.7, 1.5, 2.5) == "high"
    assert severity(0, 5, 10, 15, 15.5) == "high", "once within a second"
    assert severity(0, 8, 18, 32, 40) == "high", "a client that waits longer and longer, by chance"


def test_one_tls_alert_in_place_of_a_response_is_enough() -> None:
    plain = CONNECTION | {"connection": "C0", "server_captured": 7, "exchanges": 1}
    (row,) = found("tls-plaintext-confusion", observed([], connections=[plain]))
    assert row["severity"] == "medium"
    hello = plain | {"server_captured": 0, "phase": "tls", "tls": True, "client_id": None, "server_packets": 3}
    assert found("tls-plaintext-confusion", observed([], connections=[hello])) == [], "a server that closes once proves little"


def test_an_address_that_refuses_is_wrong_only_where_brokers_advertise_it() -> None:
    dead = [CONNECTION | {"connection": f"C{at}", "phase": "empty", "ended": "rst", "client_id": None, "server_ip": "10.0.0.7",
                          "server_captured": 0, "client_captured": 0, "exchanges": 0, "server_packets": 1}
            for at in range(3)]  # fmt: skip
    rows, bootstrap = many(1, 1.0, "Metadata"), CONNECTION | {"connection": "C9"}
    advertised = [{"host": "10.0.0.7", "port": 9092, "broker_id": 3}]
    (row,) = found("wrong-advertised-listener", observed(rows, connections=[*dead, bootstrap], brokers=advertised))
    assert row["who"]["server"] == "10.0.0.7:9092"
    assert (row["who"]["client_ips"], row["who"]["client_ids"]) == (["10.0.0.9"], ["app"])
    other = [dead[0] | {"client_ip": "10.0.0.8"}, CONNECTION | {"connection": "O", "client_ip": "10.0.0.8", "client_id": "b"}]
    (row,) = found("wrong-advertised-listener", observed(rows, connections=[*dead, bootstrap, *other], brokers=advertised))
    assert (row["who"]["client_ips"], row["who"]["client_ids"]) == (["10.0.0.8", "10.0.0.9"], ["app", "b"])
    lost = [link | {"ended": "idle", "server_packets": 0} for link in dead]
    assert len(found("wrong-advertised-listener", observed(rows, connections=[*lost, bootstrap], brokers=advertised))) == 1
    assert found("wrong-advertised-listener", observed(rows, connections=[*dead, bootstrap])) == []
    second = [link | {"connection": f"S{at}", "server_ip": "10.0.0.8"} for at, link in enumerate(dead)]
    every = [*advertised, {"host": "10.0.0.8", "port": 9092, "broker_id": 4}]
    (row,) = found("wrong-advertised-listener", observed(rows, connections=[*dead, *second, bootstrap], brokers=every))
    assert row["evidence"] == {"refused": 6, "advertised": ["10.0.0.7:9092", "10.0.0.8:9092"]}, "one setting is one cause"
    whole = [*every, {"host": "10.0.0.1", "port": 9092, "broker_id": 1}]
    each = found(
        "wrong-advertised-listener", observed(rows, connections=[*dead, *second, bootstrap], brokers=whole), loud=False
    )
    assert [row["severity"] for row in each] == ["info", "info"], "none responds elsewhere: each may be down by itself"
    alive = [*dead, bootstrap, CONNECTION | {"connection": "D", "server_ip": "10.0.0.7"}]
    assert found("wrong-advertised-listener", observed(rows, connections=alive, brokers=advertised)) == []
    one_way = [*dead, CONNECTION | {"connection": "D", "server_ip": "10.0.0.7", "server_captured": 0, "server_packets": 0}]
    seen = observed(rows, connections=one_way, brokers=advertised)
    assert found("wrong-advertised-listener", seen, loud=False) == [], "it took requests; its packets are not in the capture"
    peer = CONNECTION | {"connection": "P", "server_ip": "10.0.0.7", "client_id": "raft-client-2", "client_ip": "10.0.0.2"}
    replicas = [exchange("P", 1, "Vote", 1, server_ip="10.0.0.7", client_id="raft-client-2")]
    seen = observed([*rows, *replicas], connections=[*dead, bootstrap, peer], brokers=advertised).of_clients()
    assert found("wrong-advertised-listener", seen, loud=False) == [], "a controller that was restarted served its peers"
    both = [*advertised, {"host": "10.0.0.1", "port": 9092, "broker_id": 1}]
    (quiet,) = found("wrong-advertised-listener", observed(rows, connections=[*dead, bootstrap], brokers=both), loud=False)
    assert quiet["severity"] == "info", "the broker may be down: all that respond are advertised"
    works = [CONNECTION | {"connection": "W", "server_ip": "10.0.0.2"}, *dead, bootstrap]
    some = [*advertised, {"host": "10.0.0.2", "port": 9092, "broker_id": 2}]
    (unsure,) = found("wrong-advertised-listener", observed(rows, connections=works, brokers=some))
    assert (unsure["severity"], unsure["confidence"]) == ("medium", 0.5), "a load balancer, and a broker that is down"
    assert unsure["sentence"].endswith("which none advertises; it may be down")


def test_localhost_sends_each_client_to_its_own_host() -> None:
    dead = [CONNECTION | {"connection": f"C{at}", "phase": "empty", "ended": "rst", "client_id": None, "server_ip": ip,
                          "server_captured": 0, "client_captured": 0, "exchanges": 0, "server_packets": 1}
            for at, ip in enumerate(("127.0.0.1", "::1", "127.0.0.1"))]  # fmt: skip
    rows, bootstrap = many(1, 1.0, "Metadata"), CONNECTION | {"connection": "C9"}
    advertised = [{"host": "localhost", "port": 9092, "broker_id": 3}]
    (row,) = found("wrong-advertised-listener", observed(rows, connections=[*dead, bootstrap], brokers=advertised))
    assert (row["who"]["server"], row["count"], row["severity"]) == ("localhost:9092", 3, "high")
    assert found("connect-failed", observed(rows, connections=[*dead, bootstrap], brokers=advertised)) == [], "it says that"
    other = [{"host": "localhost", "port": 9093, "broker_id": 3}]
    assert found("wrong-advertised-listener", observed(rows, connections=[*dead, bootstrap], brokers=other)) == []
    served = CONNECTION | {"connection": "W", "server_ip": "127.0.0.1"}
    seen = observed(rows, connections=[*dead[1:2] * 2, bootstrap, served], brokers=advertised)
    assert found("wrong-advertised-listener", seen, loud=False) == [], "the name has two addresses, and one is served"


def test_a_controller_is_known_by_what_it_does_not_offer() -> None:
    rows = [exchange("C1", 1, "ApiVersions", 0)]
    controller = {("C1", 1, "response"): {"apiKeys": [{"apiKey": 1}, {"apiKey": 52}]}}
    broker = {("C1", 1, "response"): {"apiKeys": [{"apiKey": 0}, {"apiKey": 3}]}}
    (row,) = found("listener-is-controller", observed(rows, messages=controller))
    assert row["who"]["server"] == "10.0.0.1:9092"
    assert found("listener-is-controller", observed(rows, messages=broker)) == []
    assert found("listener-is-controller", observed(rows)) == [], "without the response nothing is said"
    cut = [CONNECTION | {"connection": "C1", "client_missing": 50}]
    lossy = observed(rows, messages=controller, connections=cut)
    assert found("listener-is-controller", lossy) == [], "other requests may be missing"
    refused = {"reason": "fin", "age_ns": 1, "version_verdict": "above_broker_max"}
    closed = exchange("C1", 2, "Metadata", 0.1, None, **refused)
    both = observed([*rows, closed], messages=controller)
    (row,) = found("listener-is-controller", both)
    assert row["count"] == 1
    assert found("version-refused", both) == [], "a version is not what the client has to change"
    tool = exchange("C1", 2, "DescribeQuorum", 0.1, None, **refused | {"version_verdict": "ok"})
    assert found("listener-is-controller", observed([*rows, tool], messages=controller)) == [], "it wants the controller"
    asks = exchange("C1", 2, "Fetch", 0.1, None, **refused)
    offered = {("C1", 1, "response"): {"apiKeys": [{"apiKey": 1}, {"apiKey": 52}]}}
    assert len(found("version-refused", observed([*rows, asks], messages=offered))) == 1, (
        "the listener has it in other versions"
    )
    peers = observed([*rows, rows[0] | {"connection": "C2", "client_id": "raft-client-2"}], messages=controller)
    assert [row["who"]["client_id"] for row in found("listener-is-controller", peers)] == ["app"], "controllers belong there"
