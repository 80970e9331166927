"""Maps tones to styles: the one place where plain lines get their colors.

In: lines of texts with tones, a widget. Out: styles, Rich text, strips of a pane. Law: a tone is a color of the theme and never
the only carrier of a meaning: the selected span of the bytes is underlined, too. A line that cannot be painted affects only
that line.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kcap.tui.faults import stumbled
from kcap.tui.views.sheet import Line

PREFIX: Final = "tone--"
"""Prefix of the component classes of tones: those of `TONES`, and of selections, cursors and headings."""
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
"""CSS of every widget that paints lines."""
PANE_CSS: Final = (
    CSS
    + """
    & > .tone--dim { color: $foreground; text-style: dim; }
    & > .tone--pick { background: $primary 45%; color: $text; text-style: underline; }
"""
)
"""CSS of the panes of the main screen."""
FILLED: Final = frozenset({"pick", "cell", "cursor"})
"""Tones with a background."""
TONE: Final = itemgetter(1)


class Toned:
    """A widget that paints lines. It makes the style of a tone when the tone is first painted.

    Textual makes the styles of all COMPONENT_CLASSES of a widget each time that it applies its stylesheet, and a screen has a
    dozen widgets with 15 tones, few of which are visible: that took a tenth of the time to open a view. Law: a style is that of
    the stylesheet as it was last applied.
    """

    app: Any
    _component_styles: dict[str, RenderStyles]
    _tones: dict[str, Style] | None = None
    """Styles of tones that were painted since the stylesheet was last applied."""

    def tone_style(self, name: str) -> Style:
        """A tone's style, without a background unless the tone is one of `FILLED`."""
        if self._tones is None:
            self._tones = {"": Style()}
        made = self._tones.get(name)
        if made is None:
            filled = name in FILLED
            found = self.get_component_rich_style(f"{PREFIX}{name}", partial=not filled)  # type: ignore[attr-defined]
            made = self._tones[name] = Style(
                color=found.color, bgcolor=found.bgcolor if filled else None, bold=found.bold, dim=found.dim,
                underline=found.underline,
            )  # fmt: skip
        return made

    def get_component_styles(self, *names: str) -> RenderStyles:
        """Styles of components; those of tones are made when they are missing."""
        for name in names:
            if name not in self._component_styles and name.startswith(PREFIX):
                node = DOMNode(classes=name)
                node._attach(self)  # type: ignore[arg-type]
                self.app.stylesheet.apply(node, animate=False)
                self._component_styles[name] = node.styles
        made: RenderStyles = super().get_component_styles(*names)  # type: ignore[misc]
        return made

    def notify_style_update(self) -> None:
        """Discards the styles of tones after the stylesheet was applied."""
        self._tones = None
        for name in [name for name in self._component_styles if name.startswith(PREFIX)]:
            del self._component_styles[name]
        super().notify_style_update()  # type: ignore[misc]


class Lines(Toned, ScrollView, can_focus=True):
    """A pane of lines, of which only the visible ones are painted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
    ]
    _base: Style | None = None

    @property
    def base(self) -> Style:
        """The pane's own style; looking it up for each line takes a sixth of a repaint."""
        if self._base is None:
            self._base = self.rich_style
        return self._base

    def notify_style_update(self) -> None:
        """Repaints with the colors of the new theme."""
        super().notify_style_update()
        self._base = None

    def see_line(self, at: int, top: int, room: int) -> int:
        """The first of `room` visible lines that makes line `at` visible, as near to `top` as possible."""
        return at if at < top else at - room + 1 if at >= top + room else top

    def scroll_up_to(self, line: int) -> None:
        """Makes this the first visible line."""
        if line != self.scroll_offset.y:
            self.scroll_to(y=line, animate=False, force=True, immediate=True)

    def scroll_aside_to(self, column: int) -> None:
        """Makes this the first visible column."""
        self.scroll_to(x=column, animate=False, force=True, immediate=True)

    def strip(self, line: Line, width: int, base: Style) -> Strip:
        """A line cut to its width. Texts of one tone form one segment, since every further step costs by segments."""
        segments = [
            Segment("".join(text for text, _ in run), base + self.tone_style(tone) if tone else base)
            for tone, run in groupby(line, TONE)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def paint(self, y: int) -> Strip:
        """One line of the pane; `y` from its top."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """The same; an exception is shown in the line."""
        try:
            return self.paint(y)
        except Exception as error:  # noqa: BLE001 - one line that cannot be painted is no reason to lose the others
            stumbled(self, error)
            return Strip([Segment(f"  this line cannot be shown: {type(error).__name__}")]).adjust_cell_length(self.size.width)


def text(widget: Toned, lines: Sequence[Line]) -> Text:
    out = Text()
    for at, line in enumerate(lines):
        out.append("\n" if at else "")
        for words, tone in line:
            out.append(words, widget.tone_style(tone))
    return out
