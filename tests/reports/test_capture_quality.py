"""Laws of the evidence: it counts what the tables say, and keeps nothing."""

from collections import Counter
from pathlib import Path

import pytest

import kcap
from kcap.analyzer import Analyzer
from kcap.capture_pass import CapturePass
from kcap.net.segment_columns import columns_of
from kcap.reports.capture_quality import LEDGER, SIDES, CaptureQuality, count_batch, gather
from tests.fastpath.test_engine import steady
from tests.support.wire import batch, metadata


@pytest.mark.parametrize("name", ["raw-frames.pcap", "tls13.pcapng", "pipelined.pcap"])
def test_counts_are_those_of_the_tables(pcaps: Path, name: str) -> None:
    path = str(pcaps / name)
    reading = CapturePass([path], keep_connections=True)
    evidence = gather(reading)
    assert reading.connections == []
    capture = kcap.open(path)
    connections = capture.connections().to_arrow().to_pylist()
    assert evidence.phases == Counter(row["phase"] for row in connections)
    known = [row for row in connections if row["phase"] == "kafka"]
    assert evidence.connections["all"] == len(known)
    for side in SIDES:
        assert evidence.ledger[side] == {entry: sum(row[f"{side}_{entry}"] for row in known) for entry in LEDGER}
    assert evidence.unbalanced == 0
    outcomes = capture.exchanges(["outcome"]).to_arrow().column(0).to_pylist()
    assert evidence.outcomes == Counter(outcomes)
    assert sum(evidence.reasons.values()) == sum(outcome in ("unanswered", "orphan") for outcome in outcomes)
    weirds = capture.weirds().to_arrow().to_pylist()
    assert sum(evidence.weirds.values()) == sum(row["count"] for row in weirds)
    assert evidence.packets == capture.captures().to_arrow().column("packets")[0].as_py()


@pytest.mark.parametrize("fast", [True, False])
def test_requests_without_a_response_have_a_reason_on_both_paths(fast: bool) -> None:
    tap, evidence, analyzer = steady(6), CaptureQuality([], []), Analyzer()
    tap.client(metadata(90)).close()
    analyzer.expect_many()
    segments = batch(tap.segments)
    analyzer.feed(columns_of(segments) if fast else segments)
    analyzer.finish()
    rows = analyzer.take()
    assert (rows.fast_rows is not None) == fast
    count_batch(evidence, rows)
    assert evidence.outcomes == Counter(answered=6, unanswered=1)
    assert evidence.reasons == Counter(fin=1)
