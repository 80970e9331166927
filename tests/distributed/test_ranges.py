"""Ranges of files give the packets of the file, whatever their cuts."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.fileset import FileSet, ignore
from kcap.capture.sections import Interface
from kcap.distributed.ranges import ByteRange, RangeContext, RangeScan, looks_like_blocks, looks_like_records, running_latest
from kcap.model import CaptureFile
from tests.support.shared import Shared

ROOT = Path(__file__).resolve().parent.parent.parent
PCAP = (ROOT / "pcaps" / "pipelined.pcap").read_bytes()
CONTEXT = RangeContext("<", (Interface(1, 262_144),))


def reader(data: bytes):
    chunks = iter([data])
    return lambda _size: next(chunks, b"")


def records(data: bytes) -> list[int]:
    """Where the records of a pcap file begin."""
    at, found = 24, []
    while at < len(data):
        found.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return found


@given(st.integers(24, len(PCAP) - 1), st.integers(0, 40_000))
def test_a_range_has_the_records_that_begin_in_it(start: int, size: int) -> None:
    """Law: a guess finds the first record that begins at or behind the range's start, and the range stops before its end."""
    begins = records(PCAP)
    stop = start + size
    part = ByteRange(0, 0, start, stop, CONTEXT, verified=False)
    scan = RangeScan(part, reader(PCAP[start:]), CaptureFile("a", "a", len(PCAP), "pcap"), len(PCAP))
    positions = [int(position) for batch, _ in scan.batches() for position in batch.position]
    assert positions == [at for at in begins if start <= at < stop]
    if positions:
        assert scan.summary.start == positions[0]
        assert scan.summary.end == next((at for at in begins if at >= stop), len(PCAP))


def test_a_capture_inside_a_packet_is_no_record() -> None:
    """A guess wants records in a row; what looks like a single one is none."""
    one = (1).to_bytes(4, "little") * 2 + (100).to_bytes(4, "little") * 2 + bytes(100)
    assert not looks_like_records(one + b"\xff" * 400, 0, "<", CONTEXT.interfaces[0], ended=False)
    assert looks_like_records(one * 12, 0, "<", CONTEXT.interfaces[0], ended=False)
    assert not looks_like_blocks(b"\x06\0\0\0\x20\0\0\0" + bytes(24) + b"\x21\0\0\0", 0, "<", ended=True)


@pytest.mark.parametrize("name", ["tls13.pcapng", "pipelined.pcap"])
@pytest.mark.parametrize("split", [1024, 5000, 33_000])
def test_facts_of_a_file_are_those_of_one_reading(name: str, split: int, pcaps: Path) -> None:
    """Law: ranges add up to what the file's own reader says of it."""
    shared = Shared([pcaps / name], split, 1)
    files = FileSet([str(pcaps / name)], ignore)
    for _ in files.batches():
        pass
    mine, theirs = shared.files[0], files.files[0]
    for fact in ("size", "format", "links", "snaplen", "first_ns", "last_ns", "packets", "packet_bytes", "cut_packets",
                 "kernel_drops", "complete", "names", "secrets"):  # fmt: skip
        assert getattr(mine, fact) == getattr(theirs, fact), fact


@given(st.lists(st.integers(0, 50), min_size=1), st.none() | st.integers(0, 50))
def test_the_latest_time_so_far(times: list[int], before: int | None) -> None:
    """Law: the running maximum; nothing where that is each packet's own time."""
    wanted = list(itertools.accumulate(times if before is None else [before, *times], max))[before is not None :]
    assert (running_latest(times, before) or times) == wanted
