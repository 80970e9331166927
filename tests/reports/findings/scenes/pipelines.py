"""Scenes of requests in flight, large messages and polls."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, many, observed


def full_pipeline() -> Observed:
    """Of 110 Produce requests of one producer 66 have six or more in flight; another one sends 99."""
    rows = many(110, 0.01, latency=0.2, queue_ns=30 * MS)
    rows = [row | {"in_flight": 6 + at % 2 if at < 66 else 4} for at, row in enumerate(rows)]
    rows[0] |= {"queue_ns": None}
    lone = [exchange("C1", 200, "Produce", 9, None, in_flight=9), exchange("C1", 201, "Fetch", 9, in_flight=9)]
    other = many(99, 0.01, connection="C2", client_id="other", in_flight=9)
    return observed([*rows, *lone, *other])


def large_messages() -> Observed:
    """Three Fetch responses and three Produce requests that take long, beside smaller and quicker ones."""
    sizes = ((600_000, 700), (900_000, 1200), (500_000, 900), (499_999, 5000), (9_000_000, 499))
    down = [exchange("C1", at + 1, "Fetch", at, response_bytes=size, request_bytes=70, transfer_ns=took * MS,
                     request_transfer_ns=1 * MS) for at, (size, took) in enumerate(sizes)]  # fmt: skip
    up = [exchange("C2", at + 1, "Produce", 2 * at, client_id="writer", request_bytes=500_000, response_bytes=70,
                   request_transfer_ns=(800 + at) * MS, transfer_ns=2 * MS) for at in range(3)]  # fmt: skip
    return observed([*down, *up])


def hasty_polls() -> Observed:
    """Of 300 Fetch requests in 4 s 240 wait for no more than 20 ms and bring nothing."""
    rows = many(300, 4 / 299, "Fetch", max_wait_ms=20, min_bytes=1, record_count=0)
    waits = {"max_wait_ms": 500, "record_count": 7}
    return observed([row | waits if at % 5 == 0 else row for at, row in enumerate(rows)])


def polls_without_least_bytes() -> Observed:
    """Fetch requests of min_bytes 0 get their response at once, however long they may wait."""
    return observed(many(260, 0.01, "Fetch", max_wait_ms=500, min_bytes=0, record_count=0))


def held_records() -> Observed:
    """Four Fetch responses with records waited for min_bytes; others had none, or had enough of them."""
    waits = {"max_wait_ms": 5000, "min_bytes": 100_000, "record_count": 3}
    held = [exchange("C1", at + 1, "Fetch", 6 * at, 4.5 + at / 10, **waits) for at in range(4)]
    others = [
        exchange("C1", 11, "Fetch", 40, 4.499, **waits), exchange("C1", 12, "Fetch", 46, 4.9, **waits | {"record_count": 0}),
        exchange("C1", 13, "Fetch", 52, 4.9, **waits | {"min_bytes": 1}),
        exchange("C1", 14, "Fetch", 58, 4.9, **waits, error="OFFSET_OUT_OF_RANGE"),
    ]  # fmt: skip
    return observed([*held, *others])


def closed_behind(after: float, *, name: str = "app", at: float = 1, wait_ms: int = 500) -> tuple[Row, Row]:
    """A Fetch without a response and its connection, which the client closes `after` seconds behind it."""
    begun = START + int((at - 0.1) * SECOND)
    closed = START + int((at + after) * SECOND)
    link = CONNECTION | {"connection": f"{name}{at}", "client_id": name, "first_ns": begun, "last_ns": closed,
                         "closed_ns": closed}  # fmt: skip
    return exchange(f"{name}{at}", 2, "Fetch", at, None, client_id=name, max_wait_ms=wait_ms), link


def own_time_outs() -> Observed:
    """A client closes five connections 550 to 552 ms behind a Fetch that may wait 500 ms, one sooner and one later; another
    does so four times, another each time after another time, and another opens no other connection soon."""
    some = [closed_behind(after, at=1.2 * at) for at, after in enumerate((0.55, 0.552, 0.3, 0.551, 0.55, 0.551, 0.59))]
    some += [closed_behind(0.55, name="four", at=float(at)) for at in range(4)]
    some += [closed_behind(0.3 + at / 30, name="various", at=float(at)) for at in range(8)]
    some += [closed_behind(0.55, name="rests", at=5.0 * at) for at in range(8)]
    for name, at in (("app", 8.4), ("four", 4.0), ("various", 8.0)):
        some.append(closed_behind(9, name=name, at=at))
    return observed([row for row, _ in some], connections=[link for _, link in some])


def polls_cut() -> Observed:
    """The other side closes six connections behind a Fetch that may wait 8 s, three of them 3 s behind it; of another client
    four."""
    some: list[tuple[Row, Row]] = []
    for name, times in (("app", (3.0, 5.5, 3.0, 4.0, 6.0, 3.0)), ("four", (3.0, 3.0, 3.0, 3.0))):
        for at, after in enumerate(times):
            row, link = closed_behind(after, name=name, at=10.0 * at, wait_ms=8000)
            cut = {"reason": "fin", "age_ns": int(after * SECOND), "request_first_packet": len(some)}
            some.append((row | cut, link | {"closed_by": "server"}))
    return observed([row for row, _ in some], connections=[link for _, link in some])


def standing_offset() -> Observed:
    """The last stable offset of two partitions stands for 8 s and 12 s; that of another is at the high watermark."""
    rows: list[Row] = []
    parts: list[Row] = []
    for partition, (count, step, stable, high) in enumerate(((5, 2.0, 50, 100), (7, 2.0, 70, 200), (9, 2.0, 90, 90))):
        for at in range(count):
            number = len(rows) + 1
            rows.append(exchange(f"C{partition}", number, "Fetch", 1 + at * step))
            parts.append(
                {"connection": f"C{partition}", "exchange": number, "api_key": 1, "topic": "t", "partition": partition,
                 "error": "NONE", "high_watermark": high + (at if partition < 2 else 0), "last_stable_offset": stable}
            )  # fmt: skip
    return observed(rows, parts)


SCENES = [
    Scene("in-flight-saturated", full_pipeline, """
        info 0.7: client app had 5 or more Produce requests in flight to 10.0.0.1:9092 in 66 of 110 cases. Seen 66 times from 0
        s to 1.09 s, 3.27 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and server_ip ==
        "10.0.0.1" and api == Produce and in_flight >= 5. Evidence: requests 110, full 66, queue_ns 3270000000.
        """, least={"requests": 110, "share": 0.6, "in_flight": 6}),
    Scene("large-message-stall", large_messages, """
        medium 0.75: 3 large Fetch messages of client app took up to 1.2 s to pass (0.9 MB at most). Seen 3 times from 0 s to 2
        s, 2.803 s lost. Who: client_id app. Filter: client_id == "app" and api == Fetch. Evidence: messages 3, longest_ns
        1200000000, bytes 900000.
        medium 0.75: 3 large Produce messages of client writer took up to 802 ms to pass (0.5 MB at most). Seen 3 times from 0 s
        to 4 s, 2.409 s lost. Who: client_id writer. Filter: client_id == "writer" and api == Produce. Evidence: messages 3,
        longest_ns 802000000, bytes 500000.
        """, least={"messages": 3, "kilobytes": 500.0, "milliseconds": 700.0}),
    Scene("long-poll-misconfigured", hasty_polls, """
        low 0.75: client app sent 240 Fetch requests, 60 a second, that brought no record. Seen 240 times from 0 s to 4 s, 0 s
        lost. Who: client_id app. Filter: client_id == "app" and api == Fetch. Evidence: fetches 300, empty 240, held_back 0,
        max_wait_ms 500.
        """, kind="hasty", least={"fetches": 240, "a_second": 60.0, "empty": 0.8},
          most={"wait_ms": 20}),
    Scene("long-poll-misconfigured", polls_without_least_bytes, """
        low 0.75: client app sent 260 Fetch requests, 100 a second, that brought no record. Seen 260 times from 0 s to 2.59 s, 0
        s lost. Who: client_id app. Filter: client_id == "app" and api == Fetch. Evidence: fetches 260, empty 260, held_back 0,
        max_wait_ms 500.
        """, kind="no least bytes"),
    Scene("long-poll-misconfigured", held_records, """
        info 0.75: 4 Fetch responses of client app waited for min_bytes (100,000) although there were records. Seen 4 times from
        0 s to 52 s, 18.6 s lost. Who: client_id app. Filter: client_id == "app" and api == Fetch. Evidence: fetches 7, empty 0,
        held_back 4, max_wait_ms 5000.
        """, kind="held", least={"held": 4, "held_ms": 5000}),
    Scene("long-poll-misconfigured", own_time_outs, """
        medium 0.75: client app closed 5 connections 551 ms after a Fetch request which lets the broker wait up to 500 ms for
        records, without its response, and opened another each time. Seen 5 times from 0 s to 6.551 s, 2.754 s lost. Who:
        client_id app. Filter: client_id == "app" and api == Fetch. Evidence: closed 5, timed_out_ns 551000000, may_wait_ns
        500000000.
        """, kind="own time-outs", least={"timeouts": 5}, most={"room_ms": 52}),
    Scene("long-poll-misconfigured", polls_cut, """
        medium 0.7: 10.0.0.1:9092 closed 6 connections of client app after a Fetch request, which lets the broker
        wait up to 8.0 s for records; 3 of them 3.0 s after it. Seen 6 times from 0 s to 50 s, 24.5 s lost. Who:
        client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and api == Fetch and outcome == unanswered and
        connection in {"app0.0", "app10.0", "app20.0", "app30.0", "app40.0", "app50.0"}. Evidence: closed 6, alike 3,
        closed_after_ns 3000000000, may_wait_ns 8000000000.
        """, kind="cut", least={"timeouts": 6, "held": 3}),
    Scene("stuck-partition", standing_offset, """
        medium 0.85: the last stable offset of topic t, partition 1 stood at 70 for 12.0 s, 136 behind the high watermark. Seen
        2 times from 1 s to 13 s, 12 s lost. Who: topic t, partition 1. Filter: topic == "t" and api == Fetch. Evidence:
        last_stable_offset 70, behind 136, stood_ns 12000000000.
        """, least={"seconds": 6.0, "fetches": 5}),
]  # fmt: skip
