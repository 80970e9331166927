"""The base class of all views: a title, sections, a table with details and bars, a line with the drill-down filter.

In: the app's capture model. Out: a screen. Law: pages are computed in a thread, from the rows read so far; a page that fails
shows the error, and the rest of the program continues.
"""

import gc
import time
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.keys import key_to_character
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from kcap.output.grid import ELLIPSIS, clean
from kcap.reports.text import count
from kcap.runtime import trim_heap
from kcap.tui.faults import write_fault
from kcap.tui.handoff import Handoff, has_ended
from kcap.tui.keys import Keys
from kcap.tui.list_columns import cut
from kcap.tui.splitters import SplitSide
from kcap.tui.views import VIEWS
from kcap.tui.views.paint import CSS, Toned
from kcap.tui.views.picture import Picture
from kcap.tui.views.places import ViewPlace, leave, left
from kcap.tui.views.refresh import Pace
from kcap.tui.views.row_actions import RowActions
from kcap.tui.views.sheet import Bars, Down, Line, Page, Sheet, SortOrder
from kcap.tui.views.styled_lines import StyledText, TextLine
from kcap.tui.views.table import SheetTable

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel

LOOK_SECONDS = 1.0
"""Interval of refreshes."""
GONE_SECONDS = 0.3
"""A screen that was left has no messages any more after this time."""

ELSEWHERE = frozenset({"?", *(key for key, _, _ in VIEWS.values())})
"""Characters that leave a view for another or, as F1 does, for the help."""


def release() -> None:
    """Frees the screens that were left: their parts refer to each other, and the collector seldom looks at old objects."""
    gc.collect()
    trim_heap()


