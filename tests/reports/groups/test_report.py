"""Groups of real captures are as the programs logged them."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kcap.reports.groups import events
from kcap.reports.groups.report import groups
from kcap.reports.source import ReportInput
from kcap.reports.text import left_out
from tests.cli.running import PCAPS
from tests.support.clusters import CLUSTER, twice

LANES = {"lane-1": 3, "lane-2": 5, "lane-3": 7, "lane-4": 9, "lane-5": 11, "lane-6": 13}
"""Client -> member epoch, as its own log has it."""


@cache
def of(name: str) -> dict[str, Any]:
    made: dict[str, Any] = groups(ReportInput([str(PCAPS / "problems" / f"{name}.pcap")]))
    return made


def test_every_member_has_the_epoch_and_the_time_of_its_own_log() -> None:
    (row,) = of("rebalance-loop-848")["rows"]
    assert (row["protocol"], row["coordinator"], row["commits"]) == ("consumer", "127.2.0.12:9092", 9)
    epochs = {member["client_id"]: member["assignments"][0]["generation"] for member in row["members"]}
    assert epochs == LANES | {"lane-0": 2}
    joins = {one["who"][0]: one["generation"] for one in row["rebalances"] if one["cause"] == "join"}
    assert joins == epochs
    lane4 = next(member for member in row["members"] if member["client_id"] == "lane-4")
    assert abs(lane4["assignments"][0]["time_ns"] / 1e9 - 1795334077.778) < 0.25
    assert lane4["assignments"][0]["topics"] == {"shop.lanes": [2, 3]}


def test_starts_of_a_static_member_are_members_fences_and_one_rebalance() -> None:
    (row,) = of("static-member-fenced")["rows"]
    assert [member["client_id"] for member in row["members"]] == ["ledger-east", "ledger-west"] * 2
    assert [one["client_id"] for one in row["fences"]] == ["ledger-east", "ledger-west", "ledger-east"]
    assert [one["cause"] for one in row["rebalances"]] == ["join"]
    assert (row["protocol"], row["commits"], row["commit_errors"]) == ("classic", 2, 0)


def test_groups_of_one_name_in_two_clusters_are_two(tmp_path: Path) -> None:
    path = twice(PCAPS / "problems" / "rebalance-loop-848.pcap", tmp_path / "two.pcap", 1)
    rows = {row["cluster_id"]: row for row in groups(ReportInput([str(path)]))["rows"]}
    (alone,) = of("rebalance-loop-848")["rows"]
    assert {name: row["coordinator"] for name, row in rows.items()} == {
        CLUSTER.decode(): "127.2.0.12:9092", CLUSTER[::-1].decode(): "127.9.0.12:9092",
    }  # fmt: skip
    for row in rows.values():
        for name in ("commits", "lost_ns", "protocol", "lag_last"):
            assert row[name] == alone[name]
        for name in ("cause", "generation", "duration_ns", "lost_ns"):
            assert [one[name] for one in row["rebalances"]] == [one[name] for one in alone["rebalances"]]
    assert "cluster_id" not in alone


def test_rows_have_the_keys_of_the_contract() -> None:
    (row,) = of("static-member-fenced")["rows"]
    keys = {"group_id", "protocol", "coordinator", "members", "rebalances", "commits", "commit_errors", "lag_last"}
    assert keys <= row.keys()
    keys = {"cause", "who", "first_ns", "last_ns", "duration_ns", "generation", "waited_for", "lost_ns"}
    assert keys <= row["rebalances"][0].keys()


def test_only_some_groups_and_none() -> None:
    path = str(PCAPS / "problems" / "static-member-fenced.pcap")
    assert groups(ReportInput([path]), ["other"])["rows"] == []


def test_what_a_bound_leaves_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(sorted(path.name for path in (PCAPS / "problems").glob("rebalance-loop*.pcap"))))
    whole = groups(ReportInput([str(PCAPS / "problems" / name)]))
    monkeypatch.setattr(events, "GROUP_EVENTS_MAX", 5)
    cut = groups(ReportInput([str(PCAPS / "problems" / name)]))
    assert whole["left_out"] == {}
    assert cut["left_out"]["group_changes"] > 0
    assert left_out(cut["left_out"]).startswith(f"not counted: {cut['left_out']['group_changes']:,} request")


def test_a_group_at_work_has_its_members_though_none_joins() -> None:
    """They send heartbeats alone, as workers of Kafka Connect, and commits."""
    rows = {row["group_id"]: row for row in of("healthy-steady-workers")["rows"]}
    assert {name: [one["client_id"] for one in row["members"]] for name, row in rows.items()} == {
        "connect-cluster": ["worker-1", "worker-2"], "connect-dlq": ["connector-consumer-dlq-0"],
    }  # fmt: skip
    workers = rows["connect-cluster"]
    assert (workers["protocol"], workers["coordinator"], workers["rebalances"]) == ("classic", "127.61.0.1:9092", [])
    assert all(one["last_ns"] - one["first_ns"] > 9 * 10**9 for one in workers["members"])
    assert rows["connect-dlq"]["commits"] == 3
