"""Turns tones into styles: the one place where a view's plain lines get their colors.

In: lines of texts with tones, a widget. Out: Rich text and strips. Law: a tone is a color of the theme and never the only
carrier of a meaning.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from kcap.tui.views.sheet import TONES, Line

if TYPE_CHECKING:
    from textual.widget import Widget

CLASSES: Final = frozenset({f"tone--{tone}" for tone in TONES if tone} | {"tone--cursor", "tone--cell", "tone--head"})
CSS: Final = """
    & > .tone--bold { text-style: bold; }
    & > .tone--dim { text-style: dim; }
    & > .tone--good { color: $text-success; }
    & > .tone--care { color: $text-warning; }
    & > .tone--bad { color: $text-error; text-style: bold; }
    & > .tone--key { color: $text-accent; text-style: bold; }
    & > .tone--one { color: $text-primary; }
    & > .tone--two { color: $text-secondary; }
    & > .tone--three { color: $text-accent; }
    & > .tone--cursor { background: $boost; text-style: bold; }
    & > .tone--cell { background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold; }
    & > .tone--head { color: $text-secondary; text-style: bold; }
"""
"""Of every widget that paints lines."""


def style_of(widget: "Widget", tone: str) -> Style:
    """A tone's style, without a background."""
    if not tone:
        return Style()
    found = widget.get_component_rich_style(f"tone--{tone}", partial=True)
    return Style(color=found.color, bold=found.bold, dim=found.dim, underline=found.underline)


def segments(widget: "Widget", line: Line) -> list[Segment]:
    """A line as Rich has it."""
    return [Segment(text, style_of(widget, tone)) for text, tone in line]


def strip(widget: "Widget", line: Line, width: int, base: Style) -> Strip:
    """A line as Textual draws it."""
    return Strip([Segment(text, base + style_of(widget, tone)) for text, tone in line]).adjust_cell_length(width, base)


def text(widget: "Widget", lines: Sequence[Line]) -> Text:
    """Some lines as one text."""
    out = Text()
    for at, line in enumerate(lines):
        out.append("\n" if at else "")
        for words, tone in line:
            out.append(words, style_of(widget, tone))
    return out