class View(Toned, RowActions):
    """A view: `page` makes what it shows."""

    GROUPED: ClassVar[frozenset[int]] = frozenset({0})
    """Sections whose rows have the grouping."""
    REMEMBERS: ClassVar[bool] = True
    """Whether the view restores its place when it is opened again."""
    LAZY: ClassVar[bool] = False
    """Whether only the displayed section is computed."""
    PATIENCE_SECONDS: ClassVar[float] = 600.0
    """Keys wait this long for the first page; Escape cancels it."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012
    DEFAULT_CSS = f"""
    View {{
        {CSS}
        layout: vertical;
        #title {{ height: 1; background: $primary-muted; color: $text; }}
        #sections {{ height: 1; padding: 0 1; }}
        #banner {{ height: auto; max-height: 40%; padding: 0 1; }}
        #body {{ height: 1fr; }}
        #where {{ height: 1; padding: 0 1; color: $text-muted; background: $surface; }}
        #side {{ padding: 0 1; height: 40%; border-top: solid $primary-muted; }}
        #side {{ scrollbar-size-vertical: 1; scrollbar-gutter: stable; }}
        &.-wide #body {{ layout: horizontal; }}
        &.-wide #main {{ width: 1fr; }}
        &.-wide #side {{ width: 42%; max-width: 76; height: 1fr; border-top: none; border-left: solid $primary-muted; }}
        &.-alone #side {{ display: none; }}
        &.-alone.-wide #main {{ width: 1fr; }}
        .hidden {{ display: none; }}
    }}
    """
    BINDING_GROUP_TITLE = "Every view"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", key_display="Esc"),
        Binding("f1,question_mark", "app.help", "Help", key_display="F1"),
        Binding("enter", "choose", "Show", show=False),
        Binding("slash", "filter", "Filter", show=False, key_display="/"),
        Binding("f", "quick", "Quick filters", show=False),
        Binding("a", "apply('selected')", "Filter by this", show=False),
        Binding("exclamation_mark", "apply('not')", "Exclude this", show=False, key_display="!"),
        Binding("v", "views", "Views", show=False),
        Binding("B", "regroup", "Group"),
        Binding("s", "sort", "Sort"),
        Binding("z", "turn", "Reverse", show=False),
        Binding("c", "all_columns", "Columns"),
        Binding("d", "details", "Details"),
        Binding("tab", "pane(1)", "Next pane", show=False),
        Binding("shift+tab", "pane(-1)", "Previous pane", show=False),
        Binding("e", "export", "Save"),
        Binding("y", "copy", "Copy", show=False),
        Binding("m", "mark", "Mark the exchange", show=False),
        Binding("w", "conversation", "Follow the connection", show=False),
        Binding("ctrl+f", "search", "Search", show=False, key_display="Ctrl+F"),
        Binding("n", "search_on(1)", "Find next", show=False),
        Binding("N", "search_on(-1)", "Find previous", show=False),
        *(Binding(str(at), f"section({at - 1})", f"Section {at}", show=False) for at in range(1, 7)),
        *(Binding(key, f"switch('{name}')", title, show=False) for name, (key, title, _) in VIEWS.items()),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.pace = Pace()
        self.failure = ""
        """Error of the page."""
        self._came: ViewPlace | None = None
        """Place to restore when there are rows."""
        self._here = 0, 0
        self._places: dict[int, tuple[int, int]] = {}
        """Section -> row and cell of its cursor, when another section was shown."""
        self._began = 0.0
        self._shown_for: Any = None
        """The settings of the page that was computed last."""
        self._computed_for: Any = None
        """The settings of the page that is being computed."""

    # -- what a view says ---------------------------------------------------------------------------------------------
    def page(self, book: "CaptureModel") -> Page:
        """Computes the page. Runs in a thread and touches no widget."""
        raise NotImplementedError

    def settled(self) -> Any:
        """State whose change refreshes the page at once."""
        book = self.home.book
        return book.state, book.filter_text, book.looking, book.ignored, self.grouping, self.at if self.LAZY else 0

    @property
    def ready(self) -> bool:
        """Whether a page was computed for what is set, or could not be."""
        return self._shown_for is not None and self._shown_for == self._settings()

    def passes(self, key: str) -> bool:
        """Whether a key has nothing to do with the page, so that it need not wait for it: those that go elsewhere."""
        return key == "f1" or key_to_character(key) in ELSEWHERE

    def _settings(self) -> Any:
        """What the user sets, without how far the capture was read."""
        return self.home.book.filter_text, self.grouping, self.at if self.LAZY else 0

    # -- the screen ---------------------------------------------------------------------------------------------------
    def compose(self) -> ComposeResult:
        """Yields the child widgets."""
        yield TextLine(id="title")
        yield Static(id="sections", classes="hidden")
        yield StyledText(id="banner", classes="hidden")
        with Vertical(id="body"):
            yield SheetTable(id="main")
            with SplitSide(id="side", can_focus=False):
                yield StyledText(id="detail")
        yield TextLine(id="where")
        yield Keys()

    @property
    def intact(self) -> bool:
        """Whether its parts are here: a screen that closes loses them, one by one, before its last messages are handled."""
        return len(self.query("#title, #sections, #banner, #main, #side, #detail, #where")) == 7

    def on_mount(self) -> None:
        """Starts the periodic refresh."""
        self.table.show(Sheet("", (), [], lambda _row: None, self.moment), SortOrder(), keep_cursor=False)
        self.add_class("-alone")
        self.table.focus()
        self._return()
        self._show_title()
        self.look()
        self.set_interval(LOOK_SECONDS, self.look)

    @property
    def moment(self) -> str:
        """The message until a page is computed."""
        seconds = int(time.monotonic() - self._began) if self.pace.busy else 0
        since = f" for {seconds:,} s" if seconds else ""
        return f"computing{since} over {count(self.home.book.rows, 'exchange')}; Esc cancels"

    def _return(self) -> None:
        found = left(self.app, self.NAME) if self.REMEMBERS else None
        if found is not None:
            self._came, self._orders = found
            self.at, self.grouping = self._came.section, self._came.grouping

    def on_unmount(self) -> None:
        """Remembers the place of the cursor and cancels the page that is being computed."""
        self.home.book.give_up(self)
        row, cell = self._here
        leave(self.app, self.NAME, ViewPlace(self.at, self.grouping, row, cell), self._orders)
        self.shown = Page()  # a screen waits for the garbage collector; its rows must not
        for table in self.query(SheetTable):
            table.forget()
        self.app.set_timer(GONE_SECONDS, release)

    def look(self) -> None:
        """Computes a new page when it is due."""
        if not self.intact:
            return
        book = self.home.book
        settled, now = self.settled(), time.monotonic()
        self._show_title()
        if self.pace.due(book.rows, settled, now):
            self.pace.begin(book.rows, settled)
            self._computed_for = self._settings()
            self._began = now
            self.run_worker(lambda: self._made(book), thread=True, group="page", exit_on_error=False)
        elif self.pace.busy and not self.ready and not self.table.rows:
            self.table.say(self.moment)

    def _made(self, book: "CaptureModel") -> Handoff[Page]:
        if not book.wanted(self):
            return Handoff(Page())  # a thread became free for it when the view had been left
        try:
            with book.asked_by(self):
                return Handoff(self.page(book))
        finally:
            trim_heap()

    @on(Worker.StateChanged)
    def looked(self, event: Worker.StateChanged) -> None:
        """Shows the page that was computed, or its error."""
        if event.worker.group != "page" or not has_ended(event) or not self.intact:
            return
        self.pace.end(self._began, time.monotonic())
        self._shown_for = self._computed_for
        if event.state == WorkerState.SUCCESS and event.worker.result is not None:
            self.failure = ""
            self.show_page(cast("Handoff[Page]", event.worker.result).take())
        elif event.state == WorkerState.ERROR:
            error = event.worker.error
            log = write_fault(error, VIEWS[self.NAME][1]) if error is not None else ""
            self.failure = f"this view cannot be computed: {error}" + (f"; traceback in {log}" if log else "")
            self._tell_where()
        if event.state != WorkerState.CANCELLED:
            self.look()  # a change of settings meanwhile is due at once

    def show_page(self, page: Page) -> None:
        """Shows a page."""
        keep_cursor = bool(self.shown.sheets)
        self.shown = page
        self.at = max(0, min(self.at, len(page.sheets) - 1))
        self._show_sheet(keep_cursor=keep_cursor)
        if self._came is not None and self.table.rows:
            self.table.go(self._came.row, self._came.cell)
            self._came = None

    def _show_sheet(self, *, keep_cursor: bool) -> None:
        sheet = self.sheet
        self._show_sections()
        banner = self.query_one("#banner", StyledText)
        lines: list[Line] = [self.shown.banner] if self.shown.banner else []
        lines += [[(sheet.note, "")]] if sheet is not None and sheet.note else []
        banner.set_class(not lines, "hidden")
        banner.set_lines(lines)
        if sheet is not None:
            alone = sheet.detail is None and sheet.charts is None
            self.set_class(alone or self.has_class("-closed"), "-alone")
            self._show(sheet, keep_cursor=keep_cursor)
            self.refresh_bindings()
            self.call_after_refresh(self._tell_detail)  # its pane may have got another width
        self._show_title()

    def _show_sections(self) -> None:
        """Names of the sections, dim where there is nothing in one; without room for all, those not displayed are cut alike."""
        sections, names = self.query_one("#sections", Static), [one.name for one in self.shown.sheets]
        sections.set_class(len(names) < 2, "hidden")
        room, longest = (
            self.size.width - 2 - sum(len(f" {at}: ") for at, _ in enumerate(names, 1)),
            max(map(len, names), default=0),
        )
        while (
            longest > 1 and sum(len(name) if at == self.at else min(len(name), longest) for at, name in enumerate(names)) > room
        ):
            longest -= 1
        shown = [name if at == self.at else cut(name, min(len(name), longest), right=False) for at, name in enumerate(names)]
        tones = ["[dim]" if one.fields and not one.rows else "[not dim]" for one in self.shown.sheets]
        sections.update(
            "".join(
                f"[@click=screen.section({at})]{'[b reverse]' if at == self.at else tones[at]} {at + 1}:{name} [/][/]"
                for at, name in enumerate(shown)
            )
        )

    def _show(self, sheet: Sheet, *, keep_cursor: bool) -> None:
        def show() -> bool:
            self.table.show(sheet, self._order(sheet), keep_cursor=keep_cursor)
            return True

        if not self.careful(show, otherwise=False):
            self.table.show(Sheet(sheet.name, (), [], lambda _row: None, clean(self.stumble)), SortOrder(), keep_cursor=False)

    def _show_title(self) -> None:
        book, width = self.home.book, self.size.width
        name = f" {VIEWS[self.NAME][1]}"
        title = (self.sheet.title if self.sheet is not None else "") or self.shown.title
        left = name + (f" · {title}" if title else "")
        state = {"reading": " · reading", "stopped": " · stopped", "failed": " · not read to the end"}.get(book.state, "")
        right = f"{count(book.rows, 'exchange')}{state}"
        right += f" · {book.ignored:,} ignored" if book.ignored else ""
        right += f" · filter {clean(book.filter_text)}" if book.filter_text else ""
        # the view's name comes first, then the number of exchanges and that there is a filter, then of what, then the filter
        stays, filtered, _ = right.partition(" · filter ")
        least = cell_len(stays + filtered) + len(ELLIPSIS) * bool(filtered)
        left = cut(left, max(cell_len(name) + 1, min(cell_len(left), width - least - 2)), right=False)
        right = cut(right, max(8, min(cell_len(right), width - cell_len(left) - 2)), right=False)
        line = Text.assemble((left, "bold"), " " * max(1, width - cell_len(left) - cell_len(right) - 1), right)
        line.truncate(width, overflow="ellipsis")
        self.query_one("#title", TextLine).set_text(line)

    # -- where Enter leads --------------------------------------------------------------------------------------------
    def where(self) -> str:
        """Where Enter leads from a row without exchanges, in words; empty where it leads nowhere."""
        return ""

    def _tell_where(self) -> None:
        down, width = self.careful(lambda: self.down, None), self.size.width - 2
        words: list[tuple[str, str]]
        if self.failure or self.stumble:
            words = [(clean(self.failure or self.stumble), "bold")]
        elif isinstance(down, tuple):
            words = [("⏎ ", "bold"), (f"the exchange {down[0]}.{down[1]}", "")]
        elif down or (down := self.where()):
            words = [("⏎ ", "bold"), (clean(down), "")]
        else:
            words = [(self.sheet.foot if self.sheet is not None else "", "")]
        line = Text.assemble(*words)
        line.truncate(width, overflow="ellipsis")
        if not self.failure and self.sheet is not None and self.sheet.foot and down:
            room = width - line.cell_len - len(self.sheet.foot)
            line = Text.assemble(line, " " * room, (self.sheet.foot, "dim")) if room > 2 else line
        self.query_one("#where", TextLine).set_text(line)

    @on(SheetTable.Moved)
    @on(Picture.Moved)
    def moved(self, event: SheetTable.Moved | Picture.Moved) -> None:
        """Shows the details and the drill-down of the cell under the cursor."""
        if not self.intact:
            return
        self.stumble = ""
        self._here = self.table.row, self.table.at
        if isinstance(event, SheetTable.Moved):
            self._tell_detail()
        self._tell_where()

    def _tell_detail(self) -> None:
        if self.sheet is None or self.has_class("-alone") or not self.intact:  # it is asked for after a refresh
            return
        sheet, row = self.sheet, self.table.current
        side = self.side
        room = side.scrollable_content_region.width
        if not room:
            return  # it is not laid out yet: its size comes as an event
        width = max(20, room - (not side.show_vertical_scrollbar))  # the place of the scrollbar stays free
        detail = self.query_one("#detail", StyledText)
        more, pictures_of = sheet.detail, sheet.charts
        lines: list[Line] = self.careful(lambda: more(row, width), []) if more is not None and row is not None else []
        detail.set_class(not lines, "hidden")
        detail.set_lines(lines)
        bars: list[Bars] = self.careful(lambda: pictures_of(row), []) if pictures_of is not None and row is not None else []
        pictures = list(side.query(Picture))
        for picture, one in zip(pictures, bars):
            picture.set(one)
        for picture in pictures[len(bars) :]:
            picture.remove()
        for one in bars[len(pictures) :]:
            side.mount(Picture(one))

    @on(SplitSide.Resized)
    def side_resized(self, _event: SplitSide.Resized) -> None:
        """Wraps the details for their new width."""
        self._tell_detail()

    def on_resize(self, _event: events.Resize) -> None:
        """Wraps texts for the new width."""
        self.call_after_refresh(self._again)

    def _again(self) -> None:
        if not self.intact:
            return
        self._lay()
        self._show_sections()
        self._show_title()
        self._tell_detail()
        self._tell_where()

    # -- actions ------------------------------------------------------------------------------------------------------
    @on(SheetTable.Chosen)
    def chosen(self, _event: SheetTable.Chosen) -> None:
        """Opens the exchanges of a cell."""
        self.follow(self.careful(lambda: self.table.down, None))

    @on(Picture.Chosen)
    def picked(self, event: Picture.Chosen) -> None:
        """Opens the exchanges of a bar."""
        self.follow(event.down)

    def action_choose(self) -> None:
        """Opens the exchanges of the focused cell or bar."""
        self.follow(self.careful(lambda: self.down, None))

    def follow(self, down: Down) -> None:
        """Shows the exchanges that a number counts in the list."""
        if isinstance(down, tuple):
            self.home.show_exchange(*down)
        elif down:
            self.home.narrow(f"&& {down}")
        else:
            self.notify("no exchanges belong to this cell", severity="warning", timeout=3)

    def action_section(self, at: int) -> None:
        """Shows another section."""
        if at < len(self.shown.sheets) and at != self.at:
            self._places[self.at] = self._here
            self.at = at
            self._show_sheet(keep_cursor=False)
            self.table.go(*self._places.get(at, (0, 0)))
            self.table.focus()
            self.look()

    def action_regroup(self) -> None:
        """The next grouping."""
        self.grouping = (self.grouping + 1) % len(self.GROUPINGS)
        self.look()

    def action_sort(self) -> None:
        """Sorts by the cursor's column."""
        self.sort_by(self.table.at)

    @on(SheetTable.Sorted)
    def sorted_by(self, event: SheetTable.Sorted) -> None:
        """A head was clicked."""
        self.sort_by(event.at)

    def sort_by(self, at: int) -> None:
        """Sorts by a column; once more reverses the order."""
        if self.sheet is not None and self.sheet.fields:
            self._order(self.sheet).choose(at, self.sheet)
            self._show(self.sheet, keep_cursor=True)

    def action_turn(self) -> None:
        """Reverses the order."""
        if self.sheet is not None and (at := self._order(self.sheet).at) is not None:
            self.sort_by(at)
        else:
            self.say_once("s sorts by a column first")

    def action_all_columns(self) -> None:
        """All columns, or those that fit."""
        self.table.all_columns = not self.table.all_columns
        if self.sheet is not None:
            self._show(self.sheet, keep_cursor=True)

    def action_details(self) -> None:
        """Shows or hides the details."""
        if self.sheet is not None and self.sheet.detail is None and self.sheet.charts is None:
            self.say_once("this section has no details")
            return
        self.toggle_class("-closed")
        self._show_sheet(keep_cursor=True)
        self.call_after_refresh(self._again)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hides keys that have no effect here."""
        if action == "regroup":
            return len(self.GROUPINGS) > 1 and self.at in self.GROUPED
        if action == "mark":
            return isinstance(self.careful(lambda: self.down, None), tuple)
        if action == "conversation":
            return self._followed() is not None
        if action == "section":
            return len(self.shown.sheets) > 1 and int(str(parameters[0])) < len(self.shown.sheets)
        return True

    def describe(self, action: str, parameters: tuple[object, ...]) -> str:
        """What a key does here, where it is more than its binding says: the name of a section."""
        if action != "section":
            return ""
        at = int(str(parameters[0]))
        return f"Section: {self.shown.sheets[at].name}" if at < len(self.shown.sheets) else ""
