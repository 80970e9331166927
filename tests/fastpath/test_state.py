"""The fast path's arrays grow, shrink and are used again."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.fastpath.export_state import export_connection
from kcap.fastpath.frame_kernels import lacks_room
from kcap.fastpath.import_state import import_connection
from kcap.fastpath.layout import (
    CONNECTION_WIDTH,
    FIRST_NS,
    FLOW_SIZE,
    FULL_ROOM,
    ID_LENGTH,
    L_TOP,
    LARGE_BASE,
    LIVE,
    M_FREE,
    M_FULL,
    M_GROWS,
    M_ROWS,
    M_SLOTS,
    M_SPARE,
    M_TOP,
    OPEN_SIZE,
    OPEN_SLOT,
    OPEN_START,
    TALKING,
)
from kcap.fastpath.state import FastPathState, header_tables
from kcap.identities import uid_of
from kcap.kafka.conversation import Conversation
from kcap.net.tcp import Stream
from tests.fastpath.test_engine import steady
from tests.support.wire import batch


def test_room_grows() -> None:
    """More connections than there were slots, and back again."""
    state, analyzers = FastPathState(), []
    for _ in range(state.slots + 3):
        analyzer = Analyzer()
        analyzer.feed(batch(steady(2).segments))
        stream: Stream = next(iter(analyzer.table.streams.values()))
        assert isinstance(stream.connection.conversation, Conversation)
        assert import_connection(state, stream.connection.conversation, 0)
        analyzers.append(analyzer)
    assert int(state.connections[:, LIVE].sum()) == len(analyzers)
    again = pickle.loads(pickle.dumps(state.meta))
    for slot in range(len(analyzers)):
        export_connection(state, slot, analyzers[slot])
    state.release_all(np.arange(len(analyzers)))
    assert state.meta[M_SLOTS] == state.slots
    assert sorted(state.free.tolist()) == list(range(state.slots))
    assert (again[[M_FREE, M_SPARE]] == state.meta[[M_FREE, M_SPARE]]).all()


def test_tables_of_headers() -> None:
    plain_headers, steps = header_tables()
    assert plain_headers[3, 1]
    assert not plain_headers[7, 0]
    assert steps.shape[0] == plain_headers.shape[1]
    assert not plain_headers[17, 0]
    assert plain_headers[17, 1]


def test_slots_are_used_again() -> None:
    """A slot is one connection's at a time, up to the limit."""
    state = FastPathState()
    taken = [state.slot() for _ in range(state.slots + 1)]
    assert sorted(taken) == list(range(len(taken)))
    state.connections[taken, LIVE] = TALKING
    for slot in taken[::2]:
        state.release_all(np.array([slot]))
    assert sorted(state.slot() for _ in taken[::2]) == sorted(taken[::2])
    state.meta[M_SLOTS], state.meta[M_GROWS] = 0, 0
    assert state.slot() == -1
    assert limits.FAST_PATH_CONNECTIONS & (limits.FAST_PATH_CONNECTIONS - 1) == 0


@pytest.mark.parametrize("size", [0, 1000, 65_160, 1 << 20])
@pytest.mark.parametrize("full", [False, True])
def test_what_is_made_suffices_for_the_kernel_and_is_not_much_more(size: int, full: bool) -> None:
    """A packet of 64 KB has no frame a byte: rows for as many were 33 MB."""
    state = FastPathState()
    rows, entries = len(state.rows), len(state.queues)
    state.meta[M_ROWS], state.meta[M_FULL] = rows * full, FULL_ROOM
    assert lacks_room(size, state.rows, state.bodies, state.arena, state.meta) or not full
    state.more_room(size)
    assert not lacks_room(size, state.rows, state.bodies, state.arena, state.meta)
    assert len(state.rows) <= 3 * rows + size // 4
    assert len(state.queues) <= 2 * entries + size // 4


def test_there_is_room_for_the_packet_that_did_not_fit() -> None:
    state = FastPathState()
    rows, arena = len(state.rows), state.arena.size
    state.meta[M_ROWS], state.meta[M_TOP], state.meta[M_FULL] = rows - 1, arena - 1, FULL_ROOM
    state.more_room(1000)
    assert len(state.rows) >= rows + 1000
    assert state.arena.size >= arena + 1000 + limits.FAST_PATH_FRAME_MAX
    assert state.connections.shape[1] == CONNECTION_WIDTH


