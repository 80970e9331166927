"""Shares of flows, and the segments of packets that were picked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed.flow_shards import (
    ALL_SHARDS,
    NO_SHARD,
    SelectedParser,
    ShardParser,
    keys_of_flows,
    keys_of_lists,
    shards_of,
)
from kcap.net.connections import reverse_flow
from kcap.net.segment_columns import SegmentColumns
from kcap.net.segments import SegmentParser
from tests.capture.handmade import Weirds, batch_of, ethernet, ipv4, ipv6, segments, tcp
from tests.net.engines import columns as arrays
from tests.net.test_fragments import WHOLE, fragments4

FLOWS = st.one_of(st.binary(min_size=12, max_size=12), st.binary(min_size=36, max_size=36))


@given(st.lists(FLOWS, min_size=1, max_size=20), st.integers(1, 100))
def test_both_directions_are_of_one_shard(flows: list[bytes], shards: int) -> None:
    """Law: a flow and its reverse have the same shard, of those that there are."""
    there = keys_of_lists(flows)
    back = keys_of_lists([reverse_flow(flow) for flow in flows])
    assert there.tolist() == back.tolist()
    assert all(0 <= shard < shards for shard in shards_of(there, shards).tolist())


@given(st.lists(st.binary(min_size=4, max_size=4), min_size=2, max_size=20), st.booleans())
def test_by_hosts_ports_do_not_count(ports: list[bytes], six: bool) -> None:
    """Law: without ports all connections between two hosts have one number, in both directions; other hosts have another."""
    size = 16 if six else 4
    flows = [b"\x0a" * size + b"\x0b" * size + some for some in ports]
    numbers = keys_of_lists([*flows, *map(reverse_flow, flows)], ports=False)
    assert len(set(numbers.tolist())) == 1
    assert keys_of_lists([b"\x0a" * size + b"\x0c" * size + ports[0]], ports=False)[0] != numbers[0]


def test_shares_are_even() -> None:
    """Connections of one client to one broker, which differ in a port, spread over the shards."""
    flows = np.array([[10, 0, 0, 1, 10, 0, 0, 2, port >> 8, port & 255, 35, 132] for port in range(30_000, 40_000)], np.uint8)
    keys = keys_of_flows(flows)
    assert len(np.unique(keys)) == len(flows), "they are told apart"
    counts = np.bincount(shards_of(keys, 16), minlength=16)
    assert counts.min() > 500
    assert counts.max() < 750


def mixed() -> list[bytes]:
    """Segments of two flows, of both families, a fragmented one, and what is no TCP."""
    pieces = fragments4(WHOLE, [5, 9])
    return [
        ethernet(ipv4(tcp(b"one"))), ethernet(b"\0" * 28, 0x0806), pieces[0], ethernet(ipv6(tcp(b"two", ports=(5, 6))), 0x86DD),
        pieces[1], ethernet(ipv4(tcp(b"three", seq=1003, ports=(7, 8)))), pieces[2], ethernet(ipv4(bytes(30), protocol=17)),
    ]  # fmt: skip


def test_fragments_go_everywhere_and_others_nowhere() -> None:
    for batch in (batch_of(*mixed()), arrays(batch_of(*mixed()))):
        found, _ = ShardParser(Weirds(), 8).split(batch)
        assert [place for place, shard in enumerate(found.tolist()) if shard == ALL_SHARDS] == [2, 4, 6]
        assert [place for place, shard in enumerate(found.tolist()) if shard == NO_SHARD] == [1, 7]


@pytest.mark.parametrize("by_hosts", [False, True])
def test_what_is_picked_is_what_the_whole_gives(by_hosts: bool) -> None:
    """Law: the segments of all shards are those of all packets, with their numbers, once each."""
    packets = mixed()
    whole = batch_of(*packets)
    wanted = segments(SegmentParser(Weirds()).parse(whole))
    shards = 5
    for compiled in (False, True):
        owner, _ = ShardParser(Weirds(), shards, by_hosts=by_hosts).split(whole)
        got = []
        for shard in range(shards):
            here = [at for at, one in enumerate(owner.tolist()) if one in (shard, ALL_SHARDS)]
            if not here:
                continue
            batch = batch_of(*(packets[at] for at in here))
            batch.time_ns, batch.position = [whole.time_ns[at] for at in here], [whole.position[at] for at in here]
            numbers = np.array(here, np.int64) + 1
            parser = SelectedParser(Weirds(), frozenset([shard]), shards, by_hosts=by_hosts)
            found = parser.segments(arrays(batch) if compiled else batch, numbers)
            got += segments(found.all() if isinstance(found, SegmentColumns) else found)
        assert sorted(got) == sorted(wanted)
