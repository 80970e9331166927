"""Draws spans of time as lines of text. Free of widgets.

In: names with their spans, a width. Out: lines. Law: no line is wider than the given width; a span of no length is visible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kcap.output.grid import clean, duration
from kcap.reports.text import clock, count
from kcap.tui.views.sheet import Line, paragraph

NAMES: Final = 0.3
"""Maximum share of the width for names."""
SHOWN: Final = 100
"""Maximum number of lines."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span: begin and end, in nanoseconds since the epoch."""

    first_ns: int
    last_ns: int
    tone: str = "one"
    """One of `kcap.tui.views.sheet.TONES`."""
    mark: str = "█"


def timeline(rows: Sequence[tuple[str, Sequence[Span]]], width: int) -> list[Line]:
    """One line per name, over the time of all spans, with the length of that time below; later spans are drawn over earlier
    ones."""
    spans = [span for _, some in rows for span in some]
    if not spans:
        return []
    begin, end = min(span.first_ns for span in spans), max(span.last_ns for span in spans)
    left = min(max(len(clean(name)) for name, _ in rows), max(4, int(width * NAMES)))
    room = max(1, width - left - 1)
    out: list[Line] = []
    for name, some in rows[:SHOWN]:
        cells: list[tuple[str, str]] = [("·", "dim")] * room
        for span in some:
            first, last = ((time - begin) * (room - 1) // max(end - begin, 1) for time in (span.first_ns, span.last_ns))
            cells[first : last + 1] = [(span.mark, span.tone)] * (last - first + 1)
        name = clean(name)
        head = name if len(name) <= left else name[: left - 1] + "…"
        out.append([(f"{head:<{left}} "[:width], ""), *cells])
    rest = len(rows) - SHOWN
    foot = f"{clock(begin)} to {clock(end)} ({duration(end - begin)})" + (f"; {count(rest, 'more line')}" if rest > 0 else "")
    out += paragraph(foot, width, "dim")
    return [*out, [("", "")]]
