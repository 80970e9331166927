"""Rules, and the words of findings."""

import pytest

from kcap.filter.parse import parse
from kcap.limits import FILTER_MAX, PICKED_MOST
from kcap.reports.findings import report  # noqa: F401 - enters the rules
from kcap.reports.findings.model import RULES, SEVERITIES, headline, in_versions, named, passed, rule, seconds, these, where


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
