"""Summaries that rules share."""

import pytest

from kcap.reports.definition import is_broker
from kcap.reports.findings.observed import LASTED, in_groups, rows_by
from kcap.reports.findings.report import check
from tests.reports.findings.tables import CONNECTION, SECOND, START, exchange, found, many, observed


def test_classes_of_exchanges_add_up() -> None:
    seen = observed(many(5, 1.0, record_count=2) + many(3, 1.0, "Fetch", connection="C2", client_id="other"))
    assert {(row["client_id"], row["api"], row["n"], row["records"]) for row in seen.calls} == {
        ("app", "Produce", 5, 10), ("other", "Fetch", 3, None),
    }  # fmt: skip
    assert seen.clients_of(api="Fetch") == ["other"]


def test_groups_have_their_number_and_the_times_of_the_first_and_the_last() -> None:
    seen = observed(many(3, 1.0) + many(2, 1.0, "Fetch", connection="C2"))
    by = rows_by(seen.run(in_groups(seen.exchanges, ("api", "connection"), last=seen.exchanges.exchange.max())), "api")
    sent = [row["request_first_ns"] for row in many(3, 1.0)]
    assert {api: (row["n"], row["last"], row["first_ns"]) for api, (row,) in by.items()} == {
        "Produce": (3, 3, sent[0]), "Fetch": (2, 2, sent[0]),
    }  # fmt: skip
    assert by["Produce"][0]["last_ns"] >= sent[-1]
    (links,) = seen.run(in_groups(seen.connections, ("phase",), LASTED))
    assert (links["first_ns"], links["last_ns"]) == seen.span
    assert rows_by([{"a": 1, "b": 2}, {"a": 1, "b": 3}], ("a", "b")).keys() == {(1, 2), (1, 3)}


def test_errors_have_an_example_that_is_the_first() -> None:
    rows = many(4, 1.0, error="UNKNOWN_SERVER_ERROR")
    (row,) = observed(list(reversed(rows))).errors(["UNKNOWN_SERVER_ERROR"])
    assert (row["n"], row["connection"], row["exchange"]) == (4, "C1", 1)


def test_the_span_is_that_of_the_connections() -> None:
    links = [CONNECTION | {"connection": "C1"}, CONNECTION | {"connection": "C2", "last_ns": START + 99 * SECOND}]
    assert observed([], connections=links).span == (START, START + 99 * SECOND)
    assert observed([], connections=[]).span == (0, 0)


def test_a_message_that_cannot_be_had_is_empty() -> None:
    seen = observed(many(1, 1.0), messages={("C1", 1, "request"): {"a": 1}})
    assert seen.message({"connection": "C1", "exchange": 1}, "request") == {"a": 1}
    assert seen.message({"connection": "C1", "exchange": 1}, "response") == {}
    assert seen.message({"connection": None, "exchange": None}, "request") == {}


def test_connections_of_brokers_are_no_clients_but_count_for_the_span() -> None:
    names = ("app", "broker-1-fetcher-0", "raft-client-3", "ReplicaFetcherThread-0-2", None, "broker-of-mine",
             "AddPartitionsManager-client-1", "broker-2-txn-marker-sender", "Persister-client-3")  # fmt: skip
    links = [
        CONNECTION | {"connection": f"C{at}", "client_id": name, "last_ns": START + at * SECOND}
        for at, name in enumerate(names)
    ]
    mine = observed([], connections=links).of_clients()
    assert {link["client_id"] for link in mine.links} == {"app", None, "broker-of-mine"}
    assert set(mine.links_of) == {"app", None, "broker-of-mine"}
    assert mine.span[1] == START + 8 * SECOND
    assert [name for name in names if not is_broker(name)] == ["app", None, "broker-of-mine"]


