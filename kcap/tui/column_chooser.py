"""A window to choose the columns of the list and their order.

In: the displayed columns. Out: the chosen ones, in order; an empty list for the defaults; None for no change. Law: every
column of the table can be chosen.
"""

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from kcap.columns import EXCHANGES
from kcap.tui.keys import Keys
from kcap.tui.list_columns import COMPOSED, HEADS
from kcap.tui.menu import Box, Choices, Window

DOCS = {column.name: column.doc for column in EXCHANGES}


class ColumnChooser(Window["list[str] | None"]):
    DEFAULT_CSS = "ColumnChooser #box { width: 76; height: 90%; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "flip", "On or off"),
        Binding("shift+up,K", "shift(-1)", "Up"),
        Binding("shift+down,J", "shift(1)", "Down"),
        Binding("r", "reset", "Reset"),
        Binding("enter", "done", "Done", priority=True),
        Binding("escape", "dismiss(None)", "Back", key_display="Esc"),
    ]

    def __init__(self, shown: list[str]) -> None:
        super().__init__()
        self.shown = [*shown]
        every = dict.fromkeys([*(head.name for head in COMPOSED), *HEADS])
        self.names = [*shown, *(name for name in every if name not in shown)]

    def compose(self) -> ComposeResult:
        with Box("Columns of the list"):
            yield Input(placeholder="name or meaning", compact=True)
            yield Choices()
            yield Keys()

    def on_mount(self) -> None:
        self._tell()
        self.query_one(OptionList).focus()

    def _line(self, name: str) -> Text:
        head = HEADS[name]
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("[x] " if name in self.shown else "[ ] ", "bold" if name in self.shown else "dim")
        composed = any(head.name == name for head in COMPOSED)
        line.append(f"{head.title if composed else name:<24}", "bold" if name in self.shown else "")
        line.append(", ".join(head.columns) if composed else DOCS.get(name, ""), "dim")
        return line

    def _tell(self, at: str | None = None) -> None:
        listed = self.query_one(OptionList)
        listed.clear_options()
        sought = self.query_one(Input).value.lower()
        able = [name for name in self.names if sought in name.lower() or sought in DOCS.get(name, HEADS[name].title).lower()]
        listed.add_options([Option(self._line(name), name) for name in able])
        listed.highlighted = able.index(at) if at in able else 0 if able else None

    @property
    def current(self) -> str | None:
        listed = self.query_one(OptionList)
        return listed.get_option_at_index(listed.highlighted).id if listed.highlighted is not None else None

    @on(OptionList.OptionSelected)
    def clicked(self, event: OptionList.OptionSelected) -> None:
        """A click has the effect of the space bar."""
        event.stop()
        self.action_flip()

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        event.stop()
        self._tell()

    def action_flip(self) -> None:
        name = self.current
        if name is None:
            return
        if name in self.shown:
            self.shown.remove(name)
        else:
            self.shown.append(name)
            self.names.remove(name)
            self.names.insert(len(self.shown) - 1, name)
        self._tell(name)

    def action_shift(self, by: int) -> None:
        name = self.current
        if name not in self.shown or name is None:
            return
        at = self.shown.index(name)
        to = max(0, min(len(self.shown) - 1, at + by))
        self.shown.insert(to, self.shown.pop(at))
        self.names = [*self.shown, *(other for other in self.names if other not in self.shown)]
        self._tell(name)

    def action_reset(self) -> None:
        """Selects the default columns."""
        self.dismiss([])

    def action_done(self) -> None:
        self.dismiss(list(self.shown) or None)
