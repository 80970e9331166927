"""Transactions: aborted, long, left open, fenced."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import Final

from kcap.limits import LONG_TRANSACTIONS_COMPARED, READ_ALL_MOST, READ_MOST, STRETCHES_MAX
from kcap.reports.findings.model import Finding, Found, named, rule, seconds, these, where
from kcap.reports.findings.network import REORDERED
from kcap.reports.findings.observed import LASTED, Observed, Row, rows_by, server_of
from kcap.reports.findings.outages import OUTAGE, meanwhile
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted
from kcap.reports.transactions import ENDS, WORK

GOOD = "NONE"
"""The error of a response without one; a request without a response counts alike."""
READ_COMMITTED = 1
"""The isolation level of Fetch requests (KIP-98)."""
LONGEST_TIMEOUT_NS = 15 * 60 * 10**9
"""The default of transaction.max.timeout.ms, which no transaction.timeout.ms may exceed."""
NOT_OPEN = "INVALID_TXN_STATE"
"""What EndTxn gets where the coordinator has ended the transaction already (TransactionCoordinator.endTransaction)."""
FENCED = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
"""Errors of a producer whose epoch is not the last one of its transactional id."""
OVER = (*FENCED, NOT_OPEN)
"""Errors of a producer whose transaction the coordinator has ended: before it gives a new epoch, it aborts what is open."""
UNSURE = (
    "See how long its transaction was open: after transaction.timeout.ms, the coordinator aborts a transaction and refuses the "
    "producer as if it were fenced. With transaction.version 2, it also refuses a second EndTxn for a transaction that has "
    "ended. Otherwise, two producers use one transactional.id: give each instance its own."
)
"""The next step where the capture shows one producer, and not its timeout."""
TAKEN_UP = (
    "See why the producer that began it ended (a crash, a restart), and how soon the next one ends what it left. Until then, "
    "or until transaction.timeout.ms aborts it, consumers with isolation.level=read_committed get nothing behind it. Or else "
    "the producer did nothing for so long that its connection was closed."
)
"""The next step where the connection that began a transaction was gone for most of the time that it was open."""
LEFT = (
    "See why its producer stopped before EndTxn (a crash, a kill, an exception). The coordinator aborts the transaction after "
    "transaction.timeout.ms; until then, consumers with isolation.level=read_committed wait. Its records are dropped: write "
    "them again."
)
"""The next step where the last stable offset has passed a transaction without an EndTxn."""
COORDINATED = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")
"""What goes to the transaction coordinator (KIP-98)."""


def steps(seen: Observed) -> dict[str, list[Row]]:
    """Transactional id -> what was done for it, in the order of time.

    Of adjacent Produce and TxnOffsetCommit requests that succeed, and of those that fail, the first one stands for all, but for
    the last request of a transactional id.
    """
    if not any(call["transactional_id"] for call in seen.calls):
        return {}
    table = seen.exchanges
    chosen = table.filter(table.transactional_id.notnull(), table.api.isin([*ENDS, *WORK]))
    chosen = chosen.filter(chosen.transactional_id != "")
    chosen = chosen.mutate(good=chosen.error.fill_null(GOOD) == GOOD, ends=chosen.api.isin(list(ENDS)))
    order = {"group_by": "transactional_id", "order_by": ["request_first_ns", "connection", "exchange"]}
    chosen = chosen.mutate(
        good_before=chosen.good.lag().over(**order), ended=chosen.ends.lag().over(**order),
        then=chosen.api.lead().over(**order),
    )  # fmt: skip
    changed = chosen.ended.fill_null(True) | (chosen.good != chosen.good_before)
    chosen = chosen.filter(chosen.api.isin(list(COORDINATED)) | changed | chosen.then.isnull())
    rows = seen.run(
        chosen.select(
            "transactional_id", "client_id", "api", "connection", "exchange", "request_first_ns", "response_last_ns", "error",
            "server_ip", "server_port", "request_first_packet",
        ).order_by("request_first_ns", "connection", "exchange")
    )  # fmt: skip
    return rows_by(rows, "transactional_id")


Place = tuple[str | None, str, int]
"""A client id and the address of a server."""


def unread(seen: Observed) -> tuple[set[str | None], set[Place]]:
    """Clients with connections from hosts that have others which could not be read; and whose connections, to which servers,
    have bytes that are missing or were passed over, or responses without a request.
    """
    hosts = {link["client_ip"] for link in seen.links if link["phase"] in ("tls", "opaque")}
    hidden = {link["client_id"] for link in seen.links if link["client_ip"] in hosts}
    holes = {place_of(link) for link in seen.links if link["missing"] or link["skipped"]}
    if seen.calls_of(outcome="orphan"):
        table = seen.exchanges
        orphans = table.filter(table.outcome == "orphan").select("connection").distinct()
        theirs = seen.connections.semi_join(orphans, "connection")
        holes |= {place_of(row) for row in seen.run(theirs.select("client_id", "server_ip", "server_port").distinct())}
    return hidden, holes


def place_of(row: Row) -> Place:
    """The client and the server of a row."""
    return row["client_id"], row["server_ip"], row["server_port"]


def incomplete(seen: Observed, rows: list[Row]) -> bool:
    """Whether an EndTxn among these steps may have been sent unseen.

    It goes to the transaction coordinator: something is missing of what this client, or one that is not known, exchanged with
    it; connections of the client's hosts could not be read; or nothing that goes to the coordinator was seen, and so it is not
    in the capture.
    """
    coordinators = {place_of(row) for row in rows if row["api"] in COORDINATED}
    if not coordinators:
        return True
    hidden, holes = seen.once(unread)
    unknown = {(None, ip, port) for _, ip, port in coordinators}
    return not holes.isdisjoint(coordinators | unknown) or rows[-1]["client_id"] in hidden


GOLDEN: Final = (5**0.5 - 1) / 2
"""The golden ratio, less one."""


@rule(
    "aborted-transactions", "medium", 0.9,
    needs="responses messages",
    looks_at="EndTxn requests that abort, by transactional id",
    advice="See why the application aborts: exceptions in processing, timeouts, fencing. Consumers fetch the aborted records "
    "and drop them.",
    instead="an application that aborts on purpose, such as a test",
    aborted=5, share=0.3,
)  # fmt: skip
def aborted_transactions(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A transactional id that aborts a large share of its transactions."""
    every = {
        name: [row for row in rows if row["api"] == "EndTxn" and row["error"] == "NONE"]
        for name, rows in seen.once(steps).items()
    }
    most = READ_MOST
    while most > limit["aborted"] and sum(min(len(ends), most) for ends in every.values()) > READ_ALL_MOST:
        most -= 1
    # of many, as many as are looked at, evenly over the capture
    every = {name: ends for name, ends in every.items() if len(ends) >= limit["aborted"]}
    looked_at = {name: spread_out(ends, most) for name, ends in every.items()}
    seen.prepare([row for ends in looked_at.values() for row in ends])
    for name, ends in looked_at.items():
        kinds = [seen.message(row, "request").get("committed") for row in ends]
        aborted, known = kinds.count(False), len(kinds) - kinds.count(None)
        if aborted >= limit["aborted"] and aborted >= limit["share"] * known:
            ended = len(every[name])
            some = f" that were looked at, of {ended:,} that ended" if ended > len(ends) else ""
            yield Finding(
                f"transactional id {name} aborted {aborted} of {known} transactions{some}",
                {"transactional_id": name, "client_id": ends[0]["client_id"]}, aborted,
                where("api == EndTxn", these([row for row, kind in zip(ends, kinds) if kind is False]), transactional_id=name),
                ends[0]["request_first_ns"], ends[-1]["request_first_ns"], 0,
                {"aborted": aborted, "ended": known} | ({"ended": ended, "looked_at": known} if some else {}),
            )  # fmt: skip


