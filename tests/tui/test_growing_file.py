"""A file that grows is read as it grows."""

import os
import threading
import time
from pathlib import Path

import pytest

from kcap.tui.growing_file import grows, pump


def test_which_files_grow(tmp_path: Path) -> None:
    old, new, packed = tmp_path / "old", tmp_path / "new", tmp_path / "packed"
    for path in (old, new):
        path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20))
    packed.write_bytes(b"\x1f\x8b\x08" + bytes(20))
    os.utime(old, (time.time() - 100, time.time() - 100))
    assert not grows(str(old), 10, requested=False)
    assert grows(str(old), 10, requested=True)
    assert grows(str(new), 10, requested=False)
    assert not grows(str(packed), 10, requested=True)
    assert not grows(str(tmp_path), 10, requested=True)
    assert not grows(str(tmp_path / "none"), 10, requested=True)


@pytest.mark.parametrize("quiet", [0.3, None])
def test_bytes_come_as_they_are_written(tmp_path: Path, quiet: float | None) -> None:
    path, stop = tmp_path / "f", threading.Event()
    path.write_bytes(b"one")
    reader, writer = os.pipe()
    thread = threading.Thread(target=pump, args=(str(path), writer, stop, quiet))
    thread.start()
    assert os.read(reader, 10) == b"one"
    with path.open("ab") as file:
        file.write(b"two")
    assert os.read(reader, 10) == b"two"
    if quiet is None:
        stop.set()
    assert os.read(reader, 10) == b"", "over when it is quiet, or when it is told to stop"
    thread.join(5)
    os.close(reader)