@given(st.lists(st.one_of(st.none(), st.text(max_size=8).map(str.encode)), max_size=30))
def test_names_by_number(raws: list[bytes | None]) -> None:
    """Each number names what it was given for; forgetting keeps those who are in the fast path."""
    state = FastPathState()
    numbers = [state.name(raw) for raw in raws]
    before = state.all_names()
    assert [before[number] for number in numbers] == [None if raw is None else raw.decode() for raw in raws]
    slot = state.slot()
    state.connections[slot, LIVE], state.connections[slot, ID_LENGTH], state.ids[slot, :3] = TALKING, 3, list(b"abc")
    state.forget_names()
    assert state.all_names() == [None, "abc"]
    assert before[0] is None
    number = state.name(b"another")
    again = pickle.loads(pickle.dumps(state))
    assert again.all_names() == [None, "abc", "another"]
    assert (again.name(b"another"), again.name(b"abc"), again.name(b"new")) == (number, 1, number + 1)


def test_an_arena_is_used_again_once_its_batch_is_gone() -> None:
    """Bytes that a batch, or a view of them, still has are not written over."""
    state = FastPathState()
    first = id(state.arena)
    state.arena[0] = 7
    held = memoryview(state.arena[:1])
    for _ in range(2):
        state.next_arena()
        assert id(state.arena) != first
    assert held[0] == 7
    second = id(state.arena)
    state.next_arena()
    state.next_arena()
    assert id(state.arena) == second
    state.arena = state.arena[:100].copy()
    state.next_arena()
    assert state.arena.size == 100
    assert pickle.loads(pickle.dumps(state)).spare == []


def test_the_arena_that_was_filled_is_used_again_before_bytes_come_to_the_next() -> None:
    """With what was moved to the next one; not while a batch has it."""
    state = FastPathState()
    first = state.arena
    first[:3] = 1, 2, 3
    state.next_arena()
    state.arena[:2], state.meta[M_TOP] = (8, 9), 2
    state.last_arena()
    assert state.arena is not first, "it is held here"
    place = id(first)
    del first
    state.last_arena()
    assert (id(state.arena), state.arena[:3].tolist()) == (place, [8, 9, 3])
    assert not state.spare


@pytest.mark.skipif(sys.platform != "linux", reason="what is in memory stands in /proc")
def test_room_that_is_not_used_takes_no_memory() -> None:
    """Of 60 MB of room, that for a few client ids, connections and bytes is in memory."""
    before = anonymous()
    state = FastPathState()
    state.name(b"one")
    state.forget_names()
    state.next_arena()
    assert anonymous() - before < 4 << 20


def anonymous() -> int:
    """Bytes of this process's memory that no file stands behind."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def test_uids_of_own_connections() -> None:
    state, flow = FastPathState(), bytes(range(12))
    state.connections[:3, FIRST_NS] = 10, 20, 30
    state.streams[:6, FLOW_SIZE] = len(flow)
    state.keys[:6, : len(flow)] = list(flow)
    assert state.uids(np.array([2, 0])) == [uid_of(flow, ns, 0) for ns in (30, 10)]
    assert state.uids(np.array([], np.int64)) == []


def test_frames_that_hold_little_are_not_heavy() -> None:
    """A large frame of which much is stored is, and one in the arena that is large; the others hold little."""
    state, sizes = FastPathState(), (limits.GATHERED_LEAST, 1 << 20, 1 << 20, 1 << 20)
    state.large.make_room()
    state.streams[:, OPEN_START] = -1
    state.connections[:2, LIVE] = TALKING
    for place, (size, slot) in enumerate(zip(sizes, (0, 1, LARGE_BASE, LARGE_BASE + 1))):
        state.streams[place, [OPEN_START, OPEN_SIZE, OPEN_SLOT]] = 0, size, slot
    state.large.arrays.large[:2, L_TOP] = limits.GATHERED_LEAST, limits.GATHERED_LEAST + 1
    assert state.heavy_frames().tolist() == [1, 3]
