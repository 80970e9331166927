"""Producers: batches, compression, refused records, partitions, transactions' end is in `transactions`."""

from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from typing import Any
from zlib import compress

from kcap.reports.definition import of_brokers
from kcap.reports.findings.model import (
    JAVA,
    Finding,
    Found,
    called,
    erring,
    in_versions,
    named,
    rule,
    seconds,
    where,
    without_response,
)
from kcap.reports.findings.observed import LASTED, PLACE, SERVER, Observed, Row, cut_short, in_groups, rows_by, totals
from kcap.reports.findings.served import ALL
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted
from kcap.schema.facts import releases
from kcap.schema.quirks import MAGIC2_ONLY
from kcap.schema.registry import api_key
from kcap.schema.releases import first_release

OLD_PRODUCE, OLD_FETCH = MAGIC2_ONLY[0] - 1, 3
"""The last versions that carry message formats 0 and 1."""
AMONG_OLD = {"Fetch": OLD_FETCH, "UpdateMetadata": 2}
"""The last versions that brokers before 0.11 send each other, but for UpdateMetadata 3 of 0.10.2."""
CLIENTS_NAMED = 20
"""Clients that a finding names beside its own."""
SAMPLE_BASE64 = 65_536 * 4 // 3 // 4 * 4
"""How much of a batch is compressed to see what there is to save, in characters of base64: 64 KiB."""
SAMPLED = 50
"""Clients and topics of which a batch is read and compressed, the most bytes first; those whose sequence errors are explained,
the most errors first."""
STICKY_BYTES = 65_536
"""What a client writes to one partition before it chooses the next, at most: franz-go's default, and more than batch.size of
Kafka's Java client (16 KiB)."""
FORMAT_2 = "0.11.0"
"""The first release whose brokers store message format 2 (KIP-98)."""


def stores_format_2(call: Row) -> bool:
    """Whether a broker must store format 2, since it took a version that no earlier release does."""
    key = api_key(call["api"] or "")
    if key is None or call["outcome"] != "answered" or call["error"] == "UNSUPPORTED_VERSION":
        return False
    first = first_release(key, call["api_version"] or 0)
    return first is not None and releases().index(first) >= releases().index(FORMAT_2)


def failed(call: Row) -> bool:
    """Whether a class of exchanges got errors or no responses."""
    return call["error"] not in (None, "NONE") or without_response(call)


