"""Every throttled answer by itself: how long the client was to keep quiet, and whether it did.

In: exchanges. Out: a row a throttled answer, in the order of time. Law: an answer counts as not obeyed exactly where
`kcap.reports.throttle_compliance` says so; one that had waited in the broker already asks for no silence.
"""

from typing import Final

from kcap.reports.definition import (
    KEY,
    TIMES,
    Expressions,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    cut,
    instant,
    time_of,
    uid,
)
from kcap.reports.throttle_compliance import COLUMNS as OBEDIENCE
from kcap.reports.throttle_compliance import MS, asks_for_silence, broken

SHOWN: Final = (
    "client_ip", "client_id", "server_ip", "server_port", "api", "api_version", "throttle_time_ms", "throttle_ns",
)  # fmt: skip


def build(tables: Tables, _asked: ReportRequest) -> Expressions:
    """The throttled answers beside what came too early."""
    kept = tables.kept.left_join(broken(tables.every), list(KEY))
    kept = kept.drop(*(name for name in kept.columns if name.endswith("_right")))
    rows = kept.filter((kept.throttle_time_ms > 0).fill_null(False))
    return {
        "rows": rows.select(
            *KEY, *SHOWN, "violations", "same_connection", "early_ns", silent=asks_for_silence(rows), at_ns=time_of(rows)
        )
    }


def finish(results: Results, asked: ReportRequest) -> Row:
    """In the order of time."""
    out = []
    for row in sorted(results["rows"], key=lambda row: (row["at_ns"] or 0, row["connection"], row["exchange"])):
        row = dict(row)
        name, silent, early = uid(row.pop("connection"), row.pop("exchange")), row.pop("silent"), row.pop("early_ns")
        row["violations"], row["same_connection"] = row["violations"] or 0, row["same_connection"] or 0
        row["earliest_ms"] = None if early is None else early / MS
        row["time"] = None if row["at_ns"] is None else instant(row["at_ns"])
        row["kept"] = None if not silent else row["violations"] == 0
        out.append({"exchange": name} | row)
    return {"rows": cut(out, asked.top), "left_out": {}}


REPORT: Final = Report(
    "throttled", (), tuple(dict.fromkeys((*OBEDIENCE, "api", *TIMES))), build, finish, groups=False
)  # fmt: skip
