"""Shows traffic by topic, partition, group and client as sheets. Free of widgets.

In: results of the reports topics and clients. Out: sheets. Law: each count of exchanges drills down to as many; counts of
records and bytes drill down to the exchanges that carried them.
"""

from collections.abc import Sequence
from typing import Final

from kcap.reports import drill_down
from kcap.reports.common_columns import bold, counted, named, sized
from kcap.reports.definition import Key, Row, group_name
from kcap.reports.text import TextColumn, count, left_out, number, size, words
from kcap.tui.views.grouping import keyed, over_time
from kcap.tui.views.sheet import Bars, Line, Sheet, paragraph

PRODUCE: Final = "api == Produce"
FETCH: Final = "(api == Fetch || api == ShareFetch)"


def topics(result: Row, keys: Sequence[Key]) -> Sheet:
    """Topics by name, or their partitions."""
    own = [key for key in keys if key.name != "partition"]
    deep = len(own) < len(keys)

    def group(row: Row) -> str:
        return drill_down.group(own, row)

    def writes(row: Row) -> str:
        return drill_down.every(PRODUCE, group(row))

    def reads(row: Row) -> str:
        return drill_down.every(FETCH, group(row))

    course = [
        *over_time(result["rows"], keys, "bytes_in", "bytes produced over time", size, PRODUCE),
        *over_time(result["rows"], keys, "bytes_out", "bytes fetched over time", size, FETCH),
    ]
    fields = [
        *keyed(keys),
        counted("records_in", "written", down=writes), sized("bytes_in", "bytes", 2, down=writes),
        counted("records_out", "read", down=reads), sized("bytes_out", "bytes", 2, down=reads),
        *([sized("replica_bytes_out", "to replicas", 5)] if any(row["replica_bytes_out"] for row in result["rows"]) else []),
        counted("lag_max", "lag", 1, tone=lambda row: "care" if row["lag_max"] else "", down=reads),
        named("produce_clients", "writers", 4, down=writes), named("consumers", "readers", 5, down=reads),
        named("groups", rank=6), counted("errors", rank=3, zero=False, tone=lambda _row: "bad",
                                         down=lambda row: drill_down.every("error_count > 0", group(row))),
        TextColumn("records/batch", lambda row: number(row["records_per_batch_in"]), rank=8, key=lambda row:
              row["records_per_batch_in"]),
        sized("bytes_per_batch_in", "batch", 9), named("codecs", "codec", 7), named("magics", "format", 10),
        named("timestamp_types", "times", 11),
        counted("produce_requests", "produces", 12, zero=False, down=writes,
                counts=None if deep else lambda row: row["produce_requests"]),
        counted("fetch_requests", "fetches", 13, zero=False, down=reads,
                counts=None if deep else lambda row: row["fetch_requests"]),
    ]  # fmt: skip
    return Sheet(
        "topics", fields, result["rows"], group, "no Produce or Fetch of a topic", foot=left_out(result["left_out"]),
        detail=detail, charts=lambda row: [both_ways(row, writes(row), reads(row)), *course],
    )  # fmt: skip


def both_ways(row: Row, writes: str, reads: str) -> Bars:
    """Bytes in both directions."""
    values = [row["bytes_in"], row["bytes_out"]]
    return Bars("bytes on the wire (compressed)", ["written", "read"], values, [size(value) for value in values],
                [writes, reads])  # fmt: skip


def detail(row: Row, width: int) -> list[Line]:
    """One topic in words."""
    out: list[Line] = [[(words(row.get("topic"))[:width], "bold")]]

    def add(head: str, text: str, tone: str = "") -> None:
        out.extend(paragraph(f"{head}: {text}", width, tone, "  "))

    if row["produce_clients"] or row["bytes_in"]:
        text = f"{words(row['produce_clients']) or 'clients without a client id'}; {count(row['records_in'], 'record')} in "
        text += f"{count(row['batches_in'], 'batch', 'batches')} of {count(row['produce_requests'], 'request')}"
        add("produced by", text + (", idempotent" if row["idempotent"] else ""))
    if row["fetch_clients"] or row["bytes_out"]:
        add("fetched by", f"{words(row['fetch_clients']) or 'clients without a client id'}; "
            f"{count(row['records_out'], 'record')} in {count(row['fetch_requests'], 'request')}"
            + (f", {row['replica_records_out']:,} of them by replicas" if row["replica_records_out"] else ""))  # fmt: skip
    if row["groups"]:
        add("groups", words(row["groups"]))
    if row["codecs"]:
        add("batches", f"{words(row['codecs'])}, format {words(row['magics'])}, {words(row['timestamp_types'])}")
    if row["lag_max"] is not None:
        add("max lag", count(row["lag_max"], "record"), "care" if row["lag_max"] else "")
    if row["bad_checksums"]:
        add("CRC errors", number(row["bad_checksums"]), "bad")
    low, high = row["behind_ms_min"], row["behind_ms_max"]
    if low is not None and high is not None:
        add("record age at the request", f"{low:,} to {high:,} ms")
    return [*out, [("", "")]]


