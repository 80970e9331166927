"""Turns tones into styles: the one place where a view's plain lines get their colors.

In: lines of texts with tones, a widget. Out: Rich text and strips. Law: a tone is a color of the theme and never the only
carrier of a meaning.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.strip import Strip

from kcap.tui.views.sheet import Line

if TYPE_CHECKING:
    from textual.widget import Widget

PREFIX: Final = "tone--"
"""Of the component classes of tones: those of `TONES`, and what is selected, under the cursor, at the head of a table."""
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


class Toned:
    """A widget that paints lines: makes the style of a tone when it is painted first.

    Textual makes the styles of all of a widget's COMPONENT_CLASSES each time that it applies its stylesheet to it, and a
    screen has a dozen widgets with 15 tones of which few are seen: that took a tenth of opening a view. Law: a style is that of
    the stylesheet as it was applied last.
    """

    app: Any
    _component_styles: dict[str, RenderStyles]

    def get_component_styles(self, *names: str) -> RenderStyles:
        """Styles of components, those of tones made where they are not there."""
        for name in names:
            if name not in self._component_styles and name.startswith(PREFIX):
                node = DOMNode(classes=name)
                node._attach(self)  # type: ignore[arg-type]
                self.app.stylesheet.apply(node, animate=False)
                self._component_styles[name] = node.styles
        made: RenderStyles = super().get_component_styles(*names)  # type: ignore[misc]
        return made

    def notify_style_update(self) -> None:
        """The stylesheet was applied: styles of tones are made again."""
        for name in [name for name in self._component_styles if name.startswith(PREFIX)]:
            del self._component_styles[name]
        super().notify_style_update()  # type: ignore[misc]


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
