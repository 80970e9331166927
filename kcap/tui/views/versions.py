"""The view of versions: clients against a release of Kafka, diagnoses, negotiations, brokers and the versions they advertise.

In: the capture model. Out: a screen of six sections. Law: it is computed when the capture has been read; the user selects the
release, the newest is the default. Under a display filter it covers the connections with an exchange that passes.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding, BindingType

from kcap.reports.definition import Row
from kcap.schema.facts import releases
from kcap.tui.views import versions_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.home import later
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page
from kcap.tui.views.stories_model import Known, rows_of

if TYPE_CHECKING:
    from kcap.reports.versions.profiles import ConnectionProfiles
    from kcap.tui.capture_model import CaptureModel

UNDER: Final = "connections with an exchange that passes the filter, with all their exchanges"


def passing(book: "CaptureModel") -> set[str | None]:
    """Connections with an exchange that passes the filter."""
    return set(book.exchanges(["connection"])["connection"].unique().to_pylist())


class Versions(View):
    """Versions."""

    NAME = "versions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "release(-1)", "Older target", key_display="["),
        Binding("right_square_bracket", "release(1)", "Newer target", key_display="]"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.target = len(releases()) - 1
        """Number of the release."""
        self._known: tuple[str, ConnectionProfiles, Known, list[Row]] | None = None
        """Inputs that do not depend on the release: the filter, the profiles of its connections, their clients and rows."""

    def settled(self) -> Any:
        """Another release is another page."""
        return super().settled(), self.target

    def page(self, book: "CaptureModel") -> Page:
        """Computes all sections."""
        from pathlib import PurePath

        from kcap.reports.versions.identity import identify
        from kcap.reports.versions.report import report

        text, profiles = book.filter_text, book.profiles() if book.done else None
        if profiles is None:
            return Page([waiting("clients", later(book, "clients and their versions"))])
        if self._known is None or self._known[0] != text:
            some = profiles.only(passing(book)) if text else profiles
            known = identify(some)
            self._known = text, some, known, rows_of(some, known)
        _, some, known, rows = self._known
        target = releases()[self.target]
        made = report(some, [PurePath(path).name for path in book.paths], target, known)
        return Page(model.sheets(made, some, known, rows), f"against Kafka {target}", [(UNDER, "dim")] if text else [])

    def action_release(self, by: int) -> None:
        """Another release."""
        self.target = max(0, min(self.target + by, len(releases()) - 1))
        self.look()
