"""The view of findings: what is wrong in the capture, which clients and brokers it concerns, since when, what to do.

In: the capture model. Out: a screen of three sections. Law: it shows the result of `kcap check`.
"""

from kcap.output.grid import endpoint
from kcap.tui.views import findings_model as model
from kcap.tui.views.concluded import Concluded
from kcap.tui.views.conversations import Conversations
from kcap.tui.views.sheet import Down


class Findings(Concluded):
    NAME = "findings"
    REPORT = "check"
    sheets = staticmethod(model.sheets)

    def follow(self, down: Down) -> None:
        """Shows the exchanges of a finding; if it has none, the connections to its broker."""
        row = self.table.current
        if down is None and row is not None and "who" in row:
            self.app.push_screen(Conversations(model.server(row)))
        else:
            super().follow(down)

    def where(self) -> str:
        """The target of Enter."""
        row = self.table.current
        server = model.server(row) if row is not None and "who" in row and row["filter"] == "" else None
        return f"the connections to {endpoint(*server)}" if server is not None else ""
