"""The base class of views of conclusions over the whole capture: findings, groups, transactions.

In: the capture model. Out: a screen. Law: the display filter does not apply, and the screen says so; following a row replaces
the filter by that of the row's exchanges.
"""

from typing import Any, ClassVar

from kcap.reports.definition import Row
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views.grouping import waiting
from kcap.tui.views.health import UNFILTERED
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Down, Line, Page, Sheet


class Concluded(View):
    """A view of one of the reports of `kcap.tui.conclusions`."""

    FILTERED = False
    REPORT: ClassVar[str] = ""
    """Name of the report."""

    @staticmethod
    def sheets(result: Row) -> list[Sheet]:
        """Makes its sections."""
        raise NotImplementedError

    def settled(self) -> Any:
        """Adds whether there is a result, and why there is none."""
        book = self.home.book
        found = book.conclusions()
        counts = [len(rows) for rows in (found or {}).get(self.REPORT, {}).values() if isinstance(rows, list)]
        return super().settled(), found is not None, book.no_conclusions(), counts  # problems begin and end meanwhile

    def page(self, book: CaptureModel) -> Page:
        found = book.conclusions()
        if found is None or self.REPORT not in found:
            return Page([waiting(self.REPORT, book.no_conclusions())])
        banner: Line = [(UNFILTERED, "dim")] if book.filter_text else []
        return Page(self.sheets(found[self.REPORT]), ", ".join(found[self.REPORT]["captures"]), banner)

    def follow(self, down: Down) -> None:
        """Shows the exchanges of a row, regardless of the current filter."""
        if isinstance(down, str) and down:
            self.home.narrow(down)
        else:
            super().follow(down)
