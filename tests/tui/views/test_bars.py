"""Pictures of bars: no line wider than the room, what is not nothing is seen, the highest fills the room."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.tui.views.bars import axis_of, bar_at, columns, height_of, lines, lying, shares, standing
from kcap.tui.views.sheet import Bars
from tests.tui.views.laws import lines_hold

VALUES = st.lists(st.one_of(st.none(), st.integers(0, 10**12)), min_size=1, max_size=90)


def bars(values: list[int | None], *, upright: bool = False, logarithmic: bool = False) -> Bars:
    labels = [f"bar {at}" for at in range(len(values))]
    texts = ["" if value is None else f"{value:,}" for value in values]
    return Bars("title", labels, values, texts, [None] * len(values), logarithmic, upright)


@given(values=VALUES, logarithmic=st.booleans())
def test_shares(values: list[int | None], logarithmic: bool) -> None:
    """Law: between 0 and 1, 0 for nothing alone, in the order of the values, 1 for the largest."""
    found = shares(values, logarithmic=logarithmic)
    assert all(0 <= share <= 1 for share in found)
    assert [bool(share) for share in found] == [bool(value) for value in values]
    there = sorted((value, share) for value, share in zip(values, found) if value)
    assert [share for _, share in there] == sorted(share for _, share in there)
    assert not there or logarithmic or there[-1][1] == 1


@given(values=VALUES, width=st.integers(40, 120), upright=st.booleans(), logarithmic=st.booleans(), chosen=st.integers(0, 89))
def test_no_line_is_wider_than_the_room(
    values: list[int | None], width: int, upright: bool, logarithmic: bool, chosen: int
) -> None:
    picture = bars(values, upright=upright, logarithmic=logarithmic)
    height = height_of(picture)
    drawn = lines(picture, width, height, chosen if chosen < len(values) else None)
    lines_hold(drawn, width)
    assert upright or len(drawn) == height


@given(values=VALUES)
def test_what_is_not_nothing_is_seen(values: list[int | None]) -> None:
    for value, line in zip(values, lying(bars(values), 60, None)):
        assert bool(line[1][0].strip()) == bool(value)


@given(values=VALUES, width=st.integers(4, 100))
def test_each_bar_stands_in_one_column(values: list[int | None], width: int) -> None:
    """Law: columns are the bars in their order, none twice, none left out, no more columns than there is room."""
    found = columns(bars(values, upright=True), width)
    assert [at for some in found for at in some] == list(range(len(values)))
    assert len(found) <= width
    assert all(found)


def test_the_highest_fills_the_room() -> None:
    drawn = standing(bars([1, 8, 4], upright=True), 40, 8, 1)
    heights = [sum(row[1 + at][0].strip() != "" for row in drawn[:8]) for at in range(3)]
    assert heights == [1, 8, 4]
    assert ("bar 1  8", "bold") in drawn[-1]
    assert lying(bars([5, 10]), 40, None)[1][1][0].strip("█") == ""


@given(values=VALUES, width=st.integers(40, 120), upright=st.booleans())
def test_a_place_is_the_bar_that_is_drawn_there(values: list[int | None], width: int, upright: bool) -> None:
    """Law: choosing what lies at a place marks that place; beside the bars there is none."""
    picture = bars(values, upright=upright)
    drawn = lines(picture, width, height_of(picture), None)
    assert bar_at(picture, width, 0, 0) is None
    for x, y in ((axis_of(picture), len(drawn) - 4), (axis_of(picture) + 3, 3), (width - 1, 2), (2, 1)):
        at = bar_at(picture, width, x, y)
        if at is None:
            continue
        marked = lines(picture, width, height_of(picture), at)[y]
        start = 0
        for text, tone in marked:
            if start <= x < start + len(text) or not upright:
                assert tone in (("key",) if upright else ("key", "bold"))
                break
            start += len(text)
    assert bar_at(picture, width, width - 1, 99 if not upright else 0) is None
