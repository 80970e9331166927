"""Produce requests with acks=0 that a broker refuses."""

from kcap.reports.findings.report import check
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, exchange, found, observed


def test_a_broker_that_closes_behind_requests_without_a_response_has_refused_them() -> None:
    """The client is not to blame for its many connections with one request each."""
    rows, links = [], []
    for at in range(24):
        name, first = f"D{at}", START + at * SECOND // 4
        rows.append(exchange(name, 1, "Produce", at / 4, None, outcome="one_way", error=None, record_count=1))
        links.append(CONNECTION | {"connection": name, "closed_by": "server", "first_ns": first - MS, "last_ns": first + MS,
                                   "closed_ns": first + MS, "exchanges": 1})  # fmt: skip
    more = [exchange("M", number, "Metadata", at) for number, at in enumerate((0, 6), 1)]
    seen = observed([*rows, *more], connections=[*links, CONNECTION | {"connection": "M"}])
    assert [row["id"] for row in check(seen)["rows"]] == ["closed-at-request"]
    by_client = [link | {"closed_by": "client"} for link in links]
    seen = observed([*rows, *more], connections=[*by_client, CONNECTION | {"connection": "M"}])
    assert {row["id"] for row in check(seen)["rows"]} == {"connection-churn", "producer-per-record"}
    idle = [link | {"closed_ns": link["closed_ns"] + SECOND, "last_ns": link["last_ns"] + SECOND} for link in links]
    assert found("closed-at-request", observed([*rows, *more], connections=idle)) == [], "it does so to idle ones"


def test_a_few_closed_connections_of_many_requests_are_no_refusals() -> None:
    """A proxy that ends each connection after some time ends it behind some request."""
    rows, links = [], [CONNECTION | {"connection": "M"}]
    for at in range(8):
        rows += [exchange(f"D{at}", number + 1, "Produce", at + number / 10, None, outcome="one_way") for number in range(9)]
        links.append(CONNECTION | {"connection": f"D{at}", "closed_by": "server", "closed_ns": START + (at + 1) * SECOND})
    more = [exchange("M", number, "Metadata", at) for number, at in enumerate((0, 9), 1)]
    assert found("closed-at-request", observed([*rows, *more], connections=links)) == []
