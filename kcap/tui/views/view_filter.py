"""The display filter of a view: typed, chosen or taken from a cell, while the view stays open and follows it.

In: a view, keys. Out: another display filter. Law: keys that filter the list do the same in a view.
"""

from typing import Final

from kcap.tui.completion import joined
from kcap.tui.menu import Choice, Menu, Prompt
from kcap.tui.quick_filters import QUICK
from kcap.tui.views.open_view import OpenView

NO_FILTER: Final = "no filter belongs to this cell"


class ViewFilter:
    """The filter of one view."""

    def __init__(self, view: OpenView) -> None:
        self.view = view

    @property
    def text(self) -> str:
        """The filter of the cell or bar under the cursor; empty if there is none."""
        found = self.view.careful(lambda: self.view.down, None)
        return f'connection == "{found[0]}" && exchange == {found[1]}' if isinstance(found, tuple) else found or ""

    def within(self, text: str, how: str = "and") -> str:
        """A filter combined with the display filter, if the view follows that."""
        return joined(self.view.home.book.filter_text if self.view.FILTERED else "", how, text)

    def ask(self) -> None:
        note = "an empty line removes the filter; completion works in the list"
        old = self.view.home.book.filter_text
        self.view.app.push_screen(Prompt("Display filter", old, note, empties=True), self._set)

    def quick(self) -> None:
        """Opens the menu of quick filters that are not built from a row of the list."""
        choices = [Choice(quick.text, quick.key, quick.title, quick.text) for quick in QUICK if isinstance(quick.text, str)]
        choices.append(Choice("", "x", "No filter"))
        self.view.app.push_screen(Menu("Quick filters", choices), self._set)

    def apply(self, how: str) -> None:
        """Filters by the cell or bar under the cursor, or excludes it."""
        if text := self.text:
            self._set(self.within(text, "and not" if how == "not" else "and"))
        else:
            self.view.say_once(NO_FILTER)

    def _set(self, text: str | None) -> None:
        if text is not None:
            self.view.home.narrow(text, stay=True)
            self.view.look()
