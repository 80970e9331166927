"""A side of a comparison says of each class what its exchanges are."""

from typing import Any

import pytest

from kcap.reports.diff.summaries import SCOPES, SLICES, summarized
from tests.reports.diff.pairs import capture, narrow, produce, side
from tests.reports.made import Row, engine


def test_every_scope_counts_every_exchange() -> None:
    made = side(capture(1))
    assert {scope for scope, _ in made.classes} == set(SCOPES)
    for scope in SCOPES:
        rows = [row for (one, _), row in made.classes.items() if one == scope]
        assert [row["count"] for row in rows] == [120]
        assert sum(rows[0]["slices"]) == 120
        assert len(rows[0]["slices"]) == SLICES


def test_times_are_without_long_polls_and_in_classes_of_two_percent() -> None:
    made = side([produce(at, 10, api="Fetch", long_poll_ns=6_000_000) for at in range(30)])
    row = made.classes["client", ("app", "Fetch")]
    assert row["p50_ns"] == 4_000_000
    assert row["service_p99_ns"] == 4_000_000
    (step,) = {row["step"] for row in made.times["client", ("app", "Fetch")]}
    assert 1.02**step <= 4_000_000 <= 1.02 ** (step + 1)


def test_settings_errors_and_sizes_stand_by_client() -> None:
    made = side([*capture(1, 10), produce(20, 1, error="NOT_LEADER_OR_FOLLOWER", error_code=6)])
    assert made.settings["codec", "app", None] == {"lz4": 11}
    assert made.settings["client-software", "app", None] == {"java 3.9": 11}
    assert made.settings["versions", "app", "Produce"] == {"9": 11}
    assert made.errors["app", "Produce", "NOT_LEADER_OR_FOLLOWER"] == {"n": 1, "topic": "orders"}
    assert sum(row["n"] for row in made.sizes["app",]) == 11


def test_nothing_is_a_side_too() -> None:
    made = side([])
    assert made.classes == {}
    assert made.span_ns == pytest.approx(1)


def test_the_order_of_an_engines_rows_does_not_matter() -> None:
    """DuckDB's threads return groups in an order of their own."""
    rows = [*capture(1), *capture(2, codecs=["none"])]

    def reversed_rows(expression: Any) -> list[Row]:
        return engine().rows(expression)[::-1]

    made = side(rows)
    assert len(made.times["client", ("app", "Produce")]) > 2
    assert summarized(reversed_rows, narrow(rows), ["a.pcap"]) == made
