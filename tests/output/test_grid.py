"""Laws of tables for people: columns line up, lines keep to the terminal, nothing on the wire commands it."""

import io
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kcap
from kcap.output.grid import DEFAULTS, Grid, GridStyle, call, cells, clean, counts, duration, endpoint, result, taken, topics
from kcap.table.schema import arrow_schema, choose

NAMES = ("time", "client_ip", "client_port", "client_id", "api", "api_version", "latency_ns", "outcome", "reason", "error")


def shown(rows: list[dict[str, Any]], look: GridStyle, names: tuple[str, ...] = NAMES) -> list[str]:
    sink = io.BytesIO()
    schema = arrow_schema("exchanges", choose("exchanges", names))
    grid = Grid(sink, schema, look)
    grid.write(pa.RecordBatch.from_pylist(rows, schema))
    grid.close()
    return sink.getvalue().decode().splitlines()


def entry(**parts: Any) -> dict[str, Any]:
    return {
        "time": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "client_ip": "10.0.0.1", "client_port": 5, "client_id": "shop",
        "api": "Fetch", "api_version": 17, "latency_ns": 1_250_000, "outcome": "answered", "reason": None, "error": "NONE",
    } | parts  # fmt: skip


def test_columns_that_belong_together_are_put_together() -> None:
    head, line = shown([entry()], GridStyle(composed=True))
    assert head.split() == ["time", "2026-01-02", "client", "client_id", "api", "latency", "result"]
    assert line.split() == ["03:04:05.000006", "10.0.0.1:5", "shop", "Fetch", "v17", "1.25ms", "ok"]


def test_asked_for_columns_stand_as_they_are() -> None:
    head, line = shown([entry()], GridStyle(), ("api", "api_version", "error"))
    assert head.split() == ["api", "api_version", "error"]
    assert line.split() == ["Fetch", "17", "NONE"]


def test_a_new_day_has_a_new_header() -> None:
    lines = shown([entry(), entry(time=datetime(2026, 1, 3, tzinfo=UTC))], GridStyle(composed=True))
    assert [line.split()[1] for line in lines if line.startswith("time")] == ["2026-01-02", "2026-01-03"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_lines_keep_to_the_terminal(width: int, pcaps: Path) -> None:
    sink = io.BytesIO()
    table = kcap.open(str(pcaps / "librdkafka-zstd.pcap")).exchanges(DEFAULTS["exchanges"])
    grid = Grid(sink, table.schema, GridStyle(width, composed=True))
    for batch in table.record_batches():
        grid.write(batch)
    lines = sink.getvalue().decode().splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("time")
    assert "result" in lines[0], "what matters most stays"
    assert ("request_bytes" in lines[0]) == (width >= 200), "what matters least goes first"


@pytest.mark.parametrize("width", [1, 20, 60, 80, 140, 400])
@pytest.mark.parametrize("name", ["partitions", "connections", "negotiations", "captures"])
def test_whole_tables_keep_to_the_terminal_and_name_what_is_missing(name: str, width: int, pcaps: Path) -> None:
    """Law: a value that is not shown is in a column that the end names; errors, versions and ids are not cut."""
    sink = io.BytesIO()
    table = kcap.open(str(pcaps / "java-transactions.pcap")).table(name)
    batches = list(table.record_batches())
    grid = Grid(sink, table.schema, GridStyle(width))
    for batch in batches:
        grid.write(batch)
    grid.close()
    head, *lines = sink.getvalue().decode().splitlines()
    assert max(map(len, (head, *lines))) <= max(width, len("column-heads"))
    if width < 60:
        return
    note = " ".join(lines[sum(batch.num_rows for batch in batches) :])
    filled = [cell for batch in batches for cell, texts in zip(*cells(batch, False)) if any(texts)]
    missing = {cell.name for cell in filled} - set(head.split())
    assert {word for word in re.findall(r"[a-z_]+", note) if word in missing} == missing
    for column in {"connection", "error", "api", "versions"} & set(head.split()):
        at = head.index(column)
        assert not any("…" in line[at:].partition("  ")[0] for line in lines)


@pytest.mark.parametrize(("width", "kept", "gone"), [
    (60, {"connection", "client", "server", "phase"}, {"client_id", "exchanges", "ended"}),
    (80, {"connection", "client", "server", "client_id"}, {"rtt_min", "client_missing", "detail", "began"}),
    (100, {"connection", "client", "server", "ended", "client_id"}, {"rtt_min", "client_missing", "detail"}),
])  # fmt: skip
def test_connections_keep_their_addresses_before_their_counters(
    width: int, kept: set[str], gone: set[str], pcaps: Path
) -> None:
    sink = io.BytesIO()
    table = kcap.open(str(pcaps / "java-transactions.pcap")).connections(DEFAULTS["connections"])
    grid = Grid(sink, table.schema, GridStyle(width, composed=True))
    for batch in table.record_batches():
        grid.write(batch)
    head, first, *_ = sink.getvalue().decode().splitlines()
    assert kept <= set(head.split())
    assert not gone & set(head.split())
    assert "127.0.0.1:51944" in first
    assert "127.1.0.12:9092" in first, "neither address is cut"


def test_without_a_terminal_nothing_is_cut(pcaps: Path) -> None:
    sink = io.BytesIO()
    table = kcap.open(str(pcaps / "raw-frames.pcap")).exchanges(("client_id", "topics"))
    grid = Grid(sink, table.schema, GridStyle())
    for batch in table.record_batches():
        grid.write(batch)
    assert "…" not in sink.getvalue().decode()
    assert "orders-appc2-counts-repartition" in sink.getvalue().decode()


def test_a_table_without_rows_has_its_header() -> None:
    assert shown([], GridStyle(), ("api", "error")) == ["api  error"]


def test_color_is_for_errors_and_headers() -> None:
    head, fine, bad, lost = shown([entry(), entry(error="NOT_CONTROLLER"), entry(outcome="orphan")], GridStyle(color=True))
    assert head.startswith("\x1b[1m")
    assert "\x1b" not in fine
    assert bad.startswith("\x1b[31m")
    assert lost.startswith("\x1b[2m")
    assert not any("\x1b" in line for line in shown([entry(error="NOT_CONTROLLER")], GridStyle()))


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (None, ""), (0, "0ns"), (999, "999ns"), (1000, "1.00us"), (12_345, "12.3us"), (654_000, "654us"), (1_250_000, "1.25ms"),
        (-15, "-15ns"), (99_960_000, "100ms"), (2_000_000_000, "2.00s"), (59_990_000_000, "60.0s"),
        (60_000_000_000, "1m 0s"), (1_465_000_000_000, "24m 25s"),
        (36_360_000_000_000, "10h 6m"), (-273_600_000_000_000, "-3d 4h"),
    ],
)  # fmt: skip
def test_durations(nanoseconds: int | None, text: str) -> None:
    assert duration(nanoseconds) == text


