"""The base class of all views: a title, sections, a table with details and bars, a line with the drill-down filter.

In: the app's capture model. Out: a screen. Law: pages are computed in a thread, from the rows read so far; a page that fails
shows the error, and the rest of the program continues.
"""

import time
from collections.abc import Callable
from typing import Any, ClassVar, cast

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.keys import key_to_character

from kcap.output.grid import ELLIPSIS, clean
from kcap.reports.text import count
from kcap.runtime import trim_heap
from kcap.tui.beside import beside
from kcap.tui.capture_model import CaptureModel
from kcap.tui.faults import write_fault
from kcap.tui.key_map import ExplainsKeys, forwarded
from kcap.tui.keys import Keys
from kcap.tui.list_columns import cut
from kcap.tui.menu import views_menu
from kcap.tui.splitters import SplitSide
from kcap.tui.views import VIEWS, load
from kcap.tui.views.body import Body
from kcap.tui.views.home import Home, ViewPlace
from kcap.tui.views.paint import CSS, Toned
from kcap.tui.views.picture import Picture
from kcap.tui.views.refresh import Pace
from kcap.tui.views.sections import SectionLine
from kcap.tui.views.sheet import Bars, Down, Line, Page, Sheet, SortOrder, paragraph
from kcap.tui.views.styled_lines import StyledText, TextLine
from kcap.tui.views.table import SheetTable
from kcap.tui.views.view_actions import ViewActions

LOOK_SECONDS = 1.0
"""Interval of refreshes."""

CUT_HINT = f"{ELLIPSIS} F1"
"""End of sentences that are cut: the help has them whole."""
ELSEWHERE = frozenset({"?", *(key for key, _, _ in VIEWS.values())})
"""Characters that leave a view for another, or for the help as F1 does."""


