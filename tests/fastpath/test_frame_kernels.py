"""Parts of the compiled framing: the acks of a Produce request, and the chains of requests that wait."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.decode.projection import acks_of_produce
from kcap.fastpath.frame_kernels import UNREAD, acks_of, chain, unchain
from kcap.fastpath.layout import COUNT, HEAD, M_FREE, M_SPARE, Q_NUMBER
from kcap.fastpath.state import FastPathState, header_tables


@pytest.mark.parametrize("version", range(14))
@given(st.sampled_from([None, b"", b"t", b"transaction" * 20]), st.integers(-2, 2), st.integers(0, 300))
def test_acks_are_those_of_the_plan(version: int, name: bytes | None, acks: int, cut: int) -> None:
    """What the kernel reads is what the plain reader reads; UNREAD sends the request to that."""
    if version >= 9:
        text = bytes([0]) + (b"\0" if name is None else bytes([min(len(name) + 1, 127)]) + name)
    else:
        text = b"" if version < 3 else struct.pack(">h", -1 if name is None else len(name)) + (name or b"")
    body = (text + struct.pack(">hi", acks, 1000))[:cut]
    data = np.frombuffer(b"\1\2\3" + body, np.uint8)
    found = acks_of(data, 3, len(data), header_tables()[1], version)
    assert found in (UNREAD, acks_of_produce(body, 0, len(body), version))


@given(st.lists(st.integers(0, 5), max_size=80))
def test_chains_are_queues(steps: list[int]) -> None:
    """First in, first out; entries are used again and none is lost."""
    state = FastPathState()
    total = int(state.meta[M_SPARE])
    queues: list[list[int]] = [[], [], []]
    for number, step in enumerate(steps):
        slot, entering = step % 3, step < 3
        connection = state.connections[slot]
        if entering:
            state.queues[chain(state.connections, slot, state.queues, state.meta), Q_NUMBER] = number
            queues[slot].append(number)
        elif queues[slot]:
            assert state.queues[connection[HEAD], Q_NUMBER] == queues[slot].pop(0)
            unchain(state.connections, slot, state.queues, state.meta)
        assert connection[COUNT] == len(queues[slot])
        assert state.meta[M_SPARE] == total - sum(map(len, queues))
    assert state.meta[M_FREE] >= 0
