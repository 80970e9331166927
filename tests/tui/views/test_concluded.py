"""Views of what was concluded over the whole capture."""

from kcap.tui.views.concluded import Concluded
from kcap.tui.views.findings import Findings
from kcap.tui.views.groups import Groups
from kcap.tui.views.transactions import Transactions
from tests.tui.views.stub import StubBook


def test_the_display_filter_changes_nothing() -> None:
    """Law: their rows are those of the whole capture under any filter."""
    name = "problems/aborted-transactions.pcap"
    kinds: tuple[type[Concluded], ...] = (Findings, Groups, Transactions)
    for kind in kinds:
        pages = [kind().page(StubBook(name, text)) for text in ("", "api == Fetch")]  # type: ignore[arg-type]
        assert [sheet.rows for sheet in pages[0].sheets] == [sheet.rows for sheet in pages[1].sheets]
