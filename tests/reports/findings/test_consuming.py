"""Rules on consumers."""

from typing import Any

import ibis
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.reports.findings.consuming import ends_in_order, ends_joined
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, found, many, observed
from tests.reports.made import engine


def fetched(lags: list[int], step: float = 1.0, **more: Any) -> tuple[list[Row], list[Row]]:
    rows = [exchange("C1", at + 1, "Fetch", at * step) for at in range(len(lags))]
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 0, "error": "NONE", "lag": lag,
              "records": 10} | more for at, lag in enumerate(lags)]  # fmt: skip
    return rows, parts


def test_offsets_that_are_not_there() -> None:
    (row,) = found("offset-out-of-range", observed(*fetched([0, 0], error="OFFSET_OUT_OF_RANGE")))
    assert (row["severity"], row["who"]) == ("high", {"client_id": "app", "topic": "t"})
    (row,) = found("offset-out-of-range", observed(*fetched([0], error="OFFSET_OUT_OF_RANGE")), loud=False)
    assert row["severity"] == "info", "a tool that looks once is no consumer"
    rows, parts = fetched([0, 0], error="OFFSET_OUT_OF_RANGE")
    (row,) = found("offset-out-of-range", observed(rows, [part | {"partition": at} for at, part in enumerate(parts)]))
    assert row["severity"] == "low", "each partition once: it is reset, and goes on"
    every = [part | {"partition": at, "exchange": one} for one in (1, 2) for at, part in enumerate(parts)]
    (row,) = found("offset-out-of-range", observed(rows, every))
    assert (row["count"], row["evidence"]["errors"], row["severity"]) == (2, 4, "low"), "a response resets one partition"
    (row,) = found("offset-out-of-range", observed(*fetched([0, 0, 0], error="OFFSET_OUT_OF_RANGE")))
    assert row["severity"] == "high"


def test_lag_that_grows_is_told_and_lag_that_shrinks_is_not() -> None:
    (row,) = found("slow-consumer-fetch", observed(*fetched([5, 50, 200, 400, 700, 900, 1200])))
    assert row["evidence"] == {"lag_first": 5, "lag_last": 1200, "partitions": 1}
    assert "processing faster" in row["advice"]
    rows, parts = fetched([5, 50, 200, 400, 700, 900, 1200])
    (row,) = found("slow-consumer-fetch", observed([one | {"throttle_time_ms": 800} for one in rows], parts))
    assert "consumer_byte_rate" in row["advice"], "its quota holds it back"
    assert found("slow-consumer-fetch", observed(*fetched([1200, 900, 700, 400, 200, 50, 5]))) == []
    assert found("slow-consumer-fetch", observed(*fetched([5, 400, 9, 300, 2, 500, 4]))) == []


def test_commits_that_fall_behind_are_found_where_fetches_run_ahead() -> None:
    """kafka-python fetches ahead of what the program works on: its Fetch responses leave no lag."""

    def seen(worked: float, back: int = 0) -> list[Row]:
        fetches, parts = fetched([0] * 40)
        parts = [part | {"high_watermark": 100 * (at + 1)} for at, part in enumerate(parts)]
        commits = [exchange("C2", at + 1, "OffsetCommit", at * 8 + 4.5, group_id="g") for at in range(5)]
        done = [
            {
                "connection": "C2",
                "exchange": at + 1,
                "api_key": 8,
                "group_id": "g",
                "topic": "t",
                "partition": 0,
                "error": "NONE",
                "committed_offset": int(worked * 100 * (at * 8 + 4)) - back * (at == 4),
            }
            for at in range(5)
        ]
        return found("slow-consumer-fetch", observed(fetches + commits, parts + done))

    (row,) = seen(0.5)
    assert row["who"] == {"client_id": "app", "group_id": "g", "topic": "t"}
    assert row["evidence"]["lag_first"] < row["evidence"]["lag_last"]
    assert seen(1.0) == []
    assert seen(0.5, back=1601) == [], "the group, or the clock of the capture, was set back"
    assert seen(0.5, back=900) == [], "the log was truncated: its end is not what it was"


