"""Laws of output files: whole or not there."""

import io
import os
import signal
import stat
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kcap.errors import OutputError
from kcap.output.sink import Counted, is_device, new_file, new_folder, output_errors


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with new_file(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"old")

    def write() -> None:
        with new_file(str(path)) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize(("make", "opened"), [("mkstemp", new_file), ("mkdtemp", new_folder)])
def test_an_interrupt_at_the_worst_moment_leaves_nothing(
    make: str, opened: Callable[[str], AbstractContextManager[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: it comes when the file is there and its name is not known yet."""
    inner = getattr(tempfile, make)

    def interrupted(*arguments: str) -> object:
        made = inner(*arguments)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(tempfile, make, interrupted)
    with pytest.raises(KeyboardInterrupt), opened(str(tmp_path / "out")):
        pytest.fail("it was interrupted")
    assert os.listdir(tmp_path) == []
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with new_file(str(tmp_path / "new")) as file:
            file.write(b"")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
        (tmp_path / "new").chmod(0o600)
        with new_file(str(tmp_path / "new")) as file:
            file.write(b"")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with new_file(str(tmp_path / "link")) as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_devices_are_no_files_to_replace(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    assert not is_device(str(tmp_path / "file"))
    assert not is_device(str(tmp_path / "new"))
    assert is_device(str(tmp_path / "pipe"))
    assert is_device(os.devnull)


def test_devices_are_written_as_they_are() -> None:
    with new_file(os.devnull) as file:
        file.write(b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_what_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no such file or directory"), new_file(str(tmp_path / "none" / "rows")):
        pass
    with pytest.raises(OutputError, match=r"^full: no space left on device$"), output_errors("full"):
        raise OSError(28, "No space left on device")
    with pytest.raises(BrokenPipeError), output_errors("pipe"):
        raise BrokenPipeError


def test_a_counted_sink_knows_what_it_took() -> None:
    inner = io.BytesIO()
    counted = Counted(inner)
    assert counted.write(b"abc") == 3
    counted.write(memoryview(b"de"))
    counted.flush()
    counted.close()
    assert (counted.tell(), inner.getvalue()) == (5, b"abcde")
    assert counted.writable()
    assert not counted.readable()
    assert not counted.seekable()
