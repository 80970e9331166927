"""How a report looks on the place it goes to."""

import pytest

from kcap.cli.report_text import WIDTH, style_of


def test_what_goes_to_no_terminal_has_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    style = style_of("report.txt")
    assert (style.width, style.color, style.unicode) == (WIDTH, False, True)
    assert style.red("bad") == style.bold("bad") == "bad"


def test_the_width_may_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert style_of(None).width == 150