PLACES = st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 1))
TIMES = st.integers(0, 9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["g", "h", None]), PLACES, TIMES, TIMES), min_size=1, unique_by=lambda row: row[:2]),
    st.lists(st.tuples(PLACES, TIMES, st.none() | st.integers(0, 50)), min_size=1),
)
def test_the_end_of_the_log_is_the_same_by_pairs_and_in_one_order_of_time(commits: list[Any], reports: list[Any]) -> None:
    lasted = ibis.memtable(
        [("c", group, *place, 5, min(a, b), max(a, b), 1, 2) for group, place, a, b in commits],
        schema={"client_id": "string", "group_id": "string", "topic": "string", "partition": "int32", "n": "int64",
                "first_ns": "int64", "last_ns": "int64", "first": "int64", "last": "int64"},
    )  # fmt: skip
    known = ibis.memtable(
        [(*place, at, end) for place, at, end in reports],
        schema={"topic": "string", "partition": "int32", "at": "int64", "log_end": "int64"},
    )
    columns = ["group_id", "topic", "partition", "begin", "end"]
    both = [ways(lasted, known) for ways in (ends_joined, ends_in_order)]
    # without any report before them a pair may lack what the order has as null
    made = [sorted(map(repr, engine().rows(ends.filter(ends.begin.notnull()).select(*columns)))) for ends in both]
    assert made[0] == made[1]


def test_a_closed_window_of_a_reader_is_told() -> None:
    closed = CONNECTION | {
        "connection": "C1",
        "zero_window_stalls": 3,
        "zero_window_ns": 4 * SECOND,
        "server_captured": 400_000,
    }
    (row,) = found("slow-consumer-fetch", observed([], connections=[closed]))
    assert "for 4.0 s" in row["sentence"]
    links = [closed | {"client_captured": 400_000}]
    assert found("slow-consumer-fetch", observed([], connections=links)) == [], "the broker's window is another matter"
    links = [closed | {"zero_window_ns": 100 * MS}]
    assert found("slow-consumer-fetch", observed([], connections=links)) == [], "a reader that catches up fills its buffer"
    links = [closed | {"last_ns": START + 60 * SECOND}]
    assert found("slow-consumer-fetch", observed([], connections=links)) == [], "most of the time it was open"
    links = [closed | {"zero_window_stalls": 70, "server_captured": 60_000}]
    assert found("slow-consumer-fetch", observed([], connections=links)) == [], "no receive buffer is that small"


def test_sessions_that_begin_again_and_again() -> None:
    some = many(30, 0.1, "Fetch", session_epoch=0) + many(10, 0.1, "Fetch", session_epoch=1, connection="C2")
    assert len(found("fetch-session-churn", observed(some))) == 1
    assert found("fetch-session-churn", observed(many(30, 0.1, "Fetch", session_epoch=7))) == []
    assert found("fetch-session-churn", observed(many(30, 0.1, "Fetch", session_epoch=-1))) == [], "no session was wanted"
    each = [row | {"connection": f"C{at}"} for at, row in enumerate(many(30, 0.1, "Fetch", session_epoch=0))]
    assert found("fetch-session-churn", observed(each), loud=False) == [], "the first of a connection replaces none"


def test_a_client_that_does_not_use_sessions_is_not_accused_of_their_churn() -> None:
    """@platformatic/kafka asks for a new session with each Fetch; the broker gives one each time."""

    def seen(given: int) -> list[Row]:
        rows = many(30, 0.1, "Fetch", session_epoch=0, response_bytes=900)
        rows[6] |= {"response_bytes": 60}
        said = {("C1", 7, "response"): {"sessionId": given}}
        return found("fetch-session-churn", observed(rows, messages=said), loud=False)

    assert [row["severity"] for row in seen(0)] == ["medium"]
    (row,) = seen(77)
    assert row["severity"] == "info"
    assert "does not use" in row["sentence"]
    assert "slots" not in row["advice"], "the broker has room for its sessions"
    (row,) = found("fetch-session-churn", observed(many(30, 0.1, "Fetch", session_epoch=0)), loud=False)
    assert row["severity"] == "info", "no response is there: the broker may have given each its session"
    assert row["sentence"].endswith("no response shows whether it got one")
    rows = many(30, 0.1, "Fetch", session_epoch=0, response_bytes=900)
    rows[6] |= {"response_bytes": 60}
    said = {("C1", 1, "response"): {"sessionId": 77}, ("C1", 7, "response"): {"sessionId": 0}}
    (row,) = found("fetch-session-churn", observed(rows, messages=said), loud=False)
    assert row["severity"] == "info", "its own sessions took the last slot meanwhile"


def test_a_client_that_replaces_its_own_sessions_has_lost_none() -> None:
    """franz-go begins a session anew when its partitions change: it names the one that it has."""
    own = many(30, 0.1, "Fetch", session_epoch=0, session_id=77)
    assert found("fetch-session-churn", observed(own), loud=False) == []
    lost = many(30, 0.1, "Fetch", session_epoch=0, session_id=0)
    assert len(found("fetch-session-churn", observed(lost), loud=False)) == 1


