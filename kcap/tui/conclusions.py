"""Findings, consumer groups and transactions of a capture, computed apart from the screens.

In: captures, options of the analyzer, thresholds of rules. Out: a file with the results of the reports `check`, `groups` and
`transactions`. Law: the capture is read once for all three, and the results are those of the commands of the same names.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kcap.tui.spill import pickled

if TYPE_CHECKING:
    from kcap.analyzer import Options
    from kcap.capture_pass import CapturePass
    from kcap.reports.definition import Row

    Watching = Callable[[CapturePass], Callable[[], None]]

NAME: Final = "conclusions.pickle"
DIFFERENCES: Final = "differences.pickle"


def conclude(
    paths: list[str], options: "Options", thresholds: Mapping[str, Mapping[str, float]], target: str, watch: "Watching"
) -> None:
    """Writes the results by the names of the reports to the file `target`. `watch` makes the callback of each pass, as in
    `ReportInput`. Raises CaptureError if nothing can be read."""
    from kcap.reports.findings.report import check
    from kcap.reports.findings.source import observed
    from kcap.reports.groups.report import report as groups
    from kcap.reports.source import ReportInput
    from kcap.reports.transactions.report import report as transactions

    given = ReportInput(paths, options, watch=watch)
    with observed(given) as seen:
        found: dict[str, Any] = {
            "check": {"report": "check", "captures": given.captures} | check(seen, thresholds=thresholds),
            "groups": groups(seen, given.captures),
            "transactions": transactions(seen, given.captures),
        }
    pickled(target, found)


def differ(before: str, after: list[str], options: "Options", target: str, watch: "Watching") -> None:
    """Writes the result of the report `diff` of two captures to the file `target`, with a `watch` as in `conclude`. Raises
    CaptureError, UsageError."""
    from kcap.reports.diff.report import diff
    from kcap.reports.source import ReportInput

    pickled(target, diff(*(ReportInput(paths, options, watch=watch) for paths in ([before], after))))


def problems(checked: "Row | None") -> "list[Row]":
    """Findings above the severity of notes, in the order of their cost."""
    return [row for row in checked["rows"] if row["severity"] != "info"] if checked is not None else []


def banner(checked: "Row | None") -> str:
    """The problems of a capture in a line; empty if none was found, or if it is not known yet."""
    found = problems(checked)
    if checked is None or not found:
        return ""
    when = " now" * ("ended" in checked)
    return f"{len(found)} problem{'s' * (len(found) != 1)}{when}: " + "; ".join(row["sentence"] for row in found)
