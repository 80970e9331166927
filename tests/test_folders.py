"""The user's folders are where the XDG Base Directory Specification has them."""

import os
from pathlib import Path

import pytest

from kcap import folders
from kcap.folders import cache_folder, config_folder, private_folder, shared, state_folder, write_whole


def test_folders_are_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for letter, variable in zip("cds", ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")):
        monkeypatch.setenv(variable, str(tmp_path / letter))
    assert [cache_folder(), config_folder(), state_folder()] == [tmp_path / letter / "kcap" for letter in "cds"]


@pytest.mark.parametrize("empty", [True, False])
def test_without_the_variables_they_are_below_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: bool) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, "") if empty else monkeypatch.delenv(variable, raising=False)
    found = [folder().relative_to(tmp_path).as_posix() for folder in (cache_folder, config_folder, state_folder)]
    assert found == [".cache/kcap", ".config/kcap", ".local/state/kcap"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o77 == 0
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", b"no file can replace it")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "kept"]


def test_a_folder_that_others_can_replace_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is not enough that a folder is this user's alone: who can write above it can put another in its place."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    folder = private_folder("plans")
    assert folder == tmp_path / "home" / "kcap" / "plans"
    for above, mode, kept in (
        (folder.parent, 0o777, None), (folder.parent, 0o1777, None), (folder.parent, 0o755, folder),
        (tmp_path / "home", 0o777, None), (tmp_path / "home", 0o1777, folder), (tmp_path / "home", 0o700, folder),
    ):  # fmt: skip
        above.chmod(mode)
        assert private_folder("plans") == kept
        above.chmod(0o700)
    folder.chmod(0o750)
    assert private_folder("plans") is None


def test_a_folder_in_one_of_another_user_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert private_folder("plans") is not None
    monkeypatch.setattr(folders, "shared", lambda place: shared(place) or place == tmp_path / "kcap")
    assert private_folder("plans") is None
    assert not shared(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert shared(tmp_path) is (tmp_path.stat().st_uid != 0)
    assert not shared(tmp_path, tmp_path.stat().st_uid)
