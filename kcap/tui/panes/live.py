"""The line of rates in the header, while a capture grows.

In: a capture model. Out: sparklines of the last seconds. Law: only a growing capture has this line.
"""

from kcap.tui.capture_model import CaptureModel
from kcap.tui.rates import Rates
from kcap.tui.views.styled_lines import StyledText


class LiveLine(StyledText):
    """Rates of the last seconds."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.rates = Rates()
        self._shown: object = None

    def show(self, book: CaptureModel, width: int) -> None:
        """Counts what is new and shows it."""
        if not book.live:
            self.set_class(False, "-live")
            return
        self.rates.take(book.snapshot())
        line = self.rates.line(width)
        self.set_class(bool(line), "-live")
        if line != self._shown:
            self._shown = line
            self.set_lines([line])
