"""Machine code is kept whole, and in places that are private."""

import os
from pathlib import Path

import pytest

from kcap import machine_code as module
from kcap.machine_code import CONSTANTS, KERNELS, ROOT, edition, keep, kept, private


def test_every_pattern_of_the_edition_finds_a_source() -> None:
    assert all(any(ROOT.glob(pattern)) for pattern in (*KERNELS, *CONSTANTS))
    assert len(edition()) == 32


def test_damaged_machine_code_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "one.kernel"
    assert kept(path) is None
    keep(path, b"icode")
    assert kept(path) == b"icode"
    assert path.stat().st_mode & 0o77 == 0
    data = bytearray(path.read_bytes())
    for at in range(len(data)):
        damaged = bytes(data[:at]) + bytes([data[at] ^ 1]) + bytes(data[at + 1 :])
        path.write_bytes(damaged)
        assert kept(path) is None
    path.write_bytes(data[:-1])
    assert kept(path) is None


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_path: Path, _other: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(PermissionError):
        keep(tmp_path / "one.kernel", b"icode")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_code_is_cached_where_no_other_user_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for everybody would let any user run code in this process: numba's cache is machine code and pickles."""
    monkeypatch.setattr(module, "_shared", module._shared.__wrapped__)
    source = tmp_path / "own" / "times.py"
    source.parent.mkdir(mode=0o755)
    source.write_text("")
    cache, everybody = tmp_path / "own/cache", tmp_path / "everybody"
    cache.mkdir(mode=0o755)
    everybody.mkdir()
    everybody.chmod(0o777)
    below = everybody / "below"
    below.mkdir(mode=0o755)
    assert private(str(cache), str(source))
    assert not private(str(everybody), str(source))
    assert not private(str(below), str(source))  # it can be replaced as a whole
    everybody.chmod(0o1777)
    assert private(str(below), str(source))
    assert not private(str(everybody), str(source))
    assert private(str(everybody), str(everybody / "times.py"))  # who can write there can write the source too


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = tmp_path / "everybody"
    everybody.mkdir()
    everybody.chmod(0o777)
    monkeypatch.setenv("KCAP_KERNELS", str(everybody))
    with pytest.raises(RuntimeError, match="other users can write"):
        module.folder.__wrapped__()
    monkeypatch.setenv("KCAP_KERNELS", str(tmp_path / "own"))
    assert module.folder.__wrapped__().parent == tmp_path / "own"
    assert (tmp_path / "own").stat().st_mode & 0o77 == 0
