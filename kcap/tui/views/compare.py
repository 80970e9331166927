"""The view that compares two exchanges: fields that differ, all fields, timings, connections and frames.

In: the pair of exchanges that the list provides: two marked ones, or the marked and the selected one. Out: a screen of four
sections. Law: without a mark the selected exchange is compared with the previous one of the same API on its connection.
"""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kcap.reports.drill_down import equals, every
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import compare_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page


class Comparison(View):
    """Two exchanges side by side."""

    NAME = "compare"
    REMEMBERS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other(-1)", "Previous of the API", key_display="[", show=False),
        Binding("right_square_bracket", "other(1)", "Next", key_display="]"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.pair: tuple[model.Exchange | None, model.Exchange | None] = None, None
        """The exchanges; the first is None if it is still to be found."""

    def on_mount(self) -> None:
        """Begins with the pair of the list."""
        self.pair = self.home.pair

    def settled(self) -> Any:
        """Adds the pair."""
        return super().settled(), self.pair

    def page(self, book: CaptureModel) -> Page:
        first, second = self.pair
        if second is None:
            return Page([waiting("compare", "No exchange is selected.")])
        first = first or neighbor(book, second, -1)
        if first is None:
            return Page([waiting("compare", NO_OTHER)])
        pair = book.exchange(*first), book.exchange(*second)
        if pair[0] is None or pair[1] is None:
            return Page([waiting("compare", "One of these exchanges does not exist.")])
        if self.pair[1] == second:  # otherwise the user moved on meanwhile
            self.pair = first, second
        sheets = model.sheets(pair[0], pair[1], show_secrets=self.home.show_secrets)
        return Page(sheets, model.title(pair[0].row, pair[1].row))

    def action_other(self, step: int) -> None:
        """Compares with the next or previous exchange of the same API on the connection."""
        first, second = self.pair
        found = neighbor(self.home.book, second, step) if second is not None else None
        if found is None:
            self.say_once("the connection has no more exchanges of this API")
        else:
            self.pair = first, found
            self.look()


NO_OTHER = "No other exchange: m marks one, and = compares it with the selected one."


def neighbor(book: CaptureModel, exchange: model.Exchange, step: int) -> model.Exchange | None:
    """The next or previous exchange of the same API on the connection; None if there is none."""
    from kcap.filter.parse import parse

    rows = book.snapshot()
    number = book.find(*exchange)
    if number < 0:
        return None
    row = rows.row(number)
    tree = parse(every(equals("connection", exchange[0]), equals("api_key", row["api_key"])))
    assert tree is not None
    numbers: Any = rows.take(rows.passing(tree), ["exchange"]).column(0).to_pylist()
    found: list[int] = sorted(numbers)
    at = found.index(exchange[1]) + step
    return (exchange[0], found[at]) if 0 <= at < len(found) else None
