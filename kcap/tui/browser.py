"""The main screen: the list of exchanges, the tree and bytes of the selected one, the filter bar, and the layout of the panes.

In: a list model, keys, the mouse. Out: actions, settings. Law: reading, sorting and decoding run in threads and never delay
keys; the panes show the selected exchange or say that it is being read; the layout is saved and works at any size.
"""

import time
from typing import Any, ClassVar, Final, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kcap.limits import SORTED_FIRST_ROWS
from kcap.output.grid import clean
from kcap.runtime import trim_heap
from kcap.tui.actions import ExchangeActions
from kcap.tui.beside import beside
from kcap.tui.completion import joined
from kcap.tui.key_map import ExplainsKeys, forwarded
from kcap.tui.keys import Keys
from kcap.tui.list_columns import TIME_FORMS
from kcap.tui.list_model import Arranged, ListModel
from kcap.tui.main_screen import MainHome
from kcap.tui.menu import views_menu
from kcap.tui.note_actions import NoteActions
from kcap.tui.palette import Palette
from kcap.tui.pane_layout import Panes
from kcap.tui.panes.banner import Banner
from kcap.tui.panes.detail import Detail
from kcap.tui.panes.exchange import ExchangePane, Opened
from kcap.tui.panes.exchanges import ExchangeList
from kcap.tui.panes.filter_bar import FilterBar
from kcap.tui.panes.live import LiveLine
from kcap.tui.panes.timeline import TimeStrip
from kcap.tui.status import position, progress, trouble
from kcap.tui.views import VIEWS
from kcap.tui.views.styled_lines import TextLine

LOOK_SECONDS: Final = 0.1
SETTLE_SECONDS: Final = 0.04
"""Time in seconds for which the cursor must rest on an exchange before it is opened."""
PATIENCE: Final = 6
"""Sorting takes at most 1/PATIENCE of the time while reading continues."""


