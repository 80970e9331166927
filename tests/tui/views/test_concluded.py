"""Views of what was concluded over the whole capture: findings, consumer groups, transactions."""

import pytest

from kcap.tui.views.concluded import Concluded, Findings, Groups, Transactions
from kcap.tui.views.health import UNFILTERED
from tests.tui.views.stub import EmptyBook, StubBook, drive


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


def test_a_problem_with_its_next_step_and_its_exchanges() -> None:
    name = "problems/zombie-fenced.pcap"
    seen = drive(StubBook(name), "findings", "enter")
    assert "next step:" in seen.text
    assert "severity" in seen.text
    (text,) = seen.narrowed
    assert not text.startswith("&&"), "the filter in force does not count"
    assert "rule" in drive(StubBook(name), "findings", "3").text
    assert UNFILTERED not in seen.text
    assert UNFILTERED in drive(StubBook(name, "api == Fetch"), "findings").text


def test_a_problem_of_connections_without_exchanges_leads_to_them() -> None:
    seen = drive(StubBook("problems/tls-plaintext-confusion.pcap"), "findings", "enter")
    assert seen.name == "conversations" or seen.narrowed
    if seen.name == "conversations":
        assert ", to " in seen.lines[0]


def test_sections_of_groups() -> None:
    name = "problems/rebalance-loop-848.pcap"
    assert "rebalances" in drive(StubBook(name), "groups").text
    seen = drive(StubBook(name), "groups", "3", "enter")
    (text,) = seen.narrowed
    assert text.startswith("group_id == ")
    assert "client_id == " in text


def test_sections_of_transactions() -> None:
    name = "problems/aborted-transactions.pcap"
    seen = drive(StubBook(name), "transactions", "enter")
    assert "aborted" in seen.text
    (text,) = seen.narrowed
    assert text.startswith("transactional_id == ")
    assert "time >= " in text
    assert "transactions over time" in drive(StubBook(name), "transactions", "2").text


@pytest.mark.parametrize("name", ["findings", "groups", "transactions"])
def test_nothing_before_the_end(name: str) -> None:
    assert "when the capture has been read" in drive(EmptyBook("reading"), name).text
