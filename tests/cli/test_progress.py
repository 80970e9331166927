"""Laws of progress: on a terminal, after a moment, and gone at the end."""

import io
from dataclasses import dataclass

import pytest

from kcap.cli import progress


@dataclass
class Reading:
    bytes: int = 129_000_000
    total_bytes: int | None = 300_000_000
    rows: int = 120_000


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_it_says() -> None:
    assert progress.describe(Reading(), 1.5) == "43%  129 of 300 MB  86 MB/s  120,000 rows  2 s left"
    assert progress.describe(Reading(total_bytes=None), 1.5) == "129 MB  86 MB/s  120,000 rows"
    assert progress.describe(Reading(bytes=0), 0) == "0%  0 of 300 MB  0 MB/s  120,000 rows"


def test_a_long_run_on_a_terminal_has_a_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    with progress.Progress(Reading(), shown=True) as line:
        line.step()
        line.step()
    assert screen.getvalue().count("43%") == 1, "not more often than the eye can follow"
    assert screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("screen", "shown"), [(io.StringIO(), True), (Screen(), False)])
def test_elsewhere_there_is_none(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, shown: bool) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    with progress.Progress(Reading(), shown=shown) as line:
        line.step()
    assert screen.getvalue() == ""


def test_a_short_run_has_none_either(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    with progress.Progress(Reading(), shown=True) as line:
        line.step()
    assert screen.getvalue() == ""
