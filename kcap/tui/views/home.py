"""The interface through which views use the app that shows them.

In: an app. Out: its capture model, navigation to the list. Law: a view uses nothing else of the app, so any app with this
interface can show it.
"""

from dataclasses import dataclass
from typing import Protocol

from kcap.tui.capture_model import CaptureModel
from kcap.tui.config import UiSettings
from kcap.tui.views.sheet import SortOrder


def knows_partitions(book: CaptureModel) -> bool:
    """Whether the table of partitions is complete; it is read in a second pass over the files."""
    return book.done and book.table("partitions") is not None


def later(book: CaptureModel, what: str) -> str:
    """Why a table is missing that is complete only when the capture has been read."""
    if book.state == "failed":
        return f"the capture was not read to its end: {what} are not available"
    return f"{what} are available when the capture has been read"


def no_partitions(book: CaptureModel, what: str) -> str:
    """Why data that is made from the table of partitions is missing."""
    if "-" in book.paths:
        return f"{what} need a second pass, which a pipe does not allow"
    computing = "computing: the partitions are read from the capture"
    return computing if book.done and book.state != "failed" else later(book, what)


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """The last place in a view, at which it opens again."""

    section: int
    grouping: int
    row: int
    cell: int
    orders: dict[str, SortOrder]


class Home(Protocol):
    """Interface of an app that shows views."""

    book: CaptureModel
    places: dict[str, ViewPlace]
    """Last places of views, by name."""
    selected: tuple[str, int] | None
    pair: tuple[tuple[str, int] | None, tuple[str, int] | None]
    """The exchanges to compare; the first is None if the user named only one."""
    show_secrets: bool
    other: str
    """Path of the capture to compare with; empty if none was named."""
    look: UiSettings
    """Settings."""

    def save_settings(self) -> None:
        """Saves the settings."""

    def free_screens(self) -> None:
        """Frees closed screens, once no key has arrived for a while."""

    def narrow(self, text: str, *, stay: bool = False) -> None:
        """Sets the display filter, and shows the list; with `stay` the view remains open."""

    def mark(self, uid: str, number: int) -> str:
        """Marks an exchange, or removes its mark; returns what was done, in words."""

    def show_exchange(self, uid: str, number: int) -> None:
        """Shows an exchange in the list."""

    def seek_records(self) -> None:
        """Moves on in the list to an exchange with records if the selected one has none."""

    def save_packets(self, only: str) -> None:
        """Prompts for a file name and writes the packets of the exchanges that a filter selects."""

    def save_text(self, name: str, text: str) -> None:
        """Prompts for a file name and writes the file."""
