"""Turns tones into styles: the one place where a view's plain lines get their colors.

In: lines of texts with tones, a widget. Out: styles and Rich text. Law: a tone is a color of the theme and never the only
carrier of a meaning.
"""

from collections.abc import Sequence
from typing import Any, Final

from rich.style import Style
from rich.text import Text
from textual.css.styles import RenderStyles
from textual.dom import DOMNode

from kcap.tui.views.sheet import Line

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
    _tones: dict[str, Style] | None = None
    """Styles of tones that were painted since the stylesheet was applied last."""

    def tone_style(self, name: str) -> Style:
        """A tone's style, without a background."""
        if self._tones is None:
            self._tones = {"": Style()}
        made = self._tones.get(name)
        if made is None:
            found = self.get_component_rich_style(f"{PREFIX}{name}", partial=True)  # type: ignore[attr-defined]
            made = Style(color=found.color, bold=found.bold, dim=found.dim, underline=found.underline)
            self._tones[name] = made
        return made

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
        self._tones = None
        for name in [name for name in self._component_styles if name.startswith(PREFIX)]:
            del self._component_styles[name]
        super().notify_style_update()  # type: ignore[misc]


def text(widget: Toned, lines: Sequence[Line]) -> Text:
    """Some lines as one text."""
    out = Text()
    for at, line in enumerate(lines):
        out.append("\n" if at else "")
        for words, tone in line:
            out.append(words, widget.tone_style(tone))
    return out
