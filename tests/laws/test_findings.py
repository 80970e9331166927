"""Findings on real captures: what was planted is found and named, and healthy traffic is left alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kcap.filter.parse import parse
from kcap.reports.diff.report import diff
from kcap.reports.findings.model import passed
from kcap.reports.findings.report import check
from kcap.reports.findings.source import observed
from kcap.reports.source import ReportInput
from kcap.tui.capture_model import read_whole

ROOT = Path(__file__).resolve().parents[2]
PCAPS, SHARED = ROOT / "pcaps", ROOT.parent / "shared"
HEALTHY = (
    "java-transactions", "librdkafka-zstd", "aiokafka", "go-franz", "node-platformatic", "long-polls", "left-behind-a-poll",
    "left-before-records",
    "no-fetch-sessions", "one-election", "new-topics", "connect-starts", "not-yet-leader", "platformatic-transactions",
)  # fmt: skip
"""Captures of pcaps/ in which clients did what they should."""
FOLDERS = [PCAPS / "problems", SHARED / "captures" / "problems"]


def captures() -> list[Any]:
    """Every capture with its planted problems: a copy in the project, all of them where they are at hand."""
    out = []
    for folder in FOLDERS:
        if not (folder / "manifest.json").is_file():
            continue
        for entry in json.loads((folder / "manifest.json").read_text())["captures"]:
            copied = folder is not FOLDERS[0] and (FOLDERS[0] / entry["file"]).exists()
            if not copied and not entry["file"].startswith("diff-"):
                marks = () if folder is FOLDERS[0] else (pytest.mark.slow,)
                out.append(pytest.param(folder, entry, id=f"{folder.parent.name}-{entry['file']}", marks=marks))
    return out


def findings(path: Path) -> list[dict[str, Any]]:
    with observed(ReportInput([str(path)])) as seen:
        rows: list[dict[str, Any]] = check(seen)["rows"]
    return rows


@pytest.mark.parametrize(("folder", "entry"), captures())
def test_what_was_planted_is_found_and_healthy_traffic_is_silent(folder: Path, entry: dict[str, Any]) -> None:
    rows = findings(folder / entry["file"])
    loud = [row for row in rows if row["severity"] != "info"]
    for row in rows:
        assert not row["filter"] or parse(row["filter"]) is not None, row["id"]
    if not entry.get("problems"):
        assert loud == []
    for problem in entry.get("problems") or ():
        if problem["who"] == "new-app":
            continue  # a TLS client at a plaintext port never gets to say its name
        who = [problem["who"]] if isinstance(problem["who"], str) else problem["who"]
        names = [re.sub(r"\s*\(.*?\)", "", name) for name in who]
        among = rows if problem["id"] == "throttled-obedient" else loud
        said = [json.dumps(row["who"]) for row in among if row["id"] == problem["id"]]
        assert any(name in text for name in names for text in said), [(row["id"], row["who"]) for row in rows]


def test_a_broker_that_waits_for_the_replicas_of_a_stopped_one_is_not_accused() -> None:
    rows = [row for row in findings(FOLDERS[0] / "broker-stall-replicas.pcap") if row["severity"] != "info"]
    assert [(row["id"], row["who"]["server"]) for row in rows] == [("broker-stall", "127.4.0.2:9092")]


@pytest.mark.parametrize(
    ("name", "rules"),
    [("broker-stall-members", ["broker-stall", "request-timeout"]), ("broker-restarted", ["broker-unavailable"])],
)
def test_members_and_producers_are_not_accused_of_what_their_only_broker_does(name: str, rules: list[str]) -> None:
    """Their library, their process and their topic's leaders were as they should be; a producer did not wait for so long."""
    assert [row["id"] for row in findings(FOLDERS[0] / f"{name}.pcap") if row["severity"] != "info"] == rules


ONE_CAUSE = {
    "broker-killed": ["broker-unavailable", "retries-duplicate", "request-timeout"],
    "broker-stall-clients": ["broker-stall", "retries-duplicate", "request-timeout"],
    "broker-cut-off": ["path-interrupted", "sequence-errors"],
    "commit-each": ["commit-storm"],
    "rebalance-waits": ["rebalance-slow"],
    "retries-late": ["broker-stall", "retries-duplicate", "request-timeout"],
    "topic-deleted": ["unknown-topic-loop", "metadata-storm"],
    "transaction-blocks-readers": ["hanging-transaction", "stuck-partition"],
}  # fmt: skip
"""Captures in which one cause hits many clients -> the findings above `info`, of which the first names the cause."""


@pytest.mark.parametrize("name", ONE_CAUSE)
def test_one_cause_is_one_finding_and_what_follows_from_it_stands_below(name: str) -> None:
    rows = [row for row in findings(FOLDERS[0] / f"{name}.pcap") if row["severity"] != "info"]
    assert [row["id"] for row in rows] == ONE_CAUSE[name]
    if "request-timeout" in ONE_CAUSE[name]:
        server = rows[0]["who"]["server"]
        assert (rows[-1]["severity"], rows[-1]["who"]["server"]) == ("low", server)
        assert (rows[-1]["evidence"]["explained_by"], server in rows[-1]["sentence"]) == (rows[0]["id"], True)


EXACT = frozenset({
    "aborted-transactions", "authentication-failed-loop", "authorization-denied", "broker-stall", "client-clock-skew",
    "closed-at-once", "closed-at-request", "commit-failed", "coordinator-moves", "head-of-line", "leader-change",
    "not-leader", "offset-out-of-range", "not-enough-replicas", "request-timeout", "unknown-topic-loop",
    "sasl-mechanism-mismatch", "server-not-kafka", "static-member-fenced", "throttled-disobedient", "version-refused",
    "zombie-fenced",
})  # fmt: skip
"""Rules that count exchanges which a filter can pick."""
OF_BATCHES = frozenset({"message-too-large", "sequence-errors"})
"""Rules that count batches of Produce requests which a filter can pick: a request may have several."""


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDERS[0].glob("*.pcap"))])
def test_a_filter_passes_what_the_finding_counts_or_the_finding_says_how_many_it_passes(name: str) -> None:
    with read_whole(str(FOLDERS[0] / name)) as book:
        rows = book.snapshot()
        for row in findings(FOLDERS[0] / name):
            tree = parse(row["filter"])
            if tree is None:
                continue
            passes = len(rows.passing(tree))
            assert not re.search("error (!=|contains)", row["filter"]), "errors that the rule does not look at pass as well"
            if row["id"] in EXACT:
                assert passes == row["count"], row["filter"]
            if row["id"] in OF_BATCHES:
                assert 0 < passes <= row["count"], row["filter"]
            said = passed(row)
            assert said.startswith(f"{passes:,} exchange") if passes != row["count"] else said == "", row["filter"]


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_clients_are_left_alone(name: str) -> None:
    assert [row for row in findings(PCAPS / f"{name}.pcap") if row["severity"] != "info"] == []


def test_an_upgrade_that_a_client_does_not_survive_is_a_difference_of_unanswered_requests() -> None:
    """No response says so: Kafka 4.0 closes the connection at Produce v2 (KIP-896)."""
    rows = diff(*(ReportInput([str(PCAPS / f"upgrade-{release}.pcap")]) for release in ("3.9", "4.0")))["rows"]
    (row,) = [row for row in rows if row["significant"]]
    assert (row["what"], row["who"]) == ("unanswered", {"client_id": "p-0.10.2.2", "api": "Produce"})
    assert (row["before"]["count"], row["after"]) == (0, {"count": 45, "exchanges": 45})
