"""Batches of an idempotent producer that are out of order because the broker refused one before them, or never got it.

In: partitions of Produce requests. Out: the words and the next step of a finding. Law: a batch that was not refused explains
nothing, and nor do the sequence numbers of another producer id, epoch or partition (KIP-98).
"""

from collections.abc import Collection

from kcap.reports.findings.observed import Observed, Row, cut_short
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

UNANSWERED = (
    "The broker waits for the number of a batch that had no response: its connection ended first. See why (request-timeout, "
    "broker-unavailable, connection-reset). If its delivery.timeout.ms was over, the producer did not send it again, and its "
    "records are lost."
)
"""The next step where the sequence number that the broker expects is that of a batch without a response."""
BEHIND = "The producer sends these batches again; see why the broker refuses those before them ({})."
"""The next step where batches were sent behind one that the broker refused."""
PASSED = (
    "See why the broker refuses the batches before these ({}), for example because batch.size is above max.message.bytes. It "
    "accepted later ones meanwhile, and no longer accepts the records of a refused one: the producer sends them in vain until "
    "delivery.timeout.ms. Set max.in.flight.requests.per.connection to 1 if batches may be refused."
)
"""The next step where it took later sequence numbers than those of a refused batch."""

SAME = (
    "The library gave two batches the same sequence number. The broker takes the second for a retry of the first, drops it and "
    "acknowledges it (KIP-98), so its records are lost, and expects the next number from then on. Wait for each send before "
    "the next, set enable.idempotence to false, or use another version of the library."
)
"""The next step where a batch has the sequence number of one that was acknowledged before."""


def cause_of(seen: Observed, row: Row, names: Collection[str]) -> tuple[str, str | None, str | None]:
    """Of batches of a client for a topic that got a sequence error: a clause with the error of others that explains all of
    theirs, the next step, and the severity: info where they get through when the producer sends them again, medium where that
    is not known. Empty, None and None where one of them has no such error before it, unless a batch got the sequence number of
    one that had been acknowledged on its connection, which is sent again by none.

    A batch without a response that never succeeds explains those with later numbers, unless one of them succeeded before.

    `row` has the client, topic and error; `names` are the sequence errors. An error explains one where no batch that was sent
    between the two succeeded, or where the numbers are those of a refused batch and later ones were taken. Where the packets
    were cut before the numbers, an error of any partition before it may.
    """
    parts = seen.parts
    parts = parts.filter(parts.api == "Produce", parts.client_id == row["client_id"], parts.topic == row["topic"])
    parts = parts.mutate(good=(parts.error == "NONE").fill_null(False), lost=cut_short(parts).fill_null(False))
    parts = parts.filter(parts.error.notnull() | parts.lost)
    order = [parts.request_first_ns, parts.connection, parts.exchange]
    producer = ["partition", "producer_id", "producer_epoch"]
    past = functions(parts).window(group_by=producer, order_by=order, rows=(None, 0))
    one, each = (functions(parts).window(group_by=[*by, *producer, "base_sequence"]) for by in (["connection"], []))
    parts = parts.mutate(taken_once=parts.good.max().over(each))
    at, sequence, good = parts.request_first_ns, parts.base_sequence, parts.good
    refused = ~(good | parts.lost | parts.error.isin(list(names)).fill_null(False))
    parts = parts.mutate(
        good_ns=good.ifelse(at, None).max().over(past), bad_ns=refused.ifelse(at, None).max().over(past),
        taken=good.ifelse(sequence, None).max().over(past), least=refused.ifelse(sequence, None).min().over(past),
        begin_ns=refused.ifelse(at, None).min().over(functions(parts).window(order_by=order, rows=(None, 0))),
        done_ns=good.ifelse(parts.response_first_ns, None).min().over(one),
        last=refused.ifelse(sequence + parts.records, None).max().over(past), why=refused.ifelse(parts.error, None),
        gap=(parts.lost & ~parts.taken_once).ifelse(sequence, None).min().over(past),
    )  # fmt: skip
    behind = (parts.bad_ns > parts.good_ns) | (parts.bad_ns.notnull() & parts.good_ns.isnull())
    gone = parts.base_sequence.between(parts.least, parts.last) & (parts.taken > parts.base_sequence)
    mine, behind, gone = (parts.error == row["error"]).fill_null(False), behind.fill_null(False), gone.fill_null(False)
    missing = ((parts.base_sequence > parts.gap) & (parts.taken.isnull() | (parts.taken < parts.gap))).fill_null(False)
    unknown = ~behind & parts.base_sequence.isnull() & (parts.begin_ns <= parts.request_first_ns)
    (found,) = seen.run(
        parts.aggregate(
            alone=parts.count(where=mine & ~behind & ~gone & ~unknown & ~missing),
            missing=parts.count(where=mine & missing),
            gone=parts.count(where=mine & gone),
            unknown=parts.count(where=mine & unknown),
            why=parts.why.min(),
            same=parts.count(
                where=(parts.error == "NONE") & (parts.done_ns < parts.request_first_ns) & (parts.base_sequence >= 0)
            ),
        )
    )
    if found["same"]:
        return f"; {counted(found['same'], 'batch', 'batches')} had the number of one that was acknowledged before", SAME, None
    if found["missing"] and not found["alone"]:
        return " behind batches without a response", UNANSWERED, "low"
    if found["alone"] or found["why"] is None:
        return "", None, None
    why, gone = found["why"], found["gone"] > 0
    clause = f" {'after' if gone else 'behind'} batches that got {why}"
    return clause, (PASSED if gone else BEHIND).format(why), "medium" if found["unknown"] else None if gone else "info"
