"""Pieces are put together, directions told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed.flow_shards import keys_of_lists
from kcap.distributed.pieces import directions_of, gather
from kcap.net.segment_columns import columns_of
from tests.support.wire import Segment, batch

PORTS = st.sampled_from([b"\x9c\x40\x23\x84", b"\x23\x84\x9c\x40", b"\x9c\x41\x23\x84"])
FLOWS = st.builds(lambda size, ports: bytes(size) + ports, st.sampled_from([8, 32]), PORTS)


@pytest.mark.parametrize("compiled", [False, True])
@given(st.binary(min_size=40, max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=9))
def test_pieces_stand_one_behind_the_other(compiled: bool, source: bytes, spans: list[tuple[int, int]]) -> None:
    """Law: both ways copy the same bytes, to the beginning."""
    pieces = np.array([sorted(span) for span in spans], np.int64).reshape(-1, 2)
    wanted = b"".join(source[low:high] for low, high in pieces.tolist())
    out = np.zeros(len(wanted) + 3, np.uint8)
    gather(np.frombuffer(source, np.uint8), pieces[:, 0], pieces[:, 1] - pieces[:, 0], out, compiled=compiled)
    assert out.tobytes() == wanted + bytes(3)


@pytest.mark.parametrize("collide", [False, True])
@given(st.lists(FLOWS, min_size=1, max_size=20))
def test_directions_are_told_apart(collide: bool, flows: list[bytes]) -> None:
    """Law: by their keys alone, also where two of these have the same number."""
    columns = columns_of(batch([Segment(0, flow, 0, 0, 16) for flow in flows]))
    numbers = keys_of_lists(flows)
    if collide:
        numbers = np.array([int.from_bytes(flow[-8:], "little", signed=True) for flow in flows], np.int64)
    keys, first, own = directions_of(columns, np.arange(len(flows)), numbers)
    assert sorted(keys) == sorted(set(flows))
    assert [keys[at] for at in own.tolist()] == flows
    assert [flows.index(key) for key in keys] == first.tolist()
