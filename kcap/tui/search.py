"""Searches in the list, in a tree, in bytes. Free of widgets.

In: the search text, where to search, the start. Out: the next match. Law: the search wraps around once and matches the
displayed text of cells and lines, case-insensitively.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Final

from kcap.filter.ast import Compare, Filter, Or
from kcap.tui.list_columns import HEADS
from kcap.tui.list_model import ListModel
from kcap.tui.tree_lines import Outline

LEAST_DIGITS: Final = 2


@dataclass(frozen=True, slots=True)
class Needle:
    """The search text."""

    text: str

    @property
    def bytes(self) -> bytes:
        """The search bytes: hex digits after 0x, else the text."""
        digits = self.text[2:].replace(" ", "")
        if self.text.lower().startswith("0x") and len(digits) >= LEAST_DIGITS and len(digits) % 2 == 0:
            try:
                return bytes.fromhex(digits)
            except ValueError:
                pass
        return self.text.encode()

    def within(self, text: str) -> bool:
        """Whether a text contains it."""
        return self.text.lower() in text.lower()


def find_in_list(view: ListModel, needle: Needle, step: int) -> int | None:
    """The next row with a match in its displayed cells."""
    made = view.arranged
    if made is None or not len(made) or not needle.text:
        return None
    places = made.places(made.rows.passing(_texts(view, needle)))
    if step < 0:
        places = places[::-1]
    ahead = places[(places - view.cursor) * step > 0]
    return int(ahead[0]) if len(ahead) else int(places[0]) if len(places) else None


def _texts(view: ListModel, needle: Needle) -> Filter:
    """Whether a displayed text column matches."""
    import re

    from kcap.filter.fields import fields  # schemas are large

    names = [name for head in (HEADS[name] for name in view.names) for name in head.columns]
    known = fields()
    tests: list[Filter] = [
        Compare(known[name], "matches", re.escape(needle.text)) for name in dict.fromkeys([*names, "connection"])
        if known[name].kind in ("text", "address")
    ]  # fmt: skip
    return reduce(Or, tests)


def find_in_tree(outline: Outline, needle: Needle, step: int) -> int | None:
    """The next line with a match; collapsed lines are expanded if a match is inside, after lines that are visible already."""
    count = len(outline.lines)
    for at in range(1, count + 1):
        place = (outline.cursor + step * at) % count
        if needle.within("".join(text for text, _ in outline.lines[place].line)):
            outline.cursor = place
            return place
    before = count
    for at in range(count - 1, -1, -1):
        if outline.lines[at].name in ("request", "response"):
            outline.set_all(at, wanted=True)
    return find_in_tree(outline, needle, step) if len(outline.lines) > before else None
