"""The report `transactions`: each transaction, and the figures of each transactional id.

In: captures or saved tables. Out: the report as plain values, which is its JSON form. Law: transactions are in the order in
which they began; every successful EndTxn ends one, even if the capture lacks its beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from kcap.limits import GROUP_EVENTS_MAX, TRANSACTION_PARTITIONS_MAX
from kcap.reports.findings.columns import TRANSACTION_TABLES
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.findings.source import observed
from kcap.reports.names import shortened
from kcap.reports.recorded import functions
from kcap.reports.source import ReportInput
from kcap.reports.transactions import ENDS, WORK
from kcap.reports.transactions.timeline import FENCING, TransactionCall, TransactionTimeline, summary

APIS: Final = (*ENDS, *WORK)
ORDER: Final = ("request_first_ns", "connection", "exchange")
UNNAMED: Final = "transaction_partitions"
"""Reason in `left_out`: partitions beyond TRANSACTION_PARTITIONS_MAX."""
READ: Final = ("EndTxn", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn")
"""APIs whose requests are read because their rows lack fields."""


def transactions(given: ReportInput, only: Sequence[str] = ()) -> Row:
    """Runs the report, for the transactional ids in `only` if any are named.

    Raises UsageError for missing tables, CaptureError if nothing can be read.
    """
    with observed(given, TRANSACTION_TABLES) as seen:
        return report(seen, given.captures, only)


def report(seen: Observed, captures: Sequence[str], only: Sequence[str] = ()) -> Row:
    """The report over tables of any engine."""
    named = {shortened(name) for name in only}
    found = [
        (name, TransactionTimeline(name).run(some, seen.span[1]), where)
        for where, one in seen.each_cluster() for name, some in steps(one).items() if not only or name in named
    ]  # fmt: skip
    rows = [one.row() | where for _, timeline, where in found for one in timeline.done]
    rows.sort(key=lambda row: (row["begin_ns"] or row["end_ns"] or 0, row["transactional_id"]))
    return {
        "report": "transactions", "captures": list(captures), "rows": rows, "left_out": seen.left_out,
        "transactional_ids": [
            summary(name, timeline) | where for name, timeline, where in sorted(found, key=itemgetter(0))
        ],
        "fences": sorted(
            (one | where for _, timeline, where in found for one in timeline.fences), key=itemgetter("time_ns")
        ),
    }  # fmt: skip


def steps(seen: Observed) -> dict[str, list[TransactionCall]]:
    """Transactional id -> its steps in order of time."""
    table = seen.exchanges
    mine = table.filter(
        table.transactional_id.notnull(), table.transactional_id != "", table.api.isin(list(APIS)),
        table.request_first_ns.notnull(),
    )  # fmt: skip
    columns = (
        "connection", "exchange", "transactional_id", "api", "client_id", "server_ip", "server_port", "request_first_ns",
        "request_last_ns", "response_last_ns", "error", "producer_id", "producer_epoch", "group_id",
    )  # fmt: skip
    rows = seen.first(mine.select(*columns), ORDER, GROUP_EVENTS_MAX, "transaction_steps")
    sent = produced(seen, mine.order_by(*ORDER).limit(GROUP_EVENTS_MAX))
    room, left = TRANSACTION_PARTITIONS_MAX, seen.left_out.get(UNNAMED, 0)
    out: dict[str, list[TransactionCall]] = {}
    for row in seen.prepared(rows, lambda row: row["api"] in READ):
        made = step(seen, row, sent.get((row["connection"], row["exchange"]), Produced()), room)
        room, left = room - len(made.partitions), left + made.unnamed
        out.setdefault(row["transactional_id"], []).append(made)
    if left:
        seen.left_out[UNNAMED] = left
    return out


@dataclass(slots=True)
class Produced:
    """What a Produce request wrote."""

    records: int = 0
    bytes: int = 0
    producer: Row = field(default_factory=dict)
    partitions: list[tuple[str, int]] = field(default_factory=list)
    """Partitions that no earlier Produce request of the same producer and client has had since the last begin or end."""


def produced(seen: Observed, calls: Any) -> dict[tuple[str, int], Produced]:
    """Connection and exchange of a Produce request -> what it wrote, for these exchanges.

    A transaction belongs to one producer and client and does not extend over an exchange that ends one. Between two such
    exchanges, only the first that wrote to a partition is reported for it.
    """
    ends = (calls.api.isin(list(ENDS)) | calls.error.isin(list(FENCING))).fill_null(False)
    ibis = functions(calls)
    before = ibis.window(group_by="transactional_id", order_by=list(ORDER), rows=(None, 0))
    turns = calls.mutate(turn=ends.cast("int64").sum().over(before))
    turns = turns.filter(turns.api == "Produce").select(*ORDER, "transactional_id", "client_id", "turn", failed=turns.error)
    parts = seen.partitions.select(
        "connection", "exchange", "topic", "topic_id", "partition", "error", "records", "bytes", "producer_id", "producer_epoch"
    )
    both = turns.inner_join(parts, ["connection", "exchange"])
    good = both.error == "NONE"
    sums = both.group_by("connection", "exchange").aggregate(
        records=both.records.sum(where=good), bytes=both.bytes.sum(where=good), producer_id=both.producer_id.min(),
        producer_epoch=both.producer_epoch.argmin(both.producer_id),
    )  # fmt: skip
    found = {
        (row["connection"], row["exchange"]): Produced(
            row["records"] or 0, row["bytes"] or 0, row if row["producer_id"] is not None else {}
        )
        for row in seen.run(sums)
    }
    turn = ("transactional_id", "client_id", "producer_id", "producer_epoch", "turn", "topic", "topic_id", "partition")
    same = ibis.window(group_by=list(turn), order_by=list(ORDER))
    new = both.filter(good, both.failed == "NONE").mutate(number=ibis.row_number().over(same))
    new = new.filter(new.number == 0).select(*ORDER, "topic", "topic_id", "partition")
    for row in seen.first(new, (*ORDER, "partition"), TRANSACTION_PARTITIONS_MAX, UNNAMED):
        place = row["topic"] or row["topic_id"] or "", row["partition"]
        found[row["connection"], row["exchange"]].partitions.append(place)
    return found


def step(seen: Observed, row: Row, wrote: Produced, room: int) -> TransactionCall:
    """An exchange as a step, which names as many of its partitions as the bound allows."""
    sent = seen.message(row, "request") if row["api"] in READ else {}
    got = seen.message(row, "response") if row["api"] == "EndTxn" else {}
    added = [
        (shortened(topic["name"]), number) for topic in sent.get("v3AndBelowTopics") or [] for number in topic["partitions"]
    ]
    places = (*wrote.partitions, *added)
    known = wrote.producer or row
    group = sent.get("groupId") or row["group_id"]
    return TransactionCall(
        row["api"], row["client_id"], row["request_first_ns"],
        row["response_last_ns"] or row["request_last_ns"] or row["request_first_ns"], row["error"],
        known["producer_id"], known["producer_epoch"], places[:room], len(places[room:]), wrote.records, wrote.bytes,
        group and shortened(group), sent.get("committed"), sent.get("transactionTimeoutMs"),
        f"{row['server_ip']}:{row['server_port']}" if row["api"] not in ("Produce", "TxnOffsetCommit") else None,
        (got.get("producerId"), got.get("producerEpoch")),
    )  # fmt: skip
