"""The table of flow keys finds what was entered and nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.fastpath.flow_table import drop, enter, find, pair_hash, pair_number
from kcap.fastpath.layout import FLOW_BYTES, FLOW_SIZE, STREAM_WIDTH
from kcap.net.connections import reverse_flow


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=100))
def test_against_a_dict(steps: list[tuple[bool, int]]) -> None:
    """Few places, so that keys meet and places are left and taken again; two sizes of keys."""
    table = np.zeros(64, np.int64)
    keys = np.zeros((31, FLOW_BYTES), np.uint8)
    streams = np.zeros((31, STREAM_WIDTH), np.int64)
    streams[:, FLOW_SIZE] = [12 if at % 3 else 36 for at in range(31)]
    keys[:, 5] = np.arange(31) // 2
    keys[:, 20] = np.arange(31)
    known: dict[bytes, int] = {}
    for entering, at in steps:
        blob = keys[at, : streams[at, FLOW_SIZE]].tobytes()
        if entering and blob not in known:
            enter(at, table, keys, streams)
            known[blob] = at
        elif not entering and known.get(blob) == at:
            drop(at, table, keys, streams)
            del known[blob]
    for at in range(31):
        size = int(streams[at, FLOW_SIZE])
        data = np.concatenate([np.zeros(3, np.uint8), keys[at, :size]])
        assert find(data, 3, size, table, keys, streams) == known.get(keys[at, :size].tobytes(), -1)


@given(st.sampled_from((12, 36)), st.binary(min_size=39, max_size=39), st.integers(0, 3))
def test_both_directions_have_the_same_number(size: int, blob: bytes, at: int) -> None:
    key = blob[:size]
    numbers = {pair_hash(np.frombuffer(bytes(at) + each, np.uint8), at, size) for each in (key, reverse_flow(key))}
    assert numbers == {pair_number(key)} == {pair_number(reverse_flow(key))}
    assert 0 <= numbers.pop() < 1 << 31


def test_connections_have_different_numbers() -> None:
    """Clients and ports count up; the counters of a small table are used evenly."""
    keys = [
        bytes([10, 0, 0, host, 10, 0, 1, 1]) + port.to_bytes(2, "big") + b"\x23\x84" for host in range(50) for port in range(50)
    ]
    places = [int(pair_hash(np.frombuffer(key, np.uint8), 0, 12)) & 0xFFFF for key in keys]
    assert len(set(places)) > 0.95 * len(keys)
