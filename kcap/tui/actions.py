"""Runs the actions for the exchange under the cursor: filter, copy, save, search, go to.

In: the main screen. Out: filters, the clipboard (OSC 52, which works over ssh), files, another cursor position. Law:
long work runs in a thread and reports its end as a notification; a file is written only under a name that the user typed.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any, Final

from kcap.output.grid import clean
from kcap.reports import drill_down
from kcap.reports.text import count
from kcap.tui.beside import beside
from kcap.tui.clipboard import item_text, row_json, span_hex, tree_text
from kcap.tui.completion import joined
from kcap.tui.export import PACKETS, cut, protected, write_rows
from kcap.tui.list_columns import DEFAULTS
from kcap.tui.menu import Choice, Menu, Prompt, copied, copy_menu
from kcap.tui.quick_filters import QUICK, text_of
from kcap.tui.search import Needle, find_in_list, find_in_tree

if TYPE_CHECKING:
    from kcap.tui.main_screen import MainScreen
    from kcap.tui.note_actions import NoteActions

PLACE: Final = re.compile(r"#\d+|\d+%|\d[\d,]*|C\w+\.\d+", re.ASCII)
SAVED_KEYS: Final = "123456789"
"""Keys of saved filters in the menu of filters."""
NOTHING: Final = "no exchange is selected"
UNMARKED: Final = "no exchange is marked; m marks one"


class ExchangeActions:
    """Filters, copies, saves, searches and goes to exchanges for the main screen, which holds one of these."""

    def __init__(self, screen: "MainScreen", notes: "NoteActions") -> None:
        self.screen, self.notes = screen, notes
        self.needle: Needle | None = None
        """The last search."""

    def set_time(self, form: str) -> None:
        self.screen.view.form = form
        self.screen.listed.renew()
        self.screen.home.save_settings()

    def neighbor(self, step: int) -> None:
        """Goes to the previous or next exchange of the connection."""
        row = self.row()
        if row is None:
            self.screen.say_once(NOTHING)
        elif self.screen.view.book.find(row["connection"], row["exchange"] + step) < 0:
            self.screen.say_once(f"the connection has no {'earlier' if step < 0 else 'later'} exchange")
        else:
            self.screen.show_exchange(row["connection"], row["exchange"] + step)

    def slowest(self, api: str) -> None:
        """Shows the exchanges of an API, the slowest first and selected."""
        view = self.screen.view
        view.sort, view.descending = "latency", True
        view.cursor, view.hidden, view.arranged = 0, None, None
        self.screen.home.narrow(drill_down.equals("api", api))

    def row(self) -> dict[str, Any] | None:
        """The row under the cursor."""
        number, made = self.screen.view.current, self.screen.view.arranged
        return made.rows.row(number) if number is not None and made is not None else None

    def run_beside(self, work: Callable[[], str], failed: str) -> None:
        """Runs slow work in a thread, and notifies its result or error."""

        def tell(message: str, severity: str = "information") -> None:
            self.screen.notify(clean(message), severity=severity, timeout=6, markup=False)

        beside(self.screen.listed, work, tell, lambda error: tell(f"{failed}: {error}", "error"), group="errand")

    # -- filters ------------------------------------------------------------------------------------------------------
    def apply(self, how: str) -> None:
        """Applies what is under the cursor."""
        text = self.screen.target()
        if text is None:
            self.screen.notify("no filter for this", timeout=3)
        else:
            self.screen.home.narrow(joined(self.screen.view.book.filter_text, how, text))

    def apply_menu(self) -> None:
        """All ways to filter by what is under the cursor."""
        text = self.screen.target()
        if text is None:
            self.screen.notify("no filter for this", timeout=3)
            return
        old = self.screen.view.book.filter_text
        ways = ("selected", "not", "and", "or", "and not", "or not")
        choices = [Choice(f"apply {way}", str(at), f"Apply: {way}", joined(old, way, text)) for at, way in enumerate(ways, 1)]
        keys = "abcdef"
        choices += [Choice(f"edit {way}", key, f"Prepare: {way}") for key, way in zip(keys, ways)]

        def done(chosen: str | None) -> None:
            if chosen is not None:
                verb, _, way = chosen.partition(" ")
                made = joined(old, way, text)
                self.screen.home.narrow(made) if verb == "apply" else self.screen.bar.prepare(made)

        self.screen.app.push_screen(Menu("Filter by this", choices, text), done)

    def quick(self) -> None:
        row = self.row()
        texts = {quick.name: text_of(quick, row) for quick in QUICK}
        why = "this exchange has none" if row is not None else NOTHING
        choices = [Choice(q.name, q.key, q.title, texts[q.name] or "", texts[q.name] is not None, why) for q in QUICK]
        saved = list(self.notes.filters().items())[: len(SAVED_KEYS)]
        choices += [Choice(f"saved {name}", key, clean(name), clean(text)) for key, (name, text) in zip(SAVED_KEYS, saved)]
        choices.append(Choice("save", "+", "Save the display filter", "for this capture", bool(self.screen.view.book.only),
                              "no display filter is set"))  # fmt: skip
        choices += [Choice("forget", "-", "Remove a saved filter")] if saved else []
        choices.append(Choice("", "x", "No filter"))
        texts |= {f"saved {name}": text for name, text in saved}

        def done(chosen: str | None) -> None:
            if chosen == "save":
                self.notes.save_filter()
            elif chosen == "forget":
                lines = [Choice(name, key, clean(name), clean(text)) for key, (name, text) in zip(SAVED_KEYS, saved)]
                remove = self.notes.forget_filter
                self.screen.app.push_screen(Menu("Remove a filter", lines), lambda name: remove(name) if name else None)
            elif chosen is not None:
                self.screen.home.narrow(texts.get(chosen) or "")

        self.screen.app.push_screen(Menu("Quick filters", choices), done)

    # -- copy ---------------------------------------------------------------------------------------------------------
    def copy(self) -> None:
        row, made, number = self.row(), self.screen.view.arranged, self.screen.view.current
        if row is None or made is None or number is None:
            self.screen.say_once(NOTHING)
            return
        item = self.screen.detail.outline.current
        cells = self.screen.view.page(
            self.screen.view.cursor, 1, [self.screen.listed.head] if self.screen.listed.head is not None else []
        )
        cell = cells[0].texts[0] if cells and cells[0].texts else ""
        value = (item.value or item_text(item)) if item is not None and self.screen.focused is not self.screen.listed else cell
        texts = {
            "value": value,
            "name": f"{row['connection']}.{row['exchange']}",
            "row": row_json(made.rows, number),
            "line": item_text(item) if item is not None else "",
            "tree": tree_text(self.screen.detail.outline.lines),
            "hex": span_hex(self.screen.hexes.dump),
            "filter": self.screen.target() or "",
            "force": self.screen.view.book.filter_text,
        }
        self.screen.app.push_screen(copy_menu(texts), lambda name: copied(self.screen.app, texts, name))

    # -- export -------------------------------------------------------------------------------------------------------
    def export(self) -> None:
        row, count = self.row(), len(self.screen.view)
        marked = len(self.screen.view.marks)
        some, nothing = row is not None, "no exchange is displayed"
        choices = [
            Choice("packets", "p", "Packets of this exchange", "pcapng, for Wireshark", some, nothing),
            Choice(
                "marked",
                "m",
                "Packets of the marked exchanges",
                f"{marked:,}",
                bool(marked),
                UNMARKED,
            ),
            Choice("shown", "a", "Packets of displayed exchanges", f"{count:,}", bool(count), nothing),
            Choice("rows", "r", "Displayed rows, all columns", "csv, jsonl, parquet, arrow by name", bool(count), nothing),
            Choice("tree", "t", "This exchange as text", "the tree as expanded", some, nothing),
            Choice(
                "notes",
                "n",
                "Notes of this capture",
                "marks, comments, filters as JSON",
                not self.notes.notes.empty,
                "nothing is noted",
            ),
            Choice("screen", "s", "The screen as SVG"),
        ]
        self.screen.app.push_screen(Menu("Save", choices), self.save)

    def save(self, chosen: str | None) -> None:
        """Prompts for the name of a file of a kind, and writes it."""
        row = self.row()
        if chosen is None:
            return
        if chosen == "screen":
            picture = self.screen.app.export_screenshot().encode()
            self._prompt_path("The screen as SVG", "kcap.svg", lambda path: self.screen.home.write(path, picture))
        elif chosen == "notes":
            self.notes.export()
        elif chosen == "rows":
            self._prompt_path("Rows as csv, jsonl, parquet or arrow", "exchanges.csv", self._write_rows)
        elif row is not None:
            name = f"{row['connection']}.{row['exchange']}"
            one = f'connection == "{row["connection"]}" && exchange == {row["exchange"]}'
            if chosen == "tree":
                text = tree_text(self.screen.detail.outline.lines) + "\n"
                self._prompt_path(
                    "This exchange as text", f"{name}.txt", lambda path: self.screen.home.write(path, text.encode())
                )
            elif chosen == "packets":
                self.save_packets(one, f"{name}.pcapng")
            elif chosen == "marked" and not self.screen.view.marks:
                self.screen.notify(UNMARKED, severity="warning", timeout=4)
            elif chosen == "marked":
                self.save_packets(self.marked_filter(), "marked.pcapng")
            else:
                self.save_packets(self.shown_filter(), "kcap.pcapng")

    def save_packets(self, only: str, name: str) -> None:
        """Prompts for a file name and writes the packets of the exchanges that a filter selects."""
        self._prompt_path("Packets as pcapng or pcap", name, lambda path: self._cut(only, path))

    def _prompt_path(self, title: str, name: str, work: Any) -> None:
        self.screen.app.push_screen(Prompt(title, name), lambda path: work(path) if path is not None else None)

    def marked_filter(self) -> str:
        """A filter for the marked exchanges."""
        return self._filter_of(self.screen.view.marks)

    def shown_filter(self) -> str:
        """The display filter, without the ignored exchanges."""
        book, ignored = self.screen.view.book, self.screen.view.annotations.ignored
        return joined(book.filter_text, "and not", self._filter_of(ignored)) if ignored else book.filter_text

    def _filter_of(self, numbers: set[int]) -> str:
        rows = self.screen.view.book.snapshot()
        by: dict[str, list[int]] = {}
        for number in sorted(numbers):
            uid, exchange = rows.key(number)
            by.setdefault(uid, []).append(exchange)
        return " || ".join(
            f'(connection == "{uid}" && exchange in {{{", ".join(map(str, sorted(some)))}}})' for uid, some in by.items()
        )

    def _write_rows(self, path: str) -> None:
        made, ignored = self.screen.view.arranged, set(self.screen.view.annotations.ignored)
        if made is not None:

            def write() -> str:
                with protected(self.screen.view.book.order):
                    return f"{path}: {count(write_rows(made.rows, made.without(ignored), path), 'row')}"

            self.run_beside(write, "rows were not written")

    def _cut(self, only: str, path: str) -> None:
        book = self.screen.view.book
        if not path.endswith(PACKETS):
            path += PACKETS[0]
        self.screen.notify(f"reading {', '.join(book.paths)} again for {path}", timeout=3, markup=False)
        comments = list(self.notes.lines())
        self.run_beside(lambda: cut(book.order, only, path, book.process.spools, comments), "packets were not written")

    # -- search -------------------------------------------------------------------------------------------------------
    def search(self) -> None:
        panes: dict[Any, str] = {
            self.screen.listed: "in the list",
            self.screen.detail: "in the tree",
            self.screen.hexes: "in the bytes",
        }
        where = panes.get(self.screen.focused)
        if where is None:
            self.screen.say_once("the list, the tree and the bytes can be searched; Tab goes there")
            return
        note = "text, or hex digits such as 0x00ff" if self.screen.focused is self.screen.hexes else "text, case-insensitive"
        old = self.needle.text if self.needle is not None else ""

        def done(text: str | None) -> None:
            if text is not None:
                self.needle = Needle(text)
                self.search_on(1)

        self.screen.app.push_screen(Prompt(f"Search {where}", old, note), done)

    def search_on(self, step: int) -> None:
        if self.needle is None:
            self.search()
            return
        found = False
        if self.screen.focused is self.screen.hexes:
            found = self.screen.hexes.dump.search(self.needle.bytes, step)
            self.screen.hexes.go(self.screen.hexes.dump.cursor)
        elif self.screen.focused is self.screen.detail:
            place = find_in_tree(self.screen.detail.outline, self.needle, step)
            if found := place is not None:
                self.screen.detail.renew()
        else:
            place = find_in_list(self.screen.view, self.needle, step)
            if found := place is not None:
                self.screen.listed.go(place or 0)
        if not found:
            self.screen.notify(f"{clean(self.needle.text)} was not found", timeout=3, markup=False)

    # -- go to --------------------------------------------------------------------------------------------------------
    @staticmethod
    def is_place(text: str) -> bool:
        """Whether a text names a row, a packet, a part of the list or an exchange."""
        return PLACE.fullmatch(text) is not None

    def go(self, text: str) -> None:
        """Goes to a place of the list: `17`, `#17`, `50%`, `UID.N`."""
        if self.screen.view.arranged is None or not self.is_place(text):
            return
        uid, _, number = text.rpartition(".")
        self.screen.home.to_list()
        if text.startswith("#"):
            place = self.screen.view.place_of_packet(int(text[1:]))
            if place is None:
                self.screen.notify(f"no displayed exchange has packet {text[1:]}", timeout=3)
            else:
                self.screen.listed.go(place)
        elif text.endswith("%"):
            self.screen.listed.go(len(self.screen.view) * int(text[:-1]) // 100)
        elif uid:
            self.screen.show_exchange(uid, int(number))
        else:
            self.screen.listed.go(int(text.replace(",", "")) - 1)

    def go_to_time(self, text: str) -> None:
        """Goes to the first exchange at or after a time of day, UTC, on the day of the selected exchange."""
        self.screen.home.to_list()
        row = self.row()
        at = (row or {}).get("request_first_ns") or (row or {}).get("response_first_ns")
        try:
            found = time.fromisoformat(text)
        except ValueError:
            self.screen.notify(f"{clean(text)} is not a time such as 08:15:30.250", timeout=3, markup=False)
            return
        if at is not None:
            moment = datetime.combine(datetime.fromtimestamp(at // 10**9, UTC), found, UTC)
            place = self.screen.view.place_of_time(round(moment.timestamp() * 1e6))
            if place is not None:
                self.screen.listed.go(place)

    def conversation(self) -> None:
        """Shows the messages of the connection one after the other."""
        from kcap.tui.followed_stream import FollowedStream

        row = self.row()
        if row is None:
            self.screen.say_once(NOTHING)
        else:
            self.screen.app.push_screen(FollowedStream(row["connection"], row["exchange"]))

    def columns(self) -> None:
        from kcap.tui.column_chooser import ColumnChooser

        self.screen.app.push_screen(ColumnChooser([head.name for head, _ in self.screen.listed.heads]), self.take_columns)

    def take_columns(self, names: list[str] | None) -> None:
        """Shows columns; an empty list for those that fit, None for no change."""
        if names is not None:
            self.screen.view.names, self.screen.view.chosen = (names, True) if names else (list(DEFAULTS), False)
            self.screen.listed.renew()
            self.screen.home.save_settings()
