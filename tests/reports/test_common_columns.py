"""Columns that many tables have show and sort values alike everywhere."""

from kcap.reports.common_columns import bold, classes, clocked, counted, lasting, named, part, shape, sized, value_key, when
from kcap.reports.text import UNLIMITED, Style


def test_a_number_is_empty_for_zero_if_that_says_nothing() -> None:
    assert (counted("n").text({"n": 0}), counted("n", zero=False).text({"n": 0})) == ("0", "")
    assert (lasting("n", "n").text({"n": 0}), lasting("n", "n", zero=False).text({"n": 0})) == ("0ns", "")


def test_a_column_sorts_by_values_and_not_by_texts() -> None:
    rows = [{"a": 2_000, "b": [1]}, {"a": 10, "b": None}]
    for column in (counted("a"), lasting("a", "a"), sized("a", "a"), clocked("a", "a")):
        assert column.key is not None
        assert [column.key(row) for row in rows] == [2_000, 10]
    assert value_key(None) is None
    assert value_key(2) < value_key(10) < value_key("1") < value_key(["a", "b"])
    assert (named("b").text(rows[1]), named("b", tone=bold).tone) == ("-", bold)


def test_a_beginning_and_an_end_that_read_the_same_are_one_time() -> None:
    assert when({"first_ns": 1, "last_ns": 2}) == "at 00:00:00.000"
    assert when({"first_ns": 1, "last_ns": 10**9}) == "from 00:00:00.000 to 00:00:01.000"


def test_histograms_in_a_cell_begin_and_end_with_the_first_and_last_class_of_any_row() -> None:
    assert classes([0, 0, 1, 2]) == range(2, 4)
    assert classes([]) == range(1)
    rows = [{"histogram": [0, 1, 8, 4]}, {"histogram": [0, 0, 0, 2]}]
    bars = shape(rows, Style(UNLIMITED, color=False, unicode=True), 1, "…")
    assert (bars.head, [bars.text(row) for row in rows]) == ("1us…30us", ["▁█▄", "  █"])
    slowest = shape([{"histogram": [0] * 16 + [1]}], Style(UNLIMITED, color=False, unicode=False), 1)
    assert (slowest.head, slowest.text({"histogram": [0] * 16 + [1]})) == ("30s to more", "@")


def test_a_part_of_the_time_is_visible_however_small() -> None:
    column = part("broker", 1, "a", "b")
    sums = [(100, 50, 50), (100, 50, 49.9), (100, 50, 0), (0, 0, 0)]
    assert [column.text({"sum_ns": whole, "a": a, "b": b}) for whole, a, b in sums] == ["", "<1%", "50%", ""]
