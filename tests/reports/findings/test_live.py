"""Findings while packets pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kcap.limits import TAIL_BATCHES_MAX
from kcap.reports.findings.live import SECOND, FindingEvent, Slices, Watch, identity
from kcap.reports.findings.report import check
from kcap.reports.findings.source import observed
from kcap.reports.source import ReportInput
from kcap.session import Capture

PROBLEMS = Path(__file__).resolve().parents[3] / "pcaps" / "problems"


def watched(name: str, folder: Path, span: int) -> list[FindingEvent]:
    """The events of a capture."""
    reading = Capture([str(PROBLEMS / f"{name}.pcap")]).read(keep_connections=True)
    reading.files.keeps = True
    return list(Watch(reading, str(folder), span * SECOND, SECOND).events())


def reported(name: str) -> Iterator[tuple[str, ...]]:
    given = ReportInput([str(PROBLEMS / f"{name}.pcap")])
    with observed(given) as seen:
        yield from (identity(row) for row in check(seen)["rows"] if row["severity"] != "info")


def test_a_long_span_ends_with_the_findings_of_the_report(tmp_path: Path) -> None:
    for name in ("hanging-transaction", "authorization-denied", "healthy-1"):
        found = watched(name, tmp_path, 3600)
        assert {identity(one.finding) for one in found if one.event == "open"} == set(reported(name)), name


def test_a_finding_begins_when_it_is_named_first_and_ends_when_it_is_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading: Any = None  # nothing is read here
    watch = Watch(reading, str(tmp_path))
    storm = {"id": "commit-storm", "severity": "medium", "who": {"client_id": "a", "client_ips": ["10.0.0.1"]}}
    grown = storm | {"who": {"client_id": "a", "client_ips": ["10.0.0.1", "10.0.0.2"]}}
    other = storm | {"who": {"client_id": "b"}}
    quiet = other | {"severity": "info"}
    seen = iter([[], [storm, quiet], [grown, other], [other], []])
    monkeypatch.setattr(watch, "_findings", lambda: next(seen))
    looks = [[(one.event, one.finding["who"]["client_id"]) for one in watch._look(at)] for at in range(5)]
    assert looks == [[], [("begin", "a")], [("begin", "b")], [("end", "a")], [("end", "b")]]


def test_rows_go_when_their_span_is_over(tmp_path: Path) -> None:
    slices = Slices(str(tmp_path))
    for at in range(50):
        slices.take("brokers", pa.record_batch({"host": [f"b{at}"]}))
        slices.close(at, at - 3)
    assert len(slices.files("brokers")) == len(list(tmp_path.glob("*"))) == 4


def test_rows_that_wait_are_few_batches(tmp_path: Path) -> None:
    slices = Slices(str(tmp_path))
    for at in range(3 * TAIL_BATCHES_MAX):
        slices.take("brokers", pa.record_batch({"host": [f"b{at}"]}))
        slices.take("brokers", pa.record_batch({"host": pa.array([], pa.string())}))
        assert len(slices._waiting["brokers"]) <= TAIL_BATCHES_MAX
    slices.close(1, 0)
    (path,) = slices.files("brokers")
    assert parquet.read_table(path).column("host").to_pylist() == [f"b{at}" for at in range(3 * TAIL_BATCHES_MAX)]
