"""A window to find one of many things by typing some of its letters: commands, notes, profiles.

In: entries, in their order; texts entered before. Out: the name of the chosen entry, or the typed text if it is accepted; None
for Escape. Law: letters match in their order, at any position (fuzzy); without letters all entries are listed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.fuzzy import Matcher
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from kcap.output.grid import clean
from kcap.tui.list_columns import cut
from kcap.tui.menu import Box, Choices, Window

SHOWN: Final = 200
"""Maximum number of listed entries."""
TAKEN, NOTHING = "⏎ takes the text as typed", "nothing matches"
WIDTH: Final = 70
"""Cells of a line."""
BEHIND_SECONDS: Final = 0.1
"""Maximum time for which the list may lag behind letters that arrive faster than it is made (40 to 70 ms), such as
pasted ones."""


@dataclass(frozen=True, slots=True)
class FinderEntry:
    """An entry to find."""

    name: str
    title: str
    note: str = ""
    also: str = ""
    """Further words that find it."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A text that was accepted as typed."""

    text: str


class FinderLine(Input):
    """The input; keys that move in the list below it belong to the window."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.walk(-1)", "Up; earlier texts", priority=True),
        Binding("down", "screen.walk(1)", "Down", priority=True),
        Binding("pageup", "screen.walk(-10)", "Page up", show=False, priority=True),
        Binding("pagedown", "screen.walk(10)", "Page down", show=False, priority=True),
        Binding("tab", "screen.complete", "Complete", priority=True),
        Binding("escape", "screen.dismiss(None)", "Back", priority=True),
    ]


def ranked(entries: Sequence[FinderEntry], text: str) -> list[FinderEntry]:
    """Entries that match, the best first: those that begin with the text, then those that contain it, then the
    fuzzy matches."""
    sought = text.strip().lower()
    if not sought:
        return list(entries)
    matcher = Matcher(sought)
    scored = []
    for at, entry in enumerate(entries):
        title = f"{entry.title} {entry.also}".lower()
        score = matcher.match(title) or matcher.match(entry.note.lower()) * 0.25
        if score > 0:
            words = title.replace(":", " ").split()
            better = title.startswith(sought), any(word.startswith(sought) for word in words), sought in title, True
            rank = better.index(True)
            scored.append((rank, -score, at, entry))
    return [entry for _, _, _, entry in sorted(scored, key=lambda one: one[:3])]


class Finder(Window["str | Typed | None"]):
    DEFAULT_CSS = f"Finder #box {{ width: {WIDTH + 6}; height: 80%; }}"

    def __init__(
        self, title: str, entries: Sequence[FinderEntry], note: str = "", *, history: Sequence[str] = (),
        accepts: Callable[[str], bool] | None = None, why: Callable[[str], str] = lambda _text: "",
    ) -> None:  # fmt: skip
        """`accepts`: whether a text is accepted; `why`: why not, if it is more than that it is not listed; `history`: texts
        entered before, the last one last."""
        super().__init__()
        self.heading, self.entries, self.note = title, list(entries), note
        self.history, self.accepts, self.why = list(history), accepts, why
        self._past = len(self.history)
        self.listed: list[FinderEntry] = []
        self._behind = False

    def compose(self) -> ComposeResult:
        with Box(self.heading, "⏎ go   ↑↓ choose   Esc back"):
            yield FinderLine(compact=True, select_on_focus=False)
            if self.note:
                yield Static(self.note, id="note", markup=False)
            yield Choices()

    def on_mount(self) -> None:
        """Takes the focus before the window is visible."""
        self.query_one(Choices).can_focus = False
        self.set_focus(self.query_one(FinderLine))
        self._list("")

    def _catch_up(self) -> None:
        """Lists the entries that match the letters typed so far."""
        if self._behind:
            self._list(self.query_one(FinderLine).value)

    def _list(self, text: str) -> None:
        self._behind = False
        listed = self.query_one(Choices)
        self.listed = ranked(self.entries, text)[:SHOWN]
        listed.clear_options()
        listed.add_options([Option(self._line(entry)) for entry in self.listed])
        taken = self.accepts is not None and bool(text.strip()) and self.accepts(text)
        if not self.listed:
            listed.add_option(Option(f" {TAKEN if taken else NOTHING}", disabled=True))
        listed.highlighted = 0 if self.listed and text.strip() and not taken else None

    @staticmethod
    def _line(entry: FinderEntry) -> Text:
        room = max(10, WIDTH - min(34, cell_len(entry.note)) - 3) if entry.note else WIDTH - 1
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f" {cut(entry.title, room, right=False)}")
        line.append(f"  {entry.note}" if entry.note else "", "dim")
        return line

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        """Handles a change of the text; while more keys wait, the list is not made again."""
        event.stop()
        if not getattr(self.app, "more_keys", False):
            self._list(event.value)
        elif not self._behind:
            self._behind = True
            self.set_timer(BEHIND_SECONDS, self._catch_up)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Takes the highlighted entry, else the text."""
        event.stop()
        self._catch_up()
        at, text = self.query_one(Choices).highlighted, event.value.strip()
        if at is not None and at < len(self.listed):
            self.dismiss(self.listed[at].name)
        elif text and self.accepts is not None and self.accepts(text):
            self.dismiss(Typed(text))
        elif text:
            reason = self.why(text) or f"{cut(clean(text), WIDTH, right=False)} is not in the list"
            self.notify(reason, severity="warning", timeout=3, markup=False)

    @on(OptionList.OptionSelected)
    def clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self.listed[event.option_index].name)

    def action_walk(self, by: int) -> None:
        """Moves in the list; the texts entered before are above its first line."""
        self._catch_up()
        line, listed = self.query_one(FinderLine), self.query_one(Choices)
        at = listed.highlighted
        recalled = self._past < len(self.history) and line.value == self.history[self._past]
        if by < 0 and at is None and self.history and (not line.value or recalled):
            self._recall(max(0, self._past - 1))
        elif by > 0 and at is None and recalled:
            self._recall(self._past + 1)
        elif self.listed:
            place = (-1 if at is None else at) + by
            listed.highlighted = None if place < 0 else min(place, len(self.listed) - 1)

    def _recall(self, at: int) -> None:
        line = self.query_one(FinderLine)
        self._past = at
        line.value = self.history[at] if at < len(self.history) else ""
        line.cursor_position = len(line.value)

    def action_complete(self) -> None:
        """Completes with the next entry."""
        self.action_walk(1)
