"""The view of topics and clients: producers and consumers, the busiest partitions, consumer group lag, client activity.

In: the capture model. Out: a screen of four sections. Law: sections with records need the table of partitions; the section of
clients does not.
"""

from typing import Any, ClassVar

from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import topics_model as model
from kcap.tui.views.grouping import of_busiest, waiting, with_foot
from kcap.tui.views.home import knows_partitions, no_partitions
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page

CLIENTS = 3
"""Number of the section of clients."""


class Topics(View):
    NAME = "topics"
    LAZY = True
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("topic",), ("topic", "partition"), ("client_id", "topic"), ("server_ip", "topic"), ("time:1s", "topic"),
    )  # fmt: skip
    GROUPED = frozenset({0, CLIENTS})
    CLIENTS_BY: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("client_ip", "client_id"), ("client_id",), ("client_ip",), ("principal",), ("software_name", "software_version"),
    )  # fmt: skip
    NAMES: ClassVar = ("topics", "busiest partitions", "consumer group lag", "clients")

    @property
    def by(self) -> tuple[str, ...]:
        """The grouping; clients have groupings of their own."""
        groupings = self.CLIENTS_BY if self.at == CLIENTS else self.GROUPINGS
        return groupings[self.grouping % len(groupings)]

    def settled(self) -> Any:
        """Adds the state of the partitions, which are read in a second pass."""
        return super().settled(), knows_partitions(self.home.book)

    def page(self, book: CaptureModel) -> Page:
        """Computes the displayed section only."""
        at, by = self.at, self.by
        sheets = [waiting(name) for name in self.NAMES]
        report, request = report_of("clients" if at == CLIENTS else "topics"), ReportRequest(by)
        if at == CLIENTS:
            request = of_busiest(book, report, request)
            result = book.report(report, request)
            sheets[at] = model.clients(result, keys_of(report, request))
            with_foot(sheets[at], result, request, "clients with most requests")
        elif not knows_partitions(book):
            sheets[at] = waiting(self.NAMES[at], no_partitions(book, "records and bytes by topic"))
        else:
            result = book.report(report, request)
            makers = (
                lambda: model.topics(result, keys_of(report, request)),
                lambda: model.hot(result),
                lambda: model.lags(result),
            )
            sheets[at] = makers[at]()
        return Page(sheets, f"by {', '.join(by)}" if at in (0, CLIENTS) else self.NAMES[at])
