"""Times in which a broker takes no connections, and what they excuse."""

from kcap.reports.findings.outages import lasting, meanwhile, outages, restarted, unreachable
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, observed
from tests.reports.findings.test_refusing import refused

BROKER = "10.0.0.1", 9092


def restart(*more: Row, down: float = 3.0, refusals: int = 4) -> tuple[list[Row], list[Row], list[Row]]:
    """Exchanges, partitions and connections of a client that writes once a second, of a broker that is down from 5 s on."""
    rows = [exchange("C1", at, "Produce", at) for at in range(1, 6)]
    rows += [exchange("C2", at, "Produce", 5 + down + at) for at in range(1, 6)]
    rows += more
    parts = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
              "error": "NONE"} for row in rows]  # fmt: skip
    refusing = [refused(5.2 + at * (down - 0.3) / max(refusals - 1, 1)) for at in range(refusals)]
    links = [CONNECTION | {"connection": name, "server_packets": 9} for name in ("C1", "C2")] + refusing
    return rows, parts, links


def at(seconds: float) -> int:
    return START + int(seconds * SECOND)


def test_a_server_is_unreachable_from_its_last_response_to_the_last_connection_that_it_does_not_take() -> None:
    seen = observed(*restart())
    assert len(lasting(seen)) == 1
    assert unreachable(seen, *BROKER, at(4), at(6))
    assert unreachable(seen, *BROKER, at(7), at(20))
    assert not unreachable(seen, *BROKER, at(1), at(4.9))
    assert not unreachable(seen, *BROKER, at(9), at(20))
    assert not unreachable(seen, "10.0.0.2", 9092, at(4), at(6)), "another server"


def test_a_connection_that_a_busy_server_refuses_is_no_outage() -> None:
    seen = observed(*restart(down=0.5, refusals=1))
    assert len(outages(seen)) == 1
    assert lasting(seen) == []


def test_what_one_broker_alone_serves_before_and_behind_its_restart_did_not_move() -> None:
    seen = observed(*restart())
    assert seen.run(restarted(seen)) == [{"topic": "t", "partition": 0}]
    elsewhere = observed(*restart(exchange("C3", 1, "Produce", 7, server_ip="10.0.0.2")))
    assert elsewhere.run(restarted(elsewhere)) == [], "another broker serves it too"
    rows, parts, links = restart()
    gone = observed(rows[:5], parts[:5], links)
    assert gone.run(restarted(gone)) == [], "nothing shows that it serves it again"
    healthy = observed(rows, parts, links[:2])
    assert restarted(healthy) is None


def test_a_partition_without_records_that_one_broker_alone_is_asked_for_did_not_move_either() -> None:
    """Responses of a fetch session name no partition that has nothing new, and after a restart each names its error."""
    asked = [exchange("C1", 9, "Fetch", 4.9), exchange("C2", 9, "Fetch", 8.5)]

    def idle(*more: Row) -> list[Row]:
        rows, parts, links = restart()
        parts += [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 1, "topic": "idle", "partition": 0,
                   "error": "FENCED_LEADER_EPOCH"} for row in (*asked, *more)]  # fmt: skip
        seen = observed([*rows, *asked, *more], parts, links)
        assert found("not-leader", seen, loud=False) == [] or more
        return [row for row in seen.run(restarted(seen)) if row["topic"] == "idle"]

    assert len(idle()) == 1
    assert idle(exchange("C3", 1, "Fetch", 7, server_ip="10.0.0.2")) == [], "another broker is asked for it too"


def test_what_takes_as_long_as_an_outage_may_have_waited_for_the_server() -> None:
    seen = observed(*restart())
    (outage,) = lasting(seen)
    assert meanwhile(seen, at(5), at(8)) == outage
    assert meanwhile(seen, at(5), at(10.7)) == outage, "half of it"
    assert meanwhile(seen, at(5), at(12)) is None
    assert meanwhile(seen, at(1), at(4)) is None
    rows, parts, links = restart()
    assert meanwhile(observed(rows, parts, links[:2]), at(5), at(8)) is None, "there is no outage"
