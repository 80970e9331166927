"""Computes latency over time, in as many steps as the width allows. Free of widgets.

In: rows, those that pass the filter. Out: for each time step the highest latency, the number of exchanges, whether any failed.
Law: each exchange counts in one step; long polls do not count as slow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.filter.ast import Filter, columns_of
from kcap.limits import PLACES_AT_ONCE
from kcap.output.grid import duration
from kcap.reports import drill_down
from kcap.reports.text import count
from kcap.table.arrow_filter import mask
from kcap.tui.color_rules import FAILING
from kcap.tui.list_columns import moment
from kcap.tui.row_index import numeric
from kcap.tui.views.bars import EIGHTHS, shares
from kcap.tui.views.sheet import Line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.tui.row_index import Numbers, RowIndex

LEAST_US: Final = 1
"""Minimum length of a step, which is the resolution of rows' times."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Time steps."""

    first_us: int
    step_us: int
    slowest: list[float | None]
    """Highest latency in nanoseconds, None without a response."""
    counts: list[int]
    failed: list[bool]

    def place(self, time_us: int) -> int:
        return max(0, min(len(self.counts) - 1, (time_us - self.first_us) // self.step_us))

    def within(self, first: int, last: int) -> str:
        start = self.first_us + min(first, last) * self.step_us
        return drill_down.between(start * 1000, (self.first_us + (max(first, last) + 1) * self.step_us) * 1000)

    def line(self, shown: tuple[int, int] | None, chosen: tuple[int, int] | None) -> Line:
        """The picture. `shown`: first and last step of the visible rows; `chosen`: the selected ones."""
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
        text = f"{moment(start * 1000, 'clock', 0, None)} +{duration(self.step_us * 1000)}: "
        text += count(int(self.counts[at]), "exchange")
        return text + (f", slowest {duration(int(slowest))}" if slowest is not None else "")


def timeline(rows: "RowIndex", passing: "Numbers | None", steps: int) -> Timeline | None:
    """The steps; None if there is no row. Slow: call it in a thread. It copies one batch of rows at a time, and a byte for each
    row if `passing` restricts the rows."""
    wanted = None
    if passing is not None and len(passing) < len(rows) - rows.first:
        wanted = np.zeros(len(rows) - rows.first, np.bool_)
        for start in range(0, len(passing), PLACES_AT_ONCE):  # numpy widens the numbers that it takes as positions
            wanted[passing[start : start + PLACES_AT_ONCE] - rows.first] = True
    spans = [(int(times.min()), int(times.max())) for (times,) in parts(rows, wanted, "time") if len(times)]
    if not spans or steps < 1:
        return None
    first, last = min(low for low, _ in spans), max(high for _, high in spans)
    step = max(LEAST_US, (last - first) // steps + 1)
    counts, highest, failed = np.zeros(steps, np.int64), np.zeros(steps, np.int64), np.zeros(steps, np.bool_)
    for times, latency, polls, bad in parts(rows, wanted, "time", "latency_ns", "long_poll_ns", FAILING):
        places = (times - first) // step
        counts += np.bincount(places, minlength=steps)
        responded = (latency > 0) & (polls <= 0)
        np.maximum.at(highest, places[responded], latency[responded])
        failed[places[bad]] = True
    slowest: list[float | None] = [float(value) if value else None for value in highest.tolist()]
    return Timeline(first, step, slowest, counts.tolist(), failed.tolist())


def parts(rows: "RowIndex", wanted: "NDArray[np.bool_] | None", *columns: "str | Filter") -> "Iterator[list[NDArray[Any]]]":
    """Batch by batch, the values of columns, or whether rows pass a filter, for the wanted rows."""
    for number, batch in rows.scan():
        made = [
            numeric(batch.column(one)) if isinstance(one, str) else mask(one, batch.select(list(columns_of(one))))
            for one in columns
        ]
        if wanted is not None:
            start = number - rows.first
            inside = wanted[start : start + batch.num_rows]
            made = [values[inside] for values in made]
        yield made
