"""Computes latency over time, in as many steps as the width allows. Free of widgets.

In: rows, those that pass the filter. Out: for each step of time the highest latency, the number of exchanges, whether any
failed. Law: each exchange counts in one step; long polls do not count as slow.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.filter.parse import parse
from kcap.output.grid import duration
from kcap.reports import drill_down
from kcap.tui.color_rules import ERROR, UNANSWERED
from kcap.tui.list_columns import moment
from kcap.tui.views.bars import EIGHTHS, shares
from kcap.tui.views.sheet import Line

if TYPE_CHECKING:
    from kcap.tui.row_index import Numbers, RowIndex

LEAST_US: Final = 1
"""A step is no shorter: times of rows are no finer."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps of time."""

    first_us: int
    step_us: int
    slowest: list[float | None]
    """Highest latency in nanoseconds, None without a response."""
    counts: list[int]
    failed: list[bool]

    def place(self, time_us: int) -> int:
        """The step that a time is in."""
        return max(0, min(len(self.counts) - 1, (time_us - self.first_us) // self.step_us))

    def within(self, first: int, last: int) -> str:
        """The filter for some steps."""
        start = self.first_us + min(first, last) * self.step_us
        return drill_down.between(start * 1000, (self.first_us + (max(first, last) + 1) * self.step_us) * 1000)

    def line(self, shown: tuple[int, int] | None, chosen: tuple[int, int] | None) -> Line:
        """The picture. `shown`: first and last step of the rows in sight; `chosen`: those that are selected."""
        parts = shares(self.slowest, logarithmic=True)
        out: Line = []
        for at, part in enumerate(parts):
            sign = EIGHTHS[max(1, round(part * 8))] if part else ("·" if self.counts[at] else " ")
            inside = shown is not None and shown[0] <= at <= shown[1]
            tone = "bad" if self.failed[at] else "key" if inside else "one"
            if chosen is not None and min(chosen) <= at <= max(chosen):
                tone = "cell"
            out.append((sign, tone))
        return out

    def describe(self, at: int) -> str:
        """A step in words."""
        start = self.first_us + at * self.step_us
        slowest = self.slowest[at]
        text = f"{moment(start * 1000, 'clock', 0, None)} +{duration(self.step_us * 1000)}: {self.counts[at]:,} exchanges"
        return text + (f", slowest {duration(int(slowest))}" if slowest is not None else "")


def timeline(rows: "RowIndex", passing: "Numbers | None", steps: int) -> Timeline | None:
    """The steps; None where there is no row. Takes its time: call it in a thread."""
    if not len(rows) or steps < 1 or (passing is not None and not len(passing)):
        return None
    times = rows.keys("time", passing)
    first, last = int(times.min()), int(times.max())
    step = max(LEAST_US, (last - first) // steps + 1)
    places = (times - first) // step
    counts = np.bincount(places, minlength=steps)
    latency, polls = rows.keys("latency_ns", passing), rows.keys("long_poll_ns", passing)
    highest = np.zeros(steps, np.int64)
    responded = (latency > 0) & (polls <= 0)
    np.maximum.at(highest, places[responded], latency[responded])
    tree = parse(f"({ERROR}) || {UNANSWERED}")
    assert tree is not None
    bad = np.zeros(len(rows) - rows.first, np.bool_)
    bad[rows.passing(tree) - rows.first] = True
    failed = np.zeros(steps, np.bool_)
    failed[places[bad if passing is None else bad[passing - rows.first]]] = True
    slowest: list[float | None] = [float(value) if value else None for value in highest.tolist()]
    return Timeline(first, step, slowest, counts.tolist(), failed.tolist())
