"""The view of conversations: connections, or the clients and brokers that they belong to; TLS connections.

In: the capture model. Out: a screen. Law: the TCP columns appear when the capture has been read, and so does the section of TLS
if there are such connections.
"""

from typing import ClassVar

from kcap.output.grid import endpoint
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import conversations_model as model
from kcap.tui.views import tls_model
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page


class Conversations(View):
    NAME = "conversations"
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = model.BY

    def __init__(self, server: tuple[str, int] | None = None) -> None:
        """`server`: address and port of a broker; only its connections are shown."""
        super().__init__()
        self.server = server

    def page(self, book: CaptureModel) -> Page:
        """Both sections; the second only if it has connections."""
        connections = book.table("connections") if book.done else None
        exchanges, of = book.exchanges(model.COLUMNS), ""
        if self.server is not None:
            exchanges = model.of_server(exchanges, *self.server)
            connections = model.of_server(connections, *self.server) if connections is not None else None
            of = f"to {endpoint(*self.server)}"
        every = self.server is not None or not book.filter_text
        sheets = [model.conversations(exchanges, self.by, connections, every=every)]
        if connections is not None:
            found = tls_model.tls(connections, None if every else exchanges["connection"])
            if found is not None:
                found.title = of or found.name
                sheets.append(found)
        return Page(sheets, f"by {', '.join(self.by)}" + (f", {of}" if of else ""))
