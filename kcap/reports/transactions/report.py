"""The report `transactions`: each transaction, and each transactional id in figures.

In: captures or saved tables. Out: the report as plain values, which is its JSON form. Law: transactions in the order in which
they began; every EndTxn that succeeds ends one, whether the capture has its beginning or not.
"""

from collections.abc import Sequence
from typing import Final

from kcap.limits import GROUP_EVENTS_MAX
from kcap.reports.findings.columns import TRANSACTION_TABLES
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.findings.source import observed
from kcap.reports.names import shortened
from kcap.reports.source import ReportInput
from kcap.reports.transactions.timeline import WORK, Timeline, TransactionCall, summary

APIS: Final = ("InitProducerId", "EndTxn", *WORK)
READ: Final = ("EndTxn", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn")
"""APIs whose request says more than their rows do."""


def transactions(given: ReportInput, only: Sequence[str] = ()) -> Row:
    """The report, of `only` some transactional ids where any are named.

    Raises UsageError for missing tables, CaptureError where nothing can be read.
    """
    with observed(given, TRANSACTION_TABLES) as seen:
        return report(seen, given.captures, only)


def report(seen: Observed, captures: Sequence[str], only: Sequence[str] = ()) -> Row:
    """The report of tables, whichever engine runs them."""
    named = {shortened(name) for name in only}
    found = {name: Timeline(name).run(some, seen.span[1]) for name, some in steps(seen).items() if not only or name in named}
    rows = [one.row() for timeline in found.values() for one in timeline.done]
    rows.sort(key=lambda row: (row["begin_ns"] or row["end_ns"] or 0, row["transactional_id"]))
    return {
        "report": "transactions", "captures": list(captures), "rows": rows, "left_out": seen.left_out,
        "transactional_ids": [summary(name, timeline) for name, timeline in sorted(found.items())],
        "fences": sorted((one for timeline in found.values() for one in timeline.fences), key=lambda row: row["time_ns"]),
    }  # fmt: skip


def steps(seen: Observed) -> dict[str, list[TransactionCall]]:
    """Transactional id -> its steps in the order of time."""
    table = seen.exchanges
    mine = table.filter(
        table.transactional_id.notnull(), table.transactional_id != "", table.api.isin(list(APIS)),
        table.request_first_ns.notnull(),
    )  # fmt: skip
    columns = (
        "connection", "exchange", "transactional_id", "api", "client_id", "server_ip", "server_port", "request_first_ns",
        "request_last_ns", "response_last_ns", "error", "producer_id", "producer_epoch", "group_id",
    )  # fmt: skip
    order = ("request_first_ns", "connection", "exchange")
    rows = seen.first(mine.select(*columns), order, GROUP_EVENTS_MAX, "transaction_steps")
    written: dict[tuple[str, int], list[Row]] = {}
    details = seen.partitions.select(
        "connection", "exchange", "topic", "topic_id", "partition", "error", "records", "bytes", "producer_id", "producer_epoch"
    )
    for row in seen.run(details.semi_join(mine.filter(mine.api == "Produce"), ["connection", "exchange"])):
        written.setdefault((row["connection"], row["exchange"]), []).append(row)
    out: dict[str, list[TransactionCall]] = {}
    for row in seen.prepared(rows, lambda row: row["api"] in READ):
        parts = written.get((row["connection"], row["exchange"]), [])
        out.setdefault(row["transactional_id"], []).append(step(seen, row, parts))
    return out


def step(seen: Observed, row: Row, parts: list[Row]) -> TransactionCall:
    """An exchange as a step; `parts` are the partitions of a Produce."""
    sent = seen.message(row, "request") if row["api"] in READ else {}
    good = [part for part in parts if part["error"] == "NONE"]
    added = [
        (shortened(topic["name"]), number) for topic in sent.get("v3AndBelowTopics") or [] for number in topic["partitions"]
    ]
    known = next((part for part in parts if part["producer_id"] is not None), row)
    group = sent.get("groupId") or row["group_id"]
    return TransactionCall(
        row["api"], row["client_id"], row["request_first_ns"],
        row["response_last_ns"] or row["request_last_ns"] or row["request_first_ns"], row["error"],
        known["producer_id"], known["producer_epoch"],
        (*((part["topic"] or part["topic_id"] or "", part["partition"]) for part in good), *added),
        sum(part["records"] or 0 for part in good), sum(part["bytes"] or 0 for part in good),
        group and shortened(group), sent.get("committed"), sent.get("transactionTimeoutMs"),
        f"{row['server_ip']}:{row['server_port']}" if row["api"] not in ("Produce", "TxnOffsetCommit") else None,
    )  # fmt: skip
