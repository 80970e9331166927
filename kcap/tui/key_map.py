"""The key map: the meaning of each key in the list, in views and on an exchange, and why one has no effect on a screen.

In: a key, a screen. Out: a sentence. Law: a key has one meaning on every screen; a key without an effect says so. Menus and
windows with inputs have keys of their own, which they show.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from textual import events
from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from kcap.tui.views import VIEWS


class Meaning(NamedTuple):
    """The meaning of a key."""

    words: str
    where: str
    """Where it has an effect; appended after a comma."""
    actions: frozenset[str]
    """Actions that it may be bound to."""


LISTED: Final = "in the list"
VIEWED: Final = "in views"
BOTH: Final = "in the list and in views"
TREE: Final = "in the tree of an exchange"
LINES: Final = "where there are lines"


def _of(words: str, where: str, *actions: str) -> Meaning:
    return Meaning(words, where, frozenset(actions))


KEYS: Final[dict[str, Meaning]] = {
    **dict.fromkeys(("up", "k"), _of("a line up", LINES, "move")),
    **dict.fromkeys(("down", "j"), _of("a line down", LINES, "move")),
    **dict.fromkeys(("left", "h"), _of("a cell, a byte or a time to the left", LINES, "side", "move", "shut")),
    **dict.fromkeys(("right", "l"), _of("a cell, a byte or a time to the right", LINES, "side", "move", "open")),
    "shift+left": _of("scroll to the left", TREE, "slide"),
    "shift+right": _of("scroll to the right", TREE, "slide"),
    "pageup": _of("a page up", LINES, "page"),
    "pagedown": _of("a page down", LINES, "page"),
    **dict.fromkeys(("home", "g"), _of("the first", LINES, "edge", "end")),
    **dict.fromkeys(("end", "G"), _of("the last", LINES, "edge", "end")),
    "enter": _of("open what is under the cursor", BOTH, "choose", "flip"),
    "space": _of("open or close a line, begin a range of time", "in the tree and the timeline", "flip", "begin"),
    "backspace": _of("the line above in the tree", TREE, "up"),
    "asterisk": _of("open all lines", TREE, "open_all"),
    "underscore": _of("close all lines", TREE, "shut_all"),
    "tab": _of("the next pane", BOTH, "pane"),
    "shift+tab": _of("the previous pane", BOTH, "pane"),
    **dict.fromkeys("123456", _of("a pane or a section by its number", BOTH, "part", "section")),
    "slash": _of("display filter", BOTH, "filter"),
    "f": _of("quick filters", BOTH, "quick", "side"),
    "a": _of("filter by what is under the cursor", BOTH, "apply"),
    "exclamation_mark": _of("exclude what is under the cursor", BOTH, "apply"),
    "A": _of("combine filters", LISTED, "apply_menu"),
    "u": _of("all exchanges, whatever the display filter", "in the ladder", "unfiltered"),
    "v": _of("views", BOTH, "views"),
    "e": _of("save", BOTH, "export"),
    "y": _of("copy", BOTH, "copy"),
    **dict.fromkeys(("f1", "question_mark"), _of("help", BOTH, "help")),
    "q": _of("leave the screen", BOTH, "quit", "pop_screen"),
    "escape": _of("back", BOTH, "back", "pop_screen"),
    **dict.fromkeys(("colon", "ctrl+p", "ctrl+g"), _of("a command", BOTH, "command")),
    "ctrl+q": _of("quit", BOTH, "quit"),
    "ctrl+s": _of("stop reading", LISTED, "stop"),
    "ctrl+f": _of("search", BOTH, "search"),
    "n": _of("the next match", BOTH, "search_on"),
    "N": _of("the previous match", BOTH, "search_on"),
    **dict.fromkeys(("f8", "ctrl+n"), _of("the next exchange, from any pane", LISTED, "step")),
    "f7": _of("the previous exchange, from any pane", LISTED, "step"),
    "left_square_bracket": _of("the previous exchange, connection or release", BOTH, "neighbor", "other", "release"),
    "right_square_bracket": _of("the next exchange, connection or release", BOTH, "neighbor", "other", "release"),
    "left_curly_bracket": _of("earlier exchanges", "in the ladder and a followed connection", "part_of_time"),
    "right_curly_bracket": _of("later exchanges", "in the ladder and a followed connection", "part_of_time"),
    "percent_sign": _of("from a request to its response", "in the ladder", "mate"),
    "w": _of("follow the connection", BOTH, "conversation"),
    "m": _of("mark the exchange", BOTH, "mark"),
    "quotation_mark": _of("the previous mark", LISTED, "mark_step"),
    "apostrophe": _of("the next mark", LISTED, "mark_step"),
    "semicolon": _of("comment on the exchange", LISTED, "note"),
    "i": _of("ignore the exchange", LISTED, "note"),
    "r": _of("time reference", LISTED, "note"),
    "M": _of("the noted exchanges", LISTED, "note"),
    "o": _of("options", LISTED, "note"),
    "s": _of("sort", BOTH, "sort"),
    "z": _of("reverse the order", BOTH, "turn"),
    "c": _of("columns", BOTH, "columns", "all_columns"),
    "greater_than_sign": _of("a wider column", LISTED, "widen"),
    "less_than_sign": _of("a narrower column", LISTED, "widen"),
    "B": _of("group by something else", VIEWED, "regroup"),
    "b": _of("bytes", "in the list and a followed connection", "bytes"),
    "d": _of("details", BOTH, "detail", "details"),
    "plus": _of("larger pane", BOTH, "share"),
    "minus": _of("smaller pane", BOTH, "share"),
    "backslash": _of("zoom the pane", LISTED, "zoom"),
    "vertical_line": _of("details below or beside", LISTED, "layout"),
    "x": _of("latency over time", LISTED, "timeline"),
    "t": _of("time display format", "in the list and the ladder", "time"),
    "p": _of("with or without long polls", "in Statistics", "polls"),
    "F": _of("auto scroll to the end", LISTED, "follow"),
    **{
        {"=": "equals_sign"}.get(key, key): _of(title, BOTH, "view", "switch")
        for key, title, _ in VIEWS.values()
    },
}  # fmt: skip
"""Key, by Textual's name -> its meaning."""
SILENT: Final = frozenset({"escape", "enter"})
"""Keys whose lack of an effect needs no reason: there is nothing to close or to open."""


