"""What views need of the app that shows them.

In: an app. Out: its book, ways to the list. Law: a view asks for nothing else, so that it runs in any app that has this.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel
    from kcap.tui.config import UiSettings


def knows_partitions(book: "CaptureModel") -> bool:
    """Whether partitions are there. They are asked for when reading is over: they take another pass over the files."""
    return book.done and book.table("partitions") is not None


def later(book: "CaptureModel", what: str) -> str:
    """Why something is not there that the end of reading tells."""
    if book.state == "failed":
        return f"the capture was not read to its end: {what} are not available"
    return f"{what} are available when the capture has been read"


class Home(Protocol):
    """What a view needs of the app."""

    book: "CaptureModel"
    selected: tuple[str, int] | None
    look: "UiSettings"
    """Settings."""

    def save_settings(self) -> None:
        """Remembers the settings."""

    def narrow(self, text: str) -> None:
        """Sets the display filter, and shows the list."""

    def show_exchange(self, uid: str, number: int) -> None:
        """Shows an exchange in the list."""

    def save_text(self, name: str, text: str) -> None:
        """Asks for a file name, and writes."""
