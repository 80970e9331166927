"""Times in which a broker was away."""

from typing import Any

import pytest

from kcap.reports.findings.absences import CATCH_UP_NS, OUTAGE, STALL, STOPPING_NS, Absence, away_since, waited_for
from kcap.reports.findings.absences import absences as found_absences
from tests.reports.findings.tables import SECOND, Row, many, observed
from tests.reports.findings.test_stalls import HOSTS, paused

AWAY = Absence("10.0.0.1", 9092, 1, 100 * SECOND, 110 * SECOND, STALL, back=True)


def request(sent: float, waited: float, **more: Any) -> Row:
    return {
        "server_ip": "10.0.0.1", "server_port": 9092, "api": "Produce", "acks": 1, "request_last_ns": int(sent * SECOND),
        "age_ns": int(waited * SECOND), "latency_ns": None,
    } | more  # fmt: skip


def test_a_request_waited_for_a_broker_that_was_away_for_half_of_its_wait() -> None:
    assert waited_for(request(99, 4), [AWAY]) == AWAY
    assert waited_for(request(98, 4), [AWAY]) == AWAY, "half"
    assert waited_for(request(97, 4), [AWAY]) is None
    assert waited_for(request(105, 11), [AWAY]) is None
    assert waited_for(request(105, 4, age_ns=None, latency_ns=4 * SECOND), [AWAY]) == AWAY
    assert waited_for(request(105, 4, age_ns=None), [AWAY]) is None, "how long it waited is not known"


def test_another_broker_is_waited_for_by_writes_to_all_replicas_alone() -> None:
    other = request(101, 4, server_ip="10.0.0.2")
    assert waited_for(other, [AWAY]) is None
    assert waited_for(other | {"acks": -1}, [AWAY]) == AWAY
    assert waited_for(other | {"api": "OffsetCommit"}, [AWAY]) == AWAY
    own = AWAY._replace(ip="10.0.0.2", broker_id=2)
    assert waited_for(other | {"acks": -1}, [AWAY, own]) == own, "its own broker was away as well"


def test_replicas_of_a_broker_that_was_away_are_behind_around_that_time() -> None:
    since, until = AWAY.since - STOPPING_NS, AWAY.until + CATCH_UP_NS
    assert away_since([AWAY], 1, since, until)
    assert not away_since([AWAY], 1, since - 1, until), "they were behind before"
    assert not away_since([AWAY], 1, since, until + 1), "they stayed behind"
    assert not away_since([AWAY], 2, since, until), "another broker"
    assert not away_since([AWAY._replace(back=False)], 1, since, until), "it did not come back"


def test_the_longest_of_many_absences_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for number, until in ((1, 3.0), (2, 4.0), (3, 3.5)):
        names = {"connection": f"C{number}", "server_ip": f"10.0.0.{number}"}
        rows += [row | names for row in paused(until=until)]
    assert len(found_absences(observed(rows))) == 3
    monkeypatch.setattr("kcap.reports.findings.absences.ABSENCES_MOST", 2)
    seen = observed(rows)
    assert sorted(one.ip for one in found_absences(seen)) == ["10.0.0.2", "10.0.0.3"]
    assert seen.left_out == {"absences": 1}


def test_a_broker_that_stood_still_is_away_and_back_and_one_that_waits_for_others_is_not() -> None:
    (one,) = found_absences(observed(paused(HOSTS)))
    assert (one.server, one.rule, one.back, one.words) == (
        "10.0.0.1:9092", STALL, True, "broker 10.0.0.1:9092 sent no response to anyone",
    )  # fmt: skip
    assert found_absences(observed(paused(HOSTS, acks=-1))) == [], "its followers may be what stood still"
    assert found_absences(observed(many(50, 0.05))) == []
    assert one._replace(rule=OUTAGE).words == "broker 10.0.0.1:9092 accepted no connection"
