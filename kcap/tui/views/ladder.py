"""The ladder view: requests and responses of a connection or a client as arrows in time order.

In: the capture model, a connection or the app's selected exchange. Out: a screen. Law: both arrows of the selected exchange
are highlighted.
"""

from typing import Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from kcap.reports.text import count
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import ladder_model as model
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page
from kcap.tui.views.table import SheetTable

NOT_HERE = {
    "s": ("sort", "arrows are in time order"), "z": ("turn", "arrows are in time order"),
    "c": ("all_columns", "the ladder is as wide as the screen"),
}  # fmt: skip
"""Key of other views -> its action, and why it has no effect here."""
UNFILTERED = "no display filter is set: all exchanges are shown"


class Ladder(View):
    NAME = "ladder"
    REMEMBERS = False
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = (("connection",), ("client",))
    DEFAULT_CSS = "Ladder { &.-wide #main { width: 70%; } &.-wide #side { width: 30%; } }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("percent_sign", "mate", "Response", key_display="%"),
        Binding("left_square_bracket", "other(-1)", "Previous connection", key_display="[", show=False),
        Binding("right_square_bracket", "other(1)", "Next", key_display="]"),
        Binding("t", "time", "Time"),
        Binding("u", "unfiltered", "Unfiltered"),
        Binding("left_curly_bracket", "part_of_time(-1)", "Earlier exchanges", key_display="{", show=False),
        Binding("right_curly_bracket", "part_of_time(1)", "Later exchanges", key_display="}", show=False),
    ]

    def __init__(self, connection: str | None = None) -> None:
        super().__init__()
        self.connection = connection
        self.exchange: int | None = None
        self.relative = False
        self.filtered = False
        self.by_windows = 0
        self.more = False, False
        """Whether there are exchanges before and after those that are drawn."""
        self.ladder = model.LadderModel()
        self.room = 0
        self._around = False

    def on_mount(self) -> None:
        """Begins with the exchange that is selected in the list."""
        selected = getattr(self.home, "selected", None)
        if selected is not None and self.connection in (None, selected[0]):
            self.connection, self.exchange = selected
            self._around = True

    def settled(self) -> Any:
        """Adds the connection and the width, on which the page depends."""
        self.room = self.table.scrollable_content_region.width
        return super().settled(), self.connection, self.relative, self.filtered, self.by_windows, self.room

    @on(SheetTable.Resized)
    def resized(self, _event: SheetTable.Resized) -> None:
        """Draws the arrows to the new width of the table."""
        self.look()

    def page(self, book: CaptureModel) -> Page:
        table = book.exchanges(model.COLUMNS, filtered=self.filtered)
        uid = self.connection if self.connection is not None else model.busiest(table)
        if uid is None:
            return Page([model.sheet(model.LadderModel(), self.room, relative=False)])
        self.connection = uid
        rows = (model.of_client if self.by == ("client",) else model.of_connection)(table, uid)
        around = (uid, self.exchange) if self.exchange is not None else None
        part, start = model.window(rows, around, self.by_windows)
        self.more = start > 0, start + part.num_rows < rows.num_rows
        self.ladder = ladder = model.made(part.to_pylist())
        note = ""
        if part.num_rows < rows.num_rows:
            note = f"exchanges {start + 1:,} to {start + part.num_rows:,} of {rows.num_rows:,}; {{ and }} show others"
        title = "no exchanges"
        if ladder.events:
            first = ladder.events[0]
            title = f"{first['client_id'] or first['client_ip']} with {count(len(ladder.hosts), 'broker')}"
            title = f"{uid} of {first['client_id'] or first['client_ip']}" if self.by == ("connection",) else title
        passing = ", display filter applied" if self.filtered and book.filter_text else ""
        return Page([model.sheet(ladder, self.room, relative=self.relative, note=note)], f"{title}{passing}")

    def show_page(self, page: Page) -> None:
        """Shows the page, first with the cursor on the exchange of the list."""
        super().show_page(page)
        if self._around and self.exchange is not None and self.table.rows:
            self._around = False
            name = f"{self.connection}.{self.exchange}"
            self.table.go(next((at for at, row in enumerate(self.table.rows) if row["exchange_name"] == name), 0))

    @on(SheetTable.Moved)
    def marked(self, _event: SheetTable.Moved) -> None:
        """Highlights both arrows of an exchange."""
        row = self.table.current
        name = row["exchange_name"] if row is not None else None
        if name != self.ladder.chosen:
            self.ladder.chosen = name
            self.table.refresh()

    def action_mate(self) -> None:
        """Moves from a request to its response, and back."""
        row, rows = self.table.current, self.table.rows
        if row is None:
            return
        name = row["exchange_name"]
        there = [at for at, one in enumerate(rows) if one["exchange_name"] == name and at != self.table.row]
        if there:
            self.table.go(there[0])
        else:
            self.say_once("the other message of this exchange is not in the capture")

    def action_other(self, by: int) -> None:
        """Shows another connection, in the order of their first exchanges."""
        some = model.connections(self.home.book.exchanges(["connection"], filtered=self.filtered))
        if len(some) < 2:
            self.say_once(f"there is {'no other' if some else 'no'} connection")
        else:
            at = some.index(self.connection) if self.connection in some else 0
            self.connection, self.exchange, self.by_windows = some[(at + by) % len(some)], None, 0
            self.look()

    def action_time(self) -> None:
        """Switches between time of day and seconds since the first arrow."""
        self.relative = not self.relative
        self.look()

    def action_unfiltered(self) -> None:
        """Switches between all exchanges and those that pass the display filter."""
        self.filtered = not self.filtered
        self.look()

    def action_part_of_time(self, by: int) -> None:
        """Shows other exchanges of a long conversation."""
        before, behind = self.more
        if before if by < 0 else behind:
            self.by_windows += by
            self.look()
        else:
            self.say_once(f"there are no {'earlier' if by < 0 else 'later'} exchanges")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hides keys that have no effect here."""
        if action in {name for name, _ in NOT_HERE.values()} or (action == "unfiltered" and not self.home.book.filter_text):
            return False
        return super().check_action(action, parameters)

    def unable(self, key: str) -> str | None:
        """Why keys of tables, and that of the filter, have no effect."""
        return UNFILTERED if key == "u" else NOT_HERE[key][1] if key in NOT_HERE else super().unable(key)