@rule(
    "tiny-batches", "medium", 0.85,
    needs="requests bodies",
    looks_at="records per batch and requests per second of a producer",
    advice="Raise linger.ms (5 to 20) and batch.size so that records share a request, or stop flushing after each record.",
    instead="a producer that must have each record acknowledged before the next",
    requests=200, a_second=100, records=1.5, alone=1.05,
)  # fmt: skip
def tiny_batches(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A producer that sends about one record per request, so quickly that a linger.ms of 10 would combine records. With more
    than `alone` records per batch, the finding is info: the producer does batch, and its records come no faster.

    A request that failed shows nothing about linger.ms: the client sends its records again, as fast as it is refused.
    """
    for client, calls in seen.calls_by("client_id", ("Produce",)).items():
        row = totals([call for call in calls if not failed(call)])
        rate = row["n"] / max((row["last_ns"] - row["first_ns"]) / 1e9, 1.0)
        if not row["batches"] or row["n"] < limit["requests"] or rate < limit["a_second"]:
            continue
        each = row["records"] / row["batches"]
        if each <= limit["records"]:
            yield Finding(
                f"{called(client)} sent {rate:.0f} Produce requests a second with {each:.1f} records a batch",
                {"client_id": client}, row["n"], where("api == Produce", client_id=client),
                row["first_ns"], row["last_ns"], row["latency_ns"],
                {"requests": row["n"], "records": row["records"], "records_a_batch": round(each, 2),
                    "requests_a_second": round(rate)}, None if each <= limit["alone"] else "info",
            )  # fmt: skip


@rule(
    "compression-off", "medium", 0.8,
    needs="requests bodies",
    looks_at="bytes that a producer writes to a topic without compression, and whether other producers compress the topic",
    advice="Set compression.type of this producer (lz4 or zstd), in particular if other producers of the topic compress.",
    instead="records that are already compressed or encrypted, such as images, if no sample could be read",
    bytes=100_000, batch=2_000, batch_beside=1_000, saved=0.1,
)  # fmt: skip
def compression_off(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A producer that does not compress. The finding is info if no other producer of the topic compresses, or if a sample saves
    less than the part `saved`.

    Small batches compress badly: below `batch` bytes per batch, the rule is silent, or below `batch_beside` if other producers
    of the topic compress.
    """
    if "Produce" not in seen.apis:
        return
    rows = [flow for flow in seen.flows_of("Produce") if flow["codec"] is not None]
    compressing: dict[str, set[str]] = {}
    for row in rows:
        if row["codec"] != "none" and row["client_id"] is not None:
            compressing.setdefault(row["topic"], set()).add(row["client_id"])
    first = {topic: nsmallest(CLIENTS_NAMED + 1, clients) for topic, clients in compressing.items()}
    plain: list[tuple[Row, list[str]]] = []
    for row in rows:
        size = row["bytes"] or 0
        if row["topic"] is None or row["codec"] != "none" or size < limit["bytes"]:
            continue
        others = [client for client in first.get(row["topic"], ()) if client != row["client_id"]][:CLIENTS_NAMED]
        if size >= limit["batch_beside" if others else "batch"] * (row["batches"] or 1):
            plain.append((row, others))
    largest = sorted((row for row, _others in plain), key=lambda row: -row["bytes"])[:SAMPLED]
    sampled_of = {(row["client_id"], row["topic"]) for row in largest if row["client_id"] is not None}
    saving = savings(seen, sampled_of) if sampled_of else {}
    for row, others in plain:
        saved = saving.get((row["client_id"], row["topic"]))
        worth = saved is None or saved >= limit["saved"]
        beside = f"; {named(others)} compress{'es' if len(others) == 1 else ''} the same topic" if others else ""
        sampled = "" if saved is None else f"; a sample compresses by {saved:.0%}" if worth else "; a sample does not compress"
        yield Finding(
            f"{called(row['client_id'])} sent {row['bytes'] / 1000:,.0f} kB to {row['topic']} without compression"
            + (beside if worth else "") + sampled,
            {"client_id": row["client_id"], "topic": row["topic"]}, row["n"],
            where("api == Produce", client_id=row["client_id"], topic=row["topic"]), row["first_ns"], row["last_ns"], 0,
            {"bytes": row["bytes"], "batches": row["batches"], "others": others, "saved": saved},
            None if others and worth else "info", None if others else 0.5,
        )  # fmt: skip


def savings(seen: Observed, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Client and topic -> the part that compression takes off the largest uncompressed batch of one of its requests, where it
    can be read: records may be compressed or encrypted already, whatever their batch says."""
    parts = seen.parts.filter(seen.parts.api == "Produce", seen.parts.codec == "none")
    parts = parts.filter(parts.client_id.isin(sorted({client for client, _topic in wanted})))
    examples = seen.run(
        parts.group_by("client_id", "topic").aggregate(
            connection=parts.connection.argmax(parts.bytes), exchange=parts.exchange.argmax(parts.bytes)
        )
    )
    found: dict[tuple[str, str], float] = {}
    for row in seen.prepared([row for row in examples if (row["client_id"], row["topic"]) in wanted]):
        topics = seen.message(row, "request").get("topicData") or ()
        batches = [one.get("records") for topic in topics for one in topic.get("partitionData") or ()]
        sample = b64decode(max((batch for batch in batches if batch), key=len, default="")[:SAMPLE_BASE64])
        if sample:
            found[row["client_id"], row["topic"]] = max(0.0, round(1 - len(compress(sample, 1)) / len(sample), 2))
    return found


@rule(
    "message-too-large", "high", 0.95,
    needs="responses bodies",
    looks_at="MESSAGE_TOO_LARGE and RECORD_LIST_TOO_LARGE responses to Produce",
    advice="Raise max.message.bytes of the topic (and the consumers' fetch sizes), or keep batch.size and max.request.size of "
    "the producer below it.",
    instead="nothing else, since the broker gives this reason; if one batch was refused, a program that makes its records "
    "smaller and sends them again",
)  # fmt: skip
def message_too_large(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """Records that are too large for the topic.

    Kafka's Java producer (KIP-126) and kafka-python 3 split a refused batch of several records. That only costs time: the
    finding is medium, also if packets were cut before the records and the batch may have held several. One refused batch is low
    if later ones are accepted.
    """
    names = ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]
    rows, parts = seen.partition_errors(names), seen.parts.filter(seen.parts.api == "Produce")
    bad, good = parts.error.isin(names), parts.error == "NONE"
    each = parts.group_by("client_id", "topic").aggregate(
        n=parts.count(where=bad), alone=parts.count(where=bad & (parts.records == 1)),
        unknown=parts.count(where=bad & (parts.records.fill_null(0) == 0)), taken_ns=parts.request_first_ns.max(where=good),
    )  # fmt: skip
    known = {(row["client_id"], row["topic"]): row for row in seen.run(each.filter(each.n > 0))} if rows else {}
    for row in rows:
        batches = known[row["client_id"], row["topic"]]
        library = splitting(seen.calls_of(client_id=row["client_id"], api="Produce")) if not batches["alone"] else None
        goes_on = row["n"] == 1 and (batches["taken_ns"] or 0) > row["last_ns"]
        yield Finding(
            f"{counted(row['n'], 'batch', 'batches')} of {called(row['client_id'])} for topic {row['topic']} "
            f"{'was' if row['n'] == 1 else 'were'} refused as too large"
            + (f"; {library} splits those of several records" if library else "; later ones were taken" if goes_on else ""),
            {"client_id": row["client_id"], "topic": row["topic"]}, row["n"],
            where("api == Produce", erring(seen, names), client_id=row["client_id"], topic=row["topic"]),
            row["first_ns"], row["last_ns"], row["latency_ns"] or 0, {"refused": row["n"]},
            "low" if goes_on else "medium" if library else None, 0.6 if library and batches["unknown"] else None,
        )  # fmt: skip


def splitting(calls: Iterable[Row]) -> str | None:
    """The library of all these calls, if it splits batches that are refused as too large."""
    names = {
        "Kafka's Java producer" if call["software_name"] == JAVA
        else "kafka-python 3" if call["software_name"] == "kafka-python" and (call["software_version"] or "").startswith("3.")
        else None
        for call in calls
    }  # fmt: skip
    return names.pop() if len(names) == 1 else None


@rule(
    "not-enough-replicas", "critical", 0.95,
    needs="responses bodies",
    looks_at="NOT_ENOUGH_REPLICAS and NOT_ENOUGH_REPLICAS_AFTER_APPEND responses to Produce",
    advice="Bring the brokers of the missing replicas back: fewer replicas are in sync than min.insync.replicas requires. "
    "Until then, writes with acks=all fail.",
    instead="a rolling restart with a replication factor that leaves no spare replica",
    failures=2,
)  # fmt: skip
def not_enough_replicas(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A topic with fewer in-sync replicas than min.insync.replicas requires. The finding is high if every partition that
    refused a write later accepts one with acks=all: the problem is over.
    """
    names = ["NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"]
    writers: dict[str, set[str]] = {}
    for row in seen.partition_errors(names):
        writers.setdefault(row["topic"], set()).add(row["client_id"])
    again = written_again(seen, names) if writers else set()
    for row in seen.partition_errors(names, ("topic",)):
        if row["n"] >= limit["failures"]:
            clients, over = sorted(client for client in writers[row["topic"]] if client), row["topic"] in again
            yield Finding(
                f"{counted(row['n'], 'write')} to {counted(row['partitions'], 'partition')} of topic {row['topic']} failed: "
                "not enough replicas in sync" + ("; later writes to each succeeded" if over else ""),
                {"topic": row["topic"], "client_ids": clients}, row["n"], where(erring(seen, names), topic=row["topic"]),
                row["first_ns"], row["last_ns"], row["last_ns"] - row["first_ns"], {"failed": row["n"],
                "partitions": row["partitions"]}, "high" if over else None,
            )  # fmt: skip


def written_again(seen: Observed, errors: list[str]) -> set[str]:
    """Topics of which every partition that refused a write with one of these errors took one with acks=all later: that needs
    enough replicas (min.insync.replicas)."""
    parts = seen.parts
    parts = parts.filter(parts.api == "Produce", parts.topic.notnull())
    bad, good, sent = parts.error.isin(errors), (parts.error == "NONE") & (parts.acks == ALL), parts.request_first_ns
    each = parts.group_by(*PLACE).aggregate(bad_ns=sent.max(where=bad), good_ns=sent.max(where=good))
    each = each.filter(each.bad_ns.notnull())
    stopped = each.filter(~(each.good_ns > each.bad_ns).fill_null(False))
    return {row["topic"] for row in seen.run(each.anti_join(stopped, "topic").select("topic").distinct())}


@rule(
    "client-clock-skew", "medium", 0.7,
    needs="requests bodies",
    looks_at="record timestamps that producers set, compared with the time of the packet, if both advance together and no "
    "program on the producer's host reads records of other topics that are off in the same direction; INVALID_TIMESTAMP "
    "responses",
    advice="Synchronise the clock of this host (NTP, chrony). Retention, time indexes and joins use these timestamps.",
    instead="timestamps of events rather than of sending, as from a program that copies what it reads (MirrorMaker, Kafka "
    "Streams, Flink) and is that far behind, though a constant distance speaks against it; a capture whose own clock is off, "
    "which cannot be distinguished if there is only one producer",
    minutes=5, batches=10, spread_seconds=60, moved=0.5,
)  # fmt: skip
def client_clock_skew(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A producer whose clock is off by a constant. If all producers are off by the same amount, it is the clock of the capture,
    or that of the host that they all run on.

    Timestamps of a clock advance by at least the part `moved` of the time in which they are sent. Timestamps of records that a
    program reads again after each restart do not advance.
    """
    if "Produce" not in seen.apis:
        return
    least_ms = int(limit["minutes"] * 60_000)
    furthest = max((max(abs(flow["early_ms"] or 0), abs(flow["late_ms"] or 0)) for flow in seen.flows), default=0)
    if furthest < least_ms:
        return
    refused = {row["client_id"]: row for row in seen.partition_errors(["INVALID_TIMESTAMP"], ("client_id",))}
    chosen = timestamps(seen.parts, "Produce")
    stamp, sent = chosen.max_timestamp_ms, chosen.request_first_ns
    rows = seen.run(
        in_groups(
            chosen, ("client_id",), off=chosen.off.median(), least=chosen.off.quantile(0.1), most=chosen.off.quantile(0.9),
            moved_ms=stamp.quantile(0.9) - stamp.quantile(0.1), sent_ns=sent.quantile(0.9) - sent.quantile(0.1),
            topic=chosen.topic.min(),
        )
    )  # fmt: skip
    rows = [row for row in rows if row["n"] >= limit["batches"]]
    middle = [row["off"] for row in rows]
    alike = len(rows) > 1 and not refused and max(middle) - min(middle) <= limit["spread_seconds"] * 1000
    hosts = {link["client_ip"] for row in rows for link in seen.links_of.get(row["client_id"], ())}
    whose = "so that it is the capture's clock" if len(hosts) > 1 else "on one host: it is its clock or the capture's"
    far = [row["client_id"] for row in rows if abs(row["off"]) >= least_ms]
    read = copied(seen, least_ms, far) if far else {}
    for row in rows:
        error = refused.get(row["client_id"])
        constant = row["most"] - row["least"] <= limit["spread_seconds"] * 1000
        moves = row["moved_ms"] * 1e6 >= limit["moved"] * row["sent_ns"]
        if abs(row["off"]) < least_ms or not ((constant and moves) or error):
            continue
        if not error and (row["off"] > 0) in read[row["client_id"]]:
            continue
        ahead = "ahead of" if row["off"] > 0 else "behind"
        yield Finding(
            f"timestamps of {called(row['client_id'])} are {seconds(abs(row['off']) * 1e6)} {ahead} the capture's clock"
            + (f"; the broker refused {counted(error['n'], 'batch', 'batches')} (INVALID_TIMESTAMP)" if error else "")
            + (f"; those of all producers are, {whose}" if alike else ""),
            {"client_id": row["client_id"], "topic": row["topic"]}, row["n"], where("api == Produce",
                client_id=row["client_id"]),
            row["first_ns"], row["last_ns"], 0, {"off_ms": round(row["off"]), "batches": row["n"],
                "refused": error["n"] if error else 0},
            "high" if error else "info" if alike else None, 0.95 if error else None,
        )  # fmt: skip


def timestamps(parts: Any, api: str) -> Any:
    """Partitions of an API with the column `off`: their largest record timestamp less the time of the request, ms."""
    chosen = parts.filter(parts.api == api, parts.max_timestamp_ms.notnull(), parts.max_timestamp_ms > 0)
    return chosen.mutate(off=chosen.max_timestamp_ms - chosen.request_first_ns / 1_000_000)


def copied(seen: Observed, least_ms: int, clients: Collection[str | None]) -> dict[str | None, set[bool]]:
    """Producer -> ways, ahead (true) or behind, in which records are off by `least_ms` that a program on one of its hosts reads
    from topics to which the producer does not write: it may send on their timestamps.
    """
    read = timestamps(seen.parts, "Fetch")
    read = read.filter(read.off.abs() >= least_ms).inner_join(seen.connections.select("connection", "client_ip"), "connection")
    rows = seen.run(read.group_by("client_ip", "topic", ahead=read.off > 0).aggregate(n=read.count()))
    by, written = rows_by(rows, "client_ip"), rows_by(seen.flows_of("Produce"), "client_id")
    found: dict[str | None, set[bool]] = {}
    for client in clients:
        own = {flow["topic"] for flow in written.get(client, ())}
        hosts = {link["client_ip"] for link in seen.links_of.get(client, ())}
        found[client] = {row["ahead"] for host in hosts for row in by.get(host, ()) if row["topic"] not in own}
    return found


@rule(
    "skewed-partitions", "medium", 0.85,
    needs="requests bodies",
    looks_at="records written to each partition of a topic; if only one or two partitions got records, the number of "
    "partitions in Metadata responses",
    advice="Choose a key with more distinct values, or no key (sticky partitioner, KIP-480, KIP-794): only one consumer of a "
    "group reads a partition.",
    instead="a topic whose records have one key on purpose, or whose producers have partitions of their own",
    records=500, share=0.8, partitions=3, batches=15,
)  # fmt: skip
def skewed_partitions(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A topic in which one partition gets nearly all records, and its clients chose it more often than by chance.

    A sticky partitioner stays for a batch (KIP-480) or for batch.size bytes (KIP-794), so what a client writes to a partition
    counts as one choice until it writes to another or `STICKY_BYTES` are over. The finding is info below `batches` choices, or
    if fewer than `partitions` partitions are written to, by one client: the client may be given its partition, as a task of
    Kafka Streams is.
    """
    written: Counter[str | None] = Counter()
    for flow in seen.flows_of("Produce"):
        written[flow["topic"]] += flow["records"] or 0
    if max(written.values(), default=0) < limit["records"]:
        return
    parts = seen.parts
    chosen = parts.filter(parts.api == "Produce", parts.records.notnull())
    order = [chosen.request_first_ns, chosen.connection, chosen.exchange, chosen.partition]
    last = chosen.partition.lag().over(group_by=["client_id", "topic"], order_by=order)
    chosen = chosen.mutate(turn=(last != chosen.partition).fill_null(True))
    each = in_groups(chosen, ("topic", "partition", "client_id"), turns=chosen.turn.sum(),
                     fills=chosen.bytes.sum() // STICKY_BYTES, records=chosen.records.sum())  # fmt: skip
    each = each.mutate(choices=functions(each).greatest(each.turns, each.fills.fill_null(0)))
    groups = each.group_by(*PLACE).aggregate(
        n=each.n.sum(), first_ns=each.first_ns.min(), last_ns=each.last_ns.max(), records=each.records.sum(),
        choices=each.choices.sum(),
    )  # fmt: skip
    by = rows_by(seen.run(groups), "topic")
    writers = seen.clients_by_topic("Produce")
    skewed: dict[str, tuple[int, Row, int]] = {}
    for topic, some in by.items():
        total, hot = sum(row["records"] or 0 for row in some), max(some, key=lambda row: row["records"] or 0)
        enough = total >= limit["records"] and hot["n"] >= limit["batches"]
        if topic and enough and (hot["records"] or 0) >= limit["share"] * total:
            skewed[topic] = total, hot, len(some)
    few = [topic for topic, (_, _, number) in skewed.items() if number < limit["partitions"]]
    known = partitions_of(seen, {client for topic in few[:SAMPLED] for client in writers.get(topic, ())}) if few else {}
    for topic, (total, hot, number) in skewed.items():
        every, clients, share = max(number, known.get(topic, 0)), writers.get(topic, []), hot["records"] / total
        if every >= limit["partitions"]:
            yield Finding(
                f"partition {hot['partition']} of topic {topic} got {share:.0%} of {total:,} records; "
                f"{counted(number, 'partition')}{f' of {every}' if every > number else ''} "
                f"{'was' if number == 1 else 'were'} written to",
                {"topic": topic, "partition": hot["partition"], "client_ids": clients},
                hot["n"], where("api == Produce", topic=topic), hot["first_ns"], hot["last_ns"], 0,
                {"records": total, "share": round(share, 3), "partitions": number},
                "info" if (number < limit["partitions"] and len(clients) < 2) or hot["choices"] < limit["batches"] else None,
            )  # fmt: skip


def partitions_of(seen: Observed, clients: Collection[str]) -> dict[str, int]:
    """Topic -> its partitions, as the largest Metadata response of each of these clients has them, up to SAMPLED of these."""
    table = seen.exchanges
    chosen = table.filter(table.api == "Metadata", table.outcome == "answered", table.client_id.isin(sorted(clients)[:SAMPLED]))
    rows = seen.run(
        chosen.group_by("client_id").aggregate(
            connection=chosen.connection.argmax(chosen.response_bytes), exchange=chosen.exchange.argmax(chosen.response_bytes)
        )
    )
    found: dict[str, int] = {}
    for row in seen.prepared(rows):
        for topic in seen.message(row, "response").get("topics") or ():
            name, partitions = topic.get("name"), topic.get("partitions") or ()
            if name:
                found[name] = max(found.get(name, 0), len(partitions))
    return found


@rule(
    "down-conversion", "low", 0.6,
    needs="requests",
    looks_at="Produce v0 to v2 and Fetch v0 to v3, which carry message formats 0 and 1, with brokers that accept or offer "
    "versions of 0.11 and later. The finding is info if ApiVersions responses or requests between brokers show otherwise, or "
    "if nothing shows the broker's release and connections to it began before the capture: the versions may have been "
    "negotiated there",
    advice="Upgrade the client library. Brokers of 0.11 and later store format 2 and convert for such clients, and 4.0 refuses "
    "them (KIP-896).",
    instead="a broker older than 0.11, for which these versions are right",
    sources="KIP-98, KIP-724, KIP-896",
)  # fmt: skip
def down_conversion(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """Clients that use the old message formats with brokers that store the newer one."""
    by: dict[str, list[Row]] = {}
    for call in seen.calls:
        old = {"Produce": OLD_PRODUCE, "Fetch": OLD_FETCH}.get(call["api"] or "", -1)
        if call["api_version"] is not None and call["api_version"] <= old and call["outcome"] in ("answered", "one_way"):
            by.setdefault(call["client_id"], []).append(call)
    old_servers, new_servers = servers_by_formats(seen) if by else (set(), set())
    negotiating = {(call["server_ip"], call["server_port"]) for call in seen.calls_of(api="ApiVersions")}
    earlier = servers_before(seen) if by else set()
    for client, rows in by.items():
        used = sorted({f"{row['api']} v{row['api_version']}" for row in rows})
        count = sum(row["n"] for row in rows)
        servers = {(row["server_ip"], row["server_port"]) for row in rows}
        sure = bool(servers & new_servers)
        right = not sure and servers <= old_servers
        hidden = not negotiating.isdisjoint(servers)
        begun = earlier.isdisjoint(servers)
        yield Finding(
            f"{called(client)} uses {named(used)}: message formats 0 and 1, which "
            + ("this broker stores as well" if right else "this broker converts" if sure else "brokers since 0.11 convert"),
            {"client_id": client}, count, where(in_versions(rows), client_id=client),
            min(r["first_ns"] for r in rows), max(r["last_ns"] for r in rows), 0, {"requests": count, "versions": used},
            None if sure or (begun and not hidden and not right) else "info", 0.9 if sure else None,
            "Upgrade the brokers first: before 0.11 they take no later versions (KIP-98)." if right else None,
        )  # fmt: skip


def servers_by_formats(seen: Observed) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """Brokers before 0.11, whose ApiVersions responses offer no Produce 3 or whose cluster replicates in old versions; and
    those since 0.11, which offer it or take versions of that time."""
    old: set[tuple[str, int]] = set()
    new = {(call["server_ip"], call["server_port"]) for call in seen.calls if stores_format_2(call)}
    negotiated = [call for call in seen.calls if call["api"] == "ApiVersions" and call["error"] == "NONE"]
    for place, offered in seen.offered(negotiated).items():
        if 0 in offered:
            (old if offered[0][1] <= OLD_PRODUCE else new).add(place)
    table = seen.every
    replicas = (table.api == "Fetch") & of_brokers(table)
    among = table.filter(replicas | (table.api == "UpdateMetadata"))
    versions = seen.run(
        among.group_by("server_ip", "server_port", "api", "api_version", "outcome", "error").aggregate(n=among.count())
    )
    new |= {(row["server_ip"], row["server_port"]) for row in versions if stores_format_2(row)}
    if versions and all(row["api_version"] <= AMONG_OLD[row["api"]] for row in versions):
        old |= {(call["server_ip"], call["server_port"]) for call in seen.calls} - new
    return old, new


def servers_before(seen: Observed) -> set[tuple[str, int]]:
    """Servers of connections that had begun before the capture: earlier messages there may have shown the broker's release."""
    links = seen.every_link
    chosen = links.filter(links.began != "syn")
    return {(row["server_ip"], row["server_port"]) for row in seen.run(chosen.select(*SERVER).distinct())}


@rule(
    "producer-per-record", "medium", 0.8,
    needs="requests beginnings",
    looks_at="connections of a client and host that carry a single Produce request of one or two records",
    advice="Create one producer, keep it for the life of the process and share it among threads: it batches records and keeps "
    "its connections.",
    instead="short-lived processes, such as functions, that write once each",
    connections=20, a_second=2, records=2,
)  # fmt: skip
def producer_per_record(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that creates a producer for each record. Only connections of one host count together, since a service may have
    many instances that write once each. A connection that is closed at its request does not count: the client tries again.
    """
    if min(seen.most_calls("client_id", ("Produce",)), sum(link["n"] for link in seen.links)) < limit["connections"]:
        return
    table = seen.exchanges
    chosen = table.filter(table.api == "Produce", ~cut_short(table))
    if seen.calls_of(api="Produce", outcome="one_way"):
        from kcap.reports.findings.one_way import refused_one_way  # for captures with such requests

        chosen = chosen.anti_join(seen.once(refused_one_way), "connection")
    each = in_groups(chosen, ("client_id", "client_ip", "connection"), records=chosen.record_count.sum())
    single = (each.n == 1) & (each.records <= int(limit["records"]))
    rows = seen.run(in_groups(each, ("client_id", "client_ip"), LASTED, single=each.count(where=single)))
    accused: set[str | None] = set()
    for row in sorted(rows, key=lambda row: -row["single"]):
        rate = row["single"] / max((row["last_ns"] - row["first_ns"]) / 1e9, 1.0)
        enough = row["single"] >= max(limit["connections"], 0.8 * row["n"]) and rate >= limit["a_second"]
        if enough and row["client_id"] not in accused:
            accused.add(row["client_id"])
            yield Finding(
                f"{called(row['client_id'])} wrote on {row['single']} connections one Produce request each, {rate:.0f} a "
                "second",
                {"client_id": row["client_id"]}, row["single"], where("api == Produce", client_id=row["client_id"]),
                row["first_ns"], row["last_ns"], 0, {"connections": row["single"], "connections_a_second": round(rate, 1)},
            )  # fmt: skip


@rule(
    "recompression", "low", 0.85,
    needs="requests responses bodies",
    looks_at="compression of a batch in the Produce request, compared with that in the Fetch response that reads its offset",
    advice="Set compression.type of the topic to producer, or set that of the producers to the topic's: the broker "
    "decompresses and compresses every batch again.",
    instead="a topic that is compressed for storage on purpose",
    sources="KIP-110",
    batches=3,
)  # fmt: skip
def recompression(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Topics whose batches the broker compresses again or decompresses."""
    written: dict[str, set[str]] = {}
    for flow in seen.flows_of("Produce"):
        written.setdefault(flow["topic"], set()).add(flow["codec"] or "")
    if all(written.get(flow["topic"], set()) <= {flow["codec"] or ""} for flow in seen.flows_of("Fetch") if flow["codec"]):
        return
    parts = seen.parts
    put = parts.filter(parts.api == "Produce", parts.codec.notnull(), parts.base_offset >= 0, parts.topic.notnull())
    put = put.filter(put.topic.notin(list(seen.recreated)))  # one offset is that of two batches
    put = put.select("client_id", "topic", "partition", "base_offset", "codec", "request_first_ns", "request_last_ns")
    got = parts.filter(parts.api == "Fetch", parts.codec.notnull(), parts.fetch_offset >= 0, parts.topic.notnull())
    got = got.group_by("topic", "partition", "fetch_offset").aggregate(stored=got.codec.min(), newest=got.magic.max())
    got = got.filter(got.newest >= 2)  # older formats are what the broker made of it for an old client
    both = put.join(got, [put.topic == got.topic, put.partition == got.partition, put.base_offset == got.fetch_offset]).select(
        "client_id", put.topic, "codec", "stored", "request_first_ns", "request_last_ns"
    )
    changed = both.filter(both.codec != both.stored)
    for row in seen.run(in_groups(changed, ("client_id", "topic", "codec", "stored"))):
        if row["n"] >= limit["batches"]:
            yield Finding(
                f"batches of {called(row['client_id'])} for topic {row['topic']} were written with {row['codec']} and are read "
                f"with {row['stored']}: the broker compresses them anew",
                {"client_id": row["client_id"], "topic": row["topic"]}, row["n"],
                where("api == Produce", client_id=row["client_id"], topic=row["topic"]), row["first_ns"], row["last_ns"], 0,
                {"batches": row["n"], "written": row["codec"], "stored": row["stored"]},
            )  # fmt: skip


@rule(
    "sequence-errors", "high", 0.85,
    needs="responses bodies",
    looks_at="OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID responses to Produce",
    advice="See whether records were lost before: a batch may have expired (delivery.timeout.ms) or the log may have been "
    "truncated. Keep enable.idempotence, with max.in.flight.requests.per.connection at 5 or below.",
    instead="a producer that was idle for longer than producer.id.expiration.ms (transactional.id.expiration.ms on brokers "
    "before 3.4) or the retention of its topic",
    sources="KIP-98, KIP-360, KIP-854",
    errors=2,
)  # fmt: skip
def sequence_errors(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Batches of an idempotent producer that arrive twice, out of order, or without those before them.

    If a broker refuses a batch, the batches sent behind it are out of order until the producer sends the refused one again:
    that is info. If the broker meanwhile accepts one of them, because it has no earlier batch of this producer, it no longer
    accepts the batches before that one. Behind a batch without a response, which the producer may have given up, it is low:
    another rule says why there was none.
    """
    names = ["OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"]
    rows = sorted(seen.partition_errors(names, ("client_id", "topic", "error")), key=lambda row: -row["n"])
    for at, row in enumerate(rows):
        clause, advice, severity = "", None, None
        if row["error"] == names[0] and at < SAMPLED:
            from kcap.reports.findings.sequences import cause_of

            clause, advice, severity = cause_of(seen, row, names)
        if severity != "info" and row["n"] < limit["errors"]:
            severity = "low"
        yield Finding(
            f"{counted(row['n'], 'batch', 'batches')} of {called(row['client_id'])} for topic {row['topic']} got "
            f"{row['error']}{clause}",
            {"client_id": row["client_id"], "topic": row["topic"]}, row["n"],
            where("api == Produce", f"error == {row['error']}", client_id=row["client_id"], topic=row["topic"]),
            row["first_ns"], row["last_ns"], row["latency_ns"] or 0, {"errors": row["n"], "partitions": row["partitions"]},
            severity, advice=advice,
        )  # fmt: skip
