"""Settings outlive a session."""

from pathlib import Path

import pytest

from kcap.tui.capture_model import CaptureModel
from kcap.tui.config import UiSettings, config_path, read_config, text_of, write_config
from kcap.tui.list_model import ListModel


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_what_is_written_is_read() -> None:
    look = UiSettings(["time", "api"], {"time": 20}, "delta", "columns", 60, bytes=False, detail=False, theme="nord",
                rules=[{"name": 'a "b"', "filter": "api == Fetch", "sign": "x", "tone": "key"}])  # fmt: skip
    write_config(look)
    assert read_config() == (look, [])


def test_without_a_file_there_are_defaults() -> None:
    assert read_config() == (UiSettings(), [])


def test_what_makes_no_sense_is_as_if_it_were_not_there() -> None:
    config_path().parent.mkdir()
    config_path().write_text(
        'columns = ["time", "nonsense"]\ntime = 7\nlayout = "x"\nshare = 99\nwidths = {time = 1}\nrules = 1\n'
    )
    look, wrong = read_config()
    assert (look.columns, look.time, look.layout, look.share, look.widths, look.rules) == (
        ["time"],
        "clock",
        "rows",
        45,
        {},
        [],
    )
    assert wrong == []


def test_a_file_that_does_not_read_is_told_and_left() -> None:
    config_path().parent.mkdir()
    config_path().write_text("columns = [")
    look, wrong = read_config()
    assert len(wrong) == 1
    write_config(look)
    assert config_path().read_text() == "columns = ["


def test_settings_that_cannot_be_written_trouble_nobody() -> None:
    config_path().parent.write_text("")
    write_config(UiSettings())


def test_a_view_takes_and_gives(book: CaptureModel) -> None:
    view = ListModel(book)
    UiSettings(["api"], {"api": 9}, "delta").give(view)
    assert (view.names, view.chosen, view.widths, view.form) == (["api"], True, {"api": 9}, "delta")
    look = UiSettings()
    look.take(view)
    assert (look.columns, look.widths, look.time) == (["api"], {"api": 9}, "delta")
    assert "columns" in text_of(look)