def begun(times: int, offset: int | None, *more: Row, ahead: int = 0) -> list[Row]:
    """What is said of a group that gets `offset` so often and fetches there, and `ahead` of it; and of `more` partitions."""
    rows, parts = [], list(more)
    for at in range(times):
        home, leader = f"C{at}", f"D{at}"
        rows += [exchange(home, 1, "OffsetFetch", at * 10, group_id="g"), exchange(leader, 1, "Fetch", at * 10 + 1),
                 exchange(leader, 2, "Fetch", at * 10 + 2)]  # fmt: skip
        place = {"topic": "t", "partition": 0, "error": "NONE"}
        first = offset or 0
        parts += [
            place | {"connection": home, "exchange": 1, "api_key": 9, "group_id": "g", "committed_offset": offset},
            place | {"connection": leader, "exchange": 1, "api_key": 1, "fetch_offset": first, "bytes": 900},
            place | {"connection": leader, "exchange": 2, "api_key": 1, "fetch_offset": first + ahead, "bytes": 0},
        ]
    rows += [exchange("E", row["exchange"], "OffsetCommit", 5, group_id="g") for row in more]
    return found("records-read-again", observed(rows, parts))


def test_a_group_that_begins_at_the_same_record_again_and_again_is_stuck_there() -> None:
    (row,) = begun(3, 50, ahead=30)
    assert (row["who"]["group_id"], row["who"]["topic"], row["evidence"]["reads"]) == ("g", "t", 3)
    assert "50 of t-0" in row["sentence"], "a client fetches ahead of what it works on"
    assert begun(2, 50) == []
    beyond = {"connection": "E", "exchange": 1, "api_key": 8, "group_id": "g", "topic": "t", "partition": 0, "error": "NONE"}
    assert begun(3, 50, beyond | {"committed_offset": 51}) == []
    assert len(begun(3, 50, beyond | {"committed_offset": 50})) == 1, "committed where it was"


def test_a_group_without_commits_may_do_without_them() -> None:
    (row,) = begun(3, None)
    assert "0 of t-0" in row["sentence"]
    assert begun(3, None, ahead=30) == [], "it reads all of the topic whenever it starts"


def held(reads: int, apart: float, committed: int | None, *, next_offset: int = 50, groups: int = 1) -> list[Row]:
    """What is said of a client that fetches offset 50 so often on one connection, then the next, where its group commits so."""
    rows = [exchange("D", at + 1, "Fetch", at * apart) for at in range(reads + 1)]
    rows += [exchange("E", at + 1, "OffsetCommit", 1, group_id=f"g{at}") for at in range(groups)]
    place = {"topic": "t", "partition": 0, "error": "NONE"}
    parts = [place | {"connection": "D", "exchange": at + 1, "api_key": 1, "fetch_offset": 50, "bytes": 900}
             for at in range(reads)]  # fmt: skip
    parts.append(place | {"connection": "D", "exchange": reads + 1, "api_key": 1, "fetch_offset": next_offset, "bytes": 0})
    parts += [place | {"partition": 0 if committed is not None else 1, "connection": "E", "exchange": at + 1, "api_key": 8,
                       "group_id": f"g{at}", "committed_offset": committed} for at in range(groups)]  # fmt: skip
    return found("records-read-again", observed(rows, parts))


def test_a_client_that_seeks_back_to_the_record_it_could_not_process_is_stuck_there() -> None:
    """DefaultErrorHandler of Spring for Apache Kafka, with a back-off that never ends."""
    (row,) = held(8, 1.0, 50, next_offset=70)
    assert row["sentence"] == "group g0 read 8 times from offset 50 of t-0, and committed nothing beyond"
    assert held(8, 1.0, 51) == [], "it was left out, or processed at last"
    assert held(8, 0.1, 50) == [], "ten attempts at once, of which the capture shows the first"
    assert held(4, 3.0, 50) == []
    assert held(8, 1.0, 50, groups=2) == [], "whose commits those are is not known"


def test_a_client_that_never_commits_a_partition_is_stuck_where_it_reads_nothing_beyond() -> None:
    assert len(held(8, 1.0, None)) == 1
    assert held(8, 1.0, None, next_offset=51) == []


def test_a_log_of_an_old_format() -> None:
    def seen(version: int, magic: int) -> list[Row]:
        rows = many(4, 1.0, "Fetch", api_version=version)
        parts = [{"connection": "C1", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 0, "magic": magic}
                 for at in range(4)]  # fmt: skip
        return found("old-message-format", observed(rows, parts))

    assert len(seen(11, 1)) == 1
    assert seen(11, 2) == []
    assert seen(3, 1) == [], "that is what this version asks for"


def test_a_single_reset_of_a_consumer_is_low() -> None:
    part = [{"connection": "C1", "exchange": 1, "api_key": 1, "topic": "t", "partition": 0, "error": "OFFSET_OUT_OF_RANGE"}]
    (row,) = found("offset-out-of-range", observed(many(5, 1.0, "Fetch"), part))
    assert row["severity"] == "low"
