"""What brokers and controllers send each other."""

from kcap.reports.findings.inner import numbered_nodes
from tests.reports.findings.tables import CONNECTION, Row, exchange, observed

CONTROLLER = {"server_ip": "10.0.0.3", "server_port": 9093}


def of_node(connection: str, api: str, **more: object) -> Row:
    """An exchange of node 1 with the controller."""
    return exchange(connection, 1, api, 1, **{"client_id": "1", "client_ip": "10.0.0.1", **CONTROLLER, **more})


def seen_of(*rows: Row) -> set[tuple[str, str]]:
    """Connections and APIs of clients among these, of exchanges, of their classes and of connections alike."""
    names = ("connection", "client_id", "client_ip", "server_ip", "server_port")
    links = [CONNECTION | {name: row[name] for name in names} for row in rows]
    parts = [{"connection": row["connection"], "exchange": 1, "topic": "t"} for row in rows]
    seen = observed(rows, parts, links).of_clients()
    found = {(row["connection"], row["api"]) for row in seen.run(seen.exchanges.select("connection", "api"))}
    assert {(call["connection"], call["api"]) for call in seen.calls} == found
    assert {row["connection"] for row in seen.run(seen.connections.select("connection"))} >= {name for name, _ in found}
    assert {row["connection"] for row in seen.run(seen.parts.select("connection"))} == {name for name, _ in found}
    return found


def test_requests_of_a_node_to_the_controller_are_no_clients_whatever_their_api() -> None:
    beats = of_node("C1", "BrokerHeartbeat")
    assert seen_of(beats, of_node("C2", "ApiVersions"), of_node("C3", "CreateTopics")) == set()


def test_a_controller_that_does_not_lead_is_called_as_well() -> None:
    """What a node sends there is refused; others send it requests of brokers too."""
    beats, versions = of_node("C1", "BrokerHeartbeat"), of_node("C2", "ApiVersions", server_ip="10.0.0.4")
    other = of_node("C3", "Vote", server_ip="10.0.0.4", client_id="raft-client-2", client_ip="10.0.0.2")
    assert seen_of(beats, versions) == {("C2", "ApiVersions")}
    assert seen_of(beats, versions, other) == set()


def test_a_client_id_that_is_a_number_makes_no_broker() -> None:
    """The same id at another host, at another server, and where nothing shows a node."""
    beats = of_node("C1", "BrokerHeartbeat")
    others = [
        of_node("C2", "CreateTopics", client_ip="10.0.0.9"),
        of_node("C3", "Metadata", server_ip="10.0.0.2", server_port=9092),
        of_node("C4", "CreateTopics", client_id="2"),
    ]
    assert seen_of(beats, *others) == {("C2", "CreateTopics"), ("C3", "Metadata"), ("C4", "CreateTopics")}
    assert seen_of(of_node("C1", "ApiVersions"), of_node("C2", "CreateTopics")) == {
        ("C1", "ApiVersions"),
        ("C2", "CreateTopics"),
    }


def test_what_anybody_can_send_makes_no_broker() -> None:
    """A request that is refused, markers that an administrator writes (KIP-664), and another client id."""
    create = of_node("C2", "CreateTopics")
    assert seen_of(of_node("C1", "BrokerHeartbeat", error="CLUSTER_AUTHORIZATION_FAILED"), create) == {("C2", "CreateTopics")}
    assert seen_of(of_node("C1", "WriteTxnMarkers"), create) == {("C2", "CreateTopics")}
    prober = {"client_id": "prober-1"}
    assert seen_of(of_node("C1", "Vote", **prober), of_node("C2", "Metadata", **prober)) == {("C2", "Metadata")}


def test_nothing_is_looked_for_where_no_class_is_of_a_node() -> None:
    seen = observed([exchange("C1", 1, "Produce", 1), of_node("C2", "ApiVersions")])
    assert numbered_nodes(seen.calls, seen.exchanges) is None
