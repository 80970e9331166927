"""The keys that work on a screen, from its bindings.

In: a screen and what has the focus. Out: a text. Law: what stands here is what the bindings do; each key stands once.
"""

from rich.text import Text
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

TITLES = {
    "ExchangeList": "The list",
    "Detail": "The tree",
    "Bytes": "The bytes",
    "Browser": "Everywhere",
    "KcapApp": "The program",
}


def help_of(screen: "Screen[object]", focused: DOMNode | None) -> Text:
    """The keys, those of the focused part first."""
    text = Text()
    seen: set[str] = set()
    parts: list[DOMNode] = [part for part in (focused, screen, screen.app) if part is not None]
    for part in parts:
        lines = list(_lines(part, seen))
        if lines:
            name = TITLES.get(type(part).__name__) or type(part).__name__
            text.append(f"{name}\n", "bold underline")
            for keys, what in lines:
                text.append(f"  {keys:<18}", "bold")
                text.append(f"{what}\n")
            text.append("\n")
    return text


def _lines(part: DOMNode, seen: set[str]) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for key, bindings in part._bindings.key_to_bindings.items():
        for binding in bindings:
            if key in seen or not binding.description:
                continue
            seen.add(key)
            found.setdefault((binding.action, binding.description), []).append(_display(part, binding))
    return [(", ".join(dict.fromkeys(keys)), what) for (_, what), keys in found.items()]


def _display(part: DOMNode, binding: Binding) -> str:
    return part.app.get_key_display(binding)
