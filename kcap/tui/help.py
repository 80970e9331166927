"""Lists the keys that work on a screen, from its bindings.

In: a screen and the focused widget. Out: a text. Law: the text is made of the bindings themselves; each key appears once.
"""

from rich.text import Text
from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.screen import Screen


def help_of(screen: "Screen[object]", focused: DOMNode | None) -> Text:
    """The keys by group (`BINDING_GROUP_TITLE` of the class); those of the focused widget come first."""
    text = Text()
    seen: set[str] = set()
    parts: list[DOMNode] = [part for part in (focused, screen, screen.app) if part is not None]
    for part in parts:
        lines = list(_lines(part, seen))
        if lines:
            text.append(f"{part.BINDING_GROUP_TITLE or 'This pane'}\n", "bold underline")
            for keys, what in lines:
                text.append(f"  {keys:<18}", "bold")
                text.append(f"{what}\n")
            text.append("\n")
    return text


def _lines(part: DOMNode, seen: set[str]) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], list[str]] = {}
    ours = _declared(type(part))
    for key, bindings in part._bindings.key_to_bindings.items():
        for binding in bindings:
            if key in seen or not binding.description or key not in ours:
                continue
            seen.add(key)
            found.setdefault((binding.action, binding.description), []).append(_display(part, binding))
    return [(", ".join(dict.fromkeys(keys)), what) for (_, what), keys in found.items()]


def _declared(kind: type) -> set[str]:
    """Keys that kcap binds; those that a widget merely inherits from Textual are no part of the program."""
    kinds = [one for one in kind.__mro__ if not one.__module__.startswith("textual.")]
    return {key for one in kinds for key in BindingsMap(one.__dict__.get("BINDINGS", ())).key_to_bindings}


def _display(part: DOMNode, binding: Binding) -> str:
    return part.app.get_key_display(binding)
