"""Spans of time as lines of text."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.tui.views.spans import SHOWN, Span, timeline

SPANS = st.lists(
    st.tuples(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 10**18), st.integers(0, 10**15)), max_size=4)), max_size=5
)


@given(SPANS, st.integers(20, 120))
def test_no_line_is_wider_than_asked_and_every_span_is_seen(rows: list[tuple[str, list[tuple[int, int]]]], width: int) -> None:
    lines = timeline([(name, [Span(at, at + long) for at, long in some]) for name, some in rows], width)
    for line in lines:
        assert sum(len(text) for text, _ in line) <= width
        assert all(text.isprintable() for text, _ in line)
    for line, (_, some) in zip(lines, rows):
        assert bool(some) == any(text == "█" for text, _ in line)


def test_more_names_than_lines_are_counted() -> None:
    lines = timeline([(str(at), [Span(0, 10**9)]) for at in range(SHOWN + 7)], 80)
    assert "7 more lines" in lines[SHOWN][0][0]
    assert "00:00:00.000 to 00:00:01.000 (1.00s)" in lines[SHOWN][0][0]
