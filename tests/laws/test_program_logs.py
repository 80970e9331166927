"""Groups and transactions as kcap tells them, against what the programs in the captures logged themselves."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcap.reports.definition import ReportRequest
from kcap.reports.groups.report import groups
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.topics import REPORT as TOPICS
from kcap.reports.transactions.report import transactions
from tests.laws.test_findings import SHARED

CAPTURES = SHARED / "captures"
AHEAD, LATE = 0.05, 0.6
"""Seconds by which a program's log may be ahead of the packet and behind it."""
Logs = list[dict[str, Any]]


def logs(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """The parts of a manifest's entry that have a key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from logs(one, key)


def logged(folder: str, key: str) -> list[Any]:
    """Captures of a folder whose programs logged something."""
    path = CAPTURES / folder / "manifest.json"
    entries = json.loads(path.read_text())["captures"] if path.is_file() else []
    found = []
    for entry in entries:
        truth = list(logs(entry.get("truths") or entry.get("truth"), key))
        if truth and isinstance(entry["file"], str) and entry.get("encrypted") is None and "tls" not in entry["file"]:
            found.append(pytest.param(CAPTURES / folder / entry["file"], truth, id=entry["file"]))
    return found or [pytest.param(None, [], marks=pytest.mark.skip("the captures are not here"))]


def by_topic(names: list[str]) -> dict[str, list[int]]:
    """`topic-0`, `topic-1` -> topic -> partitions."""
    out: dict[str, list[int]] = {}
    for name in names:
        topic, _, number = name.rpartition("-")
        out.setdefault(topic, []).append(int(number))
    return {topic: sorted(numbers) for topic, numbers in sorted(out.items())}


def assigned(log: dict[str, Any]) -> dict[str, Logs]:
    """Member id -> the assignments that its consumer was told: time, generation, topics."""
    held: set[str] = set()
    out: dict[str, Logs] = {}
    for event in log["events"] or []:
        if event["event"] == "assigned":
            held |= set(event["partitions"])
            step = {"at": event["t"], "generation": event.get("generation"), "topics": by_topic(sorted(held))}
            out.setdefault(event.get("member_id") or "", []).append(step)
        elif event["event"] in ("revoked", "lost"):
            held -= set(event["partitions"])
    return out


@pytest.mark.parametrize(("path", "truth"), logged("problems", "events"))
def test_members_have_the_assignments_that_their_consumers_logged(path: Path, truth: Logs) -> None:
    """Every assignment with its generation and time, and no other; librdkafka logs no generation."""
    rows = groups(ReportInput([str(path)]))["rows"]
    members = {member["member_id"]: (row, member) for row in rows for member in row["members"]}
    for log in truth:
        for name, steps in assigned(log).items():
            row, member = members[name]
            reported = [one for one in member["assignments"] if one["topics"]]
            said = [one for one in steps if one["topics"]]
            assert (row["group_id"], member["client_id"]) == (log["group"], log["client_id"])
            assert [one["topics"] for one in reported] == [one["topics"] for one in said]
            for one, other in zip(reported, said, strict=True):
                assert other["generation"] in (None, one["generation"])
                assert -AHEAD <= other["at"] - one["time_ns"] / 1e9 <= LATE


@pytest.mark.parametrize(("path", "truth"), logged("legacy", "rebalances"))
def test_consumers_of_old_releases_got_the_assignments_that_they_logged(path: Path, truth: Logs) -> None:
    said: Counter[str] = Counter()
    reported: Counter[str] = Counter()
    clients = {(log.get("group"), log.get("client_id")) for log in truth}
    for log in truth:
        for text in log["rebalances"]:
            what, _, names = text.partition(" ")
            if what == "assigned" and names != "[]":
                said[f"{log.get('group')} {log.get('client_id')} {by_topic(names.strip('[]').split(', '))}"] += 1
    for row in groups(ReportInput([str(path)]))["rows"]:
        for member in row["members"]:
            if (row["group_id"], member["client_id"]) in clients:
                some = [dict(sorted(one["topics"].items())) for one in member["assignments"] if one["topics"]]
                reported.update(f"{row['group_id']} {member['client_id']} {topics}" for topics in some)
    assert reported == said


def outcomes(log: dict[str, Any]) -> Counter[str]:
    """Outcome -> transactions, as a producer logged them."""
    if "transactions_committed" in log:
        return Counter(committed=log["transactions_committed"], aborted=log["transactions_aborted"])
    names = {"commit": "committed", "abort": "aborted", "none": "open", "left open": "open"}
    return Counter(names.get(one["end"], one["end"]) for one in log["transactions"])


TRANSACTIONS = [
    *logged("problems", "transactions"), *logged("modern", "transactions_committed"), *logged("legacy", "transactions"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "truth"), TRANSACTIONS)
def test_transactions_end_as_their_producers_logged(path: Path, truth: Logs) -> None:
    """What a producer left open is open, or ended by another: its own close() aborts it since 2.4, else the broker does."""
    said: dict[str, Counter[str]] = {}
    for log in truth:
        name = log.get("transactional_id") or log["args"]["tid"]
        said[name] = said.get(name, Counter()) + outcomes(log)
    found = {row["transactional_id"]: row for row in transactions(ReportInput([str(path)]))["transactional_ids"]}
    for name, counts in said.items():
        row = found[name]
        assert (row["committed"], row["transactions"]) == (counts["committed"], counts.total())
        assert counts["aborted"] <= row["aborted"] <= counts["aborted"] + counts["open"]


@pytest.mark.parametrize(("path", "truth"), logged("problems", "commit_calls"))
def test_commits_are_those_that_consumers_made(path: Path, truth: Logs) -> None:
    """As many as the programs asked for, where they asked; and the last offset of each partition is the consumer's position, to
    which it commits when it closes: behind a transaction one more, for the marker that ends it."""
    rows = {row["group_id"]: row for row in groups(ReportInput([str(path)]))["rows"]}
    lags = run(TOPICS, ReportInput([str(path)]), ReportRequest())["lags"]
    committed = {(row["group_id"], f"{row['topic']}/{row['partition']}"): row["committed_offset"] for row in lags}
    markers = bool(transactions(ReportInput([str(path)]))["rows"])
    positions: dict[tuple[str, str], int] = {}
    calls: Counter[str] = Counter()
    for log in truth:
        calls[log["group"]] += log["commit_calls"]
        for place, position in log["positions"].items():
            key = log["group"], place
            positions[key] = max(positions.get(key, 0), position)
    for group, count in calls.items():
        if count:
            assert (rows[group]["commits"], rows[group]["commit_errors"]) == (count, 0)
    for key, position in positions.items():
        if key[0] in rows:  # a consumer that never commits has no group for the broker
            assert 0 <= committed[key] - position <= markers, key