def test_counts_of_a_counter_begin_with_the_most_frequent() -> None:
    assert counts(Counter("abbb")) == "3 b, 1 a"
    assert counts({"z": 1_000, "a": 2_000}) == "1,000 z, 2,000 a"
    assert counts({}) == ""


def test_words() -> None:
    assert clean("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
    assert clean("größe") == "größe"
    assert endpoint("::1", 9092) == "[::1]:9092"
    assert call(None, 3) == "? v3"
    assert call("SaslToken", None) == "SaslToken"
    assert result("answered", None, None) == ""
    assert result("unanswered", "fin", None) == "unanswered: fin"
    assert topics(["a", None], [None, "id"]) == "a,id"
    assert topics(["a", "a"], ["id", None]) == "a"
    assert topics(None, None) == ""
    assert taken([3, 0, 4]) == 9


@pytest.mark.parametrize("width", range(60, 251, 10))
def test_a_terminal_cuts_errors_versions_and_ports_last_and_says_what_it_leaves_out(width: int) -> None:
    row = entry(
        client_id="an-application-with-a-name", client_port=36942, server_ip="10.0.0.2", server_port=9092, topics=["orders"],
        error="UNSUPPORTED_VERSION", request_bytes=100, response_bytes=200, topic_ids=[None], flags=["gap"],
    )  # fmt: skip
    head, first, *notes = shown([row], GridStyle(width, composed=True), DEFAULTS["exchanges"])
    full, *rest = shown([row], GridStyle(None, composed=True), DEFAULTS["exchanges"])
    assert max(len(head), len(first)) <= width
    assert len(rest) == 1
    assert max(map(len, notes), default=0) <= width
    missing = set(full.split()) - set(head.split())
    assert all(name in " ".join(notes) for name in missing)
    assert first.endswith(" UNSU…VERSION") or "  UNSUPPORTED_VERSION" in first
    assert "  UNSUPPORTED_VERSION" in first or width == 60
    assert "Fetch v17" in first or width == 60
    assert " v17" in first
    assert ("client" in head.split()) == (":36942" in first)
