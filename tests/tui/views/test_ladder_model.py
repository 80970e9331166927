"""The ladder: every request and answer once, in order; lanes that hold one exchange at a time; arrows that fit."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.definition import Row
from kcap.tui.views import ladder_model as model
from tests.tui.views.laws import lines_hold, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = (
    "java-transactions.pcap",
    "pipelined.pcap",
    "raw-frames.pcap",
    "broker-paused.pcap",
    "quota-3.9.pcap",
    "rotated.pcap",
)
MS = 1_000_000


def table_of(name: str) -> pa.Table:
    return StubBook(name).exchanges(model.COLUMNS)


def exchange(number: int, asked: int | None, reported: int | None, uid: str = "C1", **more: Any) -> Row:
    """Times in milliseconds; without a response it ended unanswered 9 ms after the request."""
    outcome = "answered" if asked is not None and reported is not None else "unanswered" if asked is not None else "orphan"
    row: Row = dict.fromkeys(model.COLUMNS)
    return row | {
        "connection": uid, "exchange": number, "client_ip": "10.0.0.9", "client_port": 50_000, "server_ip": "10.0.0.1",
        "server_port": 9092, "api": "Metadata", "api_version": 12, "outcome": outcome, "error": "NONE" if reported else None,
        "reason": "fin" if outcome == "unanswered" else None, "age_ns": 9 * MS if outcome == "unanswered" else None,
        "request_first_ns": None if asked is None else asked * MS, "request_last_ns": None if asked is None else asked * MS,
        "response_first_ns": None if reported is None else reported * MS,
        "latency_ns": (reported - asked) * MS if asked is not None and reported is not None else None,
    } | more  # fmt: skip


ASKED = st.one_of(st.none(), st.integers(1, 50))
TOOK = st.one_of(st.none(), st.integers(0, 30))
PAIRS = st.lists(st.tuples(st.sampled_from(("C1", "C2", "C3")), ASKED, TOOK), max_size=14)


@given(pairs=PAIRS)
def test_events_and_lanes(pairs: list[tuple[str, int | None, int | None]]) -> None:
    """Law: each byte that was seen first is one event; time goes forward; a lane belongs to one exchange, from its request to
    its end; of each connection the oldest in flight is served, the others wait."""
    rows = [
        exchange(at, asked, (asked or 1) + took if took is not None else None if asked is not None else 1, uid)
        for at, (uid, asked, took) in enumerate(pairs)
    ]
    ladder = model.made(rows)
    kinds = Counter(event["kind"] for event in ladder.events)
    assert kinds[model.REQUEST] == sum(row["request_first_ns"] is not None for row in rows)
    assert kinds[model.RESPONSE] == sum(row["response_first_ns"] is not None for row in rows)
    assert kinds[model.LOST] == sum(row["outcome"] == "unanswered" for row in rows)
    times = [event["at_ns"] for event in ladder.events]
    assert times == sorted(times)
    assert sum(event["delta_ns"] or 0 for event in ladder.events) == (times[-1] - times[0] if times else 0)
    mine: dict[str, int] = {}
    for event in ladder.events:
        marks = event["lanes"]
        assert len(marks) == event["in_flight"] <= ladder.lanes
        waiting = [mark for mark in marks.values() if mark == model.WAITING]
        served = [mark for mark in marks.values() if mark == model.SERVED]
        assert len(served) <= 3, "one of each connection at most"
        assert not waiting or served or model.BEGIN in marks.values() or model.END in marks.values()
        own = [lane for lane, mark in marks.items() if mark in (model.BEGIN, model.END)]
        assert len(own) <= 1
        if own:
            name = event["exchange_name"]
            assert mine.setdefault(name, own[0]) == own[0]


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("room", [80, 160])
def test_ladders_of_captures(name: str, room: int) -> None:
    table = table_of(name)
    for uid in model.connections(table)[:6]:
        for whole in (model.of_connection(table, uid), model.of_client(table, uid)):
            part, start = model.window(whole, None, 0)
            assert start == 0
            ladder = model.made(part.slice(0, 40).to_pylist())
            sheet = model.sheet(ladder, room, relative=room > 100)
            sheet_holds(sheet, name)
            widths = {len(sheet.fields[3].text(row)) for row in sheet.rows}
            assert widths == {len(sheet.fields[3].head)}, "names stand over their lines"
            assert sum(len(field.text(sheet.rows[0])) for field in sheet.fields) + 7 <= room
            assert sheet.detail is not None
            for row in sheet.rows:
                lines_hold(sheet.detail(row, 60), 80)


@given(
    hosts=st.integers(1, 12), width=st.integers(24, 150), host=st.integers(0, 11), heavy=st.booleans(),
    kind=st.sampled_from((model.REQUEST, model.RESPONSE, model.LOST)), topic=st.text("abc.", max_size=90),
)  # fmt: skip
def test_arrows_fit(hosts: int, width: int, host: int, heavy: bool, kind: str, topic: str) -> None:
    """Law: an arrow is as long as the ladder is wide, begins at the client's line and points to where the bytes went."""
    lines = model.places(hosts, width)
    assert lines[0] == 0
    assert lines[-1] == width - 1
    event = exchange(1, 1, 3, topics=[topic], topic_ids=[None]) | {"kind": kind}
    drawn = model.arrow(event, host % hosts, lines, heavy=heavy)
    assert len(drawn) == width
    assert drawn[0] == "│"
    end = lines[min(host % hosts + 1, len(lines) - 1)]
    assert drawn[end] == "│"
    assert {model.REQUEST: drawn[end - 1] == "▶", model.RESPONSE: drawn[1] == "◀", model.LOST: drawn[end - 1] == "✗"}[kind]
    assert (model.HEAVY in drawn) == (heavy and kind != model.LOST)
    ladder = model.LadderModel(names=[f"10.0.0.{at}" for at in range(hosts)], client="10.1.1.1:50000")
    assert len(model.heads(ladder, lines)) == width


