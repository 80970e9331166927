"""The view of records: the contents of one Produce request or Fetch response.

In: the app's selected exchange. Out: a screen. Law: it shows the exchange that is selected in the list, or the one that the
user stepped to. If the selected one has no records, the list moves on to the next that has.
"""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kcap.output.grid import call
from kcap.reports.text import count
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import records_model as model
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page


class Records(View):
    NAME = "records"
    REMEMBERS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other(-1)", "Previous exchange", key_display="[", show=False),
        Binding("right_square_bracket", "other(1)", "Next", key_display="]"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.exchange: tuple[str, int] | None = None

    def on_mount(self) -> None:
        """Begins with the exchange that is selected in the list, which moves on to one with records if necessary."""
        self.home.seek_records()
        self.exchange = self.home.selected

    def settled(self) -> Any:
        """Adds the exchange, on which the page depends."""
        return super().settled(), self.exchange

    def page(self, book: CaptureModel) -> Page:
        if self.exchange is None:
            return Page([model.sheet([], None, "No exchange is selected.")])
        found = book.exchange(*self.exchange)
        if found is None:
            return Page([model.sheet([], None, "This exchange does not exist.")])
        what = call(found.row["api"], found.row["api_version"])
        rows = list(model.records(found, book.topic_names()))
        why = f"{what} carries no records." if found.row["api"] in ("Produce", "Fetch", "ShareFetch") else (
            f"{what} carries no records; Produce, Fetch and ShareFetch do."
        )  # fmt: skip
        title = f"{what}  {self.exchange[0]}.{self.exchange[1]}  {count(len(rows), 'record')}"
        return Page([model.sheet(rows, self.exchange, why)], title)

    def action_other(self, step: int) -> None:
        """Shows the next or previous exchange of the connection."""
        if self.exchange is None:
            return
        uid, number = self.exchange[0], self.exchange[1] + step
        if self.home.book.find(uid, number) >= 0:
            self.exchange = uid, number
            self.look()
        else:
            self.say_once(f"the connection has no {'earlier' if step < 0 else 'later'} exchange")
