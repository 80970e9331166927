"""What holds of the commands of all reports."""

import json
from typing import Any

import pytest

from kcap.cli.main import main
from tests.cli.running import PCAPS

COLUMNS = {
    "latency": "api count unanswered min_ns p50_ns p90_ns p95_ns p99_ns p999_ns max_ns sum_ns "
    "with_polls_p99_ns with_polls_max_ns rtt_ns_sum queue_ns_sum "
    "service_ns_sum long_poll_ns_sum",
    "stats": "api api_version client_id count share errors request_bytes response_bytes sum_ns p95_ns max_ns worst",
    "slow": "exchange time api client_id server_ip latency_ns rtt_ns queue_ns service_ns long_poll_ns throttle_ns muted_ns why",
    "throttle": "client_ip client_id api responses throttled throttle_ms_sum throttle_ms_max delayed violations complied "
    "obeys elsewhere earliest_ms muted_ns_sum",
    "errors": "error api client_id count first_ns last_ns example",
    "topics": "topic produce_clients fetch_clients groups produce_requests fetch_requests records_in bytes_in records_out "
    "bytes_out codecs magics timestamp_types lag_last lag_max",
    "clients": "client_ip client_id software_name software_version connections requests apis topics_in topics_out groups "
    "principals errors throttled unanswered",
}
"""Report -> the columns that its rows must have."""


def json_of(capsys: pytest.CaptureFixture[str], report: str, capture: str, *options: str) -> dict[str, Any]:
    """The JSON of a report over a capture of the project."""
    assert main([report, str(PCAPS / capture), "--format", "json", *options]) == 0
    reported: dict[str, Any] = json.loads(capsys.readouterr().out)
    return reported


def follows_the_contract(report: str, reported: dict[str, Any]) -> None:
    """report, captures, rows, left_out; each row has the columns of its report; what is left out says how many."""
    assert reported["report"] == report
    assert reported["captures"]
    assert reported["rows"]
    assert all(set(COLUMNS[report].split()) <= row.keys() for row in reported["rows"])
    assert all(isinstance(count, int) and count > 0 for count in reported["left_out"].values())
    if report == "stats":
        assert reported["totals"]["count"] >= max(row["count"] for row in reported["rows"])


def fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, report: str, capture: str) -> None:
    """No line is wider than the terminal, but for commands to copy."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([report, str(PCAPS / capture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert [line for line in lines if len(line) > width and "kcap show" not in line] == []
