"""Views of what was concluded over the whole capture."""

from kcap.tui.views.concluded import Concluded
from kcap.tui.views.findings import Findings
from kcap.tui.views.groups import Groups
from kcap.tui.views.health import UNFILTERED
from kcap.tui.views.transactions import Transactions
from tests.tui.views.stub import StubBook, drive


def test_the_display_filter_changes_nothing() -> None:
    """Law: their rows are those of the whole capture under any filter."""
    name = "problems/aborted-transactions.pcap"
    kinds: tuple[type[Concluded], ...] = (Findings, Groups, Transactions)
    for kind in kinds:
        pages = [kind().page(StubBook(name, text)) for text in ("", "api == Fetch")]  # type: ignore[arg-type]
        assert [sheet.rows for sheet in pages[0].sheets] == [sheet.rows for sheet in pages[1].sheets]


class NoneYet(StubBook):
    """A capture that is still read."""

    def conclusions(self) -> None:
        return None


def test_before_there_is_a_result_the_page_says_when_there_will_be() -> None:
    seen = drive(NoneYet("pipelined.pcap"), "findings")
    assert "they are made when the capture has been read" in seen.text


def test_a_row_sets_the_filter_of_its_exchanges() -> None:
    seen = drive(StubBook("problems/aborted-transactions.pcap", "api == Fetch"), "findings", "enter", "enter")
    assert any("transfer-tx" in str(text) for text in seen.narrowed)


def test_a_filter_that_is_in_force_is_said_not_to_apply() -> None:
    name = "problems/aborted-transactions.pcap"
    texts = [drive(StubBook(name, text), "findings", size=(120, 40)).text for text in ("", "api == Fetch")]
    assert [UNFILTERED.split()[1] in text for text in texts] == [False, True]
