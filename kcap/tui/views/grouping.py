"""Helpers that the views of reports share: a report by its name, the columns of its grouping.

In: names, a grouping. Out: reports, columns. Law: the first column of a grouping identifies the row.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kcap import limits
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, named
from kcap.reports.definition import Key, Report, ReportRequest, Row, keys_of
from kcap.reports.text import TextColumn, instant
from kcap.tui.list_columns import NEEDED_MOST
from kcap.tui.views.sheet import Bars, Sheet

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel

NUMBERS: Final = frozenset({"api_version", "partition"})
"""Groupings by a number."""
LEAST: Final = {"error": NEEDED_MOST}
"""Groupings whose names are cut after all others."""
STEPS: Final = 1000
"""Maximum number of time steps for which empty steps are drawn too."""


def keyed(keys: Sequence[Key], heads: dict[str, str] | None = None) -> list[TextColumn]:
    """Columns of the grouping, the first one bold."""
    return [
        named(
            key.name, (heads or {}).get(key.name), right=key.name in NUMBERS, least=LEAST.get(key.name, 0),
            tone=bold if key is keys[0] else None,
        )
        for key in keys
    ]  # fmt: skip


def of_busiest(book: "CaptureModel", report: Report, request: ReportRequest) -> ReportRequest:
    """The request for the groups to show: if there are too many, only the busiest are computed, which bounds memory.

    They are counted first, since finding the busiest takes a report several times as long. Entries of lists and time steps are
    not counted. Slow: call it in a thread.
    """
    keys, most = keys_of(report, request), limits.VIEW_ROWS
    if book.rows <= most:
        return request
    counted = not any(key.entry or key.step_ns for key in keys)
    few = counted and book.groups([key.column for key in keys], most + 1) <= most
    return request if few else replace(request, busiest=most)


def with_foot(sheet: Sheet, result: Any, request: ReportRequest, which: str) -> None:
    """Adds a note to the sheet of such a request that says which groups these are, if there may be more."""
    if request.busiest is not None and len(result["rows"]) >= request.busiest:
        sheet.foot = f"the {request.busiest:,} {which}"


def waiting(name: str, why: str = "computing …") -> Sheet:
    """A section that has not been computed yet."""
    return Sheet(name, (), [], lambda _row: None, why)


def over_time(
    rows: Sequence[Row], keys: Sequence[Key], name: str, title: str, text: Callable[[Any], str], extra: str
) -> list[Bars]:
    """A value over time, if the grouping begins with time; `extra` restricts the exchanges that it counts."""
    step = keys[0].step_ns
    totals: dict[int, Any] = {}
    for row in rows if step else ():
        if row["time"] is not None:
            start = drill_down.nanoseconds(row["time"])
            totals[start] = totals.get(start, 0) + (row[name] or 0)
    if len(totals) < 2:
        return []
    first, last = min(totals), max(totals)
    starts = range(first, last + step, step) if (last - first) // step < STEPS else sorted(totals)
    values = [totals.get(start, 0) for start in starts]
    downs = [drill_down.every(extra, drill_down.between(start, start + step)) for start in starts]
    return [
        Bars(title, [instant(start, step)[11:-1] for start in starts], values, list(map(text, values)), downs, upright=True)
    ]
