"""Search finds what is shown."""

import pytest

from kcap.tui.capture_model import CaptureModel
from kcap.tui.exchange_tree import anatomy
from kcap.tui.list_model import ListModel
from kcap.tui.search import Needle, find_in_list, find_in_tree
from kcap.tui.tree_lines import Outline


@pytest.mark.parametrize(("text", "wanted"), [("0x0aff", b"\x0a\xff"), ("0x0", b"0x0"), ("0xzz", b"0xzz"), ("ab", b"ab")])
def test_bytes_of_a_needle(text: str, wanted: bytes) -> None:
    assert Needle(text).bytes == wanted


def test_every_row_that_has_it_is_found_in_turn(book: CaptureModel) -> None:
    """Law: going on finds all of them, in order, and then the first again."""
    view = ListModel(book)
    view.install(view.arrange())
    heads = [head for head, _ in view.heads(400)]
    texts = [" ".join(cells.texts).lower() for cells in view.page(0, 110, heads)]
    wanted = [at for at, text in enumerate(texts) if "offsets" in text]
    assert len(wanted) > 3
    found: list[int | None] = []
    for _ in range(len(wanted) + 1):
        place = find_in_list(view, Needle("OFFSETS"), 1)
        assert place is not None
        found.append(place)
        view.go(place)
    assert found == [*wanted, wanted[0]]
    assert find_in_list(view, Needle("offsets"), -1) == wanted[-1]
    assert find_in_list(view, Needle("nowhere (at all"), 1) is None
    assert find_in_list(view, Needle(""), 1) is None


def test_closed_lines_are_opened_for_what_is_inside(book: CaptureModel) -> None:
    outline = Outline()
    outline.show(anatomy(book.frames(0)))
    count = len(outline.lines)
    place = find_in_tree(outline, Needle("maxversion: 13"), 1)
    assert place is not None
    assert len(outline.lines) > count
    assert "MaxVersion: 13" in "".join(text for text, _ in outline.lines[place].line)
    assert find_in_tree(outline, Needle("nowhere at all"), 1) is None
