"""The view of versions: clients and a release of Kafka, diagnoses, the story of each connection, brokers and what they offer.

In: the book. Out: a screen of six sections. Law: told when reading is over; the release may be chosen, the newest at first.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from kcap.reports.shape import Row
from kcap.schema.facts import releases
from kcap.tui.views import versions_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.home import later
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page
from kcap.tui.views.stories_model import Known, rows_of

if TYPE_CHECKING:
    from kcap.tui.book import Book


class Versions(View):
    """Versions."""

    NAME = "versions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "release(-1)", "Older target", key_display="["),
        Binding("right_square_bracket", "release(1)", "Newer", key_display="]"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.target = len(releases()) - 1
        """Number of the release."""
        self._known: tuple[Known, list[Row]] | None = None
        """What does not depend on it."""

    def settled(self) -> Any:
        """Another release is another page."""
        return super().settled(), self.target

    def page(self, book: "Book") -> Page:
        """All sections."""
        from pathlib import PurePath

        from kcap.reports.versions import report, whos

        talks = book.talks() if book.done else None
        if talks is None:
            return Page([waiting("clients", later(book, "clients and their versions"))])
        if self._known is None:
            known = whos(talks)
            self._known = known, rows_of(talks, known)
        target = releases()[self.target]
        made = report(talks, [PurePath(path).name for path in book.paths], target)
        foot = "the display filter leaves this view as it is" if book.filter_text else ""
        sheets = model.sheets(made, talks, *self._known)
        for sheet in sheets:
            sheet.foot = sheet.foot or foot
        return Page(sheets, f"against Kafka {target}")

    def action_release(self, by: int) -> None:
        """Another release."""
        self.target = max(0, min(self.target + by, len(releases()) - 1))
        self.look()
