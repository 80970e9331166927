"""Addresses that cannot serve: one for several brokers, or one that clients never try."""

from collections.abc import Sequence
from typing import Any

from tests.reports.findings.tables import CONNECTION, Row, exchange, found, many, observed

RULE = "wrong-advertised-listener"
Messages = dict[tuple[str, int, str], Row]


def looking(
    keys: Sequence[str] = ("g",) * 5, step: float = 1.0, brokers: Sequence[str] = ("plum", "pear"), more: Sequence[Row] = (),
    links: Sequence[Row] = (), **response: Any,
) -> list[Row]:  # fmt: skip
    """What is said of a client that looks up coordinators, `step` seconds apart."""
    rows = many(len(keys), step, "FindCoordinator")
    said: Messages = {("C1", at + 1, "request"): {"key": key} for at, key in enumerate(keys)}
    said["C1", 1, "response"] = response or {"host": "plum", "port": 9092}
    known = [{"host": host, "port": 9092, "broker_id": node} for node, host in enumerate(brokers)]
    every = [CONNECTION | {"connection": "C1"}, *links]
    return found(RULE, observed([*rows, *more], connections=every, brokers=known, messages=said), loud=False)


def test_a_coordinator_that_is_never_tried_is_proven_where_it_is_all_there_is() -> None:
    (row,) = looking(brokers=["plum"])
    assert (row["severity"], row["confidence"], row["who"]["client_ids"]) == ("high", 0.85, ["app"])
    assert "getent hosts" in row["advice"]
    (row,) = looking(coordinators=[{"host": "plum", "port": 9092}, {"host": "pear", "port": 9092}])
    assert row["severity"] == "high", "one of both is the server that names them"


def test_in_a_capture_of_one_broker_connections_to_others_are_missing() -> None:
    assert [row["severity"] for row in looking()] == ["medium"]
    assert [row["severity"] for row in looking(keys="abcde")] == ["info"], "a tool looks up each group"
    assert [row["severity"] for row in looking(step=30.0)] == ["info"], "no library waits for so long"


def test_a_client_that_goes_on_found_its_coordinator() -> None:
    joins = exchange("C2", 1, "JoinGroup", 9)
    assert looking(more=[joins]) == []
    assert len(looking(more=[joins | {"client_id": "other"}])) == 1
    elsewhere = CONNECTION | {"connection": "E", "server_ip": "10.0.0.7", "client_id": None, "phase": "empty", "exchanges": 0}
    assert looking(links=[elsewhere]) == [], "other rules say whether that is accepted"
    assert len(looking(links=[elsewhere | {"server_port": 5432}])) == 1
    assert looking(host="10.0.0.1", port=9092) == [], "it is the server that it has a connection to"
    assert looking(host="", port=-1) == []
    assert looking(keys=["g", "g"]) == []


def sharing(*lists: Sequence[Row], error: str = "NOT_LEADER_OR_FOLLOWER", times: int = 5, step: float = 1.0) -> Any:
    """Metadata responses with these brokers, and requests of a client for one partition with an error, `step` seconds apart,
    between two without."""
    asks = [exchange("C1", at + 1, "Metadata", at) for at in range(len(lists))]
    rows = many(times + 2, step, connection="C2", acks=1)
    parts = [{"connection": "C2", "exchange": at + 1, "api_key": 0, "topic": "t", "partition": 0, "records": 1,
              "error": error if 0 < at <= times else "NONE"} for at in range(times + 2)]  # fmt: skip
    rows = [row | {"error": part["error"]} for row, part in zip(rows, parts, strict=True)]
    said: Messages = {("C1", at + 1, "response"): {"brokers": some} for at, some in enumerate(lists)}
    known = {(one["nodeId"], one["host"], one["port"]) for some in lists for one in some}
    brokers = [{"broker_id": node, "host": host, "port": port} for node, host, port in sorted(known)]
    return observed([*asks, *rows], parts, brokers=brokers, messages=said)


def at(host: str, *nodes: int) -> list[Row]:
    return [{"nodeId": node, "host": host, "port": 9092} for node in nodes]


def test_one_address_for_several_brokers_is_the_cause_of_their_errors() -> None:
    both = sharing(at("10.0.0.1", 1, 2))
    (row,) = found(RULE, both)
    assert (row["severity"], row["count"], row["evidence"]["brokers"]) == ("high", 5, [1, 2])
    assert [name for name in ("not-leader", "leader-change", "acks-risk") if found(name, both, loud=False)] == []
    (row,) = found(RULE, sharing(at("lb.plum.internal", 1, 2)))
    assert row["who"]["server"] == "10.0.0.1:9092", "a name is the servers with its port"
    fine = sharing(at("10.0.0.1", 1, 2), error="NONE")
    assert [one["severity"] for one in found(RULE, fine, loud=False)] == ["info"], "a proxy that knows where requests belong"


def test_leaders_that_move_between_addresses_of_their_own_are_no_such_thing() -> None:
    apart = sharing(at("10.0.0.1", 1) + at("10.0.0.2", 2), step=3.0)
    assert found(RULE, apart, loud=False) == []
    assert len(found("leader-change", apart)) == 1
    renamed = sharing(at("10.0.0.1", 1), at("10.0.0.1", 2))
    assert found(RULE, renamed, loud=False) == [], "a broker that got another id"


def test_members_and_metadata_behind_one_address_are_not_accused() -> None:
    lost = [exchange("C3", number, "Heartbeat", number * 2.0, error="NOT_COORDINATOR", group_id="g") for number in range(1, 6)]
    storm = many(99, 0.05, "Metadata", connection="C4")
    known = [{"broker_id": node, "host": "10.0.0.1", "port": 9092} for node in (1, 2)]

    def said(brokers: list[Row]) -> list[str]:
        messages: Messages = {("C4", 1, "response"): {"brokers": brokers}}
        seen = observed([*lost, *storm], brokers=known, messages=messages)
        return [row["id"] for name in (RULE, "coordinator-moves", "metadata-storm") for row in found(name, seen)]

    assert said(at("10.0.0.1", 1, 2)) == [RULE]
    assert said(at("10.0.0.1", 1)) == ["coordinator-moves", "metadata-storm"]


def test_clients_that_were_never_given_an_address_are_not_named() -> None:
    """Two clients of a host, and one of them has another cluster."""
    refused = {"phase": "empty", "ended": "rst", "client_id": None, "server_ip": "10.0.0.7", "server_captured": 0,
               "client_captured": 0, "exchanges": 0, "server_packets": 1}  # fmt: skip
    dead = [CONNECTION | refused | {"connection": f"D{number}"} for number in range(3)]
    other = {"client_id": "b", "server_ip": "10.0.0.2"}
    rows = [exchange("C1", 1, "Metadata", 0), exchange("C2", 1, "Metadata", 0, **other)]
    links = [*dead, CONNECTION | {"connection": "C1"}, CONNECTION | {"connection": "C2"} | other]
    brokers = [{"host": "10.0.0.7", "port": 9092, "broker_id": 1}]
    said: Messages = {("C1", 1, "response"): {"brokers": at("10.0.0.7", 1)}, ("C2", 1, "response"): {"brokers": at("plum", 1)}}
    (row,) = found(RULE, observed(rows, connections=links, brokers=brokers, messages=said))
    assert row["who"]["client_ids"] == ["app"]
    (row,) = found(RULE, observed(rows, connections=links, brokers=brokers))
    assert row["who"]["client_ids"] == ["app", "b"], "responses that cannot be read exclude none"
