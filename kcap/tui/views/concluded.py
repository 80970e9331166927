"""The views of conclusions over the whole capture: findings, consumer groups, transactions.

In: the capture model. Out: a screen for each. Law: it shows the result of `kcap check`, `kcap groups` or `kcap transactions`;
the display filter does not apply, and the screen says so; following a row replaces the filter by that of the row's exchanges.
"""

from typing import Any, ClassVar

from kcap.output.grid import endpoint
from kcap.reports.definition import Row
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import findings_model, groups_model, transactions_model
from kcap.tui.views.conversations import Conversations
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


class Findings(Concluded):
    NAME = "findings"
    REPORT = "check"
    sheets = staticmethod(findings_model.sheets)

    def follow(self, down: Down) -> None:
        """Shows the exchanges of a finding; if it has none, the connections to its broker."""
        row = self.table.current
        if down is None and row is not None and "who" in row:
            self.app.push_screen(Conversations(findings_model.server(row)))
        else:
            super().follow(down)

    def where(self) -> str:
        """The target of Enter."""
        row = self.table.current
        server = findings_model.server(row) if row is not None and "who" in row and row["filter"] == "" else None
        return f"the connections to {endpoint(*server)}" if server is not None else ""


class Groups(Concluded):
    NAME = REPORT = "groups"
    sheets = staticmethod(groups_model.sheets)


class Transactions(Concluded):
    NAME = REPORT = "transactions"
    sheets = staticmethod(transactions_model.sheets)
