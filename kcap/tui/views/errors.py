"""The view of errors: error codes, requests without a response, retries, leader changes.

In: the capture model. Out: a screen of four sections. Law: until partitions have been read, an exchange counts by its first
error.
"""

from typing import Any, ClassVar

from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import errors_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.home import knows_partitions, no_partitions
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page, Sheet


class Errors(View):
    NAME = "errors"
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("error", "api", "client_id"), ("error", "topic", "partition"), ("error",), ("client_ip", "client_id"), ("server_ip",),
        ("time:1s", "error"),
    )  # fmt: skip

    def settled(self) -> Any:
        """Adds the state of the partitions, which are read in a second pass."""
        return super().settled(), knows_partitions(self.home.book)

    def page(self, book: CaptureModel) -> Page:
        report, by = report_of("errors"), self.by
        known = knows_partitions(book)
        if not known:
            by = tuple(name for name in by if name != "partition")
        request = ReportRequest(by)
        result = book.report(report, request)
        sheets = [
            model.errors(result, keys_of(report, request)),
            model.unanswered(result),
            *((model.retries(result), model.stories(result)) if known else self._unknown(book)),
        ]
        for sheet in sheets[1:]:
            sheet.title = sheet.name  # these sections have no grouping
        return Page(sheets, f"by {', '.join(by)}")

    @staticmethod
    def _unknown(book: CaptureModel) -> list[Sheet]:
        """Sections that are made of partitions, while these are not known."""
        return [waiting(name, no_partitions(book, name)) for name in ("retries", "leader changes")]
