"""Consumers: offsets, lag, sessions and the message formats that they read."""

from collections.abc import Mapping
from typing import Any, Final

from kcap.limits import OFFSET_MOST, STUCK_MOST
from kcap.reports.findings.model import Finding, Found, called, named, rule, seconds, where
from kcap.reports.findings.observed import PLACE, Observed, Row, in_groups, rows_by, server_of, times_of, totals
from kcap.reports.findings.quotas import throttled
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted


@rule(
    "offset-out-of-range", "high", 0.95,
    needs="responses bodies",
    looks_at="OFFSET_OUT_OF_RANGE responses",
    advice="The offset is older than the start of the log (retention) or beyond its end (truncation). Check auto.offset.reset, "
    "retention and lag.",
    instead="a consumer that seeks there on purpose",
)  # fmt: skip
def offset_out_of_range(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A consumer that fetches at an offset that the log does not have.

    A consumer that comes back too late resets its offset once in each partition and continues: that is low. It is low for
    KafkaJS too, which resets one partition per response. A client that sends only one Fetch is info: it may be a tool.
    """
    for row in seen.partition_errors(["OFFSET_OUT_OF_RANGE"], ("client_id", "topic")):
        if row["topic"] in seen.recreated:  # the offsets are those of a log that is gone
            continue
        fetches = sum(call["n"] for call in seen.calls_of(client_id=row["client_id"], api="Fetch"))
        probe = fetches <= 1  # a consumer resets its offset and goes on; a tool looks once
        yield Finding(
            f"{called(row['client_id'])} fetched {counted(row['requests'], 'time')} at offsets that topic {row['topic']} "
            "does not have",
            {"client_id": row["client_id"], "topic": row["topic"]}, row["requests"],
            where("error == OFFSET_OUT_OF_RANGE", client_id=row["client_id"], topic=row["topic"]),
            row["first_ns"], row["last_ns"], 0, {"errors": row["n"], "partitions": row["partitions"]},
            "info" if probe else None if row["requests"] > row["partitions"] else "low",
        )  # fmt: skip


def lags(seen: Observed) -> list[Row]:
    """The lag of each client and partition: first, last, most, least, times of the first and the last Fetch, n with records.

    A reader that is at the last stable offset may have read all that readers of committed records get: what is behind that
    belongs to open transactions (KIP-98).
    """
    parts = seen.parts
    chosen = parts.filter(parts.api == "Fetch", parts.lag.notnull(), parts.error == "NONE", parts.client_id.notnull())
    stable, lag = chosen.last_stable_offset.fill_null(-1), chosen.lag.clip(0, OFFSET_MOST)
    at_stable = (stable >= 0) & (lag > 0) & (chosen.high_watermark.clip(0, OFFSET_MOST) - lag == stable)
    chosen = chosen.filter(~at_stable.fill_null(False))
    return seen.run(
        chosen.group_by("client_id", "topic", "partition").aggregate(
            n=chosen.count(where=chosen.records > 0), last=chosen.lag.argmax(chosen.request_first_ns),
            first=chosen.lag.argmin(chosen.request_first_ns), most=chosen.lag.max(), least=chosen.lag.min(),
            first_ns=chosen.request_first_ns.min(), last_ns=chosen.request_first_ns.max(),
        )
    )  # fmt: skip


def commit_lags(seen: Observed, limit: Mapping[str, float]) -> list[Row]:
    """How far the first and the last commit of each client, group and partition were behind the end of the log, as Fetch and
    Produce responses had reported it by then: first, last, grown (of the log in between), first_ns, last_ns, n; of those with
    enough commits over enough time.
    """
    parts = seen.parts
    committed = parts.committed_offset.between(0, OFFSET_MOST)
    chosen = parts.filter(parts.api.isin(["OffsetCommit", "TxnOffsetCommit"]), committed, parts.error == "NONE")
    commits = chosen.group_by("client_id", "group_id", "topic", "partition").aggregate(
        n=chosen.count(), first_ns=chosen.request_first_ns.min(), last_ns=chosen.request_first_ns.max(),
        first=chosen.committed_offset.argmin(chosen.request_first_ns),
        last=chosen.committed_offset.argmax(chosen.request_first_ns), most=chosen.committed_offset.max(),
    )  # fmt: skip
    lasted = commits.last_ns - commits.first_ns
    # offsets that go back with time: a log that was truncated (unclean election), a group that was set back on purpose, or a
    # capture whose clock was
    forward = commits.last >= commits.most
    commits = commits.filter(commits.n >= int(limit["commits"]), lasted >= int(limit["seconds"] * 1e9), forward)
    # readers of committed records get no further than the last stable offset (KIP-98)
    fetched = parts.filter(parts.api == "Fetch", parts.last_stable_offset >= 0, parts.error == "NONE")
    at = fetched.response_first_ns
    stable = fetched.group_by(*PLACE).aggregate(
        stable=fetched.last_stable_offset.argmax(at), high=fetched.high_watermark.argmax(at)
    )
    held = stable.filter(stable.stable < stable.high).select(*PLACE, last="stable")
    commits = commits.anti_join(held, [*PLACE, "last"])
    reported = parts.filter(parts.api.isin(["Fetch", "Produce"]), parts.error == "NONE")
    written = reported.base_offset.clip(0, OFFSET_MOST) + reported.records.clip(0, OFFSET_MOST)
    log_end = reported.high_watermark.clip(0, OFFSET_MOST).fill_null(written)
    known = reported.filter(reported.response_first_ns.notnull()).select(
        *PLACE, at="response_first_ns", log_end=log_end.cast("int64")
    )
    groups = commits.group_by(*PLACE).aggregate(n=commits.count())
    (most,) = seen.run(groups.aggregate(n=groups.n.max()))
    if not most["n"]:
        return []
    ends = (ends_joined if most["n"] <= GROUPS_JOINED else ends_in_order)(commits, known)
    return seen.run(
        ends.filter(ends.begin.notnull()).select(
            "client_id", "group_id", *PLACE, "n", "first_ns", "last_ns",
            first=ends.begin - ends.first, last=ends.end - ends.last, grown=ends.end - ends.begin,
        )
    )  # fmt: skip


LONGEST: Final = (1 << 31) - 1
"""Bytes that no message exceeds: its length is an int32."""
OFFSETS: Final = ["OffsetFetch", "OffsetCommit", "TxnOffsetCommit"]
GROUPS_JOINED: Final = 16
"""Commits of one partition up to which each is joined with all that was reported of it, which takes half the time."""


def ends_joined(commits: Any, known: Any) -> Any:
    """The commits with `begin` and `end`: the highest end of the log that was known at `first_ns` and at `last_ns`."""
    numbered = commits.mutate(number=functions(known).row_number().over(order_by=[*PLACE, "client_id", "group_id"]))
    pairs = numbered.inner_join(known, list(PLACE))
    ends = pairs.group_by("number").aggregate(
        begin=pairs.log_end.max(where=pairs["at"] <= pairs.first_ns), end=pairs.log_end.max(where=pairs["at"] <= pairs.last_ns)
    )
    return numbered.inner_join(ends, "number")


def ends_in_order(commits: Any, known: Any) -> Any:
    """The same in one order of time, where the pairs of commits and reports would be too many."""
    ibis = functions(known)
    reports = known.mutate(asks=ibis.literal(0, "int64"))
    times = [
        commits.select(*PLACE, at=name, log_end=ibis.null("int64"), asks=ibis.literal(1, "int64"))
        for name in ("first_ns", "last_ns")
    ]
    walk = ibis.union(reports, ibis.union(*times, distinct=True))
    until = ibis.window(group_by=PLACE, order_by=["at", "asks"], rows=(None, 0))
    walk = walk.mutate(log_end=walk.log_end.max().over(until))
    walk = walk.filter(walk.asks == 1)
    ends = commits.inner_join(walk.select(*PLACE, first_ns="at", begin="log_end"), [*PLACE, "first_ns"])
    return ends.inner_join(walk.select(*PLACE, last_ns="at", end="log_end"), [*PLACE, "last_ns"])


@rule(
    "slow-consumer-fetch", "medium", 0.85,
    needs="responses bodies time",
    looks_at="the lag in Fetch responses over time; how far commits are behind the end of the log; how often and how long a "
    "client closes its receive window",
    advice="Make processing faster, add members up to the number of partitions, or raise max.poll.records with care.",
    instead="a consumer that started behind and is catching up; a burst of writes",
    lag=100, fetches=3, seconds=5, growth=0.2, stalls=2, kilobytes=16, closed=0.1, milliseconds=500, commits=3, left=0.3,
)  # fmt: skip
def slow_consumer(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A consumer that falls behind, or that does not read what the broker sent it.

    A consumer that fetches ahead of its work has no lag in its Fetch responses: its commits fall behind instead. They do if,
    between the first and the last of `commits` commits, the share `left` of what was written was not committed.

    A receive window closes when the receive buffer is full (RFC 9293 section 3.8.6). If it closes after less than the smallest
    buffer in use, the cause is another one, such as a probe of a middlebox. If it is closed for `milliseconds` and for the
    share `closed` of the connection's life, the reader does not read; a reader that catches up fills its buffer now and then.
    """
    if "Fetch" not in seen.apis and not any(link["stalls"] for link in seen.links):
        return
    far = any((flow["lag"] or 0) >= limit["lag"] for flow in seen.flows_of("Fetch"))
    behind: dict[tuple[str, str], list[dict[str, int]]] = {}
    for row in lags(seen) if far else ():
        grown = row["last"] - row["first"]
        steadily = row["first"] == row["least"] and row["last"] == row["most"] and grown >= limit["growth"] * row["first"]
        doubled = row["last"] >= 0.9 * row["most"] and row["last"] >= 2 * row["first"] + limit["lag"]
        grew = row["last"] >= limit["lag"] and (doubled or (steadily and grown >= limit["lag"]))
        if grew and row["n"] >= limit["fetches"] and row["last_ns"] - row["first_ns"] >= limit["seconds"] * 1e9:
            behind.setdefault((row["client_id"], row["topic"]), []).append(row)
    waited = {row["client_id"]: row for row in seen.once(throttled)} if behind else {}
    for (client, topic), some in behind.items():
        lag = sum(row["last"] for row in some)
        quota = waited.get(client)
        muted = quota is not None and 2 * quota["covered_ns"] >= quota["used_ns"] > 0
        yield Finding(
            f"{called(client)} falls behind on {counted(len(some), 'partition')} of topic {topic}: lag "
            f"{sum(row['first'] for row in some):,} at first, {lag:,} at last",
            {"client_id": client, "topic": topic}, sum(row["n"] for row in some), where("api == Fetch", client_id=client,
                topic=topic),
            *times_of(some), 0,
            {"lag_first": sum(row["first"] for row in some), "lag_last": lag, "partitions": len(some)}, None, None,
            "It is throttled most of the time: raise its consumer_byte_rate, or have it read less." if muted else None,
        )  # fmt: skip
    late: dict[tuple[str, str, str], list[Row]] = {}
    groups = map(totals, seen.calls_by(("client_id", "group_id"), ("OffsetCommit", "TxnOffsetCommit")).values())
    committing = any(
        group["n"] >= limit["commits"] and group["last_ns"] - group["first_ns"] >= limit["seconds"] * 1e9 for group in groups
    )
    for row in commit_lags(seen, limit) if committing else ():
        grown = row["last"] - row["first"]
        further = grown >= max(limit["lag"], limit["left"] * row["grown"])
        if further and (row["client_id"], row["topic"]) not in behind:
            late.setdefault((row["client_id"], row["group_id"], row["topic"]), []).append(row)
    for (client, group, topic), some in late.items():
        from kcap.reports.findings.slow_members import explained  # for captures with such commits

        cause = explained(seen, client, group)
        begin, end = (sum(row[name] for row in some) for name in ("first", "last"))
        yield Finding(
            f"commits of {called(client)} for group {group} fall behind on {counted(len(some), 'partition')} of topic {topic}: "
            f"lag {begin:,} at first, {end:,} at last",
            {"client_id": client, "group_id": group, "topic": topic}, sum(row["n"] for row in some),
            where("api == OffsetCommit", client_id=client, group_id=group), *times_of(some), 0,
            {"lag_first": begin, "lag_last": end, "partitions": len(some), "explained_by": cause},
            "low" if cause else None, 0.75,
        )  # fmt: skip
    for link in seen.links:
        full = link["response_bytes"] >= link["stalls"] * limit["kilobytes"] * 1000
        mostly = link["response_bytes"] > 4 * link["request_bytes"]
        least_ns = max(limit["milliseconds"] * 1e6, limit["closed"] * (link["life_ns"] or 0))
        long = (link["zero_window_ns"] or 0) >= least_ns
        if link["stalls"] >= limit["stalls"] and full and mostly and long and link["client_id"]:
            server, closed = server_of(link), link["zero_window_ns"]
            yield Finding(
                f"the receive window was closed {link['stalls']} times, on one connection for {seconds(closed)}, while "
                f"{server} sent to {called(link['client_id'])}",
                {"client_id": link["client_id"], "server": server}, link["stalls"],
                where(client_id=link["client_id"], server_ip=link["server_ip"]), link["first_ns"], link["last_ns"], 0,
                {"zero_windows": link["stalls"], "zero_window_ns": closed, "response_bytes": link["response_bytes"]}, None, 0.8,
            )  # fmt: skip


@rule(
    "fetch-session-churn", "medium", 0.8,
    needs="requests bodies",
    looks_at="Fetch requests for a new session (epoch 0) without an old one (id 0) on a connection that had one before, "
    "compared with all Fetch requests of the client",
    advice="Raise max.incremental.fetch.session.cache.slots of the broker: sessions are evicted, and every Fetch names all "
    "partitions.",
    instead="a client that changes its partitions all the time; a library that does not use sessions, such as "
    "@platformatic/kafka, which takes a slot with each Fetch and so evicts the sessions of others as well",
    sources="KIP-227",
    sessions=10, share=0.3,
)  # fmt: skip
def fetch_session_churn(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Fetch sessions that do not last.

    The first session of a connection does not count: a client that connects again begins a new one. A broker without a free
    slot responds with session id 0. If it gives another id and the client still begins a new session each time, the client does
    not use sessions: that is info, though it may in the end take all slots itself. Only the messages show that: without them,
    the finding is info and accuses neither side. A client that replaces a session of its own, as franz-go does when its
    partitions change, has lost none.
    """
    if seen.most_calls(("client_id", "server_ip", "server_port"), ("Fetch",)) < limit["sessions"]:
        return
    table = seen.exchanges
    chosen = table.filter(table.api == "Fetch", table.session_epoch.notnull())
    size = chosen.response_bytes.fill_null(LONGEST)  # a small response is read sooner than one with records
    new, at = (chosen.session_epoch == 0) & (chosen.session_id.fill_null(0) == 0), chosen.request_first_ns
    rows = seen.run(
        in_groups(
            chosen, ("client_id", "server_ip", "server_port"), every=chosen.count(where=new),
            first=chosen.connection.nunique(where=new),
            exchange=chosen.exchange.argmin(size), connection=chosen.connection.argmin(size),
            earliest=chosen.exchange.argmin(at), its=chosen.connection.argmin(at),
        )
    )  # fmt: skip
    rows = [row for row in rows if row["every"] - row["first"] >= max(limit["sessions"], limit["share"] * row["n"])]
    early = [{"connection": row["its"], "exchange": row["earliest"]} for row in rows]
    offered = [seen.message(one, "response").get("sessionId") or 0 for one in seen.prepared(early)]
    for row, slot in zip(seen.prepared(rows), offered):
        server = server_of(row)
        client, fetches = called(row["client_id"]), f"{row['n']} Fetch requests"
        given = seen.message(row, "response").get("sessionId")
        every = row["every"] == row["n"]  # a client that goes on with a session now and then does use them
        new = row["n"] if every else row["every"] - row["first"]
        unused = every and max(given or 0, slot) > 0
        unknown = every and given is None and not unused
        text = (
            f"{client} does not use the fetch sessions that {server} offers: each of {fetches} began a new one"
            if unused
            else f"each of {fetches} of {client} to {server} asked for a new session; no response shows whether it got one"
            if unknown
            else f"{new} of {fetches} of {client} to {server} had to begin a new session"
        )
        yield Finding(
            text,
            {"client_id": row["client_id"], "server": server}, new,
            where("api == Fetch", "session_epoch == 0", client_id=row["client_id"], server_ip=row["server_ip"],
                  server_port=row["server_port"]),
            row["first_ns"], row["last_ns"], 0,
            {"new_sessions": new, "fetches": row["n"]}, "info" if unused or unknown else None, None,
            "Look for a version or a setting of the library that uses fetch sessions: every fetch names all partitions."
            if unused
            else "See sessionId in a response (kcap show). With 0, the broker has no free slot: raise its "
            "max.incremental.fetch.session.cache.slots. With another id, the library does not use sessions."
            if unknown
            else None,
        )  # fmt: skip


@rule(
    "records-read-again", "medium", 0.8,
    needs="requests responses bodies",
    looks_at="Fetch responses with records at one offset, again and again on one connection, or after OffsetFetch responses "
    "that give the group this offset each time; and no commit beyond it",
    advice="Look in the consumer's log for what it does with the record at that offset: a codec or a format that it cannot "
    "read, an exception in its code, or more work than max.poll.interval.ms allows. Skip the record, or move it to a dead "
    "letter queue.",
    instead="a consumer that is stopped and started before its first commit, that stores its offsets elsewhere, or that drops "
    "fetched records whenever it pauses",
    times=3, in_place=6, seconds=5,
)  # fmt: skip
def records_read_again(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Groups that read from the same record again and again.

    A client may fetch ahead of a record that it cannot process, so commits show how far it came. A group that has never
    committed may not use commits; for it, only records count that it never fetches beyond. Frameworks that seek back to a
    failed record (DefaultErrorHandler of Spring for Apache Kafka: ten times at once) and then skip it have passed it.
    """
    times = int(limit["times"])
    if not any(call["api"] in OFFSETS for call in seen.calls):
        return
    parts = seen.parts.filter(seen.parts.error == "NONE", seen.parts.topic.notnull())
    offsets = parts.filter(parts.api.isin(OFFSETS), parts.group_id.notnull(), parts.client_id.notnull())
    offsets = offsets.mutate(committed=offsets.committed_offset.fill_null(-1))
    far = offsets.group_by("group_id", *PLACE).aggregate(most=offsets.committed.max())
    again = offsets.filter(offsets.api == "OffsetFetch").inner_join(far, ["group_id", *PLACE])
    again = again.filter(again.committed == again.most)
    stuck = again.group_by("client_id", "group_id", *PLACE).aggregate(
        times=again.count(), most=again.most.max(), first_ns=again.request_first_ns.min()
    )
    stuck = stuck.filter(stuck.times >= times)
    fetched = parts.filter(parts.api == "Fetch", parts.fetch_offset.notnull())
    full = fetched.bytes > 0
    ends = fetched.group_by("client_id", *PLACE).aggregate(
        least=fetched.fetch_offset.min(where=full), furthest=fetched.fetch_offset.max()
    )
    each = fetched.filter(full)
    each = each.group_by("client_id", "connection", *PLACE, "fetch_offset").aggregate(
        reads=each.count(), first_ns=each.request_first_ns.min(), last_ns=each.request_first_ns.max()
    )
    reads = each.group_by("client_id", *PLACE, "fetch_offset").aggregate(reads=each.count(), last_ns=each.last_ns.max())
    reads = reads.filter(reads.reads >= times)
    alone = reads.semi_join(ends.filter(ends.least == ends.furthest), ["client_id", *PLACE])
    known = stuck.filter(stuck.most >= 0).inner_join(reads, ["client_id", *PLACE, ("most", "fetch_offset")])
    unknown = stuck.filter(stuck.most < 0).inner_join(alone, ["client_id", *PLACE])
    columns = "client_id", "group_id", *PLACE, "first_ns", "reads", "last_ns"
    begun = known.select(*columns, least="most").union(unknown.select(*columns, least="fetch_offset"))
    held = each.filter(each.reads >= int(limit["in_place"]), each.last_ns - each.first_ns >= int(limit["seconds"] * 1e9))
    members = offsets.group_by("client_id").aggregate(groups=offsets.group_id.nunique(), group_id=offsets.group_id.max())
    held = held.inner_join(members.filter(members.groups == 1), ["client_id"]).inner_join(ends, ["client_id", *PLACE])
    held = held.left_join(far, ["group_id", *PLACE])
    most = held.most.fill_null(-1)
    held = held.filter((most <= held.fetch_offset) & ((most >= 0) | (held.furthest == held.fetch_offset)))
    found = begun.union(held.select(*columns, least="fetch_offset"))
    stalled = seen.first(found, ("first_ns", "group_id", *PLACE), STUCK_MOST, "partitions_read_again")
    for (group, client, topic), rows in rows_by(stalled, ("group_id", "client_id", "topic")).items():
        count, least = max(row["reads"] for row in rows), min(row["reads"] for row in rows)
        places = sorted({f"{row['least']} of {topic}-{row['partition']}" for row in rows})
        yield Finding(
            f"group {group} read {'up to ' if least < count else ''}{counted(count, 'time')} from offset {named(places)}, and "
            "committed nothing beyond",
            {"group_id": group, "client_id": client, "topic": topic}, count,
            where("api == Fetch", client_id=client, topic=topic), *times_of(rows), 0,
            {"reads": count, "partitions": len(places)},
        )  # fmt: skip


@rule(
    "old-message-format", "low", 0.85,
    needs="responses bodies",
    looks_at="batches of message format 0 or 1 in Fetch responses of v4 and later, which show what the log contains",
    advice="Raise log.message.format.version (message.format.version of the topic), upgrade the producers, and let old "
    "segments expire: Kafka 4.0 writes only format 2.",
    instead="segments from before an upgrade, which expire with retention",
    sources="KIP-98, KIP-724",
    fetches=3,
)  # fmt: skip
def old_message_format(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Topics whose log contains old message formats."""
    if all((flow["oldest"] if flow["oldest"] is not None else 2) >= 2 for flow in seen.flows_of("Fetch")):
        return
    parts = seen.parts
    chosen = parts.filter(parts.api == "Fetch", parts.api_version >= 4, parts.magic < 2, parts.topic.notnull())
    for row in seen.run(in_groups(chosen, ("topic", "magic"))):
        if row["n"] >= limit["fetches"]:
            yield Finding(
                f"topic {row['topic']} holds batches of message format {row['magic']}", {"topic": row["topic"]}, row["n"],
                where("api == Fetch", topic=row["topic"]), row["first_ns"], row["last_ns"], 0,
                {"fetches": row["n"], "format": row["magic"]},
            )  # fmt: skip