class Browser(ExplainsKeys):
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012
    PATIENCE_SECONDS: ClassVar[float] = 1.0
    """Maximum time for which keys wait for a filter, an order or an exchange."""
    BINDING_GROUP_TITLE = "Everywhere"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", priority=True),
        Binding("f", "quick", "Quick filters"),
        Binding("v", "views", "Views"),
        Binding("e", "export", "Save"),
        Binding("f1,question_mark", "app.help", "Help", key_display="F1"),
        Binding("q", "app.quit", "Quit"),
        Binding("a", "apply('selected')", "Filter by this"),
        Binding("exclamation_mark", "apply('not')", "Exclude this", show=False, key_display="!"),
        Binding("A", "apply_menu", "Combine filters", show=False),
        Binding("y", "copy", "Copy"),
        Binding("ctrl+f", "search", "Search", show=False),
        Binding("n", "search_on(1)", "Find next", show=False),
        Binding("N", "search_on(-1)", "Find previous", show=False),
        Binding("f8,ctrl+n", "step(1)", "Next exchange, from any pane", show=False),
        Binding("f7", "step(-1)", "Previous exchange, from any pane", show=False),
        Binding("w", "conversation", "Follow the connection", show=False),
        Binding("c", "columns", "Columns", show=False),
        Binding("semicolon", "note('comment')", "Comment", show=False, key_display=";"),
        Binding("i", "note('ignore')", "Ignore in views and files", show=False),
        Binding("r", "note('reference')", "Time reference", show=False),
        Binding("M", "note('list')", "Noted exchanges", show=False),
        Binding("o", "note('options')", "Options: profiles, rules, filters", show=False),
        Binding("tab", "panes('pane(1)')", "Next pane", show=False),
        Binding("shift+tab", "panes('pane(-1)')", "Previous pane", show=False),
        Binding("backslash", "panes('zoom')", "Zoom pane", show=False, key_display="\\"),
        Binding("vertical_line", "panes('layout')", "Layout", show=False, key_display="|"),
        Binding("b", "panes('bytes')", "Bytes"),
        Binding("d", "panes('detail')", "Details", show=False),
        *(Binding(str(at), f"panes('part({at})')", title, show=False) for at, title in enumerate(("List", "Tree", "Bytes"), 1)),
        Binding("plus", "panes('share(5)')", "Larger list, or bytes", show=False, key_display="+"),
        Binding("minus", "panes('share(-5)')", "Smaller list, or bytes", show=False, key_display="-"),
        Binding("x", "timeline", "Latency over time", show=False),
        Binding("t", "time", "Time display format", show=False),
        Binding("left_square_bracket", "neighbor(-1)", "Previous in the connection", show=False, key_display="["),
        Binding("right_square_bracket", "neighbor(1)", "Next in the connection", show=False, key_display="]"),
        Binding("F", "follow", "Auto scroll to the end", show=False),
        Binding("ctrl+s", "stop", "Stop reading", show=False),
        Binding("escape", "back", "Back", show=False),
        *(Binding(key, f"view('{name}')", title, show=False) for name, (key, title, _) in VIEWS.items()),
    ]

    def __init__(self, view: ListModel) -> None:
        super().__init__()
        self.view = view
        self.strip = TimeStrip(view, id="timeline")
        self.listed, self.lower = ExchangeList(view, id="list"), ExchangePane(id="lower")
        self.detail, self.hexes = self.lower.detail, self.lower.hexes
        self.panes = Panes(self.listed, self.lower)
        self.notes = NoteActions(self)
        self.actions = ExchangeActions(self, self.notes)
        self.palette = Palette(self, self.actions, self.notes)
        self.begun = False
        """Whether the screen has been mounted."""
        self._reading: int | None = None
        self._failed: int | None = None
        """The exchange that could not be read."""
        self._began = 0.0
        self._cost = 0.0
        self._arranging = False
        self._judged = False
        """Whether the problems of the capture are known."""
        self._wanted: tuple[str, int] | None = None

    def compose(self) -> ComposeResult:
        yield TextLine(id="title")
        yield LiveLine(id="live")
        yield Banner(id="banner")
        yield FilterBar(self.home.values, self.home.history.of("filters"), id="bar")
        yield self.strip
        yield self.panes
        yield TextLine(id="status")
        yield Keys()

    @property
    def home(self) -> MainHome:
        return cast(MainHome, self.app)

    @property
    def opened(self) -> Opened | None:
        return self.lower.opened

    @property
    def bar(self) -> FilterBar:
        return self.query_one(FilterBar)

    def on_mount(self) -> None:
        self.lower.show_secrets = self.home.show_secrets
        self.set_focus(self.listed)
        self.panes.lay()
        self.look()
        self.view.book.process.watch = self._announced
        self.set_interval(LOOK_SECONDS, self.look)
        self.begun = True

    @property
    def ready(self) -> bool:
        """Whether the list has the current filter and order, and a focused pane the exchange under the cursor."""
        made, number = self.view.arranged, self.view.current
        if not self.begun or made is None or made.wish != self.view.wish:
            return False
        return self.focused not in (self.detail, self.hexes) or number in (None, self._failed) or self._shows(number)

    def _shows(self, number: int | None) -> bool:
        return self.opened is not None and self.opened.number == number

    def _announced(self) -> None:
        """Shows the first rows as soon as there are any. Runs in the thread that receives messages of the reading process."""
        if not len(self.view):
            self.call_later(self.look)

    # -- reading and ordering -----------------------------------------------------------------------------------------
    def look(self) -> None:
        """Takes new rows, and sorts them when it is due."""
        book = self.view.book
        book.look()
        self.notes.look()
        self.query_one(LiveLine).show(book, self.size.width)
        if self.view.arranged is not None and self.home.judges and (book.live or (book.done and not book.large)):
            found = book.conclusions()
            self.query_one(Banner).show(found, self.size.width)
            if found is not None and not self._judged:
                self._judged = True
                self.reopen()
        if self.view.due and not self._arranging:
            settled = self.view.arranged is None or self.view.arranged.wish != self.view.wish
            if not len(self.view) and 0 < book.rows <= SORTED_FIRST_ROWS:
                self._install(self.view.arrange())
            elif settled or time.monotonic() - self._began >= self._cost * PATIENCE:
                self._arranging = True
                self._began = time.monotonic()
                beside(self, self._arrange, self._arranged, self._not_arranged, group="order")
        self.show_status()

    def _arrange(self) -> Arranged:
        """Filters and sorts, and releases the memory that this took. Runs in a thread."""
        try:
            return self.view.arrange()
        finally:
            trim_heap()

    def _arranged(self, made: Arranged) -> None:
        self._arranging, self._cost = False, time.monotonic() - self._began
        self._install(made)
        self.show_status()

    def _not_arranged(self, error: Exception) -> None:
        self._arranging, self._cost = False, time.monotonic() - self._began
        self.notify(f"the list cannot be sorted: {clean(str(error))}", severity="error")

    def _install(self, made: Arranged) -> None:
        """Shows the rows in their order."""
        self.view.install(made)
        self._seek()
        self.listed.renew()
        self.strip.look()

    def rearrange(self) -> None:
        self.look()
        self.listed.renew()

    # -- the exchange under the cursor --------------------------------------------------------------------------------
    @on(ExchangeList.Moved)
    def moved(self, _event: ExchangeList.Moved) -> None:
        """Opens the exchange under the cursor."""
        self.show_status()
        number = self.view.current
        if number is None:
            self.lower.clear()
        elif self.opened is None or self.opened.number != number:
            self.set_timer(SETTLE_SECONDS, lambda: self._open(number))

    def _open(self, number: int) -> None:
        if number != self.view.current or number == self._reading or (self.opened and self.opened.number == number):
            return
        self._reading = number
        beside(self, lambda: self._read(number), self._show, self._not_read, group="exchange", exclusive=True)

    def _read(self, number: int) -> Opened:
        """Reads an exchange again from its file. Runs in a thread, which also loads the modules that show it."""
        import kcap.tui.exchange_tree  # noqa: F401 - the pane uses it

        found = self.view.book.frames(number)
        connection, noted = self.home.connection(found.row["connection"]), self.view.annotations.words(number)
        return Opened(number, found, connection, noted, self.view.book.concerning(number))

    def _show(self, opened: Opened) -> None:
        self._reading = None
        if opened.number == self.view.current:
            self.lower.show(opened)

    def _not_read(self, error: Exception) -> None:
        self._reading, self._failed = None, self.view.current
        self.lower.clear(f"this exchange cannot be read: {clean(str(error))}")

    def reopen(self) -> None:
        """Shows the exchange under the cursor again, with its notes."""
        self.lower.opened = None
        self.moved(ExchangeList.Moved())

    @on(ExchangePane.Moved)
    @on(Panes.Changed)
    def walked(self, _event: ExchangePane.Moved | Panes.Changed) -> None:
        """Updates the status line."""
        self.show_status()

    # -- the panes ----------------------------------------------------------------------------------------------------
    def on_resize(self) -> None:
        """Lays out and paints for the new size."""
        self.call_after_refresh(self.again)

    def target(self) -> str | None:
        """The filter of the cell or the line under the cursor."""
        if self.focused is self.detail or self.focused is self.hexes:
            item = self.detail.outline.current
            return item.filter if item is not None else None
        return self.view.filter_of(self.listed.head) if self.listed.head is not None else None

    def again(self) -> None:
        """Lays out and paints again."""
        self.panes.lay()
        self.show_status()

    async def action_panes(self, action: str) -> None:
        """Runs an action of the panes, regardless of the focus."""
        await self.panes.run_action(action)

    # -- title and status line ----------------------------------------------------------------------------------------
    def show_status(self) -> None:
        book, width = self.view.book, self.size.width
        self.query_one("#title", TextLine).set_text(progress(self.home.pulse, book, width))
        rows = book.snapshot()
        held = f"{len(rows):,}" if not rows.first else f"latest {len(rows) - rows.first:,} of {len(rows):,}"
        passed = "…" if self.view.due else f"{book.passed:,}"
        self.bar.show_count(f"{passed} of {held}" if book.only is not None else held)
        self.listed.empty = trouble(book)
        self.strip.window(self.listed.in_sight)
        focused = self.focused
        item = self.detail.outline.current if focused is self.detail else None
        dump = self.hexes.dump if focused is self.hexes else None
        cell = (self.target() or "") if focused is self.listed else ""
        self.query_one("#status", TextLine).set_text(position(self.view, item, dump, width, cell))

    # -- filters ------------------------------------------------------------------------------------------------------
    @on(FilterBar.Applied)
    def applied(self, event: FilterBar.Applied) -> None:
        self.home.narrow(event.text)
        self.set_focus(self.listed)

    @on(FilterBar.Left)
    def left(self, _event: FilterBar.Left) -> None:
        """Returns the focus to the list."""
        self.set_focus(self.listed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key works now: `/` has priority everywhere except in the filter bar, where it is typed."""
        if action == "filter" and self.focused is self.bar.line:
            return False
        return super().check_action(action, parameters)

    def unable(self, key: str) -> str | None:
        """Says that there is no fourth pane."""
        return "the list has 3 panes: list, tree, bytes; v lists the views" if key.isdecimal() else None

    def action_filter(self) -> None:
        self.set_focus(self.bar.line)

    @on(TimeStrip.Chosen)
    def timed(self, event: TimeStrip.Chosen) -> None:
        self.home.narrow(joined(self.view.book.filter_text, "and", event.text))
        self.set_focus(self.listed)

    @on(TimeStrip.Pointed)
    def pointed(self, event: TimeStrip.Pointed) -> None:
        place = self.view.place_of_time(event.time_us)
        if place is not None:
            self.listed.go(place)

    def action_timeline(self) -> None:
        """Focuses the latency timeline, or the list; shows the timeline if it is hidden."""
        if self.focused is self.strip:
            self.set_focus(self.listed)
        else:
            self.set_class(True, "-timeline")
            self.set_focus(self.strip)

    # -- the list -----------------------------------------------------------------------------------------------------
    @on(ExchangeList.Chosen)
    def chosen(self, _event: ExchangeList.Chosen) -> None:
        if not self.home.look.detail:
            self.panes.action_detail()
        self.set_focus(self.detail)
        self.show_status()

    @on(ExchangeList.Sorted)
    def sorted_by(self, _event: ExchangeList.Sorted) -> None:
        """Sorts the list and saves the order."""
        self.rearrange()
        self.home.save_settings()

    @on(ExchangeList.MenuRequested)
    @on(Detail.MenuRequested)
    def menu_requested(self, _event: Any) -> None:
        """Opens the menu of filters on a right click."""
        self.action_apply_menu()

    def action_time(self) -> None:
        self.actions.set_time(TIME_FORMS[(TIME_FORMS.index(self.view.form) + 1) % len(TIME_FORMS)])

    def show_exchange(self, uid: str, number: int) -> None:
        """Goes to an exchange; clears the filter if the exchange does not pass it."""
        row = self.view.book.find(uid, number)
        if row < 0 or self.view.arranged is None:
            self.notify(f"no exchange {uid}.{number}", severity="warning")
            return
        place = self.view.arranged.place(row)
        if place is not None and not self.view.due:
            self.listed.go(place)
            return
        self._wanted = (uid, number)
        if place is None and self.view.book.only is not None and not self.view.due:
            self.home.narrow("")
        self.look()

    def _seek(self) -> None:
        """Goes to the exchange that was requested before its row was read."""
        if self._wanted is not None and self.view.arranged is not None and not self.view.due:
            wanted, self._wanted = self._wanted, None
            place = self.view.arranged.place(self.view.book.find(*wanted))
            if place is not None:
                self.view.go(place)

    def action_follow(self) -> None:
        self.view.follow = not self.view.follow
        if self.view.follow:
            self.view.cursor = max(0, len(self.view) - 1)
            self.listed.renew()
        self.show_status()

    # -- commands for the exchange under the cursor ---------------------------------------------------------------------
    action_apply = forwarded("actions.apply")
    action_apply_menu = forwarded("actions.apply_menu")
    action_quick = forwarded("actions.quick")
    action_copy = forwarded("actions.copy")
    action_export = forwarded("actions.export")
    action_search = forwarded("actions.search")
    action_search_on = forwarded("actions.search_on")
    action_conversation = forwarded("actions.conversation")
    action_columns = forwarded("actions.columns")
    action_neighbor = forwarded("actions.neighbor")
    action_step = forwarded("listed.action_move")
    action_mark = forwarded("listed.action_mark")
    action_note = forwarded("notes.run")

    @on(ExchangeList.Noted)
    def noted(self, _event: ExchangeList.Noted) -> None:
        """Saves the notes."""
        self.notes.save()

    @on(events.Key)
    @on(events.MouseDown)
    def acted(self) -> None:
        """Records that the user acted by key or mouse, so that the selected exchange remains selected from then on."""
        self.view.chose = True

    # -- others -------------------------------------------------------------------------------------------------------
    def action_stop(self) -> None:
        if not self.view.book.done:
            self.view.book.stop()
            self.notify("reading stopped; the rows read so far remain", timeout=3)
        else:
            self.say_once("the capture has been read")

    def action_back(self) -> None:
        """Moves from a pane to the list, and from a zoomed pane to all panes."""
        if self.panes.zoomed:
            self.panes.action_zoom()
        elif self.focused is not self.listed:
            self.set_focus(self.listed)
            self.show_status()
        elif self.view.book.only is not None:
            self.home.narrow("")

    def action_view(self, name: str) -> None:
        self.home.open_view(name)

    def action_views(self) -> None:
        self.app.push_screen(views_menu(), lambda name: self.home.open_view(name) if name is not None else None)
