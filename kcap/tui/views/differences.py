"""The view of differences: what changed from another capture to this one.

In: the capture model, the path of the other capture, which the user types. Out: a screen with a section of differences and one
for each grouping. Law: it shows the result of `kcap diff OTHER THIS`; the other capture is the earlier one.
"""

import os
from typing import Any

from kcap.output.grid import clean
from kcap.tui.capture_model import CaptureModel
from kcap.tui.menu import Prompt
from kcap.tui.views import differences_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.health import UNFILTERED
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Page


class Differences(View):
    NAME = "differences"
    REMEMBERS = False

    def __init__(self) -> None:
        super().__init__()
        self.other = ""
        """Path of the earlier capture."""

    def on_mount(self) -> None:
        """Begins with the capture that was named last; prompts for one if there is none."""
        self.other = self.home.other
        if not self.other:
            self.app.push_screen(Prompt("Compare with the capture", "", "the one before; a path"), self._named)

    def on_unmount(self) -> None:
        """Cancels an unfinished comparison."""
        book, other = self.home.book, self.other
        if other:
            self.app.run_worker(lambda: book.stop_comparing(other), thread=True, exit_on_error=False)

    def look(self) -> None:
        """Shows how far the captures were read."""
        super().look()
        far = self.home.book.comparing(self.other) if self.intact and self.other and not self.table.rows else ""
        if far:
            self.table.say(f"computing: {far}; Esc cancels")

    def _named(self, path: str | None) -> None:
        if path is not None:
            self.other = os.path.expanduser(path)
            self.look()
        else:
            self.call_later(self._leave)

    def _leave(self) -> None:
        """Closes the view: no capture was named."""
        if self.app.screen is self:
            self.app.pop_screen()

    def settled(self) -> Any:
        """Adds the other capture, and whether there is a result."""
        book = self.home.book
        return super().settled(), self.other, bool(self.other) and book.compared(self.other)

    def page(self, book: CaptureModel) -> Page:
        if not self.other:
            return Page([waiting("differences", "No other capture was named. Type `:` and `diff FILE` to name one.")])
        found = book.differences(self.other)
        if found is None:
            return Page([waiting("differences", "computing …; Esc cancels")])
        if isinstance(found, str):
            return Page([waiting("differences", clean(found))])
        title = f"{', '.join(found['before']['captures'])} before, {', '.join(found['after']['captures'])} after"
        banner = f"{found['sentence']}{'; ' + UNFILTERED if book.filter_text else ''}"
        return Page(model.sheets(found), clean(title), [(banner, "bold")])