def nothing(result: Row, why: str) -> str:
    """Why there are no rows: names of several clusters cannot be combined."""
    return why if result["clusters"] < 2 else f"{result['clusters']} clusters: filter by the cluster_id of one"


def hot(result: Row) -> Sheet:
    """The busiest partitions."""

    def group(row: Row) -> str:
        return drill_down.topic(row["topic"])

    rows, none = result["partitions"], nothing(result, "no Produce or Fetch of a partition")
    fields = [
        named("topic", tone=bold), named("partition", right=True), counted("records_in", "written"), sized("bytes_in", "bytes"),
        counted("records_out", "read"), sized("bytes_out", "bytes"), counted("high_watermark", "end", 2),
        counted("lag_max", "lag", 1),
    ]  # fmt: skip
    bars = Bars(
        "bytes produced and fetched", [f"{words(row['topic'])}-{row['partition']}" for row in rows],
        [row["bytes_in"] + row["bytes_out"] for row in rows], [size(row["bytes_in"] + row["bytes_out"]) for row in rows],
        [group(row) for row in rows],
    )  # fmt: skip
    return Sheet("busiest partitions", fields, rows, group, none,
                 charts=lambda _row: [bars])  # fmt: skip


def lags(result: Row) -> Sheet:
    """Groups, by their committed offsets."""

    def group(row: Row) -> str:
        return drill_down.every(drill_down.equals("group_id", row["group_id"]), drill_down.topic(row["topic"]))

    fields = [
        named("group_id", "group", tone=bold), named("topic"), named("partition", right=True),
        counted("lag", tone=lambda row: "care" if row["lag"] else "good"), counted("committed_offset", "committed"),
        counted("high_watermark", "end", 1),
    ]  # fmt: skip
    return Sheet("consumer group lag", fields, result["lags"], group, nothing(result, "no offset commits"),
                 note="high watermark in responses minus the committed offset")  # fmt: skip


def clients(result: Row, keys: Sequence[Key]) -> Sheet:
    """The activity of each client."""

    def group(row: Row) -> str:
        return drill_down.group(keys, row)

    def some(name: str, head: str, rank: int, leads: str, tone: str = "") -> TextColumn:
        return counted(name, head, rank, zero=False, tone=lambda _row: tone, counts=lambda row: row[name],
                       down=lambda row: drill_down.every(group(row), leads))  # fmt: skip

    fields = [
        *keyed(keys),
        TextColumn("software", lambda row: " ".join(words(row[name]) for name in ("software_name", "software_version")
                                               if row[name] is not None), right=False, rank=4),
        counted("connections", "conns", 7),
        counted("requests", counts=lambda row: row["requests"],
                down=lambda row: drill_down.every(group(row), "outcome != orphan")),
        *([counted("broker_requests", "by brokers", 6, zero=False)] if any(row["broker_requests"] for row in result["rows"])
          else []),
        some("errors", "errors", 1, drill_down.FAILED, "bad"), some("throttled", "throttled", 5, drill_down.THROTTLED, "care"),
        some("unanswered", "unansw.", 6, drill_down.UNANSWERED, "care"),
        counted("records_in", "wrote", 3, zero=False, down=lambda row: drill_down.every(group(row), PRODUCE)),
        counted("records_out", "read", 3, zero=False, down=lambda row: drill_down.every(group(row), FETCH)),
        named("topics_in", "writes", 9), named("topics_out", "reads", 9), named("groups", rank=8),
        named("principals", "users", 10), named("brokers", rank=11),
    ]  # fmt: skip
    return Sheet(
        "clients", fields, result["rows"], group, "no clients", foot=left_out(result["left_out"]),
        detail=lambda row, width: client_detail(row, keys, width),
    )  # fmt: skip


def client_detail(row: Row, keys: Sequence[Key], width: int) -> list[Line]:
    """One client in words."""
    out: list[Line] = [[(group_name(row, keys)[:width], "bold")]]
    lists = {
        "writes": "topics_in", "reads": "topics_out", "groups": "groups", "users": "principals", "brokers": "brokers",
        "transactions": "transactional_ids", "SASL": "sasl_mechanisms", "compresses with": "codecs_in", "uses": "apis",
    }  # fmt: skip
    for head, name in lists.items():
        if row[name]:
            out += paragraph(f"{head}: {words(row[name])}", width, indent="  ")
    out.append([(f"request bytes {size(row['request_bytes'])}, response bytes {size(row['response_bytes'])}"[:width], "dim")])
    return out
