"""Lists the keys that work on a screen, from its bindings.

In: a screen and the focused widget. Out: a text. Law: the text is made from the bindings themselves; each key appears once, and
only if it has an effect; in a view the columns of the section are explained.
"""

from typing import TYPE_CHECKING

from rich.text import Text
from textual.actions import parse
from textual.binding import BindingsMap
from textual.dom import DOMNode
from textual.screen import Screen

from kcap.reports.text import wrapped
from kcap.tui.menu import READ, READ_AROUND
from kcap.tui.views.column_help import explained

if TYPE_CHECKING:
    from kcap.tui.views.screen import View

HANGING = 20
"""Cells of a key or a heading with the blanks after it."""


def help_of(screen: "Screen[object]", focused: DOMNode | None) -> Text:
    """The keys by group (`BINDING_GROUP_TITLE` of the class); those of the focused widget come first."""
    width = min(READ, screen.size.width) - READ_AROUND
    text = Text()
    seen: set[str] = set()
    parts: list[DOMNode] = [part for part in (focused, screen, screen.app) if part is not None]
    for part in parts:
        lines = list(_lines(part, seen))
        if lines:
            text.append(f"{part.BINDING_GROUP_TITLE or 'This pane'}\n", "bold underline")
            for keys, what in lines:
                _entry(text, keys, what, width)
            text.append("\n")
    return text


def columns_of(view: "View") -> Text:
    """The sentences above the displayed section, if they are cut there, and what its columns mean."""
    width = min(READ, view.size.width) - READ_AROUND
    text = Text("".join(f"{line}\n" for words, _ in view.cut_remarks for line in [*wrapped(words, width), ""]))
    found = list(explained(view.NAME, view.sheet)) if view.sheet is not None else []
    if found and view.sheet is not None:
        text.append(f"Columns of {view.sheet.name}\n", "bold underline")
        for head, words in found:
            _entry(text, head, words, width)
        text.append("\n")
    return text


def _entry(text: Text, name: str, words: str, width: int) -> None:
    """A name and its meaning; a long name has a line of its own."""
    text.append(f"  {name:<{HANGING - 2}}" if len(name) < HANGING - 2 else f"  {name}\n{'':{HANGING}}", "bold")
    text.append(f"\n{'':{HANGING}}".join(wrapped(words, width - HANGING)) + "\n")


def _lines(part: DOMNode, seen: set[str]) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], list[str]] = {}
    ours = _declared(type(part))
    for key, bindings in part._bindings.key_to_bindings.items():
        for binding in bindings:
            _, action, parameters = parse(binding.action)
            if key in seen or not binding.description or key not in ours or part.check_action(action, parameters) is False:
                continue
            seen.add(key)
            what = getattr(part, "describe", lambda _action, _parameters: "")(action, parameters) or binding.description
            found.setdefault((binding.action, what), []).append(part.app.get_key_display(binding))
    return [(", ".join(dict.fromkeys(keys)), what) for (_, what), keys in found.items()]


def _declared(kind: type) -> set[str]:
    """Keys that kcap binds, without those that a widget merely inherits from Textual."""
    kinds = [one for one in kind.__mro__ if not one.__module__.startswith("textual.")]
    return {key for one in kinds for key in BindingsMap(one.__dict__.get("BINDINGS", ())).key_to_bindings}
