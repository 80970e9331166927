"""Rules on brokers and connections."""

import pytest

from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, found, many, observed


def test_a_broker_that_is_slow_beside_its_peers_and_none_where_all_are() -> None:
    slow = many(40, 0.1, connection="C1", latency=0.3, server_ip="10.0.0.1")
    quick = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2")
    (row,) = found("slow-broker", observed(slow + quick))
    assert row["who"]["server"] == "10.0.0.1:9092"
    assert found("slow-broker", observed(slow + [one | {"server_ip": "10.0.0.2"} for one in slow])) == []
    assert found("slow-broker", observed(slow)) == [], "without a peer there is no telling"
    apart = [row | {"cluster_id": row["server_ip"]} for row in slow + quick]
    assert found("slow-broker", observed(apart)) == [], "a broker of another cluster is none"


def test_one_slow_moment_of_a_broker_is_no_slow_broker() -> None:
    quick = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2")
    moment = [
        row | {"latency_ns": 400 * MS, "response_first_ns": row["request_first_ns"] + 400 * MS} if at < 6 else row
        for at, row in enumerate(many(40, 0.1, connection="C1", latency=0.002, server_ip="10.0.0.1"))
    ]
    assert found("slow-broker", observed(moment + quick)) == [], "six requests within half a second"
    again = [{**moment[0], **{k: v for k, v in row.items() if k.startswith(("request", "exchange"))}} for row in moment[::4]]
    rows = [row | {"response_first_ns": row["request_first_ns"] + 400 * MS} for row in again]
    rest = [row for at, row in enumerate(moment) if at % 4 and at >= 6]
    assert len(found("slow-broker", observed(rows + rest[:12] + quick))) == 1, "as many, again and again"


def test_a_clock_that_is_set_forward_makes_no_slow_broker() -> None:
    quick = many(40, 0.1, connection="C2", latency=0.002, server_ip="10.0.0.2")
    waiting = [
        row | {"latency_ns": 5000 * MS, "response_first_ns": row["request_first_ns"] + 5000 * MS} if 20 <= at < 28 else row
        for at, row in enumerate(many(40, 0.1, connection="C1", latency=0.002, server_ip="10.0.0.1"))
    ]
    assert found("slow-broker", observed(waiting + quick)) == [], "all of them waited at one moment"
    slow = many(24, 0.1, connection="C3", latency=0.3, server_ip="10.0.0.1")
    apart = [row | {name: row[name] + 10 * SECOND for name in ("request_first_ns", "response_first_ns")} for row in slow]
    rows = [*waiting, *apart]
    assert len(found("slow-broker", observed(rows + quick))) == 1, "others wait at other times"


def test_a_start_that_is_slow_everywhere_makes_no_slow_broker() -> None:
    def served(place: str, *latencies: float) -> list[Row]:
        return [exchange(f"C{place}", at + 1, "Produce", at * 0.1, latency, server_ip=f"10.0.0.{place}")
                for at, latency in enumerate(latencies)]  # fmt: skip

    slow, quick = [0.4] * 30, [0.002] * 30
    assert len(found("slow-broker", observed(served("1", *slow, *quick) + served("2", *quick, *quick)))) == 1
    start = [0.06, 0.06, 0.002] * 10  # peers too, though fewer requests and less
    peers = served("2", *start, *quick, *quick * 20) + served("3", *start, *quick, *quick * 20)
    assert found("slow-broker", observed(served("1", *slow, *quick) + peers)) == []


def test_one_coordinator_after_the_other_makes_no_slow_broker() -> None:
    slow = many(40, 0.1, "OffsetCommit", connection="C1", latency=0.3, server_ip="10.0.0.1")
    quick = many(40, 0.1, "OffsetCommit", connection="C2", latency=0.002, server_ip="10.0.0.2")
    assert len(found("slow-broker", observed(slow + quick))) == 1
    times = ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns")
    later = [row | {name: row[name] + 5 * SECOND for name in times} for row in quick]
    assert found("slow-broker", observed(slow + later)) == [], "the host may have been busy at first"
    assert len(found("slow-broker", observed(slow + later + quick[:1]))) == 1, "they serve it at the same time"


