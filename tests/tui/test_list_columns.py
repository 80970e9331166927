"""Cells of the list: what they say, what they filter by, how they fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kcap.columns import EXCHANGES
from kcap.filter.parse import parse
from kcap.output.grid import clean
from kcap.tui.capture_model import CaptureModel
from kcap.tui.list_columns import (
    DEFAULTS,
    GAP,
    HEADS,
    NARROWEST,
    RECOGNIZED,
    SHORTENED,
    TIME_FORMS,
    TIME_WIDTHS,
    cut,
    fitted,
    moment,
)


def test_every_column_of_the_table_can_be_shown(book: CaptureModel) -> None:
    assert {column.name for column in EXCHANGES} <= HEADS.keys()
    rows = book.snapshot().table().to_pylist()
    for head in HEADS.values():
        for row in rows[:40]:
            assert isinstance(head.text(row), str)
            assert head.text(row).isprintable()


@pytest.mark.parametrize("name", list(HEADS))
def test_a_cell_filters_by_what_it_shows(book: CaptureModel, name: str) -> None:
    """Law: the filter of a cell reads, and lets its own row pass."""
    head, snapshot = HEADS[name], book.snapshot()
    for number in range(0, book.rows, 9):
        text = head.by(snapshot.row(number)) if head.by is not None else None
        if text is not None:
            tree = parse(text)
            assert tree is not None
            assert number in snapshot.passing(tree).tolist(), text


@given(room=st.integers(20, 260), widths=st.dictionaries(st.sampled_from(DEFAULTS), st.integers(3, 40), max_size=3))
def test_columns_fit(room: int, widths: dict[str, int]) -> None:
    """Law: what may be left out is, until the rest fits; what is left over is given away; chosen columns all stay."""
    made = fitted(DEFAULTS, room, widths, chosen=False)
    taken = sum(width + GAP for _, width in made) - GAP
    if any(head.rank for head, _ in made):
        assert taken <= room
    if taken > room:
        assert all(width == NARROWEST for head, width in made if head.grows and head.name not in widths)
    assert [head.name for head, _ in made] == [name for name in DEFAULTS if name in {head.name for head, _ in made}]
    if not widths and taken <= room:
        assert taken == room
    for head, width in made:
        assert width == widths.get(head.name, width) >= (NARROWEST if head.name not in widths and head.grows else 3)
    assert [head.name for head, _ in fitted(DEFAULTS, room, widths, chosen=True)] == list(DEFAULTS)


@pytest.mark.parametrize("room", range(70, 251, 10))
def test_an_error_is_cut_last(room: int) -> None:
    """Law: what is needed for an error is there unless all others are as narrow as they get."""
    made = {head.name: width for head, width in fitted(DEFAULTS, room, {}, chosen=False, needs={"result": 30})}
    assert made["result"] >= 30 or made["client"] == made.get("about", NARROWEST) == NARROWEST
    assert room < 90 or made["result"] >= 30
    assert sum(width + GAP for width in made.values()) - GAP <= room


@pytest.mark.parametrize("room", range(57, 251, 5))
@pytest.mark.parametrize("form", TIME_FORMS[:3])
def test_a_unit_a_version_and_an_error_are_on_the_screen(room: int, form: str) -> None:
    """Law: from 60 columns on the line fits, with the longest names too; the latency is whole, a call keeps its version."""
    needs = {"call": 28, "result": 30}
    made = fitted(DEFAULTS, room, {"time": TIME_WIDTHS[form]}, chosen=False, needs=needs)
    widths = {head.name: width for head, width in made}
    assert sum(width + GAP for width in widths.values()) - GAP <= room
    assert widths["latency"] >= HEADS["latency"].width
    assert widths["result"] >= NARROWEST
    shown = cut("GetTelemetrySubscriptions v0", widths["call"], right=False, ends=HEADS["call"].ends)
    assert shown.endswith(" v0")
    assert cell_len(shown.rstrip()) <= widths["call"]


LONGEST = {"client": 18, "source": 15, "broker": 15, "call": 28, "why": 44, "result": 12, "about": 18, "packet": 3, "flags": 9}
"""Longest cells of the columns, as a capture of one machine has them."""


@pytest.mark.parametrize("room", range(177, 251, 7))
def test_room_goes_to_cells_that_are_cut(room: int) -> None:
    """Law: no cell is cut while another column is wider than its cells and its head."""
    made = dict(fitted(DEFAULTS, room, {"time": 12}, chosen=False, needs=LONGEST))
    widths = {head.name: width for head, width in made.items()}
    wide = [head.name for head, width in made.items() if width > max(LONGEST.get(head.name, width), len(head.title) + 1, 12)]
    cut_ones = [name for name, width in widths.items() if width < LONGEST.get(name, 0)]
    assert not (cut_ones and wide), (cut_ones, wide)
    assert "why" in widths
    assert room < 220 or not cut_ones


def test_short_addresses_leave_room_for_the_reason() -> None:
    """At 140 columns a long error and the reason are both there where addresses are short."""
    needs = {"client": 6, "broker": 14, "call": 17, "result": 28, "about": 6, "why": 13}
    assert "why" in {head.name for head, _ in fitted(DEFAULTS, 137, {"time": 12}, chosen=False, needs=needs)}
    assert "why" not in {head.name for head, _ in fitted(DEFAULTS, 137, {"time": 12}, chosen=False, needs={"result": 28})}


def test_names_of_apis_give_way_to_the_reason() -> None:
    """140 columns: the names that brokers call each other by took the place of the reason of a slow Produce."""
    needs = {"client": 15, "broker": 15, "call": 26, "why": 44, "result": 17, "about": 30}
    widths = {head.name: width for head, width in fitted(DEFAULTS, 137, {"time": 12}, chosen=False, needs=needs, reason=24)}
    assert widths["why"] >= 24
    assert SHORTENED <= widths["call"] < 26
    assert widths["result"] >= 17


@pytest.mark.parametrize("room", range(100, 251, 10))
def test_a_reason_is_whole_or_left_out(room: int) -> None:
    """Law: what a reason begins with, the part of the time and its length, is not cut where the column is shown."""
    needs = {"client": 10, "broker": 21, "call": 28, "result": 28, "about": 30, "why": 80}
    made = {head.name: width for head, width in fitted(DEFAULTS, room, {"time": 12}, chosen=False, needs=needs, reason=24)}
    assert made.get("why", 24) >= 24
    assert room < 170 or "why" in made


def test_times() -> None:
    ns, first = 1_795_246_898_009_537_123, 1_795_246_897_000_000_000
    assert moment(ns, "clock", first, None) == "07:41:38.009"
    assert moment(ns, "relative", first, None) == "1.009537"
    assert moment(ns, "delta", first, ns - 1000) == "+0.000001"
    assert moment(ns, "delta", first, None) == ""
    assert moment(ns, "date", first, None) == "2026-11-21 07:41:38.009537"
    assert all(moment(None, form, first, None) == "" for form in TIME_FORMS)


@given(st.integers(0, 4 * 10**18))
def test_the_clock_is_that_of_the_calendar(ns: int) -> None:
    assert moment(ns, "clock", 0, None) == moment(ns, "date", 0, None)[11:23]


@given(st.text(max_size=20), st.integers(0, 20), st.booleans())
def test_a_cell_has_its_width(text: str, width: int, right: bool) -> None:
    assert cell_len(cut(clean(text), width, right=right)) == width


@pytest.mark.parametrize("text", ["注文トピック", "🙂🙂🙂🙂", "plain text", "", "é" * 9, "a注"])
@pytest.mark.parametrize("width", range(13))
@pytest.mark.parametrize("right", [False, True])
def test_a_cell_takes_its_width_on_the_terminal(text: str, width: int, right: bool) -> None:
    assert cell_len(cut(text, width, right=right)) == width


def test_at_80_columns_clients_are_told_apart_before_names_of_apis_are_whole() -> None:
    """`broker-…` stood for three brokers while an API had cells that few rows needed."""
    needs = {"client": 18, "call": 18, "latency": 7, "result": 17, "about": 30}
    made = {head.name: width for head, width in fitted(DEFAULTS, 77, {"time": 12}, chosen=False, needs=needs)}
    assert made["client"] >= 10
    assert made["about"] >= 10
    assert made["call"] == RECOGNIZED
    assert made["result"] == 17
