"""Every packet with TCP goes to one shard, fragments to all."""

from pathlib import Path

import pytest

from kcap.capture.fileset import FileSet, ignore
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
