"""Rows that stand out."""

import pyarrow as pa
import pytest

from kcap.filter.parse import parse
from kcap.filter.row_predicate import condition
from kcap.table.arrow_filter import mask
from kcap.tui.capture_model import read_whole
from kcap.tui.color_rules import DEFAULTS, ERROR, FAILING, TREES, UNANSWERED, apply, columns, rules_of
from tests.tui.conftest import PCAPS


@pytest.mark.parametrize("name", ["quota-3.9.pcap", "broker-paused.pcap", "long-polls.pcap"])
def test_the_first_rule_that_holds_counts(name: str) -> None:
    """Law: as the filter says of each row on its own."""
    rules, _ = rules_of([{"name": "mine", "filter": "api == ApiVersions", "sign": "A", "tone": "key"}])
    with read_whole(str(PCAPS / name)) as book:
        table = book.exchanges()
        rows = table.to_pylist()
    chosen = apply(rules, {name: [row[name] for row in rows] for name in columns(rules)}, len(rows))
    wanted = [next((rule for rule in rules if condition(rule.tree)(row)), None) for row in rows]
    assert chosen == wanted
    assert any(chosen)


def test_rules_that_are_spelled_out_are_their_filters() -> None:
    assert {text: parse(text) for _, text, _, _ in DEFAULTS} == TREES
    assert parse(f"({ERROR}) || {UNANSWERED}") == FAILING


def test_every_rule_has_a_sign() -> None:
    assert all(len(sign) == 1 and sign != " " for _, _, sign, _ in DEFAULTS)
    assert len({sign for _, _, sign, _ in DEFAULTS}) == len(DEFAULTS)


def test_rules_of_the_user_come_first_and_wrong_ones_are_told() -> None:
    rules, wrong = rules_of([
        {"name": "a", "filter": "api == Fetch"},
        {"name": "b", "filter": "api =="},
        {"name": "c", "filter": ""},
        {"name": "d", "filter": "latency", "tone": "pink"},
        {"name": "e", "filter": "request.topics.partitions.fetch_offset > 1"},
    ])  # fmt: skip
    assert [rule.name for rule in rules][:2] == ["a", DEFAULTS[0][0]]
    assert [line.split(":")[0] for line in wrong] == ["rule 'b'", "rule 'c'", "rule 'd'", "rule 'e'"]


def test_no_rows() -> None:
    rules, _ = rules_of(())
    assert apply(rules, {name: [] for name in columns(rules)}, 0) == []


def test_the_answer_that_brings_a_member_its_id_is_no_error() -> None:
    """KIP-394: each new member of a group gets MEMBER_ID_REQUIRED first."""
    rules, _ = rules_of([])
    batch = pa.record_batch({"error": ["MEMBER_ID_REQUIRED", "NOT_COORDINATOR", "NONE", None]})
    held = [next(rule.name for rule in rules[:2] if mask(rule.tree, batch)[at]) for at in range(2)]
    assert held == ["new member", "error"]
