"""Quick filters."""

import pytest

from kcap.filter.parse import parse
from kcap.tui.capture_model import CaptureModel
from kcap.tui.quick_filters import QUICK, Quick, text_of


@pytest.mark.parametrize("quick", QUICK, ids=lambda quick: quick.name)
def test_each_reads_and_lets_its_own_row_pass(book: CaptureModel, quick: Quick) -> None:
    snapshot = book.snapshot()
    assert (text_of(quick, None) is None) == callable(quick.text)
    for number in range(0, book.rows, 5):
        text = text_of(quick, snapshot.row(number))
        if text is not None:
            tree = parse(text)
            assert tree is not None
            assert not callable(quick.text) or number in snapshot.passing(tree).tolist()


def test_keys_are_not_used_twice() -> None:
    assert len({quick.key for quick in QUICK}) == len(QUICK)
    assert "x" not in {quick.key for quick in QUICK}, "that is for no filter"
