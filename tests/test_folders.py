"""The user's folders are where the XDG Base Directory Specification has them."""

from pathlib import Path

import pytest

from kcap.folders import cache_folder, config_folder, state_folder, write_whole


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
