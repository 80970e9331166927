"""Scenes of producers: batches, compression, refused records, partitions."""

from base64 import b64encode
from random import Random
from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, START, Row, exchange, many, observed


def produced(connection: str, client: str, count: int, step: float = 0.1, **more: Any) -> tuple[list[Row], list[Row]]:
    """Produce requests, each with its row of partitions; values that are called get the number of the request from 0 on."""
    part = {"connection": connection, "api_key": 0, "topic": "t", "partition": 0, "error": "NONE", "batches": 1, "records": 5}
    rows = [exchange(connection, at + 1, "Produce", 1 + at * step, client_id=client) for at in range(count)]
    values = [{name: value(at) if callable(value) else value for name, value in more.items()} for at in range(count)]
    return rows, [part | {"exchange": at + 1} | one for at, one in enumerate(values)]


def tables(*some: tuple[list[Row], list[Row]], **more: Any) -> Observed:
    """The tables of these."""
    return observed([row for rows, _ in some for row in rows], [part for _, parts in some for part in parts], **more)


def single_records() -> Observed:
    """240 requests in 2 s with 1.05 records a batch; another producer sends as many with more records, one too few, and two
    send a record again and again that gets an error or no response."""
    rows = [row | {"record_count": 2 if at < 12 else 1, "batch_count": 1} for at, row in enumerate(many(240, 2 / 239))]
    full = many(240, 2 / 239, connection="C2", client_id="full", record_count=8, batch_count=5)
    few = many(199, 0.005, connection="C3", client_id="few", record_count=1, batch_count=1)
    bad = many(240, 2 / 239, connection="C4", client_id="refused", record_count=1, batch_count=1, error="INVALID_RECORD")
    shut = many(240, 2 / 239, connection="C5", client_id="closed", record_count=1, batch_count=1, outcome="unanswered",
                reason="fin")  # fmt: skip
    return observed([*rows, *full, *few, *bad, *shut])


def some_joined() -> Observed:
    """240 requests in 2 s with 1.5 records a batch."""
    return observed(many(240, 2 / 239, record_count=3, batch_count=2))


def uncompressed_beside() -> Observed:
    """One producer sends 200 kB in batches of 2 kB uncompressed to a topic to which two others write compressed."""
    return tables(
        produced("C1", "app", 100, codec="none", bytes=2000), produced("C2", "b", 3, codec="lz4", bytes=9000),
        produced("C3", "a", 3, codec="zstd", bytes=9000),
    )  # fmt: skip


def uncompressed_alone() -> Observed:
    """The same without others: worth knowing; another topic has smaller batches."""
    return tables(produced("C1", "app", 100, codec="none", bytes=2000),
                  produced("C2", "b", 100, codec="none", bytes=1999, topic="u"))  # fmt: skip


def samples() -> Observed:
    """Of the batches of a producer that sends uncompressed beside another three tenths compress, as a sample shows."""
    text = b64encode(Random(1).randbytes(34_850) + bytes(15_150)).decode()
    said = {("C1", 1, "request"): {"topicData": [{"partitionData": [{"records": None}, {"records": text}]}]}}
    some = produced("C1", "app", 60, codec="none", bytes=lambda at: 2500 if at else 2600)
    return tables(some, produced("C2", "b", 3, codec="lz4", bytes=9000), messages=said)


