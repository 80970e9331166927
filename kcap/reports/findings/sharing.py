"""Share groups (KIP-932): locks of records that are over too soon, records that are delivered again and again."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kcap.limits import SHARE_MESSAGES_MOST
from kcap.reports.findings.model import Finding, Found, called, named, rule, seconds, where
from kcap.reports.findings.observed import SENT, Observed, Row, clients_in, in_groups, rows_by
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

ACKNOWLEDGING: Final = ("ShareAcknowledge", "ShareFetch")
"""APIs whose requests acknowledge records."""
LOST: Final = "INVALID_RECORD_STATE"
"""The error of an acknowledgement of records that the member does not have, or not any more."""
RELEASE: Final = 2
"""Type of an acknowledgement: the record may be delivered again. Source: org.apache.kafka.clients.consumer.AcknowledgeType."""
Range = tuple[str, int, int, int]
"""Records of a partition: topic id, partition, first and last offset."""


def ranges(message: Row, topics: str, batches: str) -> list[tuple[Range, Row]]:
    """The ranges of offsets of a message, each with its element; `topics`, `batches`: the names of the two arrays."""
    return [
        ((topic["topicId"], part["partitionIndex"], batch["firstOffset"], batch["lastOffset"]), batch)
        for topic in message.get(topics) or ()
        for part in topic["partitions"]
        for batch in part.get(batches) or ()
    ]


def acknowledged(message: Row) -> list[tuple[Range, Row]]:
    """The acknowledgements of a request."""
    return ranges(message, "topics", "acknowledgementBatches")


def acquired(message: Row) -> list[tuple[Range, Row]]:
    """The records that a ShareFetch response gives the member."""
    return ranges(message, "responses", "acquiredRecords")


def overlap(one: Range, other: Range) -> bool:
    """Whether two ranges have a record in common."""
    return one[:2] == other[:2] and one[2] <= other[3] and other[2] <= one[3]


def released_in(some: Iterable[tuple[Range, Row]]) -> list[Range]:
    """The records that acknowledgements release: `acknowledgeTypes` has one type for all of a range, or one for each record."""
    found: list[Range] = []
    for (topic, partition, first, last), batch in some:
        types = batch["acknowledgeTypes"]
        if len(types) == 1:
            found += [(topic, partition, first, last)] * (types[0] == RELEASE)
        else:
            found += [(topic, partition, first + at, first + at) for at, kind in enumerate(types) if kind == RELEASE]
    return found


def merged(some: Iterable[Range]) -> list[Range]:
    """The same records in ranges that have none in common, in their order."""
    found: list[Range] = []
    for one in sorted(some):
        if found and found[-1][:2] == one[:2] and one[2] <= found[-1][3]:
            found[-1] = (*one[:2], found[-1][2], max(found[-1][3], one[3]))
        elif one[2] <= one[3]:
            found.append(one)
    return found


def common(some: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """The records that ranges of both have, by one walk over both."""
    mine, theirs, found = merged(some)[::-1], merged(others)[::-1], list[Range]()
    while mine and theirs:
        one, other = mine[-1], theirs[-1]
        if overlap(one, other):
            found.append((*one[:2], max(one[2], other[2]), min(one[3], other[3])))
        (mine if (*one[:2], one[3]) <= (*other[:2], other[3]) else theirs).pop()
    return found


def size_of(some: Iterable[Range]) -> int:
    """How many records some ranges have, each counted once."""
    return sum(last - first + 1 for _, _, first, last in merged(some))


def neighbours(seen: Observed) -> Any:
    """Requests of `ACKNOWLEDGING` in the order of their connections, with `got` and `got_ns`, the last ShareFetch before that
    acquired records and the time of its response, and `then`, the request that follows.
    """
    table = seen.exchanges
    ibis = functions(table)
    mine = table.filter(table.api.isin(list(ACKNOWLEDGING)))
    fetched = (mine.api == "ShareFetch") & (mine.record_count > 0) & mine.response_last_ns.notnull()
    mine = mine.mutate(fetch=fetched.ifelse(mine.exchange, None), fetch_ns=fetched.ifelse(mine.response_last_ns, None))
    before = ibis.window(group_by="connection", order_by="exchange", rows=(None, -1))
    mine = mine.mutate(got=mine.fetch.max().over(before), got_ns=mine.fetch_ns.max().over(before))
    order = {"group_by": "connection", "order_by": "exchange"}
    return mine.mutate(then=mine.exchange.lead().over(**order))


@rule(
    "share-lock-expired", "high", 0.95,
    needs="responses bodies",
    looks_at="INVALID_RECORD_STATE in responses to acknowledgements of a share group (ShareAcknowledge, ShareFetch), the time "
    "since the ShareFetch response that acquired these records, and the lock timeout in that response",
    advice="Other members get the records meanwhile, so they are processed twice or more. Acknowledge sooner "
    "(max.poll.records), renew locks (AcknowledgeType.RENEW, KIP-1222), or raise share.record.lock.duration.ms of the group.",
    instead="if the time is not known, a member that had left its group, or a RENEW that the group does not allow "
    "(share.renew.acknowledge.enable)",
    sources="KIP-932, KIP-1222",
)  # fmt: skip
def share_lock_expired(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """Records of a share group that a member acknowledges after their acquisition lock has expired."""
    if not any(seen.calls_of(api=api, error=LOST) for api in ACKNOWLEDGING):
        return
    mine = seen.once(neighbours)
    columns = ("connection", "exchange", "group_id", "client_id", "got", "got_ns", *SENT)
    chosen = mine.filter(mine.error == LOST, mine.request_first_ns.notnull()).select(*columns)
    rows = seen.first(chosen, ("request_first_ns", "connection", "exchange"), SHARE_MESSAGES_MOST, "share_acknowledgements")
    for (client, group), some in rows_by(rows, ("client_id", "group_id")).items():
        late = [found for row in seen.prepared(some) if (found := lateness(seen, row)) is not None]
        held, lock = max(late, default=(0, 0))
        times = counted(len(late or some), "time")
        first, last = min(row["request_first_ns"] for row in some), max(row["request_last_ns"] or 0 for row in some)
        who = {"client_id": client, "group_id": group}
        yield Finding(
            f"{called(client)} of share group {group} acknowledged records too late {times}: up to {seconds(held)} after it "
            f"got them, and their locks last {seconds(lock)}"
            if late
            else f"share group {group} refused acknowledgements of {called(client)} {times}: these records were not, or no "
            "longer, its own",
            who, len(some), where(f"error == {LOST}", **who), first, max(first, last), sum(held for held, _ in late),
            {"refused": len(some), "too_late": len(late), "held_ns": held, "lock_ns": lock},
            None if late else "medium", None if late else 0.7,
        )  # fmt: skip


def lateness(seen: Observed, row: Row) -> tuple[int, int] | None:
    """How long a member had the records that it acknowledges, and how long they are locked, in ns; None where that is not
    known, or was not too long.
    """
    if row["got"] is None:
        return None
    response = seen.message({"connection": row["connection"], "exchange": row["got"]}, "response")
    lock = (response.get("acquisitionLockTimeoutMs") or 0) * 1_000_000
    held = row["request_first_ns"] - row["got_ns"]
    mine = acquired(response)
    about = any(overlap(one, other) for one, _ in acknowledged(seen.message(row, "request")) for other, _ in mine)
    return (held, lock) if about and 0 < lock <= held else None


@rule(
    "share-redelivery", "medium", 0.9,
    needs="responses bodies",
    looks_at="the delivery counts of the records that ShareFetch responses acquire, and what the member acknowledges next",
    advice="See what these records have in common: a consumer that cannot process them releases them, or takes longer than "
    "their locks last. After the last delivery (share.delivery.count.limit of the group, 5 by default), the broker archives a "
    "record, and no consumer gets it. Acknowledge records that can never be processed with REJECT.",
    instead="a consumer that waits for something else, and releases its records until it is available",
    sources="KIP-932, KIP-1240",
    deliveries=3, last=5,
)  # fmt: skip
def share_redelivery(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Records of a share group that are delivered again and again."""
    if "ShareFetch" not in seen.apis:
        return
    parts = seen.parts
    again = parts.filter(parts.api == "ShareFetch", parts.delivery_count >= int(limit["deliveries"]))
    keys = ("group_id", "topic", "topic_id")
    groups = seen.run(in_groups(again, keys, fetches=again.count(), most=again.delivery_count.max()))
    if not groups:
        return
    mine = seen.once(neighbours).select("connection", "exchange", "then")
    each = again.select("connection", "exchange", *keys, "client_id", "delivery_count", *SENT).inner_join(
        mine, ["connection", "exchange"]
    )
    rows = seen.first(
        each, (each.delivery_count.desc(), "request_first_ns", "connection", "exchange"), SHARE_MESSAGES_MOST, "share_fetches"
    )
    by = rows_by(rows, keys)
    for row in groups:
        some = by.get(tuple(row[key] for key in keys), [])
        got, freed, releases = deliveries(seen, some, row["topic_id"], int(limit["deliveries"]))
        topic, group = row["topic"] or row["topic_id"], row["group_id"]
        whole = len(some) == row["n"]
        records, let_go = (size_of(got), size_of(freed)) if whole else (0, 0)
        what = counted(records, "record") if records else "records"
        released, by_whom = len(releases), named(clients_in(releases))
        which = "some" if not whole else "them" if let_go == records else f"{let_go} of them"
        how = f"; {by_whom} released {which} in {counted(released, 'request')}" if released else ""
        yield Finding(
            f"share group {group} got {what} of topic {topic} again and again, up to {row['most']} times each{how}",
            {"group_id": group, "topic": row["topic"], "client_ids": clients_in(some)}, row["n"],
            where("api == ShareFetch", group_id=group), row["first_ns"], row["last_ns"], 0,
            {"records": records or None, "deliveries": row["most"], "released": released, "fetches": row["fetches"]},
            "high" if row["most"] >= limit["last"] else None,
        )  # fmt: skip


def deliveries(seen: Observed, rows: list[Row], topic_id: str | None, least: int) -> tuple[list[Range], list[Range], list[Row]]:
    """The records that some fetches acquire for at least the `least`-th time, those of them that the next request on the
    connection releases, and the fetches behind which one releases some.
    """
    got: list[Range] = []
    freed: list[Range] = []
    released: list[Row] = []
    for row in seen.prepared(rows):
        mine = [
            one for one, batch in acquired(seen.message(row, "response"))
            if batch["deliveryCount"] >= least and topic_id in (None, one[0])
        ]  # fmt: skip
        got += mine
        if row["then"] is not None:
            follows = acknowledged(seen.message({"connection": row["connection"], "exchange": row["then"]}, "request"))
            here = common(mine, released_in(follows))
            freed += here
            released += [row] if here else []
    return got, freed, released
