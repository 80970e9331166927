"""Brokers that become unavailable while the capture runs."""

from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, observed


def refused(at: float, **more: object) -> Row:
    begin = START + int(at * SECOND)
    ends = {"phase": "empty", "ended": "rst", "server_packets": 1, "exchanges": 0, "client_id": None}
    return CONNECTION | {"connection": f"R{at}", "first_ns": begin, "last_ns": begin} | ends | more


def seen_by(
    link: Row, until: float, since: float, step: float = 0.2, closed_by: str = "server", later: float = 0.0
) -> list[Row]:
    """What the rule says where a partition is written to up to `until` at the broker that goes `later` seconds afterwards, and
    from `since` on at another."""
    old = [exchange("C1", at + 1, "Produce", at * step, broker_id=1) for at in range(int(until / step))]
    new = [exchange("C2", at + 1, "Produce", since + at * step, server_ip="10.0.0.2") for at in range(9)]
    parts = [{"connection": row["connection"], "exchange": row["exchange"], "topic": "t", "partition": 0, "error": "NONE"}
             for row in old + new]  # fmt: skip
    links = [
        CONNECTION | {"connection": "C1", "server_packets": 9, "closed_by": closed_by},
        *(refused(until + later + at) | link for at in range(5)),
    ]
    links = [*links, CONNECTION | {"connection": "C2", "server_ip": "10.0.0.2", "server_packets": 9}]
    return found("broker-unavailable", observed(old + new, parts, links), loud=False)


def test_a_broker_that_is_killed_and_whose_partitions_no_other_leads_for_a_while() -> None:
    (row,) = seen_by({}, 5.0, 14.0)
    assert row["who"]["server"] == "10.0.0.1:9092"
    assert row["severity"] == "medium"
    assert row["sentence"] == (
        "broker 10.0.0.1:9092 accepted no connection for at least 4.0 s: 5 connections of 10.0.0.9 were refused; no write to 1 "
        "partition succeeded for up to 9.2 s"
    )


def test_hosts_that_a_broker_refuses_are_those_of_the_outage() -> None:
    old = [exchange("C1", at + 1, "Produce", at * 0.2, broker_id=1) for at in range(20)]
    links = [refused(5.0 + at, client_ip=f"10.0.0.{at}") for at in range(5)] + [refused(1.0, client_ip="10.0.0.8")]
    links += [CONNECTION | {"connection": "C1", "server_packets": 9, "first_ns": START + 2 * SECOND}]
    (row,) = found("broker-unavailable", observed(old, connections=links), loud=False)
    assert row["who"]["client_ips"] == [f"10.0.0.{at}" for at in range(5)]


def test_where_nothing_comes_back_the_path_or_the_host_may_be_the_cause() -> None:
    (gone,), (stopped,) = seen_by({"server_packets": 0, "ended": "open"}, 5.0, 14.0), seen_by({}, 5.0, 14.0)
    assert "were not answered" in gone["sentence"]
    assert "path" in gone["advice"]
    assert "path" not in stopped["advice"], "its host answers"


def test_a_syn_that_is_sent_again_is_a_try_as_a_connection_is() -> None:
    """One client that tries one address for 31 s, unless another is accepted meanwhile: the path of one host may be cut."""
    rows = [exchange("C1", at + 1, "Produce", at * 0.2, broker_id=1) for at in range(20)]
    alone = refused(5.0, server_packets=0, ended="open", packets=6, last_ns=START + 36 * SECOND)
    first = CONNECTION | {"connection": "C1", "server_packets": 9}
    (row,) = found("broker-unavailable", observed(rows, connections=[first, alone]), loud=False)
    assert row["sentence"] == (
        "broker 10.0.0.1:9092 accepted no connection for at least 31.0 s: 1 connection of 10.0.0.9 was not answered, tried 6 "
        "times"
    )
    taken = CONNECTION | {"connection": "C2", "server_packets": 9, "first_ns": START + 9 * SECOND, "client_ip": "10.0.0.7"}
    assert not found("broker-unavailable", observed(rows, connections=[first, alone, taken]), loud=False)
    once = refused(5.0, server_packets=0, ended="open", packets=2, last_ns=START + 6 * SECOND)
    assert not found("broker-unavailable", observed(rows, connections=[first, once]), loud=False)


