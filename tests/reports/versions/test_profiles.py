"""Laws of gathering: its counts are the rows', however the rows come."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from kcap import limits
from kcap.facts.tracker import MetadataTracker
from kcap.filter.parse import parse
from kcap.reports.versions.merge import together
from kcap.reports.versions.profiles import ConnectionProfiles, gather
from kcap.reports.versions.report import report
from kcap.session import Capture
from kcap.table.exchanges import Exchanges
from tests.reports.talking import PCAPS, of

NAMES = ("raw-frames.pcap", "java-transactions.pcap", "fallback-0.9.pcap", "old-java-new-broker.pcap", "any-interface.pcap")


def rows(name: str, text: str = "") -> Counter[tuple[str, str | None, int, int]]:
    """Requests a connection, client id, API and version."""
    columns = ["connection", "client_id", "api_key", "api_version"]
    capture = Capture([str(PCAPS / name)])
    table = (capture.filter(text) if text else capture).exchanges(columns).to_arrow().to_pylist()
    return Counter(tuple(row[c] for c in columns) for row in table if row["api_key"] is not None)  # type: ignore[misc]


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_the_rows(name: str) -> None:
    profiles = of(name).profiles.values()
    assert {(t.uid, *key): use.count for t in profiles for key, use in t.uses.items()} == dict(rows(name))


@pytest.mark.parametrize("text", ["api == Fetch", "latency > 1ms", 'request.acks == -1 or api == "Metadata"'])
def test_a_filter_counts_what_the_rows_count(text: str, pcaps: Path) -> None:
    name = "java-transactions.pcap"
    reading = Capture([str(pcaps / name)]).read(keep_connections=True)
    profiles = gather(reading, parse(text)).profiles.values()
    assert {(t.uid, *key): use.count for t in profiles for key, use in t.uses.items()} == dict(rows(name, text))


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_of_the_rows(name: str) -> None:
    table = Capture([str(PCAPS / name)]).exchanges(["connection", "api_key", "api_version", "version_verdict"]).to_arrow()
    want = Counter(tuple(row.values()) for row in table.to_pylist() if row["version_verdict"] is not None)
    whole, got = of(name), Counter[tuple[object, ...]]()
    for profile in whole.profiles.values():
        for (_, key, version), use in profile.uses.items():
            for verdict, count in whole.verdicts(profile, key, version, use).items():
                got[profile.uid, key, version, verdict] += count
    assert got == want


def test_a_refused_question_reads_in_version_0() -> None:
    """KIP-511: ApiVersions v99 is answered with error 35 in a version 0 body."""
    probes = [
        probe for profile in of("raw-frames.pcap").profiles.values() for probe in profile.probes if probe.step.version == 99
    ]
    assert [(probe.answer.error, probe.answer.form) for probe in probes if probe.answer] == [(35, 0)]


def test_features_are_read() -> None:
    features = next(iter(of("librdkafka-zstd.pcap").features.values()))
    assert {one["name"] for one in features["supportedFeatures"]} >= {"metadata.version"}


def test_openings_are_in_order_and_bounded() -> None:
    for name in NAMES:
        for profile in of(name).profiles.values():
            numbers = [step.exchange for step in profile.opening]
            assert numbers == sorted(numbers)
            assert len(numbers) <= 12


@dataclass
class Silent:
    """A connection without an exchange, whose row is made each time that it is read."""

    number: int
    phase: str = "empty"
    detail: str | None = None
    made: int = 0

    def part(self, names: tuple[str, ...]) -> dict[str, object]:
        self.made += 1
        row = {"connection": f"C{self.number}", "exchanges": 0, "first_ns": self.number}
        return {name: row.get(name) for name in names}


def test_silent_connections_are_read_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcap.limits.OTHERS_KEPT", 5)
    found, some = ConnectionProfiles(MetadataTracker()), [Silent(number) for number in range(12)]
    for one in some:
        found.close(one)  # type: ignore[arg-type]
    assert {one.made for one in some} == {1}
    assert [line["connection"] for line in found.others] == ["C0", "C1", "C2", "C3", "C4"]
    assert found.left_out == {"no_exchange": 7}
    assert together([found, found], MetadataTracker()).left_out == {"no_exchange": 14}


@pytest.mark.parametrize("name", NAMES)
def test_profiles_that_are_stored_meanwhile_are_those_that_stay_open(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: storing a connection that is not over, and opening it for its next rows, changes nothing."""
    take = ConnectionProfiles.take

    def in_pieces(self: ConnectionProfiles, rows: Exchanges) -> None:
        for start in range(0, rows.size, 3):
            take(self, rows.select(np.arange(start, min(start + 3, rows.size))))

    monkeypatch.setattr(ConnectionProfiles, "take", in_pieces)
    reports = []
    for most in (1, 10**6):
        monkeypatch.setattr(limits, "PROFILES_OPEN", most)
        whole = gather(Capture([str(PCAPS / name)]).read(keep_connections=True))
        reports.append(report(whole, [name], "4.0"))
    assert reports[0] == reports[1]
