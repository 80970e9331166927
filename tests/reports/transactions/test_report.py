"""Transactions of real captures are as the programs logged them."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kcap.reports.source import ReportInput
from kcap.reports.transactions.report import transactions
from tests.cli.running import PCAPS
from tests.support.clusters import CLUSTER, twice


@cache
def of(name: str) -> dict[str, Any]:
    made: dict[str, Any] = transactions(ReportInput([str(PCAPS / "problems" / f"{name}.pcap")]))
    return made


def test_committed_and_aborted_as_the_program_did() -> None:
    (row,) = of("aborted-transactions")["transactional_ids"]
    assert (row["transactional_id"], row["committed"], row["aborted"], row["open"]) == ("transfer-tx", 12, 12, 0)
    first = of("aborted-transactions")["rows"][0]
    assert abs(first["begin_ns"] / 1e9 - 1795334300.789) < 0.05
    assert (first["outcome"], first["records"]) == ("committed", 8)
    assert first["partitions"] == ["shop.transfers/0", "shop.transfers/1"]


def test_the_transaction_that_a_dead_producer_left_is_open() -> None:
    assert [row["outcome"] for row in of("hanging-transaction")["rows"]] == ["committed"] * 3 + ["open"]
    assert of("hanging-transaction")["rows"][-1]["records"] == 10


def test_zombies_are_fenced_and_named() -> None:
    made = of("zombie-fenced")
    assert [row["outcome"] for row in made["rows"]] == ["fenced"] * 5 + ["committed"]
    assert [row["client_id"] for row in made["fences"]] == ["room-a", "room-b", "room-a", "room-b", "room-a"]
    assert [one["producer_epoch"] for one in made["transactional_ids"][0]["producers"]] == [0, 2, 4, 6, 8, 10]


def test_ids_of_one_name_in_two_clusters_fence_nothing(tmp_path: Path) -> None:
    path = twice(PCAPS / "problems" / "aborted-transactions.pcap", tmp_path / "two.pcap", 2)
    made, alone = transactions(ReportInput([str(path)])), of("aborted-transactions")
    clusters = CLUSTER.decode(), CLUSTER[::-1].decode()
    for cluster in clusters:
        rows = [row for row in made["rows"] if row["cluster_id"] == cluster]
        assert [(row["outcome"], row["duration_ns"], row["records"]) for row in rows] == [
            (row["outcome"], row["duration_ns"], row["records"]) for row in alone["rows"]
        ]
    assert {row["cluster_id"] for row in made["transactional_ids"]} == set(clusters)
    assert made["fences"] == []
    assert "cluster_id" not in alone["rows"][0]


def test_rows_have_the_keys_of_the_contract() -> None:
    keys = "transactional_id client_id producer_id producer_epoch begin_ns end_ns duration_ns outcome partitions records bytes"
    assert {*keys.split(), "group_id", "coordinator"} <= of("zombie-fenced")["rows"][0].keys()


@pytest.mark.parametrize("most", [0, 3])
def test_partitions_beyond_the_first_are_counted_and_not_named(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    whole = of("aborted-transactions")  # kept for other tests: made without the bound
    monkeypatch.setattr("kcap.reports.transactions.report.TRANSACTION_PARTITIONS_MAX", most)
    made = transactions(ReportInput([str(PCAPS / "problems" / "aborted-transactions.pcap")]))
    assert made["left_out"]["transaction_partitions"] > 0
    assert sum(len(row["partitions"]) for row in made["rows"]) <= most
    same = [(row["records"], row["bytes"], row["outcome"]) for row in whole["rows"]]
    assert [(row["records"], row["bytes"], row["outcome"]) for row in made["rows"]] == same
    assert "transaction_partitions" not in whole["left_out"]


def test_only_some_ids() -> None:
    path = str(PCAPS / "problems" / "zombie-fenced.pcap")
    assert transactions(ReportInput([path]), ["other"])["rows"] == []
