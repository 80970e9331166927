"""Writes the SQL of rules that comes with kcap (`plans.SHIPPED`): `python -m kcap.reports.shipping CAPTURE...`.

In: captures that give the rules something to look at. Out: the file. Law: it has the SQL of each expression that reports on
these captures need.
"""

import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence

from kcap.reports import plans


def needed(capture: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What reports on a capture need, by the digest of their tables and columns.

    Raises CaptureError for a file that is no capture.
    """
    from kcap.reports import stats
    from kcap.reports.definition import ReportRequest
    from kcap.reports.findings.columns import COLUMNS, GROUP_TABLES, TRANSACTION_TABLES
    from kcap.reports.findings.report import check, tables_with
    from kcap.reports.findings.source import Statements, observed
    from kcap.reports.groups.report import report as groups
    from kcap.reports.source import ReportInput
    from kcap.reports.transactions.report import report as transactions

    for tables, report in (
        (COLUMNS, check),
        (tables_with(stats.REPORT, ReportRequest()), check),
        (GROUP_TABLES, lambda seen: groups(seen, [])),
        (TRANSACTION_TABLES, lambda seen: transactions(seen, [])),
    ):
        with observed(ReportInput([capture]), tables) as seen:
            report(seen)
            assert isinstance(seen.runner, Statements)
            yield seen.runner.plan.digest, seen.runner.used


def main(captures: Sequence[str]) -> None:
    """Writes the file."""
    found: dict[str, dict[str, str]] = {}
    for capture in captures:
        for digest, statements in needed(capture):
            found.setdefault(digest, {}).update(statements)
    sql = sorted({text for some in found.values() for text in some.values()})  # what is alike stands together: half the size
    at = {text: number for number, text in enumerate(sql)}
    names = {digest: {name: at[text] for name, text in sorted(some.items())} for digest, some in sorted(found.items())}
    plans.SHIPPED.write_bytes(zlib.compress(json.dumps({"sql": sql, "names": names}).encode(), 9))


if __name__ == "__main__":
    main(sys.argv[1:])
