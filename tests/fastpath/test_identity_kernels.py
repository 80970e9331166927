"""The constants of connections, by a kernel, are those of the reference path."""

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap import kernels
from kcap.fastpath import layout as at
from kcap.fastpath.identity_kernels import records_of
from kcap.identities import Identities, Identity, endpoints, uid_of

FLOWS = st.sampled_from((12, 36)).flatmap(lambda size: st.tuples(*[st.binary(min_size=size, max_size=size)] * 2))
INT64 = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
SEEDS = st.tuples(FLOWS, st.integers(0, 1), INT64, st.none() | st.integers(0, (1 << 32) - 1), INT64, st.sampled_from(range(3)))
Seed = tuple[tuple[bytes, bytes], int, int, int | None, int, int]


def arrays_of(seeds: list[Seed]) -> tuple[Any, Any, Any]:
    """The connections, streams and flow keys of the fast path."""
    connections = np.zeros((len(seeds), at.CONNECTION_WIDTH), np.int64)
    streams = np.zeros((2 * len(seeds), at.STREAM_WIDTH), np.int64)
    keys = np.full((2 * len(seeds), at.FLOW_BYTES), 0xAA, np.uint8)
    for slot, (flows, client, first_ns, isn, number, tls) in enumerate(seeds):
        connections[slot, [at.CLIENT, at.FIRST_NS, at.PLACE, at.TLS]] = client, first_ns, number, tls
        streams[2 * slot + client, at.ISN] = at.NONE if isn is None else isn
        for side, flow in enumerate(flows):
            streams[2 * slot + side, at.FLOW_SIZE] = len(flow)
            keys[2 * slot + side, : len(flow)] = list(flow)
    return connections, streams, keys


@settings(max_examples=40)
@given(st.lists(SEEDS, min_size=1, max_size=3))
def test_records_are_those_of_identities(seeds: list[Seed]) -> None:
    """Law: in machine code and in Python, in any order of slots, the record is that of the identity."""
    expected = [
        Identity(uid_of(flows[0], first_ns, isn), *endpoints(flows[client]), number, tls != at.CLEAR)
        for flows, client, first_ns, isn, number, tls in reversed(seeds)
    ]
    slots, arrays, found = np.arange(len(seeds))[::-1].copy(), arrays_of(seeds), Identities()
    made = records_of(slots, *arrays)
    found.extend(made)
    assert list(found) == expected
    assert found.records == Identities(expected).records
    with patch.object(kernels, "PLAIN", True):
        assert records_of(slots, *arrays).tobytes() == made.tobytes()


def test_numbers_of_all_lengths_are_written() -> None:
    """The seed of a uid has them in decimal digits."""
    numbers = [0, *(sign * 10**power + more for power in range(19) for more in (-1, 0) for sign in (1, -1))]
    flow = bytes(range(12))
    found = Identities()
    found.extend(records_of(np.arange(len(numbers)), *arrays_of([((flow, flow), 0, one, 7, 1, 0) for one in numbers])))
    assert [found.uid(place) for place in range(len(numbers))] == [uid_of(flow, one, 7) for one in numbers]
