"""Laws of one reading of a capture: how far it is, and where its batches end."""

from pathlib import Path

import pytest

from kcap import limits
from kcap.analyzer import Options
from kcap.capture.fileset import FileSet
from kcap.capture_pass import CapturePass
from kcap.session import Capture
from tests.fuzz.hostile import CLASSES


def test_a_reading_tells_how_far_it_is(pcaps: Path) -> None:
    reading = CapturePass([str(pcaps / "raw-frames.pcap")])
    steps: list[int] = []
    reading.watch = lambda: steps.append(reading.bytes)
    rows = sum(len(batch) for batch in reading.batches())
    assert reading.rows == rows > 0
    assert steps == sorted(steps)
    assert reading.total_bytes == (pcaps / "raw-frames.pcap").stat().st_size
    assert 0 < reading.bytes < reading.total_bytes
    assert reading.phases["kafka"] > 0
    assert reading.details["http"] == 1
    assert reading.connections == []


def test_a_patient_reading_gives_full_batches(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: no clock decides where batches end."""
    monkeypatch.setattr("kcap.capture_pass.EAGER_SECONDS", 0)
    monkeypatch.setattr("kcap.limits.ROWS_PER_BATCH", 100)
    monkeypatch.setattr(FileSet.__init__, "__defaults__", (0,))
    early, patient = (CapturePass([str(pcaps / "java-transactions.pcap")]) for _ in range(2))
    patient.patient = True
    ones, others = ([len(batch) for batch in reading.batches()] for reading in (early, patient))
    assert sum(ones) == sum(others)
    assert min(ones) < 100 <= min(others[:-1])


def test_batches_with_partitions_have_fewer_rows(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcap.limits.ROWS_PER_BATCH", 60)
    monkeypatch.setattr("kcap.limits.ROWS_WITH_PARTITIONS_PER_BATCH", 20)
    alone, both = (CapturePass([str(pcaps / "java-transactions.pcap")]) for _ in range(2))
    both.keep_bodies(partitions=True)
    rows = []
    for reading in (alone, both):
        reading.patient = True
        rows.append([len(batch) for batch in reading.batches()])
    assert sum(rows[0]) == sum(rows[1])
    assert len(rows[0]) < len(rows[1])


@pytest.mark.parametrize("fast_path", [True, False])
def test_packets_full_of_messages_make_no_large_batch(fast_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows leave in the middle of what was read at once: of the reference path each takes 2.5 KB until then."""
    path = tmp_path / "dense.pcap"
    path.write_bytes(CLASSES["one_id"][0](10_000))
    whole = [len(batch) for batch in Capture([str(path)], Options(fast_path=fast_path)).read().batches()]
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 500)
    monkeypatch.setattr(limits, "FEED_PACKETS", 8)
    monkeypatch.setattr(limits, "FEED_PACKETS_MIN", 8)
    cut = [len(batch) for batch in Capture([str(path)], Options(fast_path=fast_path)).read().batches()]
    assert sum(cut) == sum(whole)
    assert max(cut) < 2_500 < max(whole)


@pytest.mark.parametrize("fast_path", [True, False])
def test_connections_that_are_open_at_the_end_are_handed_on_a_few_at_a_time(
    fast_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that takes them when it is called never holds all of a flood."""
    monkeypatch.setattr(limits, "CLOSED_TOGETHER", 16)
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 64)
    monkeypatch.setattr("kcap.fastpath.closed_connections.MANY", 16)
    path = tmp_path / "flood.pcap"
    path.write_bytes(CLASSES["syn_flood"][0](400))
    reading = CapturePass([str(path)], Options(fast_path=fast_path), keep_connections=True)
    taken = []

    def take() -> None:
        taken.append(len(reading.connections))
        reading.connections.clear()

    reading.watch = take
    for _ in reading.batches():
        pass
    take()
    assert sum(taken) == 400
    assert max(taken) <= 32