def spread_out(rows: list[Row], most: int) -> list[Row]:
    """As many rows as `most` at most, in order and from all of them.

    Multiples of the golden ratio, less their whole part, lie evenly and repeat no period: of transactions that end in turns,
    every n-th could be one that aborts.
    """
    if len(rows) <= most:
        return rows
    return [rows[at] for at in sorted({int(GOLDEN * at % 1 * len(rows)) for at in range(most)})]


@rule(
    "long-transaction", "medium", 0.85,
    needs="requests bodies time",
    looks_at="time from the first work of a transaction to its EndTxn, compared with transaction.timeout.ms of its producer; "
    "consumers with read_committed that wait behind it",
    advice="Commit more often: consumers with isolation.level=read_committed get nothing behind the first open transaction.",
    instead="a batch that is meant to be one transaction",
    sources="KIP-98; transaction.timeout.ms (1 min) and transaction.max.timeout.ms (15 min) of Kafka's configurations",
    seconds=5, of_timeout=0.5, waited=0.5,
)  # fmt: skip
def long_transaction(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Transactions that stay open for long.

    How long is too long depends on who waits: Flink and Kafka Connect commit with their checkpoints, once every few minutes. So
    the finding is info, unless a consumer with read_committed waits behind a transaction for the share `waited` of the time
    that it is open, or a transaction takes the share `of_timeout` of the time after which the coordinator aborts it.
    """
    stretches = {name: longer(rows, int(limit["seconds"] * 1e9)) for name, rows in seen.once(steps).items()}
    overdue = {name: [late.begun for late in some] for name, some in seen.once(timed_out).items()}
    stretches = {name: [one for one in long if one[1] not in overdue.get(name, ())] for name, long in stretches.items()}
    stretches = {name: long for name, long in stretches.items() if long}
    if not stretches:
        return
    timeouts, stood = timeouts_ns(seen, stretches.keys()), standing(seen)
    most = {name: max(long, key=itemgetter(0)) for name, long in stretches.items()}
    lives = lifetimes(seen)
    for name, long in stretches.items():
        rows = seen.once(steps)[name]
        lasted, first, end = most[name]
        gone = without_producer(lives, first, end)
        left = gone >= lasted / 2
        timeout = timeouts.get(name)
        longest = nlargest(LONG_TRANSACTIONS_COMPARED, long, key=itemgetter(0))
        waits = [(overlap(stood.get(name, ()), since["request_first_ns"], until["request_first_ns"]), open_ns)
                 for open_ns, since, until in longest]  # fmt: skip
        waited = max(waits)[0]
        behind = any(waited_ns >= limit["waited"] * open_ns for waited_ns, open_ns in waits)
        away = meanwhile(seen, first["request_first_ns"], end["request_first_ns"])
        harmful = behind or lasted >= limit["of_timeout"] * (timeout or LONGEST_TIMEOUT_NS)
        yield Finding(
            f"{counted(len(long), 'transaction')} of {name} {'was' if len(long) == 1 else 'were'} open for up to "
            f"{seconds(lasted)}"
            + (f"; readers of committed records waited {seconds(waited)} behind {'it' if len(long) == 1 else 'one'}"
               if waited else "")
            + (f"; the connection of its first work ended {seconds(gone)} before that of its EndTxn began"
               if left and len(long) == 1 else "")
            + ("" if away is None else f"; {server_of(away)} accepted no connection meanwhile"),
            {"transactional_id": name, "client_id": first["client_id"]}, len(long), where(transactional_id=name),
            first["request_first_ns"], end["request_first_ns"], sum(one[0] for one in long),
            {"longest_ns": lasted, "transactions": len(long), "waited_ns": waited, "timeout_ns": timeout,
             "gone_ns": gone or None},
            None if harmful and away is None and not incomplete(seen, rows) else "info",
            advice=OUTAGE if away is not None else TAKEN_UP if left else None,
        )  # fmt: skip


def lifetimes(seen: Observed) -> dict[str, tuple[int, int]]:
    """Times of the first and the last packet of connections with exchanges of transactions, by connection."""
    table = seen.exchanges
    mine = seen.connections.semi_join(table.filter(table.transactional_id.notnull()).select("connection"), "connection")
    return {row["connection"]: (row["first_ns"], row["last_ns"]) for row in seen.run(mine.select("connection", *LASTED))}


def without_producer(lives: Mapping[str, tuple[int, int]], first: Row, end: Row) -> int:
    """From the last packet of the connection with the first work of a transaction to the first one of that with its end, ns; 0
    where the second had begun by then, as those of one producer have.
    """
    begun, ended = lives.get(first["connection"]), lives.get(end["connection"])
    return 0 if begun is None or ended is None else max(0, ended[0] - begun[1])


def longer(rows: list[Row], least_ns: int) -> list[tuple[int, Row, Row]]:
    """Transactions among the steps of a transactional id that took so long or longer: how long, the first work, the EndTxn."""
    begun, long = None, []
    for row in rows:
        if row["api"] not in ENDS:
            begun = begun or (row if row["error"] in (GOOD, None) else None)
        elif begun is not None:
            lasted = row["request_first_ns"] - begun["request_first_ns"]
            if lasted >= least_ns and row["api"] == "EndTxn":
                long.append((lasted, begun, row))
            begun = None
    return long


@dataclass(slots=True)
class Overdue:
    """A transaction that the coordinator ended when transaction.timeout.ms was over."""

    owner: Row
    """The InitProducerId of its producer."""
    begun: Row
    """The first work."""
    refused: list[Row]
    """What its producer was refused since."""
    timeout_ns: int = 0


def refused_while_open(seen: Observed) -> dict[str, list[Overdue]]:
    """Transactional id -> its transactions that were open when their producer was refused, though the last InitProducerId of
    the id in the capture was its own; `timeout_ns` is 0 here.
    """
    found: dict[str, list[Overdue]] = {}
    for name, rows in seen.once(steps).items():
        owner = begun = late = None
        for row in rows:
            refused = row["error"] in OVER
            if refused and late is not None and late.owner["client_id"] == row["client_id"]:
                late.refused.append(row)
            elif row["api"] == "InitProducerId":
                owner, begun, late = row if row["error"] == GOOD else None, None, None
            elif refused and begun is not None:
                if owner is not None and owner["client_id"] == row["client_id"] == begun["client_id"]:
                    late = Overdue(owner, begun, [row])
                    found.setdefault(name, []).append(late)
                begun = None
            elif row["error"] == GOOD:
                begun = None if row["api"] == "EndTxn" else begun or row
    return found


def timed_out(seen: Observed) -> dict[str, list[Overdue]]:
    """Transactional id -> its transactions that timed out, as their producers were refused afterwards.

    The coordinator aborts a transaction that is open for longer, and takes a new epoch for that (KIP-98,
    TransactionCoordinator.abortTimedOutTransactions): the next requests of its producer are refused like those of one that
    another producer fenced. The timeout explains that where the last InitProducerId of the id is that of the same client.
    """
    # those of ids with the fewest first: of one with very many all or none has to be explained
    found, chosen = seen.once(refused_while_open), dict[str, list[Overdue]]()
    for name, some in sorted(found.items(), key=lambda item: len(item[1])):
        if sum(map(len, chosen.values())) + len(some) <= READ_ALL_MOST:
            chosen[name] = some
    seen.prepare([late.owner for some in chosen.values() for late in some])
    for name, some in list(chosen.items()):
        for late in some:
            late.timeout_ns = (seen.message(late.owner, "request").get("transactionTimeoutMs") or 0) * 1_000_000
        took = [(late, late.refused[0]["request_first_ns"] - late.begun["request_first_ns"]) for late in some]
        chosen[name] = [late for late, lasted in took if 0 < late.timeout_ns < lasted]
    return {name: some for name, some in chosen.items() if some}


def timeouts_ns(seen: Observed, names: Collection[str]) -> dict[str, int]:
    """Transactional id -> what its last InitProducerId asks for as transaction.timeout.ms, where that is known."""
    begun = {row["transactional_id"]: row for name in names for row in seen.once(steps)[name] if row["api"] == "InitProducerId"}
    found = {}
    for row in seen.prepared(list(begun.values())):
        timeout = seen.message(row, "request").get("transactionTimeoutMs")
        if timeout is not None:
            found[row["transactional_id"]] = int(timeout) * 1_000_000
    return found


def standing(seen: Observed) -> dict[str, list[tuple[int, int]]]:
    """Transactional id -> times, from and to, during which Fetch requests with isolation.level=read_committed got one last
    stable offset, below the high watermark, of a partition to which this id wrote.
    """
    table, parts = seen.exchanges, seen.parts
    key, place = ["connection", "exchange"], ["topic", "partition"]
    readers = table.filter(table.api == "Fetch", table.isolation_level == READ_COMMITTED).select(*key)
    behind = parts.filter(parts.last_stable_offset >= 0, parts.high_watermark > parts.last_stable_offset)
    behind = behind.semi_join(readers, key)
    stood = behind.group_by(*place, "last_stable_offset").aggregate(
        from_ns=behind.request_first_ns.min(), to_ns=behind.request_first_ns.max()
    )
    stood = stood.filter(stood.to_ns > stood.from_ns)
    work = table.filter(table.transactional_id.notnull(), table.api == "Produce").select(*key, "transactional_id")
    written = parts.select(*key, *place).inner_join(work, key).select("transactional_id", *place).distinct()
    stood = stood.inner_join(written.group_by(*place).aggregate(ids=written.count()), place)
    stood = stood.mutate(stood_ns=stood.to_ns - stood.from_ns)
    longest = [stood.stood_ns.desc(), stood.from_ns, stood.topic, stood.partition, stood.last_stable_offset]
    longer = functions(parts).window(order_by=longest, rows=(None, 0))
    # every id that wrote to a partition stands beside every offset of it: only as many as are looked at
    # a column of its own: a filter on the window itself names a table that Spark's SQL does not know there
    summed = stood.mutate(above=stood.ids.sum().over(longer) - stood.ids)
    most = summed.filter(summed.above < STRETCHES_MAX).drop("above")
    both = most.inner_join(written, place)
    found: dict[str, list[tuple[int, int]]] = {}
    order = both.stood_ns.desc(), both.from_ns, both.topic, both.partition, both.last_stable_offset, both.transactional_id
    count = stood.aggregate(n=stood.ids.sum())
    for row in seen.first(both, order, STRETCHES_MAX, "offsets_standing", count):
        found.setdefault(row["transactional_id"], []).append((row["from_ns"], row["to_ns"]))
    return found


def held(seen: Observed) -> dict[str, int]:
    """Transactional id -> how long the last stable offset of a partition stood, as the last that the capture knows of it, at an
    offset that a Produce request of this id got, ns.

    The last stable offset is the first offset of the oldest transaction that is open (KIP-98): what stands there is proof of an
    open transaction, also where its EndTxn may have been sent unseen.
    """
    table, parts = seen.exchanges, seen.parts
    key, place = ["connection", "exchange"], ["topic", "partition"]
    known = parts.filter(parts.api == "Fetch", parts.last_stable_offset >= 0, parts.topic.notnull())
    last = known.group_by(*place).aggregate(offset=known.last_stable_offset.max())
    behind = known.filter(known.high_watermark > known.last_stable_offset).inner_join(last, place)
    stood = (
        behind.filter(behind.last_stable_offset == behind.offset)
        .group_by(*place, "offset")
        .aggregate(stood_ns=behind.request_first_ns.max() - behind.request_first_ns.min())
    )
    work = table.filter(table.transactional_id.notnull(), table.api == "Produce").select(*key, "transactional_id")
    begun = parts.filter(parts.base_offset >= 0).select(*key, *place, offset=parts.base_offset)
    both = stood.inner_join(begun, [*place, "offset"]).inner_join(work, key)
    found = both.group_by("transactional_id").aggregate(stood_ns=both.stood_ns.max())
    order = found.stood_ns.desc(), found.transactional_id
    rows = seen.first(found, order, STRETCHES_MAX, "offsets_standing")
    return {row["transactional_id"]: row["stood_ns"] for row in rows}


def passed(seen: Observed) -> dict[str, list[tuple[int, int]]]:
    """Transactional id that went on after its last EndTxn -> for partitions to which it wrote, when its last Produce request
    there was sent, and when the first Fetch response arrived whose last stable offset is beyond what that one wrote, ns.

    The last stable offset goes on when the marker is written that ends the transaction (KIP-98): none is open there since then.
    """
    table, parts = seen.exchanges, seen.parts
    key, place = ["connection", "exchange"], ["topic", "partition"]
    table = table.filter(table.transactional_id.notnull())
    at, ends = table.request_first_ns, table.api.isin(list(ENDS))
    ids = table.group_by("transactional_id").aggregate(work_ns=at.max(where=~ends), end_ns=at.max(where=ends))
    left = ids.filter((ids.work_ns > ids.end_ns) | ids.end_ns.isnull())
    work = table.filter(table.api == "Produce").semi_join(left, "transactional_id").select(*key, "transactional_id")
    written = parts.filter(parts.base_offset >= 0).select(*key, *place, "base_offset", work_ns=parts.request_first_ns)
    written = written.inner_join(work, key)
    last = written.group_by("transactional_id", *place).aggregate(
        offset=written.base_offset.max(), work_ns=written.work_ns.max()
    )
    known = parts.filter(parts.api == "Fetch", parts.last_stable_offset >= 0, parts.topic.notnull())
    ibis = functions(parts)
    wrote = last.select(*place, "offset", "transactional_id", "work_ns", at_ns=ibis.null("int64"))
    known = known.select(
        *place, offset="last_stable_offset", transactional_id=ibis.null("string"), work_ns=ibis.null("int64"),
        at_ns="response_first_ns",
    )  # fmt: skip
    walk = ibis.union(wrote, known, distinct=False)  # from the largest offset down: to join them costs their product
    down = [walk.offset.desc(), walk.transactional_id.isnull(), walk.transactional_id, walk.at_ns]
    beyond = ibis.window(group_by=place, order_by=down, rows=(None, 0))
    walk = walk.mutate(beyond_ns=walk.at_ns.min().over(beyond))
    found = walk.filter(walk.transactional_id.notnull(), walk.beyond_ns.notnull())
    order = found.transactional_id, found.topic, found.partition
    every: dict[str, list[tuple[int, int]]] = {}
    for row in seen.first(found, order, STRETCHES_MAX, "offsets_standing"):
        every.setdefault(row["transactional_id"], []).append((row["work_ns"], row["beyond_ns"]))
    return every


def overlap(times: Iterable[tuple[int, int]], first_ns: int, last_ns: int) -> int:
    """How long at most one of these times lies between two others, ns."""
    return max([0, *(min(until, last_ns) - max(since, first_ns) for since, until in times)])


def displaced(seen: Observed) -> set[str | None]:
    """Clients whose packets the capture itself put out of order: work may then seem to follow the EndTxn that ended it."""
    return {
        client for client, links in seen.links_of.items()
        if sum(link["out_of_order"] or 0 for link in links) > REORDERED * sum(link["retransmitted"] or 0 for link in links)
    }  # fmt: skip


@rule(
    "hanging-transaction", "high", 0.8,
    needs="requests bodies time",
    looks_at="work of a transaction without an EndTxn before the capture ends; last stable offsets that stand where the "
    "transaction began, or move past it",
    advice="Find the producer (kafka-transactions.sh find-hanging, KIP-664). The coordinator ends the transaction after "
    "transaction.timeout.ms; until then, consumers with read_committed get nothing behind it.",
    instead="a transaction that ended after the capture; if it was over before, an EndTxn that the capture lacks",
    sources="KIP-664, KIP-890",
    seconds=5,
)  # fmt: skip
def hanging_transaction(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A transaction that is left open.

    The finding is info if its EndTxn may be missing from the capture, unless the last stable offset of a partition stands where
    the transaction began for `seconds`. It is also info if another transaction of the same id was open for as long and then
    ended: checkpoints of Flink end transactions minutes after they began. If the last stable offset moves past the transaction,
    the coordinator has ended it meanwhile: the finding is medium at most. If the coordinator refuses the producer as fenced, it
    has ended the transaction as well, and the rule is silent.
    """
    end, most_ns = seen.span[1], limit["seconds"] * 1e9
    for name, rows in seen.once(steps).items():
        open_since = ended = None
        for row in rows:
            if row["api"] in ENDS:
                open_since, ended = None, row
            elif row["error"] in ("NONE", None):
                open_since = open_since or row
            elif open_since is not None and row["error"] in OVER and row["client_id"] == open_since["client_id"]:
                open_since = None
        last = rows[-1]
        quiet = end - max(last["request_first_ns"], last["response_last_ns"] or 0)
        if open_since is not None and quiet >= most_ns:
            just = ended is not None and open_since["request_first_ns"] - ended["request_first_ns"] < most_ns
            unsure = (just and last["client_id"] in seen.once(displaced)) or incomplete(seen, rows)
            stood, begun_ns = seen.once(held).get(name, 0), open_since["request_first_ns"]
            over_ns = min((at for work, at in seen.once(passed).get(name, ()) if work >= begun_ns), default=None)
            until = end if over_ns is None else over_ns
            if over_ns is not None and (unsure or until - begun_ns < most_ns):
                continue  # by an EndTxn that the capture lacks
            yield Finding(
                f"a transaction of {name} was left open: nothing followed its last request for {seconds(quiet)}"
                + (f"; it was over {seconds(until - begun_ns)} after its first work" if over_ns is not None else ""),
                {"transactional_id": name, "client_id": last["client_id"]}, 1, where(transactional_id=name),
                begun_ns, end, max(quiet - (end - until), 0),
                {"quiet_ns": quiet, "open_ns": until - begun_ns} | ({"stood_ns": stood} if over_ns is None else {}),
                "info" if (unsure and stood < most_ns) or longer(rows, until - begun_ns) else "medium" if over_ns else None,
                advice=LEFT if over_ns is not None else None,
            )  # fmt: skip


@rule(
    "zombie-fenced", "high", 0.9,
    needs="responses bodies",
    looks_at="INVALID_PRODUCER_EPOCH and PRODUCER_FENCED responses, by transactional id",
    advice="Two producers use one transactional.id. Give each instance its own, or stop the old one before the new one starts.",
    instead="a producer that came back from a long pause after its work was taken over, which is what fencing is for; a "
    "transaction that was open for longer than transaction.timeout.ms, if the InitProducerId of its producer is not in the "
    "capture",
    sources="KIP-98, KIP-360, KIP-588, KIP-890",
)  # fmt: skip
def zombie_fenced(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """Producers that lost their transactional id to another producer."""
    for row in seen.errors(FENCED, ("transactional_id",)):
        if not row["transactional_id"] or explained(seen, row["transactional_id"], seen.once(timed_out)):
            continue
        # without the messages neither timeouts nor epochs are known, and nothing shows a second producer; nor does anything
        # where the capture began behind the last InitProducerId
        unsure = not seen.has_messages and explained(seen, row["transactional_id"], seen.once(refused_while_open))
        begun = [one["request_first_ns"] for one in seen.once(steps).get(row["transactional_id"], ()) if owns(one)]
        unsure = unsure or not begun or begun[0] > row["first_ns"]
        clients = seen.clients_of(transactional_id=row["transactional_id"])
        yield Finding(
            f"producers of transactional id {row['transactional_id']} were fenced {counted(row['n'], 'time')} "
            f"({named(clients)})",
            {"transactional_id": row["transactional_id"], "client_ids": clients}, row["n"],
            where("error in {INVALID_PRODUCER_EPOCH, PRODUCER_FENCED}", transactional_id=row["transactional_id"]),
            row["first_ns"], row["last_ns"], 0, {"fenced": row["n"], "clients": len(clients)},
            *(("medium", 0.5, UNSURE) if unsure else ()),
        )  # fmt: skip


def owns(row: Row) -> bool:
    """Whether a producer took its transactional id with this request."""
    return bool(row["api"] == "InitProducerId" and row["error"] == GOOD)


def explained(seen: Observed, name: str, by: Mapping[str, list[Overdue]]) -> bool:
    """Whether these transactions, and EndTxn requests that were sent again, explain all that an id was fenced for."""
    ours = sum(row["error"] in FENCED for one in by.get(name, ()) for row in one.refused) + seen.once(ended_again).get(name, 0)
    return ours > 0 and ours == sum(row["error"] in FENCED for row in seen.once(steps)[name])


def ended_again(seen: Observed) -> dict[str, int]:
    """Transactional id -> its EndTxn requests that were refused as if fenced and ask for what was done already.

    With transaction.version 2 each EndTxn that succeeds raises the producer epoch (KIP-890), so that an epoch has one
    transaction: a second request for it, as Flink sends for the transactions of the checkpoint that it restores, shows no other
    producer. Without the messages those count before which, since the last EndTxn that succeeded, nothing was done.
    """
    found: dict[str, list[tuple[Row, Row, Row | None]]] = {}
    for name, rows in seen.once(steps).items():
        ended = before = None
        for row in rows:
            if row["api"] == "EndTxn" and row["error"] in FENCED and ended is not None:
                found.setdefault(name, []).append((ended, row, before))
            if row["error"] not in FENCED:
                before = row
            if row["api"] == "EndTxn" and row["error"] == GOOD:
                ended = row
    if not seen.has_messages:
        return {name: sum(before is ended for ended, _, before in some) for name, some in found.items()}
    chosen, left = dict[str, list[tuple[Row, Row, Row | None]]](), READ_ALL_MOST
    for name, some in sorted(found.items(), key=lambda item: len(item[1])):
        left -= 2 * len(some)
        if left >= 0:
            chosen[name] = some
    seen.prepare([row for some in chosen.values() for ended, refused, _ in some for row in (ended, refused)])
    return {name: sum(is_again(seen, ended, refused) for ended, refused, _ in some) for name, some in chosen.items()}


def is_again(seen: Observed, ended: Row, refused: Row) -> bool:
    """Whether a refused EndTxn has the producer id and the epoch of one that succeeded, whose response has others."""
    sent, got, again = (
        (message.get("producerId"), message.get("producerEpoch"))
        for message in (seen.message(ended, "request"), seen.message(ended, "response"), seen.message(refused, "request"))
    )
    return sent == again != got and None not in (*sent, *got)


@rule(
    "transaction-timed-out", "high", 0.85,
    needs="requests responses messages bodies time",
    looks_at="PRODUCER_FENCED, INVALID_PRODUCER_EPOCH and INVALID_TXN_STATE responses to a producer whose transaction was open "
    "for longer than the transaction.timeout.ms of its InitProducerId, if no other producer took the transactional id",
    advice="The records of this transaction are aborted: write them again. Commit sooner, or raise transaction.timeout.ms (at "
    "most transaction.max.timeout.ms of the broker).",
    instead="another producer with this transactional.id whose InitProducerId is not in the capture",
    sources="KIP-98, KIP-588, KIP-890",
)  # fmt: skip
def transaction_timed_out(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A transaction that the coordinator aborted because it was open for longer than its producer allows."""
    late = seen.once(timed_out)
    stood = standing(seen) if late else {}
    for name, some in late.items():
        refused = [row for one in some for row in one.refused]
        longest = max(some, key=lambda one: one.refused[0]["request_first_ns"] - one.begun["request_first_ns"])
        first, end = longest.begun["request_first_ns"], longest.refused[0]["request_first_ns"]
        errors = sorted({str(row["error"]) for row in refused})
        yield Finding(
            f"{counted(len(some), 'transaction')} of {name} had no end when {'its' if len(some) == 1 else 'their'} timeout of "
            f"{seconds(longest.timeout_ns)} was over; a request of the producer, {seconds(end - first)} after its first work, "
            f"got {longest.refused[0]['error']}",
            {"transactional_id": name, "client_id": longest.begun["client_id"]}, len(refused),
            where(f"error in {{{', '.join(errors)}}}", transactional_id=name),
            some[0].begun["request_first_ns"], refused[-1]["request_first_ns"], 0,
            {"transactions": len(some), "timeout_ns": longest.timeout_ns,
             "waited_ns": overlap(stood.get(name, ()), first, end)},
        )  # fmt: skip
