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
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.support.wire import metadata, metadata_answer, produce, produce_answer, request, response


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


@pytest.mark.parametrize("segment", [9, 100, 1448], ids=["lengths in pieces", "frames over segments", "many in a segment"])
@pytest.mark.parametrize("depth", [1, 6], ids=["one at a time", "pipelined"])
def test_frames_and_pairs_are_those_of_the_reference_path(segment: int, depth: int) -> None:
    """Requests and responses of three APIs, some without a response, cut at any place."""
    found = agree(steady(30, depth, segment).close().segments, 50, 7)
    assert found.fast_rows >= (1 if segment < 1448 else 25), "a frame in the making may wait for its end outside"


@given(st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=200)), max_size=15), st.booleans())
def test_any_bytes_in_order(pieces: list[tuple[int, bytes]], sane: bool) -> None:
    """Frames that make no sense, or none at all."""
    tap = steady(8)
    for side, data in pieces:
        tap.send(side, struct.pack(">i", len(data)) + data if sane else data)
    agree(tap.segments, 20, 4)


@given(
    st.lists(
        st.sampled_from(("id", "same", "early", "late", "token", "versions", "next", "wait", "zero", "binary")), max_size=12
    )
)
def test_what_the_fast_path_leaves_to_the_reference_path(turns: list[str]) -> None:
    """Another client id, a correlation id again, answers out of turn, handshakes: in the middle of a calm connection."""
    tap = steady(6)
    for number, turn in enumerate(turns, 100):
        match turn:
            case "id":
                tap.client(metadata(number, client_id="other")).server(metadata_answer(number))
            case "binary":
                tap.client(metadata(number, client_id="app\0\1") * 3).server(metadata_answer(number) * 3)
            case "same":
                tap.client(metadata(number) + metadata(number)).server(metadata_answer(number) * 2)
            case "early":
                tap.server(metadata_answer(number)).client(metadata(number))
            case "late":
                tap.client(metadata(number) + metadata(number + 50)).server(
                    metadata_answer(number + 50) + metadata_answer(number)
                )
            case "token":
                tap.client(request(17, 0, number, b"\0\5PLAIN") + b"\0\0\0\4abcd")
                tap.server(response(number, b"\0\0\0\0\0\1\0\5PLAIN") + b"\0\0\0\0")
            case "versions":
                tap.client(request(18, 3, number, b"\0\2a\2b\0")).server(response(number, b"\0\x23" + b"\0\0\0\0"))
            case "zero":
                tap.client(produce(number, 0, b"x"))
            case "wait":
                tap.client(metadata(number))
            case _:
                tap.client(metadata(number) + produce(number + 50, 1, bytes(3000)))
                tap.server(metadata_answer(number) + produce_answer(number + 50))
    agree(tap.segments, 25, 4)
