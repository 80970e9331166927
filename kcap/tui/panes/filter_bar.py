"""The filter bar: an input for a display filter, and a line of completions and errors below it.

In: keys. Out: a message when a filter is applied. Law: a filter that does not parse shows where and why, and is never applied;
applied filters are kept in a history.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from kcap.filter.parse import FilterError
from kcap.tui.completion import check, offers, put_in
from kcap.tui.key_map import forwarded
from kcap.tui.views.styled_lines import TextLine

HISTORY: int = 100
OFFER: str = "offer"
"""Key of the style metadata that holds the number of a clicked completion."""


class Line(Input):
    """The input; keys that move among completions belong to the bar."""

    BINDING_GROUP_TITLE = "The filter bar"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "bar_complete(1)", "Complete", priority=True),
        Binding("shift+tab", "bar_complete(-1)", "Previous completion", show=False, priority=True),
        Binding("up", "bar_history(-1)", "History"),
        Binding("down", "bar_history(1)", "Next in history", show=False),
        Binding("escape", "bar_leave", "Back"),
    ]

    @property
    def bar(self) -> "FilterBar":
        return self.query_ancestor(FilterBar)

    action_bar_complete = forwarded("bar.complete")
    action_bar_history = forwarded("bar.recall")
    action_bar_leave = forwarded("bar.leave")


class Help(Static):
    """The line below; a completion in it can be clicked."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Inserts the clicked completion and keeps the focus."""
        number = event.style.meta.get(OFFER)
        if number is not None:
            event.stop()
            self.query_ancestor(FilterBar).take(number)