def test_a_restart_that_hands_partitions_over_is_worth_knowing_and_no_more() -> None:
    (row,) = seen_by({}, 5.0, 5.5)
    assert row["severity"] == "info"
    assert "partitions" not in row["evidence"]
    (row,) = seen_by({}, 5.0, 14.0, step=2.0)
    assert row["severity"] == "info", "a partition that is written to now and then"
    (row,) = seen_by({}, 5.0, 14.0, closed_by="client")
    assert row["severity"] == "info", "a job that had ended, and another that began later"
    (row,) = seen_by({}, 5.0, 34.0, later=20.0)
    assert row["severity"] == "info", "nothing was there to write for a while before the broker went"


def moved_to(broker: Row, **more: object) -> Row:
    """What the rule says of a broker that takes no connection while a partition moves to it, which no client writes to then."""
    old = [exchange("C2", at + 1, "Produce", at * 0.2, server_ip="10.0.0.2") for at in range(25)]
    last = exchange("C2", 99, "Produce", 5.1, server_ip="10.0.0.2", error="NOT_LEADER_OR_FOLLOWER") | more
    first = exchange("C1", 1, "Metadata", 0, broker_id=1)
    parts = [{"connection": row["connection"], "exchange": row["exchange"], "topic": "t", "partition": 0, "error": row["error"]}
             for row in (*old, last)]  # fmt: skip
    links = [
        CONNECTION | {"connection": "C1", "server_packets": 9},
        CONNECTION | {"connection": "C2", "server_ip": "10.0.0.2", "server_packets": 9, "ended": "open", "closed_by": None},
        *(refused(5.2 + at) | broker for at in range(5)),
    ]
    (row,) = found("broker-unavailable", observed([first, *old, last], parts, links), loud=False)
    return row


def test_a_partition_that_moves_to_a_broker_that_is_out_of_reach() -> None:
    row = moved_to({"server_packets": 0, "ended": "open"})
    assert row["severity"] == "medium"
    assert "no write to 1 partition succeeded for up to 4.4 s" in row["sentence"], "up to the last connection that was tried"
    assert moved_to({"client_ip": "10.0.0.8"})["severity"] == "info", "the writer does not try: it may be done"
    assert moved_to({}, error="NONE")["severity"] == "info", "nothing says that the partition moved"


def test_what_is_no_broker_that_goes() -> None:
    assert seen_by({"server_ip": "10.0.0.7"}, 5.0, 14.0) == [], "it never answered"
    assert seen_by({"phase": "kafka", "server_packets": 5}, 5.0, 14.0) == [], "it accepts"
    assert seen_by({"began": "midstream"}, 5.0, 14.0) == []
    assert seen_by({"ended": "open"}, 5.0, 14.0) == [], "a SYN and ACK, and the capture ends or nothing follows"
    assert seen_by({"ended": "fin", "server_packets": 0}, 5.0, 14.0) == [], "the capture lacks what the server sent"


def test_a_broker_that_responds_while_it_accepts_no_connection() -> None:
    rows = [exchange("C1", at + 1, "Produce", at * 0.2) for at in range(60)]
    links = [CONNECTION | {"connection": "C1", "server_packets": 9}, *(refused(5.0 + at) for at in range(5))]
    assert found("broker-unavailable", observed(rows, connections=links), loud=False) == []
    quiet = [row for row in rows if not 5 * SECOND < row["response_last_ns"] - START < 9 * SECOND]
    assert len(found("broker-unavailable", observed(quiet, connections=links), loud=False)) == 1


def test_a_controller_is_called_one_and_clients_do_not_need_it() -> None:
    old = [exchange("C1", at + 1, "Fetch", at * 0.2, broker_id=11, client_id="raft-client-1") for at in range(20)]
    links = [refused(5.0 + at) for at in range(5)] + [CONNECTION | {"connection": "C1", "server_packets": 9}]
    (row,) = found("broker-unavailable", observed(old, connections=links), loud=False)
    assert row["sentence"].startswith("controller 10.0.0.1:9092 accepted no connection")
    assert "majority" in row["advice"]
