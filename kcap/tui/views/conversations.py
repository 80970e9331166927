"""The view of conversations: connections, or the clients and brokers they belong to.

In: the capture model. Out: a screen. Law: the TCP columns appear when the capture has been read.
"""

from typing import TYPE_CHECKING, ClassVar

from kcap.tui.views import conversations_model as model
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel


class Conversations(View):
    """Conversations."""

    NAME = "conversations"
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = model.BY

    def page(self, book: "CaptureModel") -> Page:
        """The only section."""
        connections = book.table("connections") if book.done else None
        sheet = model.conversations(book.exchanges(model.COLUMNS), self.by, connections, every=not book.filter_text)
        return Page([sheet], f"by {', '.join(self.by)}")