class FilterBar(Vertical):
    DEFAULT_CSS = """
    FilterBar {
        height: auto;
        #line { height: 1; background: $surface; }
        #sign { width: 3; padding: 0 1; background: $surface; color: $text-muted; }
        Line { width: 1fr; background: $surface; }
        #shown { width: auto; padding: 0 1; color: $text-muted; background: $surface; }
        #help { height: auto; max-height: 3; padding: 0 0 0 3; display: none; background: $boost; }
        &.-open #help { display: block; }
        &.-valid #sign { background: $success-muted; color: $text-success; text-style: bold; }
        &.-valid Line { background: $success-muted; }
        &.-invalid #sign { background: $error-muted; color: $text-error; text-style: bold; }
        &.-invalid Line { background: $error-muted; }
    }
    """

    class Applied(Message):
        """Posted when a filter is applied."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """Posted when the bar is left."""

    def __init__(
        self,
        values: Callable[[str], Sequence[str]],
        history: Sequence[str] = (),
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """`values`: returns those of a column in the capture; `history`: filters that were applied, the last one last."""
        super().__init__(id=id)
        self._values = values
        self.history = list(history)
        self._at = len(self.history)
        self._in_force = ""
        self._offers: list[str] = []
        self._offered: tuple[str, int, int] | None = None
        """Text, start of the word, and caret when the completions were made."""
        self._number = -1

    def compose(self) -> ComposeResult:
        with Horizontal(id="line"):
            yield Static("/", id="sign")
            yield Line(
                placeholder="display filter, as in: api == Fetch && latency > 100ms",
                compact=True,
                id="text",
                select_on_focus=False,
            )
            yield TextLine("", id="shown")
        yield Help(id="help")

    @property
    def line(self) -> Line:
        return self.query_one(Line)

    # -- called from outside ------------------------------------------------------------------------------------------
    def force(self, text: str) -> None:
        self._in_force = text
        if text and (not self.history or self.history[-1] != text):
            self.history = [*(old for old in self.history if old != text), text][-HISTORY:]
        self._at = len(self.history)
        if not self.line.has_focus or not text:
            self.line.value = text
        self._judge()

    def prepare(self, text: str) -> None:
        """Sets a filter to edit."""
        self.screen.set_focus(self.line)
        self.line.value = text
        self.line.cursor_position = len(text)

    def show_count(self, shown: str) -> None:
        self.query_one("#shown", TextLine).set_text(shown)

    # -- messages of the input ----------------------------------------------------------------------------------------
    def _judge(self) -> None:
        """Shows whether the text parses, with completions or the error."""
        text = self.line.value
        tree, error = check(text)
        typing = self.line.has_focus
        self.set_class(bool(text.strip()) and error is None, "-valid")
        self.set_class(error is not None, "-invalid")
        self.query_one("#sign", Static).update("✓" if tree is not None else "✗" if error is not None else "/")
        help_text = Text(no_wrap=True, overflow="ellipsis")
        if typing:
            if self._offered is None:
                self._make_offers()
            if isinstance(error, FilterError) and text.strip():
                self._point(help_text, error)
            elif error is not None and text.strip():
                help_text.append(str(error).splitlines()[0], "bold")
            if self._offers:
                help_text.append("\n" if help_text else "")
                self._list(help_text)
        self.set_class(bool(help_text), "-open")
        self.query_one("#help", Static).update(help_text)

    def _point(self, help_text: Text, error: FilterError) -> None:
        offset = max(0, self.line.scroll_offset.x)
        blank = max(0, error.start - offset)
        room = max(10, self.size.width - 6)
        marks = "^" * max(1, min(error.end - error.start, room - blank))
        if blank + len(marks) + 2 + len(error.reason) > room and len(error.reason) + 3 <= blank:
            help_text.append(" " * (blank - len(error.reason) - 2) + error.reason + "  ")
            help_text.append(marks, "bold")
        else:
            help_text.append(" " * blank)
            help_text.append(marks, "bold")
            help_text.append(("\n" if blank + len(marks) + 2 + len(error.reason) > room else "  ") + error.reason)

    def _list(self, help_text: Text) -> None:
        first = max(0, self._number - 4)
        for at, offer in enumerate(self._offers[first : first + 20], first):
            look = "reverse bold" if at == self._number else "dim" if self._number >= 0 else ""
            help_text.append(offer, Style.parse(look) + Style(meta={OFFER: at}))
            help_text.append("  ")

    def _make_offers(self) -> None:
        line = self.line
        start, found = offers(line.value, line.cursor_position, self._values)
        self._offers, self._offered, self._number = found, (line.value, start, line.cursor_position), -1

    def complete(self, step: int) -> None:
        """Inserts the next completion; a single one is final."""
        if self._offered is None:
            self._make_offers()
        if not self._offers or self._offered is None:
            return
        self.take((self._number + step) % len(self._offers) if self._number >= 0 or step > 0 else len(self._offers) - 1)

    def take(self, number: int) -> None:
        """Inserts a completion."""
        if self._offered is None or not 0 <= number < len(self._offers):
            return
        self._number = number
        text, start, caret = self._offered
        made, place = put_in(text, start, caret, self._offers[number])
        with self.line.prevent(Input.Changed):
            self.line.value = made
            self.line.cursor_position = place
        if len(self._offers) == 1:
            self._offered = None
        self._judge()

    def recall(self, step: int) -> None:
        """Recalls a filter from the history."""
        if not self.history:
            return
        self._at = max(0, min(len(self.history), self._at + step))
        text = self.history[self._at] if self._at < len(self.history) else ""
        self.line.value = text
        self.line.cursor_position = len(text)

    def leave(self) -> None:
        """Leaves the bar and restores the applied filter."""
        self.line.value = self._in_force
        self.post_message(self.Left())

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        event.stop()
        self._offered = None
        self._judge()

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Applies the text if it is a filter."""
        event.stop()
        if check(self.line.value)[1] is None:
            self.post_message(self.Applied(self.line.value.strip()))
        else:
            self._judge()

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        """Shows the help line."""
        self._offered = None
        self.call_after_refresh(self._judge)

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Hides the help line."""
        self.call_after_refresh(self._judge)
