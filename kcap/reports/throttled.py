"""Each throttled response: how long its connection was muted, and whether the client complied.

In: exchanges. Out: one row per throttled response, in order of time. Law: violations are those of
`kcap.reports.throttle_compliance`; `complied` is null for a response that the broker delayed, since no connection is muted
after it.
"""

from typing import Final

from kcap.reports.definition import KEY, TIMES, Expressions, Report, ReportRequest, Results, Row, Tables, time_of, uid
from kcap.reports.text import instant
from kcap.reports.throttle import with_compliance
from kcap.reports.throttle_compliance import COLUMNS as COMPLIANCE
from kcap.reports.throttle_compliance import MS, is_muting

SHOWN: Final = (
    "client_ip", "client_id", "server_ip", "server_port", "api", "api_version", "throttle_time_ms", "throttle_ns",
)  # fmt: skip


def build(tables: Tables, _request: ReportRequest) -> Expressions:
    """The throttled responses joined with their violations."""
    selected = with_compliance(tables)
    rows = selected.filter((selected.throttle_time_ms > 0).fill_null(False))
    return {
        "rows": rows.select(*KEY, *SHOWN, "violations", "elsewhere", "early_ns", muting=is_muting(rows), at_ns=time_of(rows))
    }


def finish(results: Results, _request: ReportRequest) -> Row:
    """Sorts the rows by time."""
    out = []
    for row in sorted(results["rows"], key=lambda row: (row["at_ns"] or 0, row["connection"], row["exchange"])):
        row = dict(row)
        name, muting, early = uid(row.pop("connection"), row.pop("exchange")), row.pop("muting"), row.pop("early_ns")
        row["violations"], row["elsewhere"] = row["violations"] or 0, row["elsewhere"] or 0
        row["earliest_ms"] = None if early is None else early / MS
        row["time"] = None if row["at_ns"] is None else instant(row["at_ns"])
        row["complied"] = row["violations"] == 0 if muting else None
        out.append({"exchange": name} | row)
    return {"rows": out, "left_out": {}}


REPORT: Final = Report(
    "throttled", (), tuple(dict.fromkeys((*COMPLIANCE, "api", *TIMES))), build, finish, groups=False
)  # fmt: skip
