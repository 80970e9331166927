"""The interface through which the parts of a view use the view: what it does with rows, its filter, its search.

In: a view. Out: its table and sheet, the app, notifications. Law: a part uses nothing else of the view.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from textual.app import App

from kcap.tui.views.home import Home
from kcap.tui.views.sheet import Down, Page, Sheet, SortOrder
from kcap.tui.views.table import SheetTable


class OpenView(Protocol):
    """Interface of a view that is shown."""

    NAME: ClassVar[str]
    FILTERED: ClassVar[bool]
    """Whether it follows the display filter."""
    table: SheetTable
    shown: Page

    @property
    def home(self) -> Home: ...

    @property
    def app(self) -> App[Any]: ...

    @property
    def notify(self) -> Callable[..., None]: ...

    @property
    def sheet(self) -> Sheet | None:
        """The displayed section."""

    @property
    def down(self) -> Down:
        """The drill-down of the focused widget."""

    def order(self, sheet: Sheet) -> SortOrder:
        """How a section is sorted."""

    def careful(self, make: Callable[[], Any], otherwise: Any) -> Any:
        """The result of a call; a default if it raises."""

    def look(self) -> None:
        """Computes a new page when it is due."""

    def say_once(self, why: str) -> None:
        """Says why a key has no effect."""
