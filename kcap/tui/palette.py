"""Commands by name: the entries of the command palette, and the line after `:`.

In: the main screen. Out: entries, their effects, and whether a typed text is a command. Law: every view, filter, column, file
to save and setting has an entry; an entry has the effect of its key.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kcap.output.grid import clean
from kcap.reports import drill_down
from kcap.tui.completion import check
from kcap.tui.finder import Finder, FinderEntry, Typed
from kcap.tui.list_columns import COMPOSED, HEADS, TIME_FORMS
from kcap.tui.quick_filters import QUICK, text_of
from kcap.tui.views import VIEWS

if TYPE_CHECKING:
    from kcap.tui.actions import ExchangeActions
    from kcap.tui.main_screen import MainScreen
    from kcap.tui.note_actions import NoteActions

NOTE: Final = "letters of a command; or 17, #packet, UID.N, 50%, goto 08:15:30, topic X, filter TEXT, notes FILE, diff FILE"
FILTERED: Final = {
    "topic": "topics", "group": "group_id", "client": "client_id", "api": "api", "error": "error", "broker": "server_ip",
}  # fmt: skip
"""Command -> the column that it filters by."""
ACTIONS: Final = (
    ("Filter: type a display filter", "filter", "/"), ("Filter: by this cell", "apply('selected')", "a"),
    ("Filter: exclude this cell", "apply('not')", "!"), ("Filter: combine with this cell", "apply_menu", "A"),
    ("Filter: save for this capture", "note('filters')", ""), ("Filter: quick filters", "quick", "f"),
    ("Save: rows, packets, this exchange, the screen", "export", "e"), ("Save: notes of this capture", "note('save')", ""),
    ("Copy: value, row, tree, bytes, filter", "copy", "y"), ("Mark this exchange", "mark", "m"),
    ("Comment on this exchange", "note('comment')", ";"), ("Ignore this exchange", "note('ignore')", "i"),
    ("Time reference: this exchange", "note('reference')", "r"), ("Noted exchanges", "note('list')", "M"),
    ("Profiles: columns, rules, filters", "note('profiles')", ""), ("Coloring rules", "note('rules')", ""),
    ("Columns: choose and order", "columns", "c"), ("Follow the connection", "conversation", "w"),
    ("Search in this pane", "search", "Ctrl+F"), ("Latency over time", "timeline", "x"),
    ("Bytes: show or hide", "panes('bytes')", "b"), ("Details: show or hide", "panes('detail')", "d"),
    ("Layout: details below or beside", "panes('layout')", "|"), ("Zoom this pane", "panes('zoom')", "\\"),
    ("Auto scroll to the end", "follow", "F"), ("Stop reading", "stop", "Ctrl+S"), ("Help: keys", "app.help", "F1"),
    ("Quit", "app.quit", "q"),
)  # fmt: skip
"""Title, action of the main screen, key."""
SAVES: Final = (
    ("packets", "Save: packets of this exchange"), ("marked", "Save: packets of the marked exchanges"),
    ("shown", "Save: packets of displayed exchanges"), ("rows", "Save: displayed rows as csv, jsonl, parquet, arrow"),
    ("tree", "Save: this exchange as text"), ("screen", "Save: the screen as SVG"),
)  # fmt: skip


ALSO: Final = {
    "Save": "export", "Mark": "bookmark", "Coloring": "colour rules highlight", "View: Problems": "diagnoses check",
    "Follow": "stream", "View: Capture health": "anomalies oddities",
    "View: Conversations": "tls connections", "Filter: save": "bookmark", "Comment": "note annotate",
}  # fmt: skip
"""Beginning of titles -> what other programs call it."""


class Palette:
    """The commands of a screen."""

    def __init__(self, screen: "MainScreen", actions: "ExchangeActions", notes: "NoteActions") -> None:
        self.screen, self.actions, self.notes = screen, actions, notes

    # -- entries ------------------------------------------------------------------------------------------------------
    def entries(self) -> list[FinderEntry]:
        """All commands, by name."""
        row = self.actions.row()
        out = [FinderEntry(f"view {name}", f"View: {title}", key) for name, (key, title, _) in VIEWS.items()]
        out += [FinderEntry(f"action {action}", title, key) for title, action, key in ACTIONS]
        out += [
            FinderEntry(f"saved {name}", f"Filter: {clean(name)}", clean(text)) for name, text in self.notes.filters().items()
        ]
        for quick in QUICK:
            if (text := text_of(quick, row)) is not None:
                out.append(FinderEntry(f"set {text}", f"Filter: {quick.title}", f"f {quick.key}"))
        out.append(FinderEntry("set ", "Filter: clear", "f x"))
        out += [FinderEntry(f"slowest {api}", f"Slowest {clean(api)}") for api in self.screen.home.values("api")]
        out += [FinderEntry(f"save {name}", title) for name, title in SAVES]
        out += [FinderEntry(f"theme {name}", f"Theme: {name}") for name in sorted(self.screen.app.available_themes)]
        out += [FinderEntry(f"time {form}", f"Time display: {form}", "t") for form in TIME_FORMS]
        out += [FinderEntry(f"profile {name}", f"Profile: {name or 'default'}") for name in self.notes.names()]
        shown = {head.name for head, _ in self.screen.listed.heads}
        for name in dict.fromkeys([*(head.name for head in COMPOSED), *HEADS]):
            title = HEADS[name].title
            out.append(FinderEntry(f"column {name}", f"Column: {'hide' if name in shown else 'show'} {title}"))
        out += [FinderEntry(f"sort {name}", f"Sort by {HEADS[name].title}", "s") for name in dict.fromkeys([*shown, *HEADS])]
        from kcap.filter.fields import fields  # schemas are large

        out += [FinderEntry(f"field {name}", f"Filter field: {name}", "/") for name in fields()]
        return [
            replace(entry, also=also)
            if (also := " ".join(words for start, words in ALSO.items() if entry.title.startswith(start)))
            else entry
            for entry in out
        ]

    def open(self) -> None:
        history = self.screen.home.history
        self.screen.app.push_screen(
            Finder("Command", self.entries(), NOTE, history=history.of("commands"), accepts=self.accepts, why=self.why),
            self.done,
        )

    def done(self, chosen: "str | Typed | None") -> None:
        if isinstance(chosen, Typed):
            self.screen.home.history.add("commands", chosen.text)
            self.type(chosen.text)
        elif chosen is not None:
            verb, _, value = chosen.partition(" ")
            self.carry_out(verb, value)

    def carry_out(self, verb: str, value: str) -> None:
        screen, home = self.screen, self.screen.home
        if verb == "view":
            home.open_view(value)
            return
        home.to_list()
        does: dict[str, Callable[[str], Any]] = {
            "action": lambda action: screen.call_later(screen.run_action, action),
            "set": home.narrow, "saved": lambda name: home.narrow(self.notes.filters().get(name, "")),
            "slowest": self.actions.slowest, "save": self.actions.save, "theme": lambda name: setattr(home, "theme", name),
            "time": self.actions.set_time, "profile": self.notes.switch, "column": self._flip_column, "sort": self._sort,
            "field": lambda name: screen.bar.prepare(f"{name} "),
        }  # fmt: skip
        does[verb](value)

    def _sort(self, name: str) -> None:
        self.screen.view.order_by(name)
        self.screen.rearrange()
        self.screen.home.save_settings()

    def _flip_column(self, name: str) -> None:
        names = [head.name for head, _ in self.screen.listed.heads]
        names = [one for one in names if one != name] if name in names else [*names, name]
        self.actions.take_columns(names)

    # -- typed commands -----------------------------------------------------------------------------------------------
    def accepts(self, text: str) -> bool:
        """Whether a text is a complete command."""
        return self.meaning(text) is not None

    def why(self, text: str) -> str:
        """Why a text is not a command, if it begins with the first word of one."""
        word, _, value = text.lstrip(":").strip().partition(" ")
        word, value = word.lower(), value.strip()
        if word == "goto" and value and ":" not in value and not self.actions.is_place(value):
            return f"{clean(value)} is no row, #packet, UID.N, 50% or time as 08:15:30"
        error = check(value)[1] if word == "filter" else None
        return str(getattr(error, "reason", error)) if error is not None else ""

    def type(self, text: str) -> None:
        found = self.meaning(text)
        if found is not None:
            found()

    def meaning(self, text: str) -> "Callable[[], Any] | None":
        """The effect of a text; None if it is not a command."""
        text = text.lstrip(":").strip()
        word, _, value = text.partition(" ")
        word, value, home, actions = word.lower(), value.strip(), self.screen.home, self.actions
        values: dict[str, Callable[[], Any]] = {
            "diff": lambda: home.compare_with(value),
            "goto": lambda: actions.go_to_time(value) if ":" in value else actions.go(value),
            "filter": lambda: home.narrow(value),
            "notes": lambda: self.notes.load(value),
        }
        if value and word in values:
            return None if self.why(text) else values[word]
        if value and word in FILTERED:
            only = drill_down.topic(value) if word == "topic" else drill_down.equals(FILTERED[word], value)
            return lambda: home.narrow(f"&& {only}")
        if not value and word == "clear":
            return lambda: home.narrow("")
        if not value and word in VIEWS:
            return lambda: home.open_view(word)
        return (lambda: actions.go(text)) if actions.is_place(text) else None
