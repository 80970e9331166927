"""The view of latencies: percentiles by group with distributions and time series, the digest, the slowest exchanges.

In: the capture model. Out: a screen of three sections. Law: only the displayed section is computed.
"""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kcap.columns import WITHOUT_POLLS
from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import statistics_model as model
from kcap.tui.views.grouping import of_busiest, waiting, with_foot
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page

TOP = 100
"""Maximum number of slowest exchanges."""


class Statistics(View):
    NAME = "statistics"
    LAZY = True
    GROUPED = frozenset({0, 1})
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("api",), ("client_id",), ("server_ip",), ("topic",), ("api", "api_version"), ("client_ip", "client_id", "api"),
    )  # fmt: skip

    BINDINGS: ClassVar[list[BindingType]] = [Binding("p", "polls", "Long polls")]

    def __init__(self) -> None:
        super().__init__()
        self.polls = False

    def settled(self) -> Any:
        """Refreshes when long polls are included or excluded."""
        return super().settled(), self.polls

    def page(self, book: CaptureModel) -> Page:
        """Computes the displayed section only."""
        at, by, polls = self.at, self.by, self.polls
        sheets = [waiting(name) for name in ("latency", "digest", "slowest")]
        if at < 2:
            report = report_of(("latency", "stats")[at])
            request = ReportRequest(by, long_polls=polls and at == 0)
            if at == 0 and by != ("api",):  # there are few APIs
                request = of_busiest(book, report, request)
            result, keys = book.report(report, request), keys_of(report, request)
            time = "latency_ns" if polls else WITHOUT_POLLS
            sheets[at] = model.latency(result, keys, time) if at == 0 else model.digest(result, keys)
            with_foot(sheets[at], result, request, "groups with most time")
        else:
            sheets[at] = model.slow(book.report(report_of("slow"), ReportRequest(top=TOP, long_polls=polls)))
        title = f"by {', '.join(by)}" if at < 2 else "the slowest exchanges"
        return Page(sheets, f"{title}, with long polls" if polls and at != 1 else title)

    def action_polls(self) -> None:
        """Includes or excludes long polls."""
        self.polls = not self.polls
        self.look()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hides the key of long polls for the digest, which counts all requests."""
        return self.at != 1 if action == "polls" else super().check_action(action, parameters)

    def unable(self, key: str) -> str | None:
        """Says that the digest always counts long polls."""
        return "the digest counts all requests, long polls too" if key == "p" else super().unable(key)
