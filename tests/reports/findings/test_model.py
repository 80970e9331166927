"""Rules, and the words of findings."""

from types import SimpleNamespace
from typing import Any

import ibis
import pytest

from kcap.filter.parse import parse
from kcap.limits import FILTER_MAX, PICKED_MOST
from kcap.reports.findings import (
    model,
    report,  # noqa: F401 - enters the rules
)
from kcap.reports.findings.model import (
    CONNECTED_MOST,
    NAMES_MOST,
    NO_CLIENTS,
    NO_KAFKA,
    RULES,
    SEVERITIES,
    called,
    concerned,
    connected,
    erring,
    headline,
    in_versions,
    named,
    passed,
    rule,
    seconds,
    these,
    where,
)


def test_every_rule_says_what_it_looks_at_what_to_do_and_what_else_it_could_be() -> None:
    for one in RULES.values():
        assert one.severity in SEVERITIES
        assert 0 < one.confidence < 1
        assert min(len(one.looks_at), len(one.advice), len(one.instead)) > 10, one.id
        assert one.find.__doc__, one.id


def test_an_id_belongs_to_one_rule() -> None:
    with pytest.raises(ValueError, match="two rules"):
        rule("rebalance-loop", "high", 0.5, looks_at="", advice="", instead="")(lambda seen, limit: [])


def test_filters_are_filters_whatever_is_in_a_name() -> None:
    text = where("latency > 5ms", client_id='a"b\\c', server_port=9092, group_id=None)
    assert parse(text) is not None
    assert 'client_id == "a\\"b\\\\c"' in text


def test_an_id_that_stands_for_a_topic_is_looked_for_as_both() -> None:
    made = where("api == Fetch", topic="sG_dNxTWSoGd649vKyuR4w")
    assert made == '(topic == "sG_dNxTWSoGd649vKyuR4w" or topic_id == "sG_dNxTWSoGd649vKyuR4w") and api == Fetch'
    parse(made)
    assert where(topic="orders") == 'topic == "orders"'


def test_a_filter_is_no_longer_than_one_may_be_and_passes_more_instead() -> None:
    many = in_versions([{"api": "Fetch", "api_version": version} for version in range(FILTER_MAX)])
    assert where(many, "error != NONE", client_id="c") == 'client_id == "c" and error != NONE'
    assert where(many) == ""


def test_words() -> None:
    assert named(["a", "b"]) == "a, b"
    assert named(range(9), 2) == "0, 1 and 7 more"
    assert [seconds(ns) for ns in (1_500_000, 2_500_000_000, 250_000_000_000)] == ["2 ms", "2.5 s", "4m 10s"]


def test_requests_are_named_one_by_one_where_they_are_few_and_all_known() -> None:
    rows: list[dict[str, int | None]] = [{"request_first_packet": packet} for packet in (7, 3, 7)]
    assert where("api == EndTxn", these(rows)) == "api == EndTxn and request_first_packet in {3, 7}"
    unknown: list[dict[str, int | None]] = [*rows, {"request_first_packet": None}]
    for none in ([], unknown, rows * PICKED_MOST):
        assert where("api == EndTxn", these(none)) == "api == EndTxn"


def test_a_finding_says_how_many_exchanges_its_filter_passes_where_it_counts_others() -> None:
    assert passed({"count": 1, "course": [100, 56]}) == "156 exchanges; the count of the finding is 1"
    assert [passed({"count": 156, "course": [100, 56]}), passed({"count": 3, "course": []})] == ["", ""]


@pytest.mark.parametrize(
    ("severities", "said"),
    [
        ([], "no problem was found"),
        (["info", "info"], "no problem was found (2 info)"),
        (["low"], "1 finding: 1 low"),
        (["medium", "info"], "1 finding: 1 medium (1 info)"),
        (["high", "info", "medium", "medium"], "3 findings: 1 high, 2 medium (1 info)"),
    ],
)
def test_the_headline_counts_what_is_no_more_than_information_apart(severities: list[str], said: str) -> None:
    assert headline([{"severity": severity} for severity in severities]) == said


def test_connections_are_named_one_by_one_where_they_are_few() -> None:
    assert connected([{"connection": "C2"}, {"connection": "C1"}]) == 'connection in {"C1", "C2"}'
    assert connected([{"connection": f"C{at}"} for at in range(CONNECTED_MOST + 1)]) == ""


def test_clients_in_sentences() -> None:
    assert [called(name) for name in ("app", "", None)] == [
        "client app",
        "a client without a client id",
        "a client of unknown id",
    ]
    seen: Any = SimpleNamespace(clients_of=lambda **who: [f"{who['group_id']}-{at}" for at in range(NAMES_MOST + 9)])
    assert concerned({"client_id": "app", "group_id": "g"}, seen) == ["app"]
    assert concerned({"client_ids": ["a", "b"], "group_id": "g"}, seen) == ["a", "b"]
    assert len(concerned({"group_id": "g"}, seen)) == NAMES_MOST
    assert list(concerned({}, seen)) == []


def test_only_errors_that_are_there_are_named() -> None:
    seen: Any = SimpleNamespace(
        errors_of_partitions={"NOT_LEADER_OR_FOLLOWER"}, calls=[{"error": "NONE"}, {"error": "THROTTLED"}]
    )
    assert erring(seen, ["NOT_LEADER_OR_FOLLOWER", "THROTTLED"]) == "error in {NOT_LEADER_OR_FOLLOWER, THROTTLED}"
    assert erring(seen, ["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"]) == "error == NOT_LEADER_OR_FOLLOWER"
    assert erring(seen, ["FENCED_LEADER_EPOCH"]) == "error == FENCED_LEADER_EPOCH"


def test_the_headline_counts_by_severity_and_says_where_nothing_could_be_judged() -> None:
    rows = [{"severity": name} for name in ("high", "info", "low", "low")]
    assert headline(rows) == "3 findings: 1 high, 2 low (1 info)"
    assert headline([{"severity": "info"}]) == "no problem was found (1 info)"
    healthy = {"not_judged": {"slow-broker": "there is one broker"}, "judged": ["x"]}
    assert headline([], healthy) == "no problem was found"
    none = {"not_judged": {"slow-broker": NO_KAFKA}, "judged": []}
    assert headline([], none) == f"nothing could be judged: {NO_KAFKA}"
    assert headline([], none | {"judged": ["x"]}).startswith("no problem was found in what TLS shows without keys; ")
    brokers = {"not_judged": {"slow-broker": NO_CLIENTS}, "judged": ["x"]}
    assert headline([], brokers).startswith("no problem was found in what connections of brokers show; ")


@pytest.mark.parametrize("most", [0, PICKED_MOST])
def test_exchanges_of_groups_are_picked_with_one_query(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the packets of the groups that are asked for, where all together are few."""
    monkeypatch.setattr(model, "PICKED_MOST", most)
    rows = ibis.memtable({"client": ["a", "a", "b"], "request_first_packet": [5, 3, 9]})
    asked: list[Any] = []
    seen: Any = SimpleNamespace(run=lambda query: asked.append(query) or query.to_pyarrow().to_pylist())
    condition = model.picking(seen, rows, "client")
    groups = [{"client": "a", "n": 2}, {"client": "b", "n": 1}]
    found = [condition(groups[0]), condition(*groups)]
    wanted = ["request_first_packet in {3, 5}", "request_first_packet in {3, 5, 9}"]
    assert found == (wanted if most else ["", ""])
    assert len(asked) == (1 if most else 0)
