"""Entering the fast path and leaving it changes nothing."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.fastpath.engine import FastPath
from kcap.fastpath.export_state import export_connection
from kcap.fastpath.import_state import fits, import_connection
from kcap.fastpath.layout import LIVE
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.kafka.frames import FLAG
from kcap.net.segment_columns import columns_of
from kcap.net.tcp import Connection
from tests.fastpath.both import agree
from tests.laws.test_streams import conversation, message_pairs
from tests.records import batches
from tests.support.wire import MS, Tap, analyze, batch, produce, produce_answer

OTHERS = {
    "peer",
    "connection",
    "sink",
    "conversation",
    "oddities",
    "streams",
    "client",
    "fast_path_slot",
    "older",
    "collector",
    "bodies",
}
"""What refers to another object of the reference path."""


def plain(thing: object) -> object:
    """Everything a conversation and its connection know, as values."""
    own = vars(thing) if hasattr(thing, "__dict__") else ()
    return {name: getattr(thing, name) for name in (*getattr(thing, "__slots__", ()), *own) if name not in OTHERS}


def state_of(connection: Connection) -> list[object]:
    """The numbers of all objects that hold its state; of requests that wait also what `Bodies` keeps."""
    owner = connection.conversation
    assert isinstance(owner, Conversation)
    holders = [connection, *connection.streams, owner.pairing, owner.requests, owner.responses]
    values: list[object] = []
    for holder in holders:
        found = plain(holder)
        assert isinstance(found, dict)
        values.append({name: value for name, value in found.items() if isinstance(value, int | str | bytes | list | None)})
    bodies = owner.collector.bodies
    for exchange in owner.pairing.outstanding:
        slot = exchange.request_slot
        blob = bytes(bodies.arena[bodies.starts[slot] : bodies.ends[slot]]) if slot >= 0 else None
        values.append((exchange.number, exchange.api_key, exchange.correlation_id, exchange.request, exchange.client_id, blob))
        assert slot < 0 or bodies.owners[slot] is exchange
    return values


@given(message_pairs(), st.integers(100, 3000), st.integers(1, 6), st.integers(4, 60), st.booleans())
def test_there_and_back(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, packets: int, closed: bool) -> None:
    """Wherever in a conversation a connection is fit to enter, the batch before just closed or not."""
    analyzer, state = Analyzer(), FastPathState()
    analyzer.feed(batch(conversation(messages, sizes, depth).segments[:packets]))
    if closed:
        analyzer.take()
    connection = next(iter(analyzer.table.streams.values())).connection
    assert isinstance(connection.conversation, Conversation)
    if not fits(connection, connection.conversation):
        return
    before = state_of(connection)
    assert import_connection(state, connection.conversation, analyzer.batch)
    assert state.connections[connection.conversation.fast_path_slot, LIVE] == 1
    export_connection(state, connection.conversation.fast_path_slot, analyzer)
    assert state_of(connection) == before


@given(message_pairs(), st.integers(100, 3000), st.integers(1, 6), st.integers(1, 60))
def test_objects_made_of_numbers(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, packets: int) -> None:
    """Wherever a connection that the fast path opened leaves, its objects are those that saw every packet."""
    segments = conversation(messages, sizes, depth).close().segments[:packets]
    plain, fast = Analyzer(), Analyzer()
    fast.fast_path = FastPath(fast)
    plain.feed(batch(segments))
    fast.feed(columns_of(batch(segments)))
    fast.fast_path.leave()
    for flow in list(plain.table.silent):
        plain.table.thaw(flow)
    for flow in list(fast.table.silent):
        fast.table.thaw(flow)
    assert set(plain.table.streams) == set(fast.table.streams)
    for flow, stream in plain.table.streams.items():
        assert comparable(fast.table.streams[flow].connection) == comparable(stream.connection)
    assert [each.number for each in plain.table.closing] == [each.number for each in fast.table.closing]


@pytest.mark.parametrize(("behind", "hole"), [(0, False), (500, False), (0, True)])
def test_excerpts_of_a_frame_are_all_of_it_or_none(behind: int, hole: bool) -> None:
    """Those of a large frame go to the reference path, up to the next bytes of it or the next hole."""
    records = batches.batch(batches.record(0, value=bytes(9_000)), 1)
    tap = Tap().open().client(produce(0, 1)).server(produce_answer(0)).client(produce(1, 1, records), 1_000)
    fast = Analyzer()
    fast.bodies.retain(records=False)
    fast.fast_path = FastPath(fast)
    with patch.object(limits, "FAST_PATH_LARGE_FROM", 300):
        fast.feed(columns_of(batch(tap.segments[:-3])))
        fast.fast_path.leave()
    owner = next(iter(fast.table.streams.values())).connection.conversation
    assert isinstance(owner, Conversation)
    requests = owner.requests
    assert requests is not None
    assert requests.open is not None
    start, size = requests.stream.next, requests.open.received
    if behind:
        requests.data(start, bytes(behind), 0, behind, behind, 0, 0, 0)
    if hole:
        requests.gap(start, 100, 0)
    requests.finish()
    (values,) = fast.bodies.carried.values()
    assert values.passed
    assert bool(values.excerpts) == (not behind and not hole)
    assert not values.excerpts or 0 < size - values.excerpts[-1][0] < 60  # the header


def test_only_bytes_that_came_can_come_again() -> None:
    """A request that announces more than it has came twice, the next one did not."""
    tap, damaged = Tap().open().client(produce(0, 1)).server(produce_answer(0)), bytearray(produce(1, 1))
    damaged[2] ^= 8
    tap.client(bytes(damaged))
    tap.time_ns += 100 * MS
    tap.segments.append(replace(tap.segments[-1], time_ns=tap.time_ns))
    tap.server(produce_answer(1)).client(produce(2, 1)).server(produce_answer(2))
    agree(tap.close().segments)
    flags = [flags for (flags,) in analyze(tap.segments).brief("flags")]
    assert flags == [0, FLAG["truncated"] | FLAG["retransmitted"], FLAG["resynced"]]


def comparable(connection: Connection) -> list[object]:
    """The state without what is looked up when it is asked for, and what only one of the two ways counts."""
    found = state_of(connection)
    for holder in found:
        if isinstance(holder, dict):
            for name in ("closing_order", "ending", "uid"):
                holder.pop(name, None)
    return found
