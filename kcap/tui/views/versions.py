"""The view of versions: clients against a release of Kafka, diagnoses, negotiations, brokers and the versions they advertise.

In: the capture model. Out: a screen of six sections. Law: it is computed when the capture has been read; the user selects the
release, the newest is the default. Under a display filter it covers the connections with an exchange that passes.
"""

from pathlib import PurePath
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType

from kcap.schema.facts import releases
from kcap.tui.capture_model import CaptureModel
from kcap.tui.versions_source import VersionsRequest, VersionsSource
from kcap.tui.views import versions_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.home import later
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page

UNDER: Final = "connections with an exchange that passes the filter, with all their exchanges"


def passing(book: CaptureModel) -> set[str | None]:
    """Connections with an exchange that passes the filter."""
    return set(book.exchanges(["connection"])["connection"].unique().to_pylist())


class Versions(View):
    NAME = "versions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "release(-1)", "Older target", key_display="["),
        Binding("right_square_bracket", "release(1)", "Newer target", key_display="]"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.target = len(releases()) - 1
        """Number of the selected release."""
        self._source: VersionsSource | None = None

    def settled(self) -> Any:
        """Adds the release, on which the page depends."""
        return super().settled(), self.target

    def page(self, book: CaptureModel) -> Page:
        text = book.filter_text
        self._source = self._source or book.versions()
        if self._source is None:
            return Page([waiting("clients", later(book, "clients and their versions"))])
        files, target = [PurePath(path).name for path in book.paths], releases()[self.target]
        made = self._source.page(VersionsRequest(files, target, text, passing(book) if text else ()))
        return Page(
            model.sheets(made, self._source.story), f"against Kafka {target}", [(UNDER, "dim")] if text else []
        )  # fmt: skip

    def on_unmount(self) -> None:
        """Closes the source of the pages."""
        if self._source is not None:
            self._source.close()

    def action_release(self, by: int) -> None:
        if 0 <= self.target + by < len(releases()):
            self.target += by
            self.look()
        else:
            self.say_once(f"Kafka {releases()[self.target]} is the {'oldest' if by < 0 else 'newest'} release that kcap knows")
