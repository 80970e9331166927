"""The view of throttling: which clients were throttled, whether they complied, each throttled response.

In: the capture model. Out: a screen of two sections. Law: only the displayed section is computed.
"""

from typing import ClassVar

from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import throttling_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page


class Throttling(View):
    NAME = "throttling"
    LAZY = True
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("client_ip", "client_id", "api"), ("client_id",), ("api",), ("server_ip",), ("principal",), ("time:1s",),
    )  # fmt: skip

    def page(self, book: CaptureModel) -> Page:
        """The section that is shown; the other one is not computed."""
        if self.at:
            return Page(
                [waiting("groups"), model.each(book.report(report_of("throttled"), ReportRequest()))], "throttled responses"
            )
        report, request = report_of("throttle"), ReportRequest(self.by)
        sheet = model.groups(book.report(report, request), keys_of(report, request))
        return Page([sheet, waiting("throttled responses")], f"by {', '.join(self.by)}")
