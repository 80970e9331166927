"""Partitions the packets of a byte range by flow into shards.

In: a range and its bytes. Out: chunks of packets, each of one shard, in packet order, and then the summary of the range. Law:
every TCP packet is in the shard of its flow (or of its two hosts, if the task says so), every IP fragment in all shards, and
other packets in none. How the file is cut into ranges changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.capture.window import Read
from kcap.distributed.chunks import AT, ShardPackets, columns_of
from kcap.distributed.flow_shards import ALL_SHARDS, NO_SHARD, ShardParser, keys_of_lists
from kcap.distributed.ranges import ByteRange, RangeScan, RangeSummary, running_latest
from kcap.distributed.stripping import Stripper
from kcap.limits import CHUNK_BYTES, CHUNK_PACKETS
from kcap.model import CaptureFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Int64s = NDArray[np.int64]


REFERENCES: Final = "references"
"""Chunks hold no payloads; the reader of the shard re-reads them from the files."""
PACKETS: Final = "packets"
"""Chunks hold the captured bytes of their packets."""
STRIPPED: Final = "stripped"
"""Chunks hold stripped segments (`kcap.distributed.stripping`), and no segments of IP fragments."""


@dataclass(frozen=True, slots=True)
class FlowSet:
    """A set of flows of a capture, given by its members or by the flows it lacks."""

    keys: bytes = b""
    """Flow numbers (`kcap.distributed.flow_shards`), 8 bytes each, ascending."""
    listed: bool = True
    """Whether the set is the flows of `keys`, rather than all flows except these."""

    def mask(self, keys: "Int64s") -> "Bools":
        """For each flow number whether its flow is in the set."""
        known = np.frombuffer(self.keys, np.int64)
        if not len(known):
            return np.full(len(keys), not self.listed)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        found: Bools = (known[at] == keys) == self.listed
        return found


def without_flows(chunk: ShardPackets, flows: FlowSet) -> ShardPackets | None:
    """A chunk without its stripped segments of some flows; None if nothing is left."""
    if chunk.stripped is None or not flows.keys:
        return chunk
    gone = flows.mask(keys_of_lists(chunk.stripped.flows))
    if not gone.any():
        return chunk
    stripped, stay = chunk.stripped.without_flows(gone)
    return ShardPackets(chunk.file, chunk.columns[:, stay], None, stripped) if stay.any() else None


def flows_in_several_ranges(parts: Iterable[bytes]) -> bytes:
    """The flows that are in more than one range; `parts` has the flow numbers of each range."""
    keys, counts = np.unique(np.concatenate([np.frombuffer(part, np.int64) for part in parts]), return_counts=True)
    found: bytes = keys[counts > 1].tobytes()
    return found


def newly_seen_flows(parts: Sequence[bytes], among: FlowSet) -> list[bytes]:
    """For each range, the flows of `among` that are in it and in no earlier range."""
    keys = [np.frombuffer(part, np.int64) for part in parts]
    _, first = np.unique(np.concatenate(keys), return_index=True)
    is_first = np.zeros(sum(map(len, keys)), np.bool_)
    is_first[first] = True
    ends = np.cumsum([len(some) for some in keys]).tolist()
    found = [some[is_first[end - len(some) : end] & among.mask(some)] for some, end in zip(keys, ends)]
    return [some.tobytes() for some in found]


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """How a range is to be partitioned. It can be pickled."""

    part: ByteRange
    file: CaptureFile
    size: int | None
    """Size of the file in bytes; None inside a compressed file."""
    shards: int
    carries: str = REFERENCES
    """What chunks hold besides the columns of packets: NOTHING, PACKETS or STRIPPED."""
    jit_after: int | None = None
    lists: bool = False
    """Whether the summary lists the flows of the range."""
    flows: FlowSet | None = None
    """The flows whose packets are partitioned; None for all flows."""
    fresh: FlowSet = FlowSet()
    """With STRIPPED: the flows that are in no earlier range."""
    by_hosts: bool = False
    """Whether all connections between two hosts go to one shard."""


class Partitioner:
    """Reads one range and partitions its packets."""

    def __init__(self, task: PartitionTask, read: Read) -> None:
        """`read` gives the file's bytes, decompressed, from the start of the range."""
        self.task = task
        self.scan = RangeScan(task.part, read, task.file, task.size, task.jit_after)
        keyed = task.lists or task.flows is not None
        self._parser = ShardParser(self.scan.report, task.shards, keyed=keyed, by_hosts=task.by_hosts)
        self._flows: list[Int64s] = []
        self._columns: list[Int64s] = []
        self._shards: list[Int64s] = []
        self._data: list[bytes] = []
        self._packets = self._bytes = 0
        self._stripper = Stripper(task.part.file) if task.carries == STRIPPED else None

    @property
    def summary(self) -> RangeSummary:
        """The summary of the range; complete once `chunks` is exhausted."""
        return self.scan.summary

    def chunks(self) -> Iterator[tuple[int, ShardPackets]]:
        """Chunks, each with the number of its shard."""
        latest: int | None = None
        for batch, base in self.scan.batches():
            shards, found = self._parser.split(batch)
            self.summary.fragments += int((shards == ALL_SHARDS).sum())
            so_far = running_latest(batch.time_ns, latest)
            columns = columns_of(batch, base, so_far)
            latest = int(columns[AT["latest"], -1])
            if self.task.lists:
                self._flows.append(np.unique(self._parser.keys))
            if self.task.flows is not None:
                shards[~self.task.flows.mask(self._parser.keys)] = NO_SHARD
            if self._stripper is not None:
                here = np.flatnonzero(shards >= 0)
                if len(here):
                    keys = self._parser.keys[here]
                    self._stripper.take(columns[:, here], shards[here], keys, found, self.task.fresh.mask(keys))
                if self._stripper.full:
                    yield from self._stripper.chunks()
                continue
            here = np.flatnonzero(shards != NO_SHARD)
            if not len(here):
                continue
            self._columns.append(columns[:, here])
            self._shards.append(shards[here])
            self._packets += len(here)
            if self.task.carries == PACKETS:
                starts, sizes = (np.asarray(column, np.int64)[here] for column in (batch.start, batch.captured))
                view = memoryview(batch.buffer)
                self._data += [bytes(view[start : start + size]) for start, size in zip(starts.tolist(), sizes.tolist())]
                self._bytes += int(sizes.sum())
            if self._packets >= CHUNK_PACKETS or self._bytes >= CHUNK_BYTES:
                yield from self._take()
        yield from self._take() if self._stripper is None else self._stripper.chunks()
        if self._flows:
            flows = np.unique(np.concatenate(self._flows))
            self.summary.flows = flows[flows >= 0].tobytes()

    def _take(self) -> Iterator[tuple[int, ShardPackets]]:
        if not self._packets:
            return
        columns, shards, data = np.concatenate(self._columns, axis=1), np.concatenate(self._shards), self._data
        self._columns, self._shards, self._data, self._packets, self._bytes = [], [], [], 0, 0
        everywhere = np.flatnonzero(shards == ALL_SHARDS)
        order = np.argsort(shards, kind="stable")
        sorted_shards = shards[order]
        for shard in range(self.task.shards) if len(everywhere) else np.unique(shards).tolist():
            low, high = np.searchsorted(sorted_shards, [shard, shard + 1]).tolist()
            places = order[low:high]
            if len(everywhere):
                places = np.sort(np.concatenate([places, everywhere]))
            if len(places):
                carried = b"".join([data[at] for at in places.tolist()]) if self.task.carries == PACKETS else None
                yield shard, ShardPackets(self.task.part.file, columns[:, places], carried)
