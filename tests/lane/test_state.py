"""Entering the lane and leaving it changes nothing."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from kcap.analyzer import Analyzer
from kcap.kafka.conversation import Conversation
from kcap.lane.layout import LIVE
from kcap.lane.state import LaneState, fits, header_tables
from kcap.net.tcp import Connection, Stream
from tests.lane.test_engine import steady
from tests.laws.test_streams import conversation, talks
from tests.support.wire import batch

OTHERS = {"peer", "connection", "sink", "talk", "oddities", "streams", "client", "lane", "older", "collector", "bodies"}
"""What refers to another machine."""


def plain(thing: object) -> object:
    """Everything a conversation and its connection know, as values."""
    own = vars(thing) if hasattr(thing, "__dict__") else ()
    return {name: getattr(thing, name) for name in (*getattr(thing, "__slots__", ()), *own) if name not in OTHERS}


def state_of(connection: Connection) -> list[object]:
    """The numbers of all its machines; of requests that wait also what `Bodies` keeps."""
    talk = connection.talk
    assert isinstance(talk, Conversation)
    machines = [connection, *connection.streams, talk.pairing, talk.requests, talk.responses]
    values: list[object] = []
    for machine in machines:
        found = plain(machine)
        assert isinstance(found, dict)
        values.append({name: value for name, value in found.items() if isinstance(value, int | str | bytes | list | None)})
    bodies = talk.collector.bodies
    for exchange in talk.pairing.outstanding:
        slot = exchange.request_slot
        blob = bytes(bodies.arena[bodies.starts[slot] : bodies.ends[slot]]) if slot >= 0 else None
        values.append((exchange.number, exchange.api_key, exchange.correlation_id, exchange.request, exchange.client_id, blob))
        assert slot < 0 or bodies.owners[slot] is exchange
    return values


@given(talks(), st.integers(100, 3000), st.integers(1, 6), st.integers(4, 60), st.booleans())
def test_there_and_back(talk: list[tuple[bytes, bytes]], sizes: int, depth: int, packets: int, closed: bool) -> None:
    """Wherever in a talk a connection is fit to enter, the batch before just closed or not."""
    analyzer, state = Analyzer(), LaneState()
    analyzer.feed(batch(conversation(talk, sizes, depth).segments[:packets]))
    if closed:
        analyzer.take()
    connection = next(iter(analyzer.table.streams.values())).connection
    assert isinstance(connection.talk, Conversation)
    if not fits(connection, connection.talk):
        return
    before = state_of(connection)
    assert state.promote(connection.talk, analyzer.batch)
    assert state.connections[connection.talk.lane, LIVE] == 1
    state.demote(connection.talk.lane, analyzer.batch)
    assert state_of(connection) == before


def test_room_grows() -> None:
    """More connections than there were slots, and back again."""
    state, analyzers = LaneState(), []
    for _ in range(state.slots + 3):
        analyzer = Analyzer()
        analyzer.feed(batch(steady(2).segments))
        stream: Stream = next(iter(analyzer.table.streams.values()))
        assert isinstance(stream.connection.talk, Conversation)
        assert state.promote(stream.connection.talk, 0)
        analyzers.append(analyzer)
    assert int(state.connections[:, LIVE].sum()) == len(analyzers)
    again = pickle.loads(pickle.dumps(state.meta))
    for slot in range(len(analyzers)):
        state.demote(slot, 0)
    assert len(state.free) == state.slots
    assert (again == state.meta).all()


def test_tables_of_headers() -> None:
    plain_headers, steps = header_tables()
    assert plain_headers[3, 1]
    assert not plain_headers[7, 0]
    assert steps.shape[0] == plain_headers.shape[1]