def test_a_network_whose_round_trip_one_broker_s_connections_do_not_show_is_no_slow_broker() -> None:
    unknown = many(40, 0.1, connection="C1", latency=0.08, rtt_ns=None, server_ip="10.0.0.1")
    known = many(40, 0.1, connection="C2", latency=0.08, rtt_ns=79 * MS, server_ip="10.0.0.2")
    assert found("slow-broker", observed(unknown + known)) == []
    slow = [one | {"latency_ns": 500 * MS} for one in unknown]
    assert len(found("slow-broker", observed(slow + known))) == 1


def test_requests_behind_a_long_poll() -> None:
    behind = [exchange("C1", at + 2, "Metadata", at, 1.0, queue_ns=900 * MS) for at in range(6)]
    fetch = exchange("C1", 1, "Fetch", 0, 1.0)
    (row,) = found("head-of-line", observed([fetch, *behind]))
    assert row["lost_ns"] == 6 * 900 * MS
    assert found("head-of-line", observed(behind)) == [], "no Fetch is on this connection"
    at_once = [row | {"request_first_ns": START + 5, "request_last_ns": START + 5} for row in behind]
    assert found("head-of-line", observed([fetch, *at_once])) == [], "partitions that are new to a client"
    throttled = [fetch | {"throttle_time_ms": 500}, *behind]
    assert found("head-of-line", observed(throttled)) == [], "a muted channel is another reason"
    (row,) = found("head-of-line", observed([fetch | {"api": "ShareFetch"}, *behind]))
    assert "behind ShareFetch" in row["sentence"], "a share group's poll waits as well (KIP-932)"
    joined = [fetch | {"api": "ShareFetch"}, fetch | {"exchange": 99, "api": "JoinGroup"}, *behind]
    assert found("head-of-line", observed(joined)) == [], "it may wait for the members of its group"
    search = [row | {"api": "FindCoordinator"} for row in behind[::2]]
    assert found("head-of-line", observed([fetch, *behind[1::2], *search])) == [], "it looks for its coordinator everywhere"
    named = [row | {"software_name": "apache-kafka-java"} for row in (fetch, *behind)]
    assert found("head-of-line", observed(named)) == [], "a library chooses the connection for its metadata by itself"
    offsets = named[1] | {"api": "ListOffsets", "exchange": 50}
    assert found("head-of-line", observed([*named, offsets])) == [], "what the application waited for was one moment"
    later = named[3] | {"api": "ListOffsets", "exchange": 51}
    assert len(found("head-of-line", observed([*named, offsets, later]))) == 1
    commits = [row | {"api": "OffsetCommit"} for row in behind[1::2]]
    assert len(found("head-of-line", observed([fetch, *commits, *search]))) == 1


def idle(count: int, pause: float) -> tuple[list[Row], list[Row]]:
    rows, links = [], []
    for at in range(count):
        begin = START + at * 10 * SECOND
        rows.append(exchange(f"C{at}", 1, "Produce", at * 10))
        end = begin + int((pause + 0.01 * at) * SECOND)
        # the client finds out with its next request
        times = {"first_ns": begin, "last_ns": begin + (9 - at) * SECOND, "closed_ns": end}
        links.append(CONNECTION | {"connection": f"C{at}", "closed_by": "server"} | times)
    return rows, links


def test_connections_that_are_cut_after_the_same_idle_time() -> None:
    (row,) = found("idle-disconnect", observed(idle(5, 2.5)[0], connections=idle(5, 2.5)[1]))
    assert 2.4 * SECOND < row["evidence"]["idle_ns"] < 2.6 * SECOND
    assert found("idle-disconnect", observed(idle(5, 0.2)[0], connections=idle(5, 0.2)[1])) == []
    assert found("idle-disconnect", observed(idle(2, 2.5)[0], connections=idle(2, 2.5)[1])) == []


def test_a_connection_for_each_task() -> None:
    links = [CONNECTION | {"connection": f"C{at}", "first_ns": START + at * 50 * MS, "last_ns": START + at * 50 * MS + 40 * MS,
                           "exchanges": 2} for at in range(60)]  # fmt: skip
    rows = [exchange(f"C{at}", 1, "Produce", at * 0.05) for at in range(60)]
    assert len(found("connection-churn", observed(rows, connections=links))) == 1
    busy = [link | {"exchanges": 500} for link in links]
    assert found("connection-churn", observed(rows, connections=busy)) == []
    left = {"api": "Metadata", "exchange": 2, "outcome": "unanswered", "reason": "rst", "age_ns": MS, "error": None}
    some, many_ = ([row | left for row in rows[:count]] for count in (11, 12))
    assert len(found("connection-churn", observed([*rows, *some], connections=links))) == 1, "programs end with one on the way"
    assert found("connection-churn", observed([*rows, *many_], connections=links)) == [], "its connections fail"
    tool = [row | {"api": "CreateTopics"} for row in rows]
    assert found("connection-churn", observed(tool, connections=links)) == [], "a command line of an administrator"
    fleet = [link | {"client_ip": f"10.0.1.{at % 20}"} for at, link in enumerate(links)]
    assert found("connection-churn", observed(rows, connections=fleet)) == [], "a service of twenty instances starts"


