"""Texts that were entered."""

from pathlib import Path

import pytest

from kcap.limits import HISTORY_MOST
from kcap.tui.history import History, history_path


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_texts_are_there_in_the_next_session() -> None:
    history = History()
    for text in ("a", "b", "a", "", "x" * 5_000):
        history.add("filters", text)
    history.add("commands", "17")
    again = History()
    assert again.of("filters") == ["b", "a"], "once, the last one last"
    assert again.of("commands") == ["17"]
    assert history_path().stat().st_mode & 0o077 == 0
    for number in range(2 * HISTORY_MOST):
        again.add("filters", str(number))
    assert len(History().of("filters")) == HISTORY_MOST


def test_a_damaged_history_is_forgotten() -> None:
    history_path().parent.mkdir()
    for text in ("{", "[]", '{"filters": 3, "commands": ["a", 4]}'):
        history_path().write_text(text)
        assert History().of("filters") == []


def test_a_folder_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    history = History()
    history.add("filters", "a")
    assert history.of("filters") == ["a"]
