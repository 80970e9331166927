"""Both sides of a proxy in one capture: which connections carry on others, and what rules say of the clients' side alone."""

import pytest

from kcap.reports.findings.proxies import carried
from kcap.reports.findings.report import check
from tests.reports.findings.scenes.proxies import BACK, FRONT, both, side, tables
from tests.reports.findings.tables import MS, found, observed


def test_a_chain_of_proxies_is_told_pair_by_pair() -> None:
    seen = tables(
        side("A", "10.0.0.7", 1, 12, 0.1), side("B", "10.0.0.8", 1, 12, 0.08, 0.01), side("C", "10.0.0.9", 1, 12, 0.06, 0.02)
    )
    assert [(one.front[0], one.back[0]) for one in carried(seen)] == [("10.0.0.7", "10.0.0.8"), ("10.0.0.8", "10.0.0.9")]


@pytest.mark.parametrize(
    "back",
    [
        side("B", BACK, 1, 9, 0.01, 0.01),
        side("B", BACK, 1, 12, 0.01, 0.095),
        side("B", BACK, 1, 12, 0.01, -0.001),
        side("B", FRONT, 1, 12, 0.01, 0.01),
        side("B", BACK, 1, 12, 0.01, 0.01, client_id="other"),
    ],
    ids=["fewer requests", "answered later", "sent earlier", "one server", "another client"],
)
def test_requests_that_are_not_those_of_the_other_prove_nothing(back: object) -> None:
    assert carried(tables(side("A", FRONT, 1, 12, 0.1), back)) == ()  # type: ignore[arg-type]


def test_one_server_leads_a_partition_at_a_time() -> None:
    """A client that does alike at two brokers, of which one is always quicker."""
    twins = both("C", 1, 12, 0.1, 0.05)
    assert len(carried(tables(*twins))) == 1
    rows = [row for _, some in twins for row in some]
    parts = [
        {"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "error": "NONE",
         "partition": int(row["connection"] == "CB"), "base_offset": row["exchange"]}
        for row in rows
    ]  # fmt: skip
    assert carried(observed(rows, parts, [link for link, _ in twins])) == ()
    assert carried(observed(rows, [], [link for link, _ in twins])) == (), "nothing is known of what they write"


def test_connections_that_began_before_the_capture_have_no_order() -> None:
    """The proxy's side is seen first, with a request more at its beginning."""
    (front, asked), (back, sent) = both("C", 1, 14, 0.1, 0.05, began="midstream")
    late = [row | {"exchange": row["exchange"] - 1} for row in asked[1:]]
    parts = [
        {"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "error": "NONE",
         "partition": 0, "base_offset": row["request_first_ns"] // (900 * MS)}
        for row in (*late, *sent)
    ]  # fmt: skip
    links = [front | {"exchanges": 13, "first_ns": front["first_ns"] + 90 * MS}, back]
    (one,) = carried(observed([*late, *sent], parts, links))
    assert (one.connections, len(one.own)) == (("CB",), 13)


def test_connections_of_few_requests_prove_nothing_by_themselves_and_go_with_one_of_many() -> None:
    few = both("C", 1, 9, 0.1, 0.05)
    assert carried(tables(*few)) == ()
    (one,) = carried(tables(*few, *both("D", 2, 10, 0.1, 0.05)))
    assert (one.connections, one.exchanges) == (("CB", "DB"), 19)


def test_a_request_that_the_proxy_answers_no_more_is_carried_on_all_the_same() -> None:
    (front, asked), back = both("C", 1, 12, 0.1, 0.05)
    lost = asked[-1] | {"outcome": "unanswered", "response_first_ns": None, "response_last_ns": None, "latency_ns": None}
    (one,) = carried(tables((front, [*asked[:-1], lost]), back))
    assert len(one.own) == 11
    assert one.own[0] == 50 * MS


def test_rules_look_at_the_clients_side_alone() -> None:
    """A slow proxy is no slow broker beside the one behind it."""
    slow = both("C", 1, 40, 0.3, 0.295)
    assert found("slow-broker", tables(*slow)) == []
    (row,) = check(tables(*slow))["rows"]
    assert (row["id"], row["severity"], row["lost_ns"]) == ("proxy-both-sides", "medium", 40 * 295 * MS)
    apart = [side("F", FRONT, 1, 40, 0.3), side("B", BACK, 1.5, 40, 0.005)]
    assert [row["who"]["server"] for row in found("slow-broker", tables(*apart))] == [f"{FRONT}:9092"]