def test_leaders_that_move() -> None:
    def rows(count: int, topic: str) -> tuple[list[Row], list[Row]]:
        parts = [{"connection": "C1", "exchange": at + 1, "api_key": 0, "topic": topic, "partition": 0,
                  "error": "NOT_LEADER_OR_FOLLOWER"} for at in range(count)]  # fmt: skip
        return many(count, 1.0), parts

    assert len(found("not-leader", observed(*rows(12, "t")))) == 1
    assert found("not-leader", observed(*rows(9, "t"))) == [], "kafka-go requests metadata every 6 s, and is refused until then"
    assert found("not-leader", observed(*rows(1, "t"))) == []
    moved = [exchange("C1", at, "Fetch", at / 10) for at in range(1, 5)]
    parts = [
        {"connection": "C1", "exchange": at, "topic": "t", "partition": at, "error": "NOT_LEADER_OR_FOLLOWER"}
        for at in range(1, 5)
    ]
    assert found("not-leader", observed(moved, parts)) == [], "an error of each partition is how a client learns of a move"
    others = [row | {"connection": "C2", "client_id": "reader"} for row in moved]
    both = observed(moved + others, parts + [part | {"connection": "C2"} for part in parts])
    assert found("not-leader", both) == [], "each of two clients"
    assert found("not-leader", observed(*rows(9, "__cluster_metadata"))) == []
    restarts = [row | {"request_first_ns": START + 20 * at * SECOND} for at, row in enumerate(rows(4, "t")[0])]
    assert found("not-leader", observed(restarts[:3], rows(3, "t")[1])) == [], "a rolling restart moves a leader away and back"
    assert len(found("not-leader", observed(restarts, rows(4, "t")[1]))) == 1, "it moves again and again"


def test_one_broker_that_refuses_and_serves_by_turns_shows_no_leader_that_moved() -> None:
    """As a server that imitates a broker does."""
    rows = many(20, 10.0)
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 0, "topic": "t", "partition": 0,
              "error": "NONE" if at % 4 else "NOT_LEADER_OR_FOLLOWER"} for at in range(20)]  # fmt: skip

    def advice(*more: Row) -> str:
        (row,) = found("not-leader", observed([*rows, *more], parts + [{**parts[1], "connection": "C2"}] * len(more)))
        return str(row["advice"])

    assert advice().startswith("The capture shows no leader that moved")
    elsewhere = exchange("C2", 2, "Produce", 15, server_ip="10.0.0.2")
    assert advice(elsewhere).startswith("See why leaders move")


@pytest.mark.parametrize("side", ["client", None])
def test_a_client_that_closes_by_itself_is_no_idle_cut(side: str | None) -> None:
    rows, links = idle(5, 2.5)
    assert found("idle-disconnect", observed(rows, connections=[link | {"closed_by": side} for link in links])) == []


def test_a_process_that_ends_is_no_idle_cut() -> None:
    rows, links = idle(5, 2.5)
    for at, link in enumerate(list(links)):
        rows.append(exchange(f"B{at}", 1, "Fetch", at * 10 + 2.4))
        links.append(link | {"connection": f"B{at}"})
    assert found("idle-disconnect", observed(rows, connections=links)) == []


def test_brokers_among_themselves_are_not_judged() -> None:
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 0,
              "error": "NOT_LEADER_OR_FOLLOWER"} for at in range(12)]  # fmt: skip
    for name in ("broker-2-fetcher-0", "ReplicaFetcherThread-0-1"):
        assert found("not-leader", observed(many(12, 1.0, "Fetch", client_id=name), parts)) == []
    assert len(found("not-leader", observed(many(12, 1.0, "Fetch", client_id="app"), parts))) == 1
