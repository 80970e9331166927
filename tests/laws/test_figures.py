"""A figure on the command line is that of the terminal UI: reports, findings, connections and versions of the same capture."""

import json
import time
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import pytest

from kcap.reports.definition import ReportRequest, report_of
from kcap.tui.status import Pulse, progress
from kcap.tui.versions_source import VersionsRequest
from tests.cli.running import PCAPS, run_here
from tests.tui.driving import book_of

CAPTURES = (
    "java-transactions.pcap", "quota-3.9.pcap", "broker-paused.pcap", "tls13.pcapng", "raw-frames.pcap",
    "problems/version-refused.pcap", "problems/tls-plaintext-confusion.pcap",
)  # fmt: skip
REPORTS = ("latency", "stats", "slow", "throttle", "errors", "topics", "clients")


HEADS = frozenset({"report", "captures", "health", "findings"})
"""Keys of a report on the command line that the terminal UI shows elsewhere."""


def on_the_command_line(command: str, capture: str) -> dict[str, Any]:
    _, text = run_here(command, str(PCAPS / capture), "--format", "json")
    made: dict[str, Any] = json.loads(text[text.index("{") :])
    return made


def plain(made: Any) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(made, default=str))


def waited(find: Callable[[], Any]) -> Any:
    """What is made in the background, once it is there."""
    for _ in range(1000):
        if (found := find()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("it is never made")


@pytest.mark.parametrize("capture", CAPTURES)
def test_reports_have_the_same_figures(capture: str) -> None:
    book = book_of(capture)
    waited(lambda: book.table("partitions"))
    for name in REPORTS:
        given = on_the_command_line(name, capture)
        top = len(given["rows"]) if name == "slow" else None
        shown = plain(book.report(report_of(name), ReportRequest(top=top)))
        keys = given.keys() - HEADS
        assert keys <= shown.keys(), name
        assert {key: shown[key] for key in keys} == {key: given[key] for key in keys}, name


@pytest.mark.parametrize("capture", CAPTURES)
def test_findings_connections_and_versions_have_the_same_figures(capture: str) -> None:
    book = book_of(capture)
    check = on_the_command_line("check", capture)
    shown = plain(waited(book.conclusions)["check"])
    for key in ("rows", "notes"):
        assert shown.get(key) == check.get(key)
    _, lines = run_here("connections", str(PCAPS / capture), "--format", "jsonl")
    connections = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    table = waited(lambda: book.table("connections")).to_pylist()
    for key in ("connection", "packets", "ended", "phase", "first_ns", "last_ns"):
        assert sorted(str(row[key]) for row in table) == sorted(str(row[key]) for row in connections)
    assert f"{len(connections)} connections" in progress(Pulse(), book, 120).plain
    versions = on_the_command_line("versions", capture)
    source = book.versions()
    assert source is not None
    made = source.page(VersionsRequest([PurePath(capture).name], versions["target"], "", ())).made
    for key in ("clients", "diagnoses", "brokers", "readiness"):
        assert plain(made[key]) == versions[key], key
