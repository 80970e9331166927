"""The interfaces through which the parts of the main screen use that screen, and the app that shows it.

In: the main screen, an app. Out: panes, the list behind them, navigation, notifications. Law: a part uses nothing else of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from textual.app import App
from textual.widget import Widget

from kcap.tui.history import History
from kcap.tui.list_model import ListModel
from kcap.tui.panes.bytes import Bytes
from kcap.tui.panes.detail import Detail
from kcap.tui.panes.exchanges import ExchangeList
from kcap.tui.panes.filter_bar import FilterBar
from kcap.tui.status import Pulse
from kcap.tui.views.home import Home


class MainHome(Home, Protocol):
    """Interface of an app that shows the main screen, and views."""

    judges: bool
    """Whether problems of the capture are searched."""
    pulse: Pulse
    history: History

    def values(self, column: str) -> Sequence[str]:
        """Values of a column in the capture, the most frequent first."""

    def connection(self, uid: str) -> dict[str, Any] | None:
        """The row of a connection, once there is one."""

    def to_list(self) -> None:
        """Closes all views and windows."""

    def open_view(self, name: str) -> None:
        """Opens a view; a failure is notified."""

    def compare_with(self, path: str) -> None:
        """Shows what changed from another capture to this one."""

    def write(self, path: str, data: bytes) -> None:
        """Writes a file, and reports it."""


class MainScreen(Protocol):
    """Interface of the screen with the list, the tree and the bytes."""

    view: ListModel
    listed: ExchangeList
    detail: Detail
    hexes: Bytes

    @property
    def home(self) -> MainHome: ...

    @property
    def bar(self) -> FilterBar: ...

    @property
    def app(self) -> App[Any]: ...

    @property
    def focused(self) -> Widget | None: ...

    @property
    def notify(self) -> Callable[..., None]: ...

    @property
    def run_worker(self) -> Callable[..., Any]: ...

    @property
    def call_later(self) -> Callable[..., Any]: ...

    @property
    def run_action(self) -> Callable[..., Any]: ...

    def target(self) -> str | None:
        """The filter of the cell or the line under the cursor."""

    def action_columns(self) -> None:
        """Opens the list of columns."""

    def say_once(self, why: str) -> None:
        """Says why a key has no effect."""

    def show_exchange(self, uid: str, number: int) -> None:
        """Goes to an exchange; clears the filter if the exchange does not pass it."""

    def rearrange(self) -> None:
        """Sorts and filters the list again."""

    def reopen(self) -> None:
        """Shows the exchange under the cursor again, with its notes."""

    def again(self) -> None:
        """Lays out and paints again."""

    def show_status(self) -> None:
        """Updates the title and the status line."""
