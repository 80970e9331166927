"""Scenes of consumers: offsets, lag, sessions and the message formats that they read."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, many, observed


def fetched(connection: str, client: str, partition: int, lags: list[int], step: float = 2.0, **more: Any) -> list[Any]:
    """Fetch requests of one partition from 1 s on, each with its row of partitions."""
    place = {"connection": connection, "api_key": 1, "topic": "t", "partition": partition, "error": "NONE", "records": 10}
    return [
        (
            exchange(connection, at + 1, "Fetch", 1 + at * step, client_id=client),
            place | {"exchange": at + 1, "lag": lag} | more,
        )
        for at, lag in enumerate(lags)
    ]


def tables(*pairs: list[Any], more: tuple[list[Row], list[Row]] = ((), ()), **others: Any) -> Observed:  # type: ignore[assignment]
    """The tables of these pairs, and of more exchanges and partitions."""
    every = [pair for one in pairs for pair in one]
    return observed([row for row, _ in every] + [*more[0]], [part for _, part in every] + [*more[1]], **others)


def offsets_out_of_range() -> Observed:
    """One client twice, one once of three times, and one that looks once."""
    bad = {"error": "OFFSET_OUT_OF_RANGE", "lag": None}
    return tables(
        fetched("C1", "app", 0, [0, 0], **bad), fetched("C2", "single", 0, [0], **bad),
        [pair for pair in fetched("C2", "single", 1, [0, 0, 0]) if pair[0]["exchange"] > 1],
        fetched("C3", "probe", 2, [0], **bad),
    )  # fmt: skip


def lag_that_grows_steadily() -> Observed:
    """Two partitions with a lag of 1000 at first, which grows by a fifth in one and more in the other, in five Fetch responses
    with records over 8 s; one without records in most of its responses, one that grows less, and one that shrinks."""
    some = fetched("C3", "app", 2, [1000, 1100, 1200, 1300, 1400])
    dry = [(row, part | {"records": 0} if at > 1 else part) for at, (row, part) in enumerate(some)]
    return tables(
        fetched("C1", "app", 0, [1000, 1050, 1100, 1150, 1200]), fetched("C2", "app", 1, [1000, 1100, 1200, 1200, 1300]), dry,
        fetched("C4", "other", 3, [1000, 1050, 1100, 1150, 1199]), fetched("C5", "other", 4, [1400, 1300, 1200, 1100, 1000]),
    )  # fmt: skip


def lag_that_doubles() -> Observed:
    """A lag that goes up and down, is 50 at first and 300 at last, of 320 at most."""
    return tables(fetched("C1", "app", 0, [50, 320, 40, 200, 300]))


def commits_behind(*, group: str = "g", worked: tuple[int, ...] = (0, 175, 350, 525, 700)) -> Observed:
    """A log that grows from 100 to 1100 and of which commits are 100 behind at first and 400 at last: of what it got in between
    three tenths are left. Another partition has commits that do not move, and one commits that keep up."""
    fetches = [(row, part | {"high_watermark": 100 + 250 * at}) for at, (row, part) in
               enumerate(fetched("C1", "app", 0, [0] * 5))]  # fmt: skip
    rows, parts = [], []
    for partition, offsets in ((0, worked), (1, (60,) * 5), (2, (100, 350, 600, 850, 1100))):
        for at, offset in enumerate(offsets):
            number = 10 * partition + at + 1
            rows.append(exchange("K1", number, "OffsetCommit", 1.5 + 2 * at, group_id=group))
            parts.append({"connection": "K1", "exchange": number, "api_key": 8, "group_id": group, "topic": "t",
                          "partition": partition, "error": "NONE", "committed_offset": offset})  # fmt: skip
    for at in range(5):
        for partition in (1, 2):  # a producer that writes to the two others, 250 records each time
            number = 10 * partition + at + 1
            rows.append(exchange("P1", number, "Produce", 1 + 2 * at, client_id="writer"))
            parts.append({"connection": "P1", "exchange": number, "api_key": 0, "topic": "t", "partition": partition,
                          "error": "NONE", "base_offset": 250 * at - 150 if at else 0,
                          "records": 250 if at else 100})  # fmt: skip
    return tables(fetches, more=(rows, parts))


def closed_windows() -> Observed:
    """A receive window that was closed 3 times, for 2 s of 10 s, while 90 kB were sent; another one beside requests of a fourth
    of the bytes, one that hardly closes, and one whose client is not known."""
    link = CONNECTION | {"zero_window_stalls": 3, "zero_window_ns": 2 * SECOND, "server_captured": 90_000,
                         "first_ns": START + SECOND, "last_ns": START + 11 * SECOND}  # fmt: skip
    return observed([], connections=[
        link | {"connection": "C1"}, link | {"connection": "C2", "client_id": "even", "client_captured": 22_500},
        link | {"connection": "C3", "client_id": "quick", "zero_window_ns": 499 * MS, "last_ns": START + 2 * SECOND},
        link | {"connection": "C4", "client_id": None},
    ])  # fmt: skip


def sessions_begun_anew() -> Observed:
    """12 of 40 Fetch requests begin a new session behind the first; of another client 9 of 10, of another 30 % less one; of
    another all 40, each the first of its connection."""
    rows = [row | {"session_epoch": 0 if at < 13 else 5} for at, row in enumerate(many(40, 0.5, "Fetch"))]
    few = many(10, 0.5, "Fetch", connection="C2", client_id="few", session_epoch=0)
    less = many(40, 0.5, "Fetch", connection="C3", client_id="less")
    anew = [exchange(f"D{at}", 1, "Fetch", at / 2, client_id="anew", session_epoch=0) for at in range(40)]
    return observed([*rows, *few, *(row | {"session_epoch": 0 if at < 12 else 5} for at, row in enumerate(less)), *anew])


def begins_at_one_record() -> Observed:
    """A group gets offset 50 of two partitions four times and five times, and fetches there on a new connection each time."""
    rows, parts = [], []
    for at in range(5):
        for partition in (0, 1) if at < 4 else (1,):
            home, leader = f"H{at}", f"L{partition}{at}"
            place = {"topic": "t", "partition": partition, "error": "NONE"}
            rows += [exchange(home, partition + 1, "OffsetFetch", at * 10, group_id="g"),
                     exchange(leader, 1, "Fetch", at * 10 + 1 + partition)]  # fmt: skip
            parts += [place | {"connection": home, "exchange": partition + 1, "api_key": 9, "group_id": "g",
                               "committed_offset": 50},
                      place | {"connection": leader, "exchange": 1, "api_key": 1, "fetch_offset": 50,
                               "bytes": 900}]  # fmt: skip
    return observed(rows, parts)


def reads_in_place() -> Observed:
    """A client fetches offset 50 eight times over 7 s on one connection, and its group commits nothing beyond it."""
    rows = [exchange("D", at + 1, "Fetch", 1 + at) for at in range(9)] + [exchange("E", 1, "OffsetCommit", 1, group_id="g")]
    place = {"topic": "t", "partition": 0, "error": "NONE"}
    parts = [place | {"connection": "D", "exchange": at + 1, "api_key": 1, "fetch_offset": 50, "bytes": 900} for at in range(8)]
    parts.append(place | {"connection": "D", "exchange": 9, "api_key": 1, "fetch_offset": 70, "bytes": 0})
    parts.append(place | {"connection": "E", "exchange": 1, "api_key": 8, "group_id": "g", "committed_offset": 50})
    return observed(rows, parts)


def old_formats() -> Observed:
    """Four Fetch responses of version 4 with format 1, three with format 0, and two of another topic."""
    rows = many(9, 1.0, "Fetch", api_version=4)
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 1, "topic": "t" if at < 7 else "u", "partition": 0,
              "magic": 1 if at < 4 else 0} for at in range(9)]  # fmt: skip
    return observed(rows, parts)


SCENES = [
    Scene("offset-out-of-range", offsets_out_of_range, """
        high 0.95: client app fetched 2 times at offsets that topic t does not have. Seen 2 times from 1 s to 3 s, 0 s lost.
        Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and
        error == OFFSET_OUT_OF_RANGE. Evidence: errors 2, partitions
        1.
        low 0.95: client single fetched 1 time at offsets that topic t does not have. Seen once from 1 s to 1 s, 0 s lost. Who:
        client_id single, topic t. Filter: client_id == "single" and topic == "t" and
        error == OFFSET_OUT_OF_RANGE. Evidence: errors 1,
        partitions 1.
        info 0.95: client probe fetched 1 time at offsets that topic t does not have. Seen once from 1 s to 1 s, 0 s lost. Who:
        client_id probe, topic t. Filter: client_id == "probe" and topic == "t" and
        error == OFFSET_OUT_OF_RANGE. Evidence: errors 1, partitions
        1.
        """),
    Scene("slow-consumer-fetch", lag_that_grows_steadily, """
        medium 0.85: client app falls behind on 2 partitions of topic t: lag 2,000 at first, 2,500 at last. Seen 10 times from 1
        s to 9 s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and api == Fetch. Evidence:
        lag_first 2000, lag_last 2500, partitions 2.
        """, kind="steadily",
          least={"lag": 200, "fetches": 5, "seconds": 8.0, "growth": 0.2}),
    Scene("slow-consumer-fetch", lag_that_doubles, """
        medium 0.85: client app falls behind on 1 partition of topic t: lag 50 at first, 300 at last. Seen 5 times from 1 s to 9
        s, 0 s lost. Who: client_id app, topic t. Filter: client_id == "app" and topic == "t" and api == Fetch. Evidence:
        lag_first 50, lag_last 300, partitions 1.
        """, kind="doubled", least={"lag": 200}),
    Scene("slow-consumer-fetch", commits_behind, """
        medium 0.75: commits of client app for group g fall behind on 2 partitions of topic t: lag 140 at first, 1,440 at last.
        Seen 10 times from 1.5 s to 9.5 s, 0 s lost. Who: client_id app, group_id g, topic t. Filter: client_id == "app" and
        group_id == "g" and api == OffsetCommit. Evidence: lag_first 140, lag_last 1440, partitions 2.
        """, kind="commits", least={"lag": 300, "commits": 5, "seconds": 8.0,
                                                                             "left": 0.3}),
    Scene("slow-consumer-fetch", closed_windows, """
        medium 0.8: the receive window was closed 3 times, on one connection for 2.0 s, while 10.0.0.1:9092 sent to client app.
        Seen 3 times from 1 s to 11 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and
        server_ip == "10.0.0.1". Evidence: zero_windows 3, zero_window_ns 2000000000, response_bytes 90000.
        """, kind="windows",
          least={"stalls": 3, "kilobytes": 30.0, "closed": 0.2, "milliseconds": 2000.0}),
    Scene("fetch-session-churn", sessions_begun_anew, """
        medium 0.8: 12 of 40 Fetch requests of client app to 10.0.0.1:9092 had to begin a new session. Seen 12 times from 0 s to
        19.5 s, 0 s lost. Who: client_id app, server 10.0.0.1:9092. Filter: client_id == "app" and server_ip == "10.0.0.1" and
        server_port == 9092 and api == Fetch and session_epoch == 0. Evidence: new_sessions 12, fetches 40.
        """, least={"sessions": 12, "share": 0.3}),
    Scene("records-read-again", begins_at_one_record, """
        medium 0.8: group g read up to 5 times from offset 50 of t-0, 50 of t-1, and committed nothing beyond. Seen 5 times from
        0 s to 42 s, 0 s lost. Who: group_id g, client_id app, topic t. Filter: client_id == "app" and topic == "t" and api ==
        Fetch. Evidence: reads 5, partitions 2.
        """, kind="behind OffsetFetch", least={"times": 5}),
    Scene("records-read-again", reads_in_place, """
        medium 0.8: group g read 8 times from offset 50 of t-0, and committed nothing beyond. Seen 8 times from 1 s to 8 s, 0 s
        lost. Who: group_id g, client_id app, topic t. Filter: client_id == "app" and topic == "t" and api == Fetch. Evidence:
        reads 8, partitions 1.
        """, kind="on one connection", least={"in_place": 8, "seconds": 7.0}),
    Scene("old-message-format", old_formats, """
        low 0.85: topic t holds batches of message format 1. Seen 4 times from 0 s to 3 s, 0 s lost. Who: topic t. Filter: topic
        == "t" and api == Fetch. Evidence: fetches 4, format 1.
        low 0.85: topic t holds batches of message format 0. Seen 3 times from 4 s to 6 s, 0 s lost. Who: topic t. Filter: topic
        == "t" and api == Fetch. Evidence: fetches 3, format 0.
        """, least={"fetches": 3}),
]  # fmt: skip
