"""Every packet with TCP goes to one shard, fragments to all."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.fileset import FileSet, ignore
from kcap.distributed.chunks import ShardPackets
from kcap.distributed.flow_shards import keys_of_lists
from kcap.distributed.partitioner import (
    PACKETS,
    REFERENCES,
    STRIPPED,
    FlowSet,
    Partitioner,
    flows_in_several_ranges,
    newly_seen_flows,
    without_flows,
)
from kcap.limits import CHUNK_PACKETS
from kcap.net.segments import SegmentParser
from tests.support.shared import Shared


@pytest.mark.parametrize("name", ["cluster-startup.pcap", "tls13.pcapng", "any-interface.pcap"])
@pytest.mark.parametrize("shards", [1, 7])
def test_every_segment_has_one_shard(name: str, shards: int, pcaps: Path) -> None:
    """Law: the packets of all shards are those with a segment, each once, both directions of a flow together."""
    shared = Shared([pcaps / name], 11_000, shards)
    owners: dict[int, int] = {}
    for shard in range(shards):
        for chunk, range_position in shared.placed_chunks(shard):
            for number in (chunk.column("number") + range_position.packets).tolist():
                assert number not in owners
                owners[number] = shard
    parser, found = SegmentParser(ignore), {}
    for batch in FileSet([str(pcaps / name)], ignore).batches():
        segments = parser.parse(batch)
        found |= dict(zip(segments.packet, segments.flow, strict=True))
    assert owners.keys() == found.keys()
    flows: dict[frozenset[bytes], set[int]] = {}
    for number, flow in found.items():
        size = (len(flow) - 4) // 2
        ends = frozenset([flow[:size] + flow[-4:-2], flow[size : 2 * size] + flow[-2:]])
        flows.setdefault(ends, set()).add(owners[number])
    assert all(len(some) == 1 for some in flows.values())
    assert shards == 1 or len(set(owners.values())) > 1


def test_chunks_are_bounded() -> None:
    """A range of any size is partitioned in chunks."""
    assert CHUNK_PACKETS * 8 * 8 <= 16 << 20


KEYS = st.sets(st.integers(-(1 << 40), 1 << 40), max_size=12)


def packed(keys: set[int]) -> bytes:
    return np.array(sorted(keys), np.int64).tobytes()


@given(KEYS, KEYS, st.booleans())
def test_a_set_of_flows_has_its_members_or_all_others(members: set[int], asked: set[int], listed: bool) -> None:
    wanted = sorted(asked | members)
    found = FlowSet(packed(members), listed).mask(np.array(wanted, np.int64))
    assert found.tolist() == [(key in members) == listed for key in wanted]


@given(st.lists(KEYS, min_size=1, max_size=5), KEYS)
def test_flows_of_several_ranges_and_those_that_a_range_sees_first(ranges: list[set[int]], among: set[int]) -> None:
    parts = [packed(keys) for keys in ranges]
    every = [key for keys in ranges for key in keys]
    assert flows_in_several_ranges(parts) == packed({key for key in every if every.count(key) > 1})
    fresh = newly_seen_flows(parts, FlowSet(packed(among)))
    before: set[int] = set()
    for keys, found in zip(ranges, fresh, strict=True):
        assert found == packed((keys & among) - before)
        before |= keys


@pytest.mark.parametrize("carries", [REFERENCES, PACKETS])
@pytest.mark.parametrize("several", [False, True])
def test_only_the_packets_of_some_flows_are_partitioned(carries: str, several: bool, pcaps: Path) -> None:
    """Law: with all flows listed, a set and the set of all others have together what there is without one."""
    shared = Shared([pcaps / "cluster-startup.pcap"], 1 << 30, 3)
    (unit,) = shared.stitched.positions
    task, read = shared.task(shared.verified_range(unit), lists=True)
    whole = Partitioner(replace(task, carries=carries), read)
    wanted = counted(whole.chunks())
    flows = np.frombuffer(whole.summary.flows, np.int64)
    some = FlowSet(flows[: len(flows) // 2].tobytes() if several else flows[:1].tobytes())
    found = dict.fromkeys(wanted, 0)
    for chosen in (some, replace(some, listed=False)):
        task, read = shared.task(shared.verified_range(unit), flows=chosen)
        for number, count in counted(Partitioner(replace(task, carries=carries), read).chunks()).items():
            found[number] += count
    assert found == wanted


def counted(chunks: Iterable[tuple[int, ShardPackets]]) -> dict[int, int]:
    """Packets by shard; those that carry bytes carry those of all packets."""
    found = dict.fromkeys(range(3), 0)
    for shard, chunk in chunks:
        found[shard] += chunk.columns.shape[1]
        assert chunk.data is None or len(chunk.data) == int(chunk.column("captured").sum())
    return found


def test_stripped_segments_of_some_flows_are_taken_out(pcaps: Path) -> None:
    shared = Shared([pcaps / "cluster-startup.pcap"], 1 << 30, 3)
    (unit,) = shared.stitched.positions
    task, read = shared.task(shared.verified_range(unit), lists=True)
    partitioner = Partitioner(replace(task, carries=STRIPPED, fresh=FlowSet(listed=False)), read)
    chunks = [chunk for _, chunk in partitioner.chunks()]
    flows = np.frombuffer(partitioner.summary.flows, np.int64)
    left = [without_flows(chunk, FlowSet(flows[:3].tobytes())) for chunk in chunks]
    sizes = [sum(chunk.columns.shape[1] for chunk in some if chunk is not None) for some in (chunks, left)]
    assert 0 < sizes[1] < sizes[0]
    gone = FlowSet(flows[:3].tobytes())
    for chunk in left:
        if chunk is not None and chunk.stripped is not None:
            assert not gone.mask(keys_of_lists(chunk.stripped.flows)[chunk.stripped.flow]).any()
    assert [without_flows(chunk, FlowSet()) for chunk in chunks] == chunks
    assert all(without_flows(chunk, FlowSet(flows.tobytes())) is None for chunk in chunks)
