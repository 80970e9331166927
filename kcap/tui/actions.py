"""What is done with the exchange under the cursor beside looking at it: copy, save, search, go elsewhere.

In: keys. Out: the clipboard (OSC 52, which works over ssh), files, another place. Law: what takes its time goes on beside the
keys and says when it is done; nothing is written over without a word of the user's, who named the file.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from kcap.errors import KcapError
from kcap.output.grid import clean
from kcap.tui.clipboard import item_text, row_json, span_hex, tree_text
from kcap.tui.completion import joined
from kcap.tui.export import PACKETS, cut, protected, write_rows
from kcap.tui.menu import Choice, Menu, Prompt
from kcap.tui.quick_filters import QUICK, text_of
from kcap.tui.search import Needle, find_in_list, find_in_tree

if TYPE_CHECKING:
    from kcap.tui.app import KcapApp
    from kcap.tui.list_model import ListModel
    from kcap.tui.panes.bytes import Bytes
    from kcap.tui.panes.detail import Detail
    from kcap.tui.panes.exchanges import ExchangeList
    from kcap.tui.panes.filter_bar import FilterBar


class Actions(Screen[None]):
    """Part of the main screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", priority=True),
        Binding("f", "quick", "Quick filters"),
        Binding("v", "views", "Views"),
        Binding("e", "export", "Save"),
        Binding("f1,question_mark", "app.help", "Help", key_display="F1"),
        Binding("q", "app.quit", "Quit"),
        Binding("a", "apply('selected')", "Filter by this"),
        Binding("exclamation_mark", "apply('not')", "Filter it out", show=False, key_display="!"),
        Binding("A", "apply_menu", "More filters by this", show=False),
        Binding("y", "copy", "Copy"),
        Binding("ctrl+f", "search", "Search", show=False),
        Binding("n", "search_on(1)", "Search on", show=False),
        Binding("N", "search_on(-1)", "Search back", show=False),
        Binding("f8,ctrl+n", "step(1)", "Next exchange, from any pane", show=False),
        Binding("f7", "step(-1)", "The one before, from any pane", show=False),
        Binding("colon,ctrl+g", "go_to", "Go to row or packet", show=False, key_display=":"),
        Binding("w", "conversation", "Follow the connection", show=False),
        Binding("c", "columns", "Columns", show=False),
    ]
    view: "ListModel"
    needle: Needle | None = None

    if TYPE_CHECKING:

        @property
        def home(self) -> "KcapApp": ...

        @property
        def listed(self) -> "ExchangeList": ...

        @property
        def detail(self) -> "Detail": ...

        @property
        def hexes(self) -> "Bytes": ...

        @property
        def bar(self) -> "FilterBar": ...

        def show_exchange(self, uid: str, number: int, *, quietly: bool = False) -> None: ...

    def row(self) -> dict[str, Any] | None:
        """The row under the cursor."""
        number, made = self.view.current, self.view.arranged
        return made.rows.row(number) if number is not None and made is not None else None

    def beside(self, work: Any, failed: str) -> None:
        """Runs what takes its time, and says what came of it."""

        def run() -> None:
            try:
                told, severity = work(), "information"
            except KcapError as error:
                told, severity = f"{failed}: {error}", "error"
            self.app.call_from_thread(self.notify, clean(str(told)), severity=severity, timeout=6, markup=False)

        self.run_worker(run, thread=True, group="errand", exit_on_error=False)

    # -- filters ------------------------------------------------------------------------------------------------------
    def target(self) -> str | None:
        """The filter that the cell or the line under the cursor stands for."""
        if self.focused is self.detail or self.focused is self.hexes:
            item = self.detail.outline.current
            return item.filter if item is not None else None
        return self.view.filter_of(self.listed.head) if self.listed.head is not None else None

    def action_apply(self, how: str) -> None:
        """Applies what is under the cursor."""
        text = self.target()
        if text is None:
            self.notify("there is no filter for this", timeout=3)
        else:
            self.home.narrow(joined(self.view.book.filter_text, how, text))

    def action_apply_menu(self) -> None:
        """All ways to filter by what is under the cursor."""
        text = self.target()
        if text is None:
            self.notify("there is no filter for this", timeout=3)
            return
        old = self.view.book.filter_text
        ways = ("selected", "not", "and", "or", "and not", "or not")
        choices = [Choice(f"apply {way}", str(at), f"Apply: {way}", joined(old, way, text)) for at, way in enumerate(ways, 1)]
        keys = "abcdef"
        choices += [Choice(f"edit {way}", key, f"Prepare: {way}") for key, way in zip(keys, ways)]

        def done(chosen: str | None) -> None:
            if chosen is not None:
                verb, _, way = chosen.partition(" ")
                made = joined(old, way, text)
                self.home.narrow(made) if verb == "apply" else self.bar.prepare(made)

        self.app.push_screen(Menu("Filter by this", choices, text), done)

    def action_quick(self) -> None:
        """Filters that are wanted often."""
        number, made = self.view.current, self.view.arranged
        row = made.rows.row(number) if number is not None and made is not None else None
        texts = {quick.name: text_of(quick, row) for quick in QUICK}
        choices = [Choice(q.name, q.key, q.title, texts[q.name] or "", texts[q.name] is not None) for q in QUICK]
        choices.append(Choice("", "x", "No filter"))

        def done(chosen: str | None) -> None:
            if chosen is not None:
                self.home.narrow(texts.get(chosen) or "")

        self.app.push_screen(Menu("Quick filters", choices), done)

    # -- copy ---------------------------------------------------------------------------------------------------------
    def action_copy(self) -> None:
        """The menu of what can be copied."""
        row, made, number = self.row(), self.view.arranged, self.view.current
        if row is None or made is None or number is None:
            return
        item = self.detail.outline.current
        cells = self.view.page(self.view.cursor, 1, [self.listed.head] if self.listed.head is not None else [])
        cell = cells[0].texts[0] if cells and cells[0].texts else ""
        value = (item.value or item_text(item)) if item is not None and self.focused is not self.listed else cell
        texts = {
            "value": value,
            "name": f"{row['connection']}.{row['exchange']}",
            "row": row_json(made.rows, number),
            "line": item_text(item) if item is not None else "",
            "tree": tree_text(self.detail.outline.lines),
            "hex": span_hex(self.hexes.dump),
            "filter": self.target() or "",
            "force": self.view.book.filter_text,
        }
        notes = {name: text[:40].replace("\n", " ") for name, text in texts.items()}
        titles = (
            ("value", "v", "Value"), ("name", "n", "Name of the exchange"), ("row", "r", "Row as JSON"),
            ("line", "l", "Line of the tree"),
            ("tree", "t", "Tree, as it is open"), ("hex", "h", "Bytes as hex"), ("filter", "f", "Filter for this"),
            ("force", "F", "Filter in force"),
        )  # fmt: skip
        choices = [Choice(name, key, title, notes[name], bool(texts[name])) for name, key, title in titles]

        def done(chosen: str | None) -> None:
            if chosen is not None:
                self.app.copy_to_clipboard(texts[chosen])
                self.notify(f"copied: {clean(notes[chosen])}", timeout=2, markup=False)

        self.app.push_screen(Menu("Copy", choices), done)

    # -- export -------------------------------------------------------------------------------------------------------
    def action_export(self) -> None:
        """The menu of what can be saved."""
        row, count = self.row(), len(self.view)
        marked = len(self.view.marks)
        some = row is not None
        choices = [
            Choice("packets", "p", "Packets of this exchange", "pcapng, for Wireshark", some),
            Choice("marked", "m", "Packets of the marked exchanges", f"{marked:,}", bool(marked)),
            Choice("shown", "a", "Packets of all exchanges shown", f"{count:,}", bool(count)),
            Choice("rows", "r", "Rows shown, all columns", "csv, jsonl, parquet, arrow by name", bool(count)),
            Choice("tree", "t", "This exchange as text", "the tree as it is open", some),
            Choice("screen", "s", "The screen as SVG"),
        ]
        self.app.push_screen(Menu("Save", choices), self._export)

    def _export(self, chosen: str | None) -> None:
        row = self.row()
        if chosen is None:
            return
        if chosen == "screen":
            picture = self.app.export_screenshot().encode()
            self._ask("The screen as SVG", "kcap.svg", lambda path: self.home.write(path, picture))
        elif chosen == "rows":
            self._ask("Rows as csv, jsonl, parquet or arrow", "exchanges.csv", self._write_rows)
        elif row is not None:
            name = f"{row['connection']}.{row['exchange']}"
            one = f'connection == "{row["connection"]}" && exchange == {row["exchange"]}'
            if chosen == "tree":
                text = tree_text(self.detail.outline.lines) + "\n"
                self._ask("This exchange as text", f"{name}.txt", lambda path: self.home.write(path, text.encode()))
            elif chosen == "packets":
                self._ask("Packets as pcapng or pcap", f"{name}.pcapng", lambda path: self._cut(one, path))
            elif chosen == "marked":
                self._ask("Packets as pcapng or pcap", "marked.pcapng", lambda path: self._cut(self.marked_filter(), path))
            else:
                self._ask("Packets as pcapng or pcap", "kcap.pcapng", lambda path: self._cut(self.view.book.filter_text, path))

    def _ask(self, title: str, name: str, work: Any) -> None:
        self.app.push_screen(Prompt(title, name), lambda path: work(path) if path is not None else None)

    def marked_filter(self) -> str:
        """A filter for the marked exchanges."""
        rows = self.view.book.snapshot()
        by: dict[str, list[int]] = {}
        for number in sorted(self.view.marks):
            row = rows.row(number)
            by.setdefault(row["connection"], []).append(row["exchange"])
        return " || ".join(
            f'(connection == "{uid}" && exchange in {{{", ".join(map(str, sorted(numbers)))}}})' for uid, numbers in by.items()
        )

    def _write_rows(self, path: str) -> None:
        made = self.view.arranged
        if made is not None:

            def write() -> str:
                with protected(self.view.book.order):
                    return f"{path}: {write_rows(made.rows, made.order, path):,} rows"

            self.beside(write, "rows were not written")

    def _cut(self, only: str, path: str) -> None:
        book = self.view.book
        if not path.endswith(PACKETS):
            path += PACKETS[0]
        self.notify(f"reading {', '.join(book.paths)} once more for {path}", timeout=3, markup=False)
        self.beside(lambda: cut(book.order, only, path, book.process.spools), "packets were not written")

    # -- search -------------------------------------------------------------------------------------------------------
    def action_search(self) -> None:
        """Asks what to search for, in the pane that has the focus."""
        panes: dict[Any, str] = {self.listed: "in the list", self.detail: "in the tree", self.hexes: "in the bytes"}
        where = panes.get(self.focused)
        if where is None:
            return
        note = "text, or hex digits as 0x00ff" if self.focused is self.hexes else "text; capitals and small letters alike"
        old = self.needle.text if self.needle is not None else ""

        def done(text: str | None) -> None:
            if text is not None:
                self.needle = Needle(text)
                self.action_search_on(1)

        self.app.push_screen(Prompt(f"Search {where}", old, note), done)

    def action_search_on(self, step: int) -> None:
        """The next place."""
        if self.needle is None:
            self.action_search()
            return
        found = False
        if self.focused is self.hexes:
            found = self.hexes.dump.search(self.needle.bytes, step)
            self.hexes.go(self.hexes.dump.cursor)
        elif self.focused is self.detail:
            place = find_in_tree(self.detail.outline, self.needle, step)
            if found := place is not None:
                self.detail.renew()
        else:
            place = find_in_list(self.view, self.needle, step)
            if found := place is not None:
                self.listed.go(place or 0)
        if not found:
            self.notify(f"{clean(self.needle.text)} is not there", timeout=3, markup=False)

    def action_step(self, by: int) -> None:
        """Another exchange, whatever pane has the focus."""
        self.listed.action_move(by)

    # -- elsewhere ----------------------------------------------------------------------------------------------------
    def action_go_to(self) -> None:
        """Asks for a row, a packet or an exchange."""

        def done(text: str | None) -> None:
            if text is not None:
                self._go(text)

        self.app.push_screen(Prompt("Go to", "", "row 17, packet #17, exchange UID.N, or per cent 50%"), done)

    def _go(self, text: str) -> None:
        made = self.view.arranged
        if made is None:
            return
        uid, _, number = text.rpartition(".")
        if text.startswith("#") and text[1:].isdecimal():
            place = self.view.place_of_packet(int(text[1:]))
            if place is None:
                self.notify(f"no exchange shown has packet {text[1:]}", timeout=3)
            else:
                self.listed.go(place)
        elif text.endswith("%") and text[:-1].isdecimal():
            self.listed.go(len(self.view) * int(text[:-1]) // 100)
        elif uid.startswith("C") and number.isdecimal():
            self.show_exchange(uid, int(number))
        elif text.replace(",", "").isdecimal():
            self.listed.go(int(text.replace(",", "")) - 1)
        else:
            self.notify(f"{clean(text)} is no row, #packet or UID.N", timeout=3, markup=False)

    def action_conversation(self) -> None:
        """Both sides of the connection, one message after the other."""
        from kcap.tui.followed_stream import FollowedStream

        row = self.row()
        if row is not None:
            self.app.push_screen(FollowedStream(row["connection"], row["exchange"]))

    def action_columns(self) -> None:
        """Chooses columns."""
        from kcap.tui.column_chooser import ColumnChooser

        def done(names: list[str] | None) -> None:
            if names is not None:
                self.view.names, self.view.chosen = (names, True) if names else (list(self.view.names), False)
                if not names:
                    from kcap.tui.list_columns import DEFAULTS

                    self.view.names = list(DEFAULTS)
                self.listed.renew()
                self.home.keep()

        self.app.push_screen(ColumnChooser([head.name for head, _ in self.listed.heads]), done)