def test_head_of_line_blocking_is_seen() -> None:
    """Three requests at once: the first is served, the others wait; the second's answer says for how long."""
    rows = [exchange(1, 0, 50), exchange(2, 1, 52, queue_ns=49 * MS, service_ns=2 * MS), exchange(3, 2, 53, queue_ns=50 * MS)]
    ladder = model.made(rows)
    drawn = [model.lanes_text(event, 4) for event in ladder.events]
    assert drawn == ["┌   ", "│┌  ", "│┊┌ ", "└┊┊ ", " └┊ ", "  └ "]
    assert "queued 49.0ms" in model.arrow_text(ladder.events[4])
    assert model.tone_of(ladder.events[4]) == "care"
    assert model.lanes_text(ladder.events[2], 2) == "+1"


def test_what_arrows_say() -> None:
    asked, lost = model.events_of([exchange(1, 1, None, topics=["orders"], topic_ids=[None])])
    assert (model.arrow_text(asked), model.arrow_text(lost)) == ("Metadata v12 orders", "no response: fin, 9.00ms")
    assert model.tone_of(lost) == "bad"
    one_way = exchange(2, 1, None, outcome="one_way", api="Produce", record_count=3, age_ns=None)
    (event,) = model.events_of([one_way])
    assert model.arrow_text(event) == "Produce v12 3 records no response expected"
    assert model.made([one_way]).events[0]["in_flight"] == 0
    refused = model.events_of([exchange(3, 1, 4, error="NOT_LEADER_OR_FOLLOWER", throttle_time_ms=7)])[1]
    assert model.arrow_text(refused) == "NOT_LEADER_OR_FOLLOWER 3.00ms throttle 7ms"
    assert model.tone_of(refused) == "bad"


def test_names_of_brokers() -> None:
    assert model.names_of({("10.0.0.1", 9092): 1}) == ["10.0.0.1:9092"]
    assert model.names_of({("10.0.0.1", 9092): 1, ("10.0.0.2", 9092): 2}) == ["broker 1", "broker 2"]
    assert model.names_of({("10.0.0.1", 9092): 1, ("10.0.0.2", 9092): None}) == ["10.0.0.1", "10.0.0.2"]
    assert model.names_of({("10.0.0.1", 9092): None, ("10.0.0.1", 9093): None}) == ["10.0.0.1:9092", "10.0.0.1:9093"]
    assert model.made([]).names == []


def test_a_window_of_a_long_conversation() -> None:
    rows = [exchange(at, at, at + 1) for at in range(12_000)]
    schema = table_of("pipelined.pcap").schema
    table = pa.Table.from_pylist(rows, schema=schema)
    part, start = model.window(table, None, 0)
    assert (part.num_rows, start) == (model.WINDOW, 0)
    part, start = model.window(table, ("C1", 9_000), 0)
    assert 9_000 in part["exchange"].to_pylist()
    assert start == 9_000 - model.WINDOW // 2
    part, start = model.window(table, None, 2)
    assert (start, part.num_rows) == (2 * model.WINDOW, 2_000)
    assert model.window(table, None, -1)[1] == 0
    assert model.window(table, None, 99)[0].num_rows > 0
    assert model.window(table.slice(0, 0), None, 0)[0].num_rows == 0


def test_clients_have_several_connections() -> None:
    table = table_of("java-transactions.pcap")
    uid = model.busiest(table)
    assert uid is not None
    one, all_ = model.of_connection(table, uid), model.of_client(table, uid)
    assert set(one["connection"].to_pylist()) == {uid}
    assert set(all_["client_id"].to_pylist()) == {"shop-tx"}
    assert len(set(all_["connection"].to_pylist())) > 1
    assert model.busiest(table.slice(0, 0)) is None
    assert model.of_client(table, "C").num_rows == 0
