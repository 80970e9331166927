"""Draws bars as lines of text, horizontal or upright over time. Free of widgets.

In: bars, a width, the selected bar. Out: lines. Law: no line is wider than the given width; a value above zero is visible; the
highest bar fills the width.
"""

from collections.abc import Sequence
from math import log10
from typing import Final

from kcap.tui.views.sheet import Bars, Line

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
LEFTS: Final = " ▏▎▍▌▋▊▉█"
LOW: Final = 0.12
"""Height of the smallest bar on a logarithmic scale."""


def shares(values: Sequence[float | None], *, logarithmic: bool) -> list[float]:
    """Each value as a fraction, 0 to 1; on a logarithmic scale if requested."""
    there = [value for value in values if value is not None and value > 0]
    if not there:
        return [0.0] * len(values)
    most = max(there)
    if not logarithmic:
        return [(value or 0) / most if (value or 0) > 0 else 0.0 for value in values]
    low, span = log10(min(there)), max(log10(most) - log10(min(there)), 0.3)
    return [LOW + (1 - LOW) * (log10(value) - low) / span if value is not None and value > 0 else 0.0 for value in values]


def lying_bar(eighths: int) -> str:
    """A horizontal bar, measured in eighths of a cell."""
    return "█" * (eighths // 8) + (LEFTS[eighths % 8] if eighths % 8 else "")


def lying(bars: Bars, width: int, chosen: int | None) -> list[Line]:
    """Horizontal bars, one per line: label, bar, value."""
    label = max((len(text) for text in bars.labels), default=0)
    text_width = max((len(text) for text in bars.texts), default=0)
    room = max(4, width - label - text_width - 4)
    out: list[Line] = []
    for at, share in enumerate(shares(bars.values, logarithmic=bars.logarithmic)):
        eighths = max(1, round(share * room * 8)) if share else 0
        bar = lying_bar(eighths)
        tone = "key" if at == chosen else "one"
        head = "bold" if at == chosen else "dim"
        mark = "▸" if at == chosen else " "
        text = [
            (f"{mark}{bars.labels[at]:>{label}} ", head),
            (bar.ljust(room), tone),
            (f" {bars.texts[at]:>{text_width}}", head),
        ]
        out.append(text)
    return out


def columns(bars: Bars, width: int) -> list[list[int]]:
    """Which bars share a column of the picture: one each, or several if it is narrow."""
    count = len(bars.values)
    if count <= width:
        return [[at] for at in range(count)]
    return [list(range(at * count // width, (at + 1) * count // width)) for at in range(width)]


def peak(bars: Bars, some: Sequence[int]) -> int:
    """The highest of the bars that share a column."""
    return max(some, key=lambda at: bars.values[at] or 0)


def standing(bars: Bars, width: int, height: int, chosen: int | None) -> list[Line]:
    """Upright bars, `height` lines of them; below them the first and the last label and the selected bar in words."""
    axis = axis_of(bars) - 2
    room = max(4, width - axis_of(bars))
    groups = columns(bars, room)
    each = max(1, room // max(1, len(groups)))
    found = shares(bars.values, logarithmic=bars.logarithmic)
    tops = [peak(bars, some) for some in groups]
    most = peak(bars, range(len(bars.values))) if bars.values else None
    out: list[Line] = []
    for level in reversed(range(height)):
        text = bars.texts[most] if most is not None and level == height - 1 else ""
        row: Line = [(f"{text:>{axis}} ┤" if text else f"{'':>{axis}} │", "dim")]
        for some, top in zip(groups, tops):
            eighths = max(1, round(found[top] * height * 8)) if found[top] else 0
            block = EIGHTHS[max(0, min(8, eighths - level * 8))]
            row.append((block * each, "key" if chosen in some else "one"))
        out.append(row)
    out.append([(f"{'':>{axis}} └" + "─" * (each * len(groups)), "dim")])
    if bars.labels:
        first, last, span = bars.labels[0], bars.labels[-1], each * len(groups)
        gap = max(1, span - len(first) - len(last))
        out.append([(f"{'':>{axis}}  {first}{' ' * gap}{last}"[:width], "dim")])
    if chosen is not None and chosen < len(bars.labels):
        out.append([("▸ ", "key"), (f"{bars.labels[chosen]}  {bars.texts[chosen] or 'nothing'}"[: width - 2], "bold")])
    return out


def axis_of(bars: Bars) -> int:
    """Width of the axis left of upright bars."""
    return max((len(text) for text in bars.texts), default=0) + 2


def bar_at(bars: Bars, width: int, x: int, y: int) -> int | None:
    """The bar at a position of the picture; None for positions without one."""
    if not bars.upright:
        return y - 1 if 1 <= y <= len(bars.values) else None
    room = max(4, width - axis_of(bars))
    groups = columns(bars, room)
    at = (x - axis_of(bars)) // max(1, room // max(1, len(groups)))
    return peak(bars, groups[at]) if y >= 1 and 0 <= at < len(groups) else None


def lines(bars: Bars, width: int, height: int, chosen: int | None) -> list[Line]:
    """The picture with its title."""
    body = standing(bars, width, max(2, height - 4), chosen) if bars.upright else lying(bars, width, chosen)
    return [[(bars.title[:width], "bold")], *body]


def height_of(bars: Bars) -> int:
    """Number of lines that a picture takes."""
    return 10 if bars.upright else len(bars.values) + 1
