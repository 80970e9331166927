"""What went wrong is named, and its traceback is kept."""

import asyncio
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import WorkerFailed

from kcap.tui import faults
from kcap.tui.faults import one_line, origin, place, screen_of, short, write_fault


class Stumbling(Static):
    """A part with a fault."""

    def stumble(self) -> None:
        raise ValueError("a fault")


class View(Screen[None]):
    """A screen with it."""

    def compose(self) -> ComposeResult:
        yield Stumbling()


def caught(call: object) -> Exception:
    try:
        call()  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - any is looked at
        return error
    raise AssertionError("it did not fail")


def test_the_screen_of_a_fault_is_found() -> None:
    async def run() -> None:
        app: App[None] = App()
        async with app.run_test():
            view = View()
            await app.push_screen(view)
            part = view.query_one(Stumbling)
            error = caught(part.stumble)
            assert origin(error) is view
            assert origin(WorkerFailed(error)) is view, "a worker hands on what its work raised"
            assert (screen_of(part), screen_of(view), screen_of(app), screen_of(None)) == (view, view, None, None)

    asyncio.run(run())
    assert origin(caught(lambda: int("x"))) is None


def test_one_place_is_one_fault() -> None:
    def here() -> None:
        raise KeyError("a")

    assert place(caught(here)) == place(caught(here))
    assert place(caught(here)) != place(caught(lambda: int("x")))
    assert place(KeyError("never raised")) == (KeyError,)


def test_a_fault_in_one_line() -> None:
    assert one_line(ValueError("two\nlines \x1b[31m")) == "ValueError: two\\nlines \\x1b[31m"
    assert one_line(ValueError()) == "ValueError"


def test_tracebacks_are_kept_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    error = caught(lambda: int("x"))
    name = write_fault(error, "Statistics")
    text = Path(name).read_text(encoding="utf-8")
    assert "Statistics" in text
    assert "kcap 0" in text
    assert text.endswith("ValueError: invalid literal for int() with base 10: 'x'\n\n")
    write_fault(error, "Ladder")
    assert Path(name).read_text(encoding="utf-8").count("ValueError: ") == 2
    monkeypatch.setattr(faults, "LARGEST", 10)
    write_fault(error, "Ladder")
    assert Path(name).read_text(encoding="utf-8").count("ValueError: ") == 1, "it begins anew"
    monkeypatch.setenv("XDG_STATE_HOME", name)
    assert write_fault(error, "Ladder") == "", "where nothing can be written nothing is said to be there"


def test_a_path_as_a_person_types_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert short(tmp_path / "a" / "b") == "~/a/b"
    assert short(Path("/elsewhere/b")) == "/elsewhere/b"
