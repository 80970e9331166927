"""Frames whose packets lie among each other are read together."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcap import limits
from kcap.capture import read_ahead
from kcap.capture.frame_reader import FrameReader
from kcap.capture.packet_source import PacketSource
from kcap.capture.read_ahead import location
from kcap.session import CapturePass
from tests.laws.test_interleaved import CONNECTIONS, SIZE, capture, records
from tests.support.messages import saved
from tests.support.wire import MS, Tap, metadata, metadata_answer, produce, produce_answer


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ranges of files that are read again, as they are read; frames of the captures here are read as they pass."""
    found: list[int] = []
    batches = PacketSource.batches

    def counted(self: PacketSource, file: int, first: int, last: int) -> Iterator[Any]:
        found.append(last - first)
        return batches(self, file, first, last)

    monkeypatch.setattr(PacketSource, "batches", counted)
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 10_000)
    return found


def bodies(path: Path) -> tuple[list[bytes], list[bytes]]:
    """The large requests of a capture, as tables read them again and each alone."""
    reading, together, alone = CapturePass([str(path)]), list[bytes](), list[bytes]()
    reading.keep_bodies()
    for batch in reading.batches():
        passed = [number for number, values in batch.bodies.carried.items() if values.passed]
        wanted = [at for at, row in enumerate(batch.rows) if row[read_ahead.PART["request_slot"]] in passed]
        for at in wanted:
            message = reading.message(batch, at, "request")
            assert message is not None
            together.append(bytes(message.frame))
        alone += [FrameReader(reading.frames._source).frame(location(batch, at, "request"), behind=4) for at in wanted]
    return together, alone


def test_frames_among_each_other_are_read_together(
    tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: twice as many each time, as far as their bytes have room in memory; they are what each is alone."""
    path = capture(tmp_path / "together.pcap", records, "produce", together=True)
    together, alone = bodies(path)
    assert together == alone
    assert len(together) > 15
    assert len(readings) - len(alone) <= 5
    readings.clear()
    monkeypatch.setattr(read_ahead, "READ_AHEAD_BYTES", 4 * SIZE)
    assert bodies(path) == (together, alone)
    assert len(alone) / 4 < len(readings) - len(alone) <= len(alone) / 2


def test_frames_that_end_early_are_read_together(tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: how many are read together follows from the bytes that came, not from those that were announced."""
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", 4 * SIZE)
    monkeypatch.setattr(read_ahead, "FRAME_GATHERED_MAX", 4 * SIZE)
    taps = [Tap(port=40_000 + n, time_ns=1_000 * MS + 1_000 * n).open().client(metadata(0)) for n in range(16)]
    for tap in taps:
        whole = produce(1, 1, bytes(1 << 23))
        tap.server(metadata_answer(0)).client(whole[:20_000])
    reading, found = CapturePass([str(saved(tmp_path / "early.pcap", *taps))]), list[int]()
    reading.keep_bodies()
    for batch in reading.batches():
        for at, row in enumerate(batch.rows):
            if row[read_ahead.PART["request_bytes"]] > SIZE:
                message = reading.message(batch, at, "request")
                found.append(0 if message is None else len(message.frame))
    assert found == [20_000 - 4] * 16
    assert len(readings) <= 4


def test_frames_one_behind_the_other_are_read_alone(
    tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: what lies apart is not read ahead."""
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", 10_000)
    together, alone = bodies(capture(tmp_path / "apart.pcap", records, "produce", together=False))
    assert together == alone
    assert len(alone) == CONNECTIONS
    assert len(readings) == 2 * CONNECTIONS


def test_frames_of_both_sides_and_several_apis_are_read_together(
    tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: requests and responses that are taken in turn, of APIs that take turns, cost no more readings than those of one."""
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", 10_000)
    monkeypatch.setattr(read_ahead, "FRAME_GATHERED_MAX", 10_000)
    name = "t" * 20_000
    taps = [Tap(port=40_000 + n, time_ns=1_000 * MS + 1_000 * n).open().client(metadata(0)) for n in range(16)]
    for number, tap in enumerate(taps):
        tap.server(metadata_answer(0)).client(produce(1, 1, topic=name) if number % 2 else metadata(1, topic=name))
        tap.server(produce_answer(1, topic=name) if number % 2 else metadata_answer(1, brokers=2_000))
    reading, found = CapturePass([str(saved(tmp_path / "both.pcap", *taps))]), list[int]()
    reading.keep_bodies()
    for batch in reading.batches():
        for at, row in enumerate(batch.rows):
            for side in ("request", "response") if row[read_ahead.PART["correlation_id"]] else ():
                message = reading.message(batch, at, side)
                assert message is not None
                found.append(len(message.frame))
    assert len(found) == 32
    assert min(found) > 10_000
    assert len(readings) <= 12
