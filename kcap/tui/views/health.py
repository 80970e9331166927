"""The view of capture health: the verdict, oddities, files, the byte ledger of each connection.

In: the capture model. Out: a screen of four sections. Law: the verdict needs the whole capture; the display filter does not
apply, and the screen says so.
"""

from typing import Final

from kcap.tui.capture_model import CaptureModel
from kcap.tui.views import health_model as model
from kcap.tui.views.grouping import waiting
from kcap.tui.views.home import later
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Line, Page

UNFILTERED: Final = "the whole capture: the display filter does not apply here"


class Health(View):
    NAME = "health"

    def page(self, book: CaptureModel) -> Page:
        connections, captures, weirds = (
            book.table(name) if book.done else None for name in ("connections", "captures", "weirds")
        )
        if connections is None or captures is None or weirds is None:
            return Page([waiting("verdict", later(book, "the points of the verdict"))])
        evidence = model.evidence_of(captures, connections, weirds, book.exchanges(model.COLUMNS, filtered=False))
        sheets = [model.points(evidence), model.oddities(weirds, connections), model.files(captures), model.ledger(connections)]
        banner: Line = [(UNFILTERED, "dim")] if book.filter_text else []
        return Page(sheets, ", ".join(file.name for file in evidence.files), banner)