class View(Toned, ExplainsKeys):
    """A view: `page` makes the sections that it shows, one of them in the table."""

    NAME: ClassVar[str] = ""
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groupings of the rows, the default first."""
    FILTERED: ClassVar[bool] = True
    """Whether the view covers what passes the display filter; otherwise it covers the whole capture."""
    GROUPED: ClassVar[frozenset[int]] = frozenset({0})
    """Sections whose rows have the grouping."""
    REMEMBERS: ClassVar[bool] = True
    """Whether the view restores its place when it is opened again."""
    LAZY: ClassVar[bool] = False
    """Whether only the displayed section is computed."""
    PATIENCE_SECONDS: ClassVar[float] = 600.0
    """Maximum time for which keys wait for the first page; Escape cancels it."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012
    DEFAULT_CSS = f"""
    View {{
        {CSS}
        layout: vertical;
        #title {{ height: 1; background: $primary-muted; color: $text; }}
        #sections {{ height: 1; padding: 0 1; }}
        #banner {{ height: auto; padding: 0 1; }}
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
        Binding("plus", "body('share(5)')", "Larger details", show=False, key_display="+"),
        Binding("minus", "body('share(-5)')", "Smaller details", show=False, key_display="-"),
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
        self.sections, self.body = SectionLine(id="sections", classes="hidden"), Body()
        self.table = self.body.table
        self.actions = ViewActions(self)
        self.shown = Page()
        self.at = 0
        """Number of the section."""
        self.grouping = 0
        self.pace = Pace()
        self.failure = ""
        """Error of the page."""
        self.stumble = ""
        """Error of a part of the page."""
        self.cut_remarks: Line = []
        """The sentences above the table, if there is no room for all of them; the help shows them."""
        self._orders: dict[str, SortOrder] = {}
        self._came: ViewPlace | None = None
        """Place to restore when there are rows."""
        self._here = 0, 0
        self._places: dict[int, tuple[int, int]] = {}
        """Section -> row and cell of its cursor when it was last shown."""
        self._began = 0.0
        self._shown_for: Any = None
        """The settings of the page that was computed last."""
        self._computed_for: Any = None
        """The settings of the page that is being computed."""

    # -- overridden by views ------------------------------------------------------------------------------------------
    def page(self, book: CaptureModel) -> Page:
        """Computes the page. Runs in a thread and touches no widget."""
        raise NotImplementedError

    def settled(self) -> Any:
        """State whose change refreshes the page at once."""
        book = self.home.book
        return book.state, book.filter_text, book.looking, book.ignored, self.grouping, self.at if self.LAZY else 0

    @property
    def ready(self) -> bool:
        """Whether a page was computed for the current settings, or could not be."""
        return self._shown_for is not None and self._shown_for == self._settings()

    def passes(self, key: str) -> bool:
        """Whether a key need not wait for the page: those that leave the view."""
        return key == "f1" or key_to_character(key) in ELSEWHERE

    def _settings(self) -> Any:
        """The user's settings, without the progress of reading."""
        return self.home.book.filter_text, self.grouping, self.at if self.LAZY else 0

    @property
    def home(self) -> Home:
        return cast("Home", self.app)

    @property
    def sheet(self) -> Sheet | None:
        return self.shown.sheets[self.at] if self.shown.sheets else None

    @property
    def by(self) -> tuple[str, ...]:
        return self.GROUPINGS[self.grouping % len(self.GROUPINGS)] if self.GROUPINGS else ()

    def order(self, sheet: Sheet) -> SortOrder:
        return self._orders.setdefault(f"{sheet.name} {self.by}", SortOrder())

    @property
    def down(self) -> Down:
        """The drill-down of the focused widget."""
        focused = self.focused
        return focused.down if isinstance(focused, Picture) else self.table.down

    def careful(self, make: Callable[[], Any], otherwise: Any) -> Any:
        """The result of a call; a default and an error message if it raises, so that the session continues."""
        try:
            return make()
        except Exception as error:  # noqa: BLE001 - whatever a sheet stumbles over, it is no reason to lose the session
            self.stumble = f"parts of this view cannot be shown: {type(error).__name__}: {error}"
            return otherwise

    # -- the screen ---------------------------------------------------------------------------------------------------
    def compose(self) -> ComposeResult:
        yield TextLine(id="title")
        yield self.sections
        yield StyledText(id="banner", classes="hidden")
        yield self.body
        yield TextLine(id="where")
        yield Keys()

    @property
    def intact(self) -> bool:
        """Whether its widgets exist: a screen that closes loses them, one by one, before its last messages are handled."""
        return len(self.query("#title, #sections, #banner, #main, #side, #detail, #where")) == 7

    def on_mount(self) -> None:
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
        self._came = self.home.places.get(self.NAME) if self.REMEMBERS else None
        if self._came is not None:
            self._orders, self.at, self.grouping = self._came.orders, self._came.section, self._came.grouping

    def on_unmount(self) -> None:
        """Saves the place of the cursor and cancels the page that is being computed."""
        self.home.book.give_up(self)
        self.home.places[self.NAME] = ViewPlace(self.at, self.grouping, *self._here, self._orders)
        self.shown = Page()  # the screen waits for the garbage collector; its rows must not
        self.table.forget()
        self.home.free_screens()

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
            beside(self, lambda: self._made(book), self._computed, self._not_computed, group="page")
        elif self.pace.busy and not self.ready and not self.table.rows:
            self.table.say(self.moment)

    def _made(self, book: CaptureModel) -> Page:
        if not book.wanted(self):
            return Page()  # the view was closed before a thread was free
        try:
            with book.asked_by(self):
                return self.page(book)
        finally:
            trim_heap()

    def _ended(self) -> bool:
        """Ends a computation; returns whether the view is still there."""
        self.pace.end(self._began, time.monotonic())
        self._shown_for = self._computed_for
        return self.intact

    def _computed(self, page: Page) -> None:
        if self._ended():
            self.failure = ""
            self.show_page(page)
            self.look()  # a change of settings meanwhile is due at once

    def _not_computed(self, error: Exception) -> None:
        if self._ended():
            log = write_fault(error, VIEWS[self.NAME][1])
            self.failure = f"this view cannot be computed: {error}" + (f"; traceback in {log}" if log else "")
            self._tell_where()
            if not self.shown.sheets:
                self.table.say(clean(self.failure))
            self.look()

    def show_page(self, page: Page) -> None:
        keep_cursor = bool(self.shown.sheets)
        self.shown = page
        self.at = max(0, min(self.at, len(page.sheets) - 1))
        self._show_sheet(keep_cursor=keep_cursor)
        if self._came is not None and self.table.rows:
            self.table.go(self._came.row, self._came.cell)
            self._came = None

    def _show_sheet(self, *, keep_cursor: bool) -> None:
        sheet = self.sheet
        self.sections.show(self.shown.sheets, self.at)
        self._show_banner()
        if sheet is not None:
            alone = not sheet.rows or (sheet.detail is None and sheet.charts is None)
            self.set_class(alone or self.has_class("-closed"), "-alone")
            self._show(sheet, keep_cursor=keep_cursor)
            self.refresh_bindings()
            self.call_after_refresh(self._tell_detail)  # its pane may have another width
        self._show_title()

    def _show_banner(self) -> None:
        """Shows the sentences above the table, of the page and of the section, in at most a quarter of the screen."""
        banner, most, width = self.query_one("#banner", StyledText), max(2, self.size.height // 4), self.size.width - 2
        remarks = [*self.shown.banner, *([(self.sheet.note, "")] if self.sheet is not None and self.sheet.note else [])]
        lines = [one for text, tone in remarks for one in paragraph(text, width, tone)]
        self.cut_remarks = remarks if len(lines) > most else []
        if self.cut_remarks:
            text, tone = lines[most - 1][0]
            text = cut(text, max(1, width - len(CUT_HINT)), right=False).rstrip(f" {ELLIPSIS}")
            lines[most - 1 :] = [[(text + CUT_HINT, tone)]]
        banner.set_class(not lines, "hidden")
        banner.set_lines(lines)

    def _show(self, sheet: Sheet, *, keep_cursor: bool) -> None:
        def show() -> bool:
            self.table.show(sheet, self.order(sheet), keep_cursor=keep_cursor)
            return True

        if not self.careful(show, otherwise=False):
            self.table.show(Sheet(sheet.name, (), [], lambda _row: None, clean(self.stumble)), SortOrder(), keep_cursor=False)
        self.body.lay()

    def _show_title(self) -> None:
        book, width = self.home.book, self.size.width
        name = f" {VIEWS[self.NAME][1]}"
        title = (self.sheet.title if self.sheet is not None else "") or self.shown.title
        left = name + (f" · {title}" if title else "")
        state = {"reading": " · reading", "stopped": " · stopped", "failed": " · not read to the end"}.get(book.state, "")
        right = f"{count(book.rows, 'exchange')}{state}"
        right += f" · {book.ignored:,} ignored" if book.ignored else ""
        right += f" · filter {clean(book.filter_text)}" if book.filter_text else ""
        # The view's name comes first, then the number of exchanges and whether there is a filter, the subject, the filter.
        stays, filtered, _ = right.partition(" · filter ")
        least = cell_len(stays + filtered) + len(ELLIPSIS) * bool(filtered)
        left = cut(left, max(cell_len(name) + 1, min(cell_len(left), width - least - 2)), right=False)
        right = cut(right, max(8, min(cell_len(right), width - cell_len(left) - 2)), right=False)
        line = Text.assemble((left, "bold"), " " * max(1, width - cell_len(left) - cell_len(right) - 1), right)
        line.truncate(width, overflow="ellipsis")
        self.query_one("#title", TextLine).set_text(line)

    # -- links --------------------------------------------------------------------------------------------------------
    def where(self) -> str:
        """The target of Enter for a row without exchanges, in words; empty if there is none."""
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
        if self.sheet is None or self.has_class("-alone") or not self.intact:  # this is called after a refresh
            return
        sheet, row, width = self.sheet, self.table.current, self.body.room
        if not width:
            return  # a resize event will follow
        more, bars_of = sheet.detail, sheet.charts
        lines: list[Line] = self.careful(lambda: more(row, width), []) if more is not None and row is not None else []
        bars: list[Bars] = self.careful(lambda: bars_of(row), []) if bars_of is not None and row is not None else []
        self.body.show_details(lines, bars)

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
        self.body.lay()
        self.sections.show(self.shown.sheets, self.at)
        self._show_banner()
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
        if at < len(self.shown.sheets) and at != self.at:
            self._places[self.at] = self._here
            self.at = at
            self._show_sheet(keep_cursor=False)
            self.table.go(*self._places.get(at, (0, 0)))
            self.table.focus()
            self.look()

    def action_regroup(self) -> None:
        self.grouping = (self.grouping + 1) % len(self.GROUPINGS)
        self.look()

    def action_sort(self) -> None:
        self.sort_by(self.table.at)

    @on(SheetTable.Sorted)
    def sorted_by(self, event: SheetTable.Sorted) -> None:
        """A head was clicked."""
        self.sort_by(event.at)

    def sort_by(self, at: int) -> None:
        """Sorts by a column; once more reverses the order."""
        if self.sheet is not None and self.sheet.fields:
            self.order(self.sheet).choose(at, self.sheet)
            self._show(self.sheet, keep_cursor=True)

    def action_turn(self) -> None:
        if self.sheet is not None and (at := self.order(self.sheet).at) is not None:
            self.sort_by(at)
        else:
            self.say_once("s sorts by a column first")

    def action_all_columns(self) -> None:
        """All columns, or those that fit."""
        self.table.all_columns = not self.table.all_columns
        if self.sheet is not None:
            self._show(self.sheet, keep_cursor=True)

    async def action_body(self, action: str) -> None:
        """Runs an action of the table and its details."""
        await self.body.run_action(action)

    def action_details(self) -> None:
        if self.sheet is not None and self.sheet.detail is None and self.sheet.charts is None:
            self.say_once("this section has no details")
            return
        self.toggle_class("-closed")
        self._show_sheet(keep_cursor=True)
        self.call_after_refresh(self._again)

    action_filter = forwarded("actions.ask_filter")
    action_quick = forwarded("actions.quick")
    action_apply = forwarded("actions.apply")
    action_search = forwarded("actions.search")
    action_search_on = forwarded("actions.search_on")
    action_export = forwarded("actions.export")
    action_copy = forwarded("actions.copy")
    action_mark = forwarded("actions.mark")
    action_conversation = forwarded("actions.conversation")

    def action_pane(self, step: int) -> None:
        """Focuses the table or its bars."""
        if not self.query(Picture):
            self.say_once("this section has no bars to go to")
        elif step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_views(self) -> None:
        self.app.push_screen(views_menu(), lambda name: self.action_switch(name) if name is not None else None)

    def action_switch(self, name: str) -> None:
        uid = self.actions.connection() if name == "ladder" else None
        if name == self.NAME:
            self.say_once(f"this is the view: {VIEWS[name][1]}")
        elif uid is not None:
            self.app.push_screen(load(name)(uid))
        else:
            self.app.switch_screen(load(name)())

    def unable(self, key: str) -> str | None:
        """Why a key that works in other views, or on other rows, has no effect here."""
        sections = len(self.shown.sheets)
        if key == "B":
            return f"this {'section' if self.GROUPINGS else 'view'} has one grouping"
        if key == "w":
            return "this row names no connection to follow"
        if key == "m":
            return "this row is not one exchange; m marks exchanges"
        return f"this view has {count(sections, 'section')}" if key.isdecimal() and sections else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hides keys that have no effect here."""
        if action == "regroup":
            return len(self.GROUPINGS) > 1 and self.at in self.GROUPED
        if action == "mark":
            return isinstance(self.careful(lambda: self.down, None), tuple)
        if action == "conversation":
            return self.actions.followed() is not None
        if action == "section":
            return len(self.shown.sheets) > 1 and int(str(parameters[0])) < len(self.shown.sheets)
        return True

    def describe(self, action: str, parameters: tuple[object, ...]) -> str:
        """What a key does here, where it is more than its binding says: the name of a section."""
        if action != "section":
            return ""
        at = int(str(parameters[0]))
        return f"Section: {self.shown.sheets[at].name}" if at < len(self.shown.sheets) else ""