def test_responses_whose_request_was_before_the_capture_are_the_brokers_where_their_connection_is() -> None:
    fetch = exchange("C1", 2, "Fetch", 1, client_id="broker-2-fetcher-0")
    orphan = exchange("C1", 1, "Fetch", 0, client_id=None, outcome="orphan")
    mine = exchange("C2", 1, "Fetch", 2)
    lost = exchange("C2", 2, "Fetch", 3, client_id=None, outcome="orphan")
    links = [CONNECTION | {"connection": "C1", "client_id": "broker-2-fetcher-0"}, CONNECTION | {"connection": "C2"}]
    parts = [
        {"connection": row["connection"], "exchange": row["exchange"], "topic": "t"} for row in (fetch, orphan, mine, lost)
    ]
    seen = observed([fetch, orphan, mine, lost], parts, links).of_clients()
    assert seen.quality["n"] == 2
    assert seen.quality["orphans"] == 1
    assert [row["exchange"] for row in seen.run(seen.parts.select("connection", "exchange").order_by("exchange"))] == [1, 2]


def test_clusters_are_looked_at_each_by_itself_where_several_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row
        for at, cluster in enumerate(["A", "B", "B", None])
        for row in many(1, 1.0, connection=f"C{at}", cluster_id=cluster, server_port=9092 + at)
    ]
    links = [CONNECTION | {"connection": f"C{at}"} for at in range(5)]
    parts = [{"connection": row["connection"], "exchange": 1, "topic": "t"} for row in rows]

    def apart(some: list[dict[str, object]]) -> list[tuple[str | None, list[str], list[str], int]]:
        seen = observed(some, parts, links)
        return [
            (name, *([row["connection"] for row in one.run(table.select("connection").order_by("connection"))]
                     for table in (one.parts, one.connections)), one.quality["n"])
            for name, one in seen.by_cluster()
        ]  # fmt: skip

    assert apart(rows) == [
        ("B", ["C1", "C2"], ["C1", "C2", "C4"], 2), ("A", ["C0"], ["C0", "C4"], 1), (None, ["C3"], ["C3", "C4"], 1),
    ]  # fmt: skip
    assert apart(rows[1:]) == [(None, ["C1", "C2", "C3"], [f"C{at}" for at in range(5)], 3)], "where one is known it is all"
    monkeypatch.setattr("kcap.reports.findings.observed.CLUSTERS_MOST", 1)
    seen = observed(rows[:3], parts, links)
    assert [name for name, _ in seen.by_cluster()] == ["B"]
    assert check(seen)["left_out"] == {"clusters": 1}


def test_requests_that_never_ended_have_times_all_the_same() -> None:
    """Law: no rule fails for an exchange without a time."""
    cut = exchange("C1", 1, "Produce", 3.0, None) | {"request_last_ns": None}
    nowhere = [cut | {"connection": f"C{at}", "request_first_ns": None} for at in range(2, 30)]
    seen = observed([cut, *nowhere])
    assert all(call["first_ns"] is not None and call["last_ns"] is not None for call in seen.calls)
    assert check(seen)["rows"] is not None


def test_offsets_and_timestamps_may_have_any_64_bits() -> None:
    """Law: no number of a message makes a rule fail."""
    some = [-(1 << 63), -1, 0, (1 << 63) - 1]
    rows = many(4, 1.0, "Fetch") + [exchange("C2", at + 1, "Produce", at) for at in range(4)]
    rows += [exchange("C3", at + 1, "OffsetCommit", at / 40 + 6 * (at % 2), group_id="g") for at in range(60)]
    parts = [
        {"connection": row["connection"], "exchange": row["exchange"], "api": row["api"], "topic": "t", "partition": partition,
         "error": "NONE", "high_watermark": some[row["exchange"] - 1] if row["api"] == "Fetch" else None,
         "last_stable_offset": other, "base_offset": other, "records": other, "max_timestamp_ms": other, "lag": other,
         "fetch_offset": other, "committed_offset": some[row["exchange"] % 4 if partition else 3], "group_id": "g"}
        for row in rows for other in some for partition in (0, 1)
    ]  # fmt: skip
    seen = observed(rows, parts)
    assert max(flow["behind"] for flow in seen.flows_of("Fetch")) == (1 << 63) - 1
    assert check(seen)["rows"] is not None


