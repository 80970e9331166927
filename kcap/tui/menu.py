"""Small windows over the screen: a menu, a prompt, a text.

In: choices, texts. Out: the chosen or typed value, None for Escape. Law: every choice has its own key and can be clicked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from kcap.output.grid import clean
from kcap.tui.views import VIEWS

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of a menu."""

    name: str
    key: str
    title: str
    note: str = ""
    able: bool = True
    why_not: str = ""
    """Why the choice is not available; shown in place of the note."""


WIDEST, BESIDE = 0.95, 8
"""The largest share of the screen for a window; cells of its frame and of the blanks around a note."""


class Choices(OptionList):
    """Lines to choose from. If the terminal has no room for a line, paging keys do nothing."""

    def action_page_up(self) -> None:
        if self.scrollable_content_region.area:
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        if self.scrollable_content_region.area:
            super().action_page_down()  # type: ignore[no-untyped-call]


class Window(ModalScreen[Result]):
    """A window over the screen. It is dismissed once, and returns one result."""

    DEFAULT_CSS = f"""
    Window {{
        align: center middle;
        background: $background 40%;
        #box {{
            width: auto; min-width: 30; max-width: {WIDEST:.0%}; height: auto; max-height: 90%; border: round $primary;
            background: $surface; padding: 0 1; border-title-style: bold; border-title-color: $text;
            border-subtitle-color: $text-muted;
        }}
        #note {{ color: $text-muted; height: auto; }}
        Input {{ border: none; height: 1; padding: 0; background: $boost; }}
        OptionList, OptionList:focus {{
            border: none; padding: 0; height: 1fr; background: $surface; text-wrap: nowrap; text-overflow: ellipsis;
            scrollbar-size: 1 1;
        }}
    }}
    """

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Closes the window; does nothing if it is closed already."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()


class Box(Vertical):
    """The frame of a window, with texts on its upper and lower edge."""

    def __init__(self, title: str, below: str = "") -> None:
        super().__init__(id="box")
        self.border_title, self.border_subtitle = title, below


class Menu(Window[str | None]):
    DEFAULT_CSS = "Menu OptionList, Menu OptionList:focus { width: auto; max-width: 100%; height: auto; max-height: 100%; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "Back")]

    def __init__(self, title: str, choices: Sequence[Choice], note: str = "") -> None:
        super().__init__()
        self.heading, self.choices, self.note = title, choices, note

    def compose(self) -> ComposeResult:
        width = max((len(choice.title) for choice in self.choices), default=0)
        with Box(self.heading, self.note):
            yield Choices(*(Option(self._line(choice, width), choice.name, not choice.able) for choice in self.choices))

    def _line(self, choice: Choice, width: int) -> Text:
        """The line of a choice: its note is aligned after the longest title, nearer if it would be cut."""
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f" {choice.key:<2} ", "bold")
        note = choice.note if choice.able else choice.why_not or choice.note
        room = int(self.app.size.width * WIDEST) - BESIDE - line.cell_len - cell_len(note)
        line.append(set_cell_size(choice.title, max(cell_len(choice.title), min(width, room))))
        if note:
            line.append(f"   {note}", "dim")
        line.append(" ")
        return line

    def on_key(self, event: Key) -> None:
        """Handles the key of a choice."""
        pressed = event.character or event.key
        exact = [choice for choice in self.choices if choice.key == pressed]
        alike = exact or [choice for choice in self.choices if choice.key.lower() == pressed.lower()]
        if len(alike) != 1:
            return
        event.stop()
        if alike[0].able:
            self.dismiss(alike[0].name)
        else:
            self.notify(f"{alike[0].title}: {alike[0].why_not or 'not now'}", severity="warning", timeout=4, markup=False)

    @on(OptionList.OptionSelected)
    def selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


def views_menu() -> Menu:
    return Menu("Views", [Choice(name, key, title) for name, (key, title, _) in VIEWS.items()])


COPIES: Final = {
    "value": ("v", "Value", "the cell is empty"), "name": ("n", "Exchange UID.N", ""), "row": ("r", "Row", ""),
    "line": ("l", "Line of the tree", "the exchange has not been read yet"),
    "tree": ("t", "Tree, as expanded", "the exchange has not been read yet"),
    "hex": ("h", "Bytes as hex", "no bytes are shown"), "filter": ("f", "Filter for this", "no filter for this"),
    "force": ("F", "Display filter", "no display filter is set"),
}  # fmt: skip
"""What can be copied -> its key, its title, why there is none."""


def copy_menu(texts: Mapping[str, str]) -> Menu:
    """The menu of texts to copy, each with its beginning."""
    found = {name: COPIES[name] for name in COPIES if name in texts}
    return Menu("Copy", [
        Choice(name, key, title, _beginning(texts[name]), bool(texts[name]), why) for name, (key, title, why) in found.items()
    ])  # fmt: skip


def copied(app: App[Any], texts: Mapping[str, str], name: str | None) -> None:
    """Copies the chosen text, and reports it."""
    if name is not None:
        app.copy_to_clipboard(texts[name])
        app.notify(f"copied: {clean(_beginning(texts[name]))}", timeout=2, markup=False)


def _beginning(text: str) -> str:
    return text[:40].replace("\n", " ").replace("\t", " ")


class Prompt(Window[str | None]):
    """An input line."""

    DEFAULT_CSS = "Prompt #box { width: 70; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, title: str, value: str = "", note: str = "", *, empties: bool = False) -> None:
        """`empties`: an empty line is a valid value."""
        super().__init__()
        self.heading, self.value, self.note, self.empties = title, value, note, empties

    def compose(self) -> ComposeResult:
        with Box(self.heading, "⏎ go   Esc back"):
            yield Input(self.value, compact=True, select_on_focus=False)
            if self.note:
                yield Static(self.note, id="note", markup=False)

    def on_mount(self) -> None:
        """Takes the focus before the window is visible; typing replaces the old text."""
        line = self.query_one(Input)
        self.set_focus(line)
        line.action_select_all()

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        self.dismiss(text if text or self.empties else None)


READ: Final = 78
"""Columns of a window of text."""
READ_AROUND: Final = 8
"""Columns of its frame and its scrollbar."""


class TextWindow(Window[None]):
    """A text to read."""

    DEFAULT_CSS = f"TextWindow #box {{ width: {READ}; max-width: 100%; height: 90%; }}"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,question_mark", "dismiss(None)", "Back")]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self.heading, self.text = title, text

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box") as box:
            box.border_title = self.heading
            box.border_subtitle = "Esc back"
            yield Static(self.text)
