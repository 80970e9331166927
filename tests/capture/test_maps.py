"""A mapped file gives what a file that is read gives, and nobody can cut it meanwhile."""

import os
import subprocess
import sys
import time
from mmap import ALLOCATIONGRANULARITY as PAGE
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.capture import reader
from kcap.capture import source as sources
from kcap.capture.maps import FileMaps
from kcap.capture.source import Source, open_reader
from kcap.capture.window import FileWindow
from kcap.model import CaptureFile

CAPTURES = sorted(path for path in (Path(__file__).parents[2] / "pcaps").glob("*.pcap*") if path.stat().st_size < 1 << 20)
TRUNCATES = "import os, sys; os.truncate(sys.argv[1], 10)"


def maps_of(path: Path) -> FileMaps:
    maps = FileMaps(str(path), path.stat())
    if maps.map_at(0, 1) is None:
        pytest.skip("this file system has no leases, or the kernel no MADV_POPULATE_READ")
    return maps


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(5 * PAGE + 77))
    return path


def packets(path: Path, jit_after: int | None, window: int) -> tuple[list[tuple[int, bytes, int]], CaptureFile]:
    source, file = Source(str(path)), CaptureFile(str(path), path.name)
    found = [
        (
            int(batch.time_ns[at]),
            bytes(batch.buffer[batch.start[at] : batch.start[at] + batch.captured[at]]),
            int(batch.position[at]),
        )
        for batch in open_reader(source, file, 0, lambda *_: None, window, jit_after).batches()
        for at in range(len(batch))
    ]
    source.close()
    return found, file


@pytest.mark.parametrize("jit_after", [None, 0], ids=["plain", "kernels"])
def test_all_captures_are_the_same_mapped(jit_after: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    maps_of(CAPTURES[0]).close()
    monkeypatch.setattr(reader, "MAPPED_PACKET_BYTES", 0)
    for path in CAPTURES:
        for window in (1 << 12, limits.READ_WINDOW_BYTES):
            monkeypatch.setattr(sources, "MAPPED_FILE_BYTES", 1 << 60)
            expected, read = packets(path, jit_after, window)
            monkeypatch.setattr(sources, "MAPPED_FILE_BYTES", 0)
            found, mapped = packets(path, jit_after, window)
            assert found == expected, path.name
            assert (mapped.fault, mapped.complete, mapped.packets) == (read.fault, read.complete, read.packets)


@given(st.lists(st.tuples(st.integers(0, 3 * PAGE), st.integers(1, 2 * PAGE)), max_size=8), st.integers(0, 9))
def test_a_window_of_maps_has_the_files_bytes(steps: list[tuple[int, int]], refused_after: int) -> None:
    """Whatever is forgotten and needed, and wherever maps are refused from some moment on."""
    path = CAPTURES[0]
    data, maps, left = path.read_bytes(), maps_of(path), refused_after

    def map_at(position: int, size: int):
        nonlocal left
        left -= 1
        return maps.map_at(position, size) if left >= 0 else None

    window = FileWindow(
        lambda _: b"never read", 2 * PAGE, first=PAGE, read_at=lambda at, size: data[at : at + size], map_at=map_at
    )
    place = 0
    for forget, need in steps:
        at = min(window.at + forget, len(window.buffer))
        place = window.base + at
        assert window.advance(at, need, sparse=True) == (place + need <= len(data))
        assert window.base + window.at == place
        assert window.buffer[:] == data[window.base : window.base + len(window.buffer)]
    maps.close()


def test_who_truncates_the_file_waits_for_the_last_map(large: Path) -> None:
    data, maps = large.read_bytes(), maps_of(large)
    first = maps.map_at(PAGE, 100)
    assert first is not None
    with subprocess.Popen([sys.executable, "-c", TRUNCATES, str(large)]) as other:
        while maps.map_at(PAGE, 100) is not None:  # until the kernel says that somebody waits
            time.sleep(0.01)
        assert first[:] == data[PAGE : PAGE + 100]
        assert other.poll() is None
        first.close()
        assert other.wait(10) == 0
    assert large.stat().st_size == 10


def test_a_file_that_is_being_written_is_not_mapped(large: Path) -> None:
    maps_of(large).close()
    with large.open("ab"):
        assert FileMaps(str(large), large.stat()).map_at(0, 10) is None


def test_another_file_under_the_same_name_is_not_mapped(large: Path, tmp_path: Path) -> None:
    maps_of(large).close()
    other = tmp_path / "other"
    other.write_bytes(b"x")
    assert FileMaps(str(large), other.stat()).map_at(0, 1) is None


def test_there_is_nothing_behind_the_end(large: Path) -> None:
    maps, size = maps_of(large), large.stat().st_size
    last = maps.map_at(5 * PAGE, 1 << 20)
    assert last is not None
    assert len(last) == 77
    assert maps.map_at(size + PAGE, 1) is None
    maps.close()
    assert maps.map_at(0, 1) is None


def test_a_file_that_is_read_is_not_leased(large: Path) -> None:
    """Others that want to write wait for a lease, so that only a map takes one."""
    maps_of(large).close()
    source = Source(str(large))
    os.close(os.open(large, os.O_WRONLY | os.O_NONBLOCK))
    assert source.map_at(0, 10) is not None
    with pytest.raises(BlockingIOError):
        os.open(large, os.O_WRONLY | os.O_NONBLOCK)
    source.close()
    os.close(os.open(large, os.O_WRONLY | os.O_NONBLOCK))
