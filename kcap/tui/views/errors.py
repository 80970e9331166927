"""The view of errors: what was refused, what had no answer, what was tried again.

In: the book. Out: a screen of four sections. Law: while partitions are not known yet, exchanges count by their first error.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from kcap.reports.definition import ReportRequest, keys_of
from kcap.tui.views import errors_model as model
from kcap.tui.views.grouping import report_of
from kcap.tui.views.home import knows_partitions
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel


class Errors(View):
    """Errors."""

    NAME = "errors"
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("error", "api", "client_id"), ("error", "topic", "partition"), ("error",), ("client_ip", "client_id"), ("server_ip",),
        ("time:1s", "error"),
    )  # fmt: skip

    def settled(self) -> Any:
        """Partitions come later."""
        return super().settled(), knows_partitions(self.home.book)

    def page(self, book: "CaptureModel") -> Page:
        """All sections."""
        report, by = report_of("errors"), self.by
        if not knows_partitions(book):
            by = tuple(name for name in by if name != "partition")
        request = ReportRequest(by)
        result = book.report(report, request)
        sheets = [
            model.errors(result, keys_of(report, request)),
            model.unanswered(result),
            model.retries(result),
            model.stories(result),
        ]
        return Page(sheets, f"by {', '.join(by)}")