def test_what_a_server_offers_is_read_of_a_few_responses_however_many_clients_there_are() -> None:
    rows = [exchange(f"C{at}", 1, "ApiVersions", at / 100) for at in range(100)]
    read = []

    def responses(_connection: str, _number: int, _side: str) -> dict[str, object] | None:
        read.append(1)
        return {"apiKeys": [{"apiKey": 1, "minVersion": 4, "maxVersion": 9}]} if len(read) > 3 else None

    seen = observed(rows)
    seen._message = responses
    assert seen.offered(rows) == {("10.0.0.1", 9092): {1: (4, 9)}}
    assert len(read) == 4


def test_messages_are_made_ready_by_the_thousand_and_none_is_left_out() -> None:
    asked: list[int] = []

    class Messages:
        def __call__(self, connection: str, number: int, side: str) -> None:
            return None

        def prepare(self, keys: list[tuple[str, int]], between: tuple[int, int] | None) -> None:
            asked.append(len(keys))

    seen = observed([])
    seen._message = Messages()
    rows = [{"connection": "C1", "exchange": at} for at in range(5000)]
    assert list(seen.prepared(rows, lambda row: row["exchange"] % 2 == 0)) == rows
    assert sum(asked) == 2500
    assert max(asked) <= 2048


def silent(number: int, host: str) -> dict[str, object]:
    """A connection without a byte to a host."""
    own = {"connection": f"C{number}", "client_id": None, "server_ip": host, "phase": "empty", "exchanges": 0}
    return CONNECTION | own


def test_silent_connections_count_where_a_broker_advertises_the_address() -> None:
    links = [silent(1, "10.0.9.1"), silent(2, "10.0.9.2"), CONNECTION | {"connection": "C3"}]
    seen = observed([], connections=links, brokers=[{"host": "10.0.9.2", "port": 9092, "broker_id": 1}])
    assert {(link["phase"], link["server_ip"]) for link in seen.links} == {
        ("empty", "10.0.9.2"), ("kafka", CONNECTION["server_ip"]),
    }  # fmt: skip
    assert {phase for phase, _ in seen.begun} == {"empty", "kafka"}, "all are there for what the capture can show"


@pytest.mark.parametrize("crowded", [False, True])
def test_groups_of_connections_are_bounded_and_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch, crowded: bool) -> None:
    """Also where the groups are chosen before their figures are computed."""
    monkeypatch.setattr("kcap.reports.findings.observed.LINKS_KEPT", 3)
    links = [CONNECTION | {"connection": f"C{at}", "client_ip": f"10.0.5.{at}", "exchanges": at} for at in range(9)]
    seen = observed([], connections=links)
    seen.crowded = crowded
    assert seen.of_clients().crowded is crowded
    assert [link["exchanges"] for link in seen.links] == [8, 7, 0], "what fails has no exchanges"
    assert [link["life_ns"] for link in seen.links] == [CONNECTION["last_ns"] - CONNECTION["first_ns"]] * 3
    assert check(seen)["left_out"] == {"connection_groups": 6}
    assert [link["exchanges"] for link in observed([], connections=links[1:]).links] == [8, 7, 6]


def test_a_topic_that_nothing_names_goes_by_its_id() -> None:
    """Requests since Fetch 13 and Produce 13 name ids alone; a capture without Metadata has no names."""
    ids = ["sG_dNxTWSoGd649vKyuR4w", "4mzdXUVwQWSFNXLqXLyyNA"]
    rows = many(6, 1.0, api_version=13, error="MESSAGE_TOO_LARGE")
    parts = [
        {"connection": "C1", "exchange": row["exchange"], "topic": None, "topic_id": ids[row["exchange"] % 2], "partition": 0,
         "error": "MESSAGE_TOO_LARGE", "api_key": 0}
        for row in rows
    ]  # fmt: skip
    refused = found("message-too-large", observed(rows, parts))
    assert sorted(row["who"]["topic"] for row in refused) == sorted(ids)
    assert [row["count"] for row in refused] == [3, 3]
    named = found("message-too-large", observed(rows, [part | {"topic": "orders"} for part in parts]))
    assert [row["who"]["topic"] for row in named] == ["orders"]
