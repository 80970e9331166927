"""The report on versions of shares put together is that of the whole capture."""

import pickle
from pathlib import Path

import pytest

from kcap.capture_pass import CapturePass
from kcap.facts.merge import tracker_of
from kcap.reports.versions.merge import detached, together
from kcap.reports.versions.profiles import gather
from kcap.reports.versions.report import report
from tests.facts.test_merge import learned
from tests.support.shared import Shared


@pytest.mark.parametrize(
    "names",
    [["cluster-startup.pcap"], ["old-java-new-broker.pcap"], ["fallback-0.9.pcap"], ["kafka-0.8-clients.pcap", "go-franz.pcap"],
     ["sasl-raw-tokens.pcap"], ["raw-frames.pcap"], ["broker-paused.pcap"]],
)  # fmt: skip
def test_the_report_is_the_same(names: list[str], pcaps: Path) -> None:
    """Law: clients, brokers, readiness and diagnoses are those of one reading."""
    paths = [pcaps / name for name in names]
    reading = CapturePass([str(path) for path in paths], keep_connections=True)
    wanted = report(gather(reading), names, "4.4")
    shared, parts = Shared(paths, 30_000, 5), []
    for reader in shared.readers():
        reader.keep_connections = True
        parts.append(pickle.loads(pickle.dumps(detached(gather(reader)))))
    found = report(together(parts, tracker_of(learned(shared))), names, "4.4")
    assert found == wanted
