"""The view of conversations: connections, or the clients and brokers they belong to.

In: the capture model. Out: a screen. Law: the TCP columns appear when the capture has been read.
"""

from typing import TYPE_CHECKING, ClassVar

from kcap.output.grid import endpoint
from kcap.tui.views import conversations_model as model
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel


class Conversations(View):
    """Conversations."""

    NAME = "conversations"
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = model.BY

    def __init__(self, server: tuple[str, int] | None = None) -> None:
        """`server`: address and port of the broker whose connections alone are shown."""
        super().__init__()
        self.server = server

    def page(self, book: "CaptureModel") -> Page:
        """The only section."""
        connections = book.table("connections") if book.done else None
        exchanges, title = book.exchanges(model.COLUMNS), f"by {', '.join(self.by)}"
        if self.server is not None:
            exchanges = model.of_server(exchanges, *self.server)
            connections = model.of_server(connections, *self.server) if connections is not None else None
            title += f", to {endpoint(*self.server)}"
        every = self.server is not None or not book.filter_text
        return Page([model.conversations(exchanges, self.by, connections, every=every)], title)