def too_few_replicas() -> Observed:
    """Three writes of two clients to two partitions of one topic fail, and two to another topic."""
    error = {"error": "NOT_ENOUGH_REPLICAS"}
    return tables(
        produced("C1", "app", 2, partition=lambda at: at, **error), produced("C2", "b", 1, **error),
        produced("C3", "c", 2, 2.0, topic="u", error="NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        produced("C4", "d", 1, topic="v", **error),
    )  # fmt: skip


def stamped(*offs: float) -> Any:
    """Timestamps so many seconds behind the time of the request, by turns; requests are 0.1 s apart."""
    return lambda at: START // 1_000_000 + 1000 + at * 100 + round(offs[at % len(offs)] * 1000)


def wrong_clock() -> Observed:
    """Timestamps of one producer are 600 to 630 s ahead, those of another right, of a third all over the place."""
    return tables(
        produced("C1", "app", 12, max_timestamp_ms=stamped(600, 630)), produced("C2", "b", 12, max_timestamp_ms=stamped(0)),
        produced("C3", "c", 12, max_timestamp_ms=stamped(-900, 0, 900)),
    )  # fmt: skip


def wrong_clock_of_the_capture() -> Observed:
    """Timestamps of both producers are behind, by 600 and 640 s."""
    return tables(produced("C1", "app", 12, max_timestamp_ms=stamped(-600)),
                  produced("C2", "b", 10, max_timestamp_ms=stamped(-640)))  # fmt: skip


def slow_timestamps() -> Observed:
    """Timestamps of one producer are 600 s behind and go on half as quickly as the time of its requests."""
    return tables(produced("C1", "app", 11, max_timestamp_ms=lambda at: START // 1_000_000 + 1000 + at * 50 - 600_000),
                  produced("C2", "b", 12, max_timestamp_ms=stamped(0)))  # fmt: skip


def refused_timestamps() -> Observed:
    """The broker refuses batches of a producer of which most are 600 s ahead; those of another one are right."""
    error = {"error": "INVALID_TIMESTAMP"}
    return tables(produced("C1", "app", 12, max_timestamp_ms=stamped(0, 600, 600), **error),
                  produced("C2", "b", 12, max_timestamp_ms=stamped(0)))  # fmt: skip


def skew() -> Observed:
    """Of 1000 records 800 go to one of three partitions, in 20 batches of 64 KiB, so that a sticky partitioner has chosen it 20
    times; another topic has as much in fewer batches."""
    return tables(
        produced("C1", "app", 20, partition=1, records=40, bytes=65_536),
        produced("C2", "b", 4, partition=lambda at: 2 * (at % 2), records=50),
        produced("C3", "c", 14, topic="u", partition=1, records=100),
        produced("C4", "c", 2, topic="u", partition=lambda at: 2 * at, records=50),
    )  # fmt: skip


def sticky() -> Observed:
    """One of three partitions gets 800 of 1000 records, in 20 batches and less than what a sticky partitioner writes to one."""
    return tables(
        produced("C1", "app", 20, partition=1, records=40, bytes=3200),
        produced("C2", "b", 4, partition=lambda at: 2 * (at % 2), records=50),
    )


def producers_made_anew() -> Observed:
    """24 connections in 6 s carry one Produce request of a record or two each; six carry more."""
    rows, links = [], []
    for at in range(30):
        begin = START + at * 6_000_000_000 // 29
        rows += [
            exchange(f"C{at}", 1 + more, "Produce", at * 6 / 29, record_count=1 + at % 2) for more in range(1 + (at % 5 == 4))
        ]
        links.append(CONNECTION | {"connection": f"C{at}", "first_ns": begin, "last_ns": begin + MS})
    return observed(rows, connections=links)


def compressed_anew() -> Observed:
    """Four batches are written with lz4 and read with zstd, one as it was written."""
    puts = produced("C1", "app", 5, codec="lz4", base_offset=lambda at: at * 5)
    gets = [exchange("C2", at + 1, "Fetch", 5 + at) for at in range(5)]
    parts = [{"connection": "C2", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 0, "error": "NONE", "magic": 2,
              "codec": "zstd" if at else "lz4", "fetch_offset": at * 5} for at in range(5)]  # fmt: skip
    return tables(puts, (gets, parts))


def sequences() -> Observed:
    """Three batches of a client for two partitions out of order, one of another."""
    error = {"error": "OUT_OF_ORDER_SEQUENCE_NUMBER"}
    return tables(produced("C1", "app", 3, partition=lambda at: at % 2, **error), produced("C2", "b", 1, **error))


def behind_too_large() -> Observed:
    """Three batches out of order behind one that was refused as too large."""

    def error(at: int) -> str:
        return "OUT_OF_ORDER_SEQUENCE_NUMBER" if at else "MESSAGE_TOO_LARGE"

    return tables(produced("C1", "app", 4, records=7, error=error))


def after_too_large() -> Observed:
    """A batch of sequence numbers 0 to 6 is refused as too large, the next one taken, and number 0 is sent twice more."""
    errors = ("MESSAGE_TOO_LARGE", "NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    return tables(produced("C1", "app", 4, records=7, error=errors.__getitem__, base_sequence=(0, 7, 0, 0).__getitem__))


def behind_unanswered() -> Observed:
    """A batch of sequence numbers 0 to 6 has no response; three batches behind it are out of order."""
    rows, parts = produced("C1", "app", 4, records=7, error="OUT_OF_ORDER_SEQUENCE_NUMBER",
                           base_sequence=lambda at: 7 * at)  # fmt: skip
    rows[0] = exchange("C1", 1, "Produce", 1, None, client_id="app", reason="fin", age_ns=500 * MS)
    return observed(rows, [parts[0] | {"error": None}, *parts[1:]])


def written_twice() -> Observed:
    """Three Produce requests of a producer without idempotence stay without a response until the client closes 0.5 s later,
    and a later one succeeds; of one that ends nothing follows."""
    rows, parts = [], []
    for client, good in (("app", 9.0), ("ended", 0.5)):
        rows += [exchange(client, at + 2, "Produce", 1 + at, None, client_id=client, reason="fin", age_ns=500 * MS,
                          request_last_ns=START + (1 + at) * 1000 * MS, acks=1) for at in range(3)]  # fmt: skip
        rows.append(exchange(client, 9, "Produce", good, client_id=client, acks=1))
        parts += [{"connection": client, "exchange": number, "api_key": 0, "topic": "t", "partition": 0, "magic": 2,
                   "error": "NONE" if number == 9 else None, "records": number} for number in (2, 3, 4, 9)]  # fmt: skip
    return observed(rows, parts)


SCENES = [
    Scene("tiny-batches", single_records, """
        medium 0.85: client app sent 120 Produce requests a second with 1.1 records a batch. Seen 240 times from 0 s to 2 s,
        0.24 s lost. Who: client_id app. Filter: client_id == "app" and api == Produce. Evidence: requests 240, records 252,
        records_a_batch 1.05, requests_a_second 120.
        """, least={"requests": 240, "a_second": 120.0}, most={"records": 1.05,
                                                                                               "alone": 1.05}),
    Scene("tiny-batches", some_joined, """
        info 0.85: client app sent 120 Produce requests a second with 1.5 records a batch. Seen 240 times from 0 s to 2 s, 0.24
        s lost. Who: client_id app. Filter: client_id == "app" and api == Produce. Evidence: requests 240, records 720,
        records_a_batch 1.5, requests_a_second 120.
        """, kind="joined", most={"records": 1.5}),
    Scene("compression-off", uncompressed_beside, """
        medium 0.8: client app sent 200 kB to t without compression; a, b compress the same topic. Seen 100 times from 1 s to
        10.9 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and api == Produce. Evidence:
        bytes 200000, batches 100, others ['a', 'b'].
        """, kind="beside others", least={"bytes": 200_000, "batch_beside": 2000}),
    Scene("compression-off", uncompressed_alone, """
        info 0.5: client app sent 200 kB to t without compression. Seen 100 times from 1 s to 10.9 s, 0 s lost. Who: client_id
        app, topic t. Filter: client_id == "app" and topic == "t" and api == Produce. Evidence: bytes 200000, batches 100,
        others [].
        """, kind="alone", least={"bytes": 200_000, "batch": 2000}),
    Scene("compression-off", samples, """
        medium 0.8: client app sent 150 kB to t without compression; b compresses the same topic; a sample compresses by 30%.
        Seen 60 times from 1 s to 6.9 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and
        api == Produce. Evidence: bytes 150100, batches 60, others ['b'], saved 0.3.
        """, kind="sample", least={"saved": 0.3}),
    Scene("not-enough-replicas", too_few_replicas, """
        critical 0.95: 2 writes to 1 partition of topic u failed: not enough replicas in sync. Seen 2 times from 1 s to
        3 s, 2 s lost. Who: topic u, client_ids ['c']. Filter: topic == "u" and error in {NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND}. Evidence: failed 2, partitions 1.
        critical 0.95: 3 writes to 2 partitions of topic t failed: not enough replicas in sync. Seen 3 times from 1 s to
        1.1 s, 0.1 s lost. Who: topic t, client_ids ['app', 'b']. Filter: topic == "t" and error in
        {NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND}. Evidence: failed 3, partitions 2.
        """, least={"failures": 2}),
    Scene("client-clock-skew", wrong_clock, """
        medium 0.7: timestamps of client app are 10m 15s ahead of the capture's clock. Seen 12 times from 1 s to 2.1 s, 0 s
        lost. Who: client_id app, topic t. Filter: client_id == "app" and api == Produce. Evidence: off_ms 615000, batches 12,
        refused 0.
        """, least={"minutes": 10.25, "batches": 12}, most={"spread_seconds": 30.0}),
    Scene("client-clock-skew", wrong_clock_of_the_capture, """
        info 0.7: timestamps of client app are 10m 0s behind the capture's clock; those of all producers are, on one host: it is
        its clock or the capture's. Seen 12
        times from 1 s to 2.1 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app" and
        api == Produce. Evidence: off_ms -600000, batches 12, refused 0.
        info 0.7: timestamps of client b are 10m 40s behind the capture's clock; those of all producers are, on one host: it is
        its clock or the capture's. Seen 10
        times from 1 s to 1.9 s, 0 s lost. Who: client_id b, topic t. Filter: client_id == "b" and api
        == Produce. Evidence: off_ms -640000, batches 10, refused 0.
        """, kind="all", least={"minutes": 10.0, "batches": 10},
          most={"spread_seconds": 40.0}),
    Scene("client-clock-skew", slow_timestamps, """
        medium 0.7: timestamps of client app are 10m 0s behind the capture's clock. Seen 11 times from 1 s to 2 s, 0 s lost.
        Who: client_id app, topic t. Filter: client_id == "app" and api == Produce. Evidence: off_ms -600250, batches 11,
        refused 0.
        """, kind="slow", least={"moved": 0.5}),
    Scene("client-clock-skew", refused_timestamps, """
        high 0.95: timestamps of client app are 10m 0s ahead of the capture's clock; the broker refused 12 batches
        (INVALID_TIMESTAMP). Seen 12 times from 1 s to 2.1 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app"
        and api == Produce. Evidence: off_ms 600000, batches 12, refused 12.
        """, kind="refused"),
    Scene("skewed-partitions", skew, """
        medium 0.85: partition 1 of topic t got 80% of 1,000 records; 3 partitions were written to. Seen 20 times from 1 s to
        2.9 s, 0 s lost. Who: topic t, partition 1, client_ids ['app', 'b']. Filter: topic == "t" and api == Produce. Evidence:
        records 1000, share 0.8, partitions 3.
        """, least={"records": 1000, "share": 0.8, "partitions": 3, "batches": 20}),
    Scene("skewed-partitions", sticky, """
        info 0.85: partition 1 of topic t got 80% of 1,000 records; 3 partitions were written to. Seen 20 times from 1 s to
        2.9 s, 0 s lost. Who: topic t, partition 1, client_ids ['app', 'b']. Filter: topic == "t" and api == Produce. Evidence:
        records 1000, share 0.8, partitions 3.
        """, kind="a partition of a sticky partitioner"),
    Scene("producer-per-record", producers_made_anew, """
        medium 0.8: client app wrote on 24 connections one Produce request each, 4 a second. Seen 24 times from 0 s to 6 s, 0 s
        lost. Who: client_id app. Filter: client_id == "app" and api == Produce. Evidence: connections 24, connections_a_second
        4.0.
        """, least={"connections": 24, "a_second": 4.0}, most={"records": 2}),
    Scene("recompression", compressed_anew, """
        low 0.85: batches of client app for topic t were written with lz4 and are read with zstd: the broker compresses them
        anew. Seen 4 times from 1.1 s to 1.4 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic ==
        "t" and api == Produce. Evidence: batches 4, written lz4, stored zstd.
        """, least={"batches": 4}),
    Scene("sequence-errors", sequences, """
        high 0.85: 3 batches of client app for topic t got OUT_OF_ORDER_SEQUENCE_NUMBER. Seen 3 times from 1 s to 1.2 s,
        0.003 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and api == Produce and
        error == OUT_OF_ORDER_SEQUENCE_NUMBER. Evidence: errors 3, partitions 2.
        low 0.85: 1 batch of client b for topic t got OUT_OF_ORDER_SEQUENCE_NUMBER. Seen once from 1 s to 1 s, 0.001 s
        lost. Who: client_id b, topic t. Filter: client_id == "b" and topic == "t" and api == Produce and error ==
        OUT_OF_ORDER_SEQUENCE_NUMBER. Evidence: errors 1, partitions 1.
        """, least={"errors": 3}),
    Scene("sequence-errors", behind_too_large, """
        info 0.85: 3 batches of client app for topic t got OUT_OF_ORDER_SEQUENCE_NUMBER behind batches that got
        MESSAGE_TOO_LARGE. Seen 3 times from 1.1 s to 1.3 s, 0.003 s lost. Who: client_id app, topic t. Filter: client_id ==
        "app" and topic == "t" and api == Produce and error == OUT_OF_ORDER_SEQUENCE_NUMBER. Evidence: errors 3, partitions 1.
        """, kind="behind a refused batch"),
    Scene("sequence-errors", after_too_large, """
        high 0.85: 2 batches of client app for topic t got OUT_OF_ORDER_SEQUENCE_NUMBER after batches that got
        MESSAGE_TOO_LARGE. Seen 2 times from 1.2 s to 1.3 s, 0.002 s lost. Who: client_id app, topic t. Filter: client_id ==
        "app" and topic == "t" and api == Produce and error == OUT_OF_ORDER_SEQUENCE_NUMBER. Evidence: errors 2, partitions 1.
        """, kind="after a refused batch", least={"errors": 2}),
    Scene("sequence-errors", behind_unanswered, """
        low 0.85: 3 batches of client app for topic t got OUT_OF_ORDER_SEQUENCE_NUMBER behind batches without a response. Seen 3
        times from 1.1 s to 1.3 s, 0.003 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and
        api == Produce and error == OUT_OF_ORDER_SEQUENCE_NUMBER. Evidence: errors 3, partitions 1.
        """, kind="behind a batch without a response"),
    Scene("retries-duplicate", written_twice, """
        medium 0.7: 3 batches of client app for topic t had no known result when others followed; without idempotence they may
        be in the log twice. Seen 3 times from 1 s to 3 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app"
        and topic == "t" and api == Produce. Evidence: batches 3, records 9.
        """, least={"batches": 3, "milliseconds": 500.0}),
]  # fmt: skip