def acts(screen: "Screen[Any]", key: str) -> bool:
    """Whether a key has an effect with the current focus."""
    for node, bindings in screen._modal_binding_chain:
        for binding in bindings.key_to_bindings.get(key, ()):
            _, action, parameters = parse(binding.action)
            if node.check_action(action, parameters) is not False:
                return True
    return False


def forwarded(path: str) -> Callable[..., None]:
    """The action of a screen or a widget that another object performs: `actions.copy`."""
    find = attrgetter(path)

    def act(node: DOMNode, *given: Any) -> None:
        find(node)(*given)

    return act


class ExplainsKeys(Screen[None]):
    """A screen that says why a key has no effect on it."""

    def unable(self, key: str) -> str | None:
        """Why a key that works on other screens, in other sections or on other rows has no effect here."""
        return None

    def on_key(self, event: events.Key) -> None:
        """Says why the key has no effect; bindings take precedence."""
        if self.app.screen is not self or event.key in SILENT or acts(self, event.key):
            return
        if not (why := self.unable(event.key)):
            shown = self.app.get_key_display(Binding(event.key, ""))
            meaning = KEYS.get(event.key)
            why = f"{shown}: {meaning.words}, {meaning.where}" if meaning else f"{shown} does nothing; F1 lists the keys"
        self.say_once(why)

    def say_once(self, why: str) -> None:
        """Says why a key has no effect; once for a key that is held down."""
        if all(one.message != why for one in self.app._notifications):
            self.notify(why, timeout=3, markup=False)
