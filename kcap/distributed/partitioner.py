"""A range of a file dealt out: its packets to shares, such that what belongs to one flow is in one share.

In: a range and its bytes. Out: for each share chunks of its packets, in their order, and at last the account of the range. Law:
every packet with TCP is in the share of its flow, every IP fragment in all shares, others in none; how the file is cut into
ranges changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.capture.window import Read
from kcap.distributed.flow_shards import EVERYWHERE, NOWHERE, ShardParser, keys_of_lists
from kcap.distributed.packet_columns import AT, COLUMNS, ShardPackets, columns_of
from kcap.distributed.ranges import ByteRange, RangeScan, RangeSummary, running_latest
from kcap.distributed.stripping import Stripper
from kcap.limits import CHUNK_BYTES, CHUNK_PACKETS
from kcap.model import CaptureFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Int64s = NDArray[np.int64]


NOTHING: Final = ""
"""Who needs what packets carry reads it again."""
PACKETS: Final = "packets"
STRIPPED: Final = "stripped"
"""Stripped of what decides no row; fragments of datagrams are left out."""


@dataclass(frozen=True, slots=True)
class FlowSet:
    """Some flows of a capture, or all others."""

    keys: bytes = b""
    """Numbers, 8 bytes each in rising order."""
    named: bool = True
    """Those of the keys; else all others."""

    def pick(self, keys: "Int64s") -> "Bools":
        """Which of the packets, by the numbers of their flows, are of these."""
        known = np.frombuffer(self.keys, np.int64)
        if not len(known):
            return np.full(len(keys), not self.named)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        found: Bools = (known[at] == keys) == self.named
        return found


def without(chunk: ShardPackets, flows: FlowSet) -> ShardPackets | None:
    """A chunk without those of its segments that are of some flows; None where nothing is left."""
    if chunk.stripped is None or not flows.keys:
        return chunk
    gone = flows.pick(keys_of_lists(chunk.stripped.flows))
    if not gone.any():
        return chunk
    stripped, stay = chunk.stripped.without(gone)
    return ShardPackets(chunk.file, chunk.columns[:, stay], None, stripped) if stay.any() else None


def in_several(parts: Iterable[bytes]) -> bytes:
    """Flows that are in more than one range, of the flows of each."""
    keys, counts = np.unique(np.concatenate([np.frombuffer(part, np.int64) for part in parts]), return_counts=True)
    found: bytes = keys[counts > 1].tobytes()
    return found


def first_seen(parts: Sequence[bytes], among: FlowSet) -> list[bytes]:
    """Of the flows of each range those of no range before it, as far as they are among some."""
    keys = [np.frombuffer(part, np.int64) for part in parts]
    _, first = np.unique(np.concatenate(keys), return_index=True)
    is_first = np.zeros(sum(map(len, keys)), np.bool_)
    is_first[first] = True
    ends = np.cumsum([len(some) for some in keys]).tolist()
    found = [some[is_first[end - len(some) : end] & among.pick(some)] for some, end in zip(keys, ends)]
    return [some.tobytes() for some in found]


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """How a range is to be dealt out."""

    part: ByteRange
    file: CaptureFile
    size: int | None
    """Where the file's bytes end, None where nobody can say."""
    shares: int
    carries: str = NOTHING
    """What goes along with the columns of packets: NOTHING, PACKETS or STRIPPED."""
    jit_after: int | None = None
    lists: bool = False
    """The account is to say which flows there are."""
    flows: FlowSet | None = None
    """The flows that are dealt out; None for all of them."""
    fresh: FlowSet = FlowSet()
    """With STRIPPED: those of no earlier range."""


class Partitioner:
    """A range on its way to the shares."""

    def __init__(self, task: PartitionTask, read: Read) -> None:
        """`read` gives the file's bytes, those inside its compression, from where the range begins."""
        self.task = task
        self.walk = RangeScan(task.part, read, task.file, task.size, task.jit_after)
        self._parser = ShardParser(self.walk.report, task.shares, keyed=task.lists or task.flows is not None)
        self._flows: list[Int64s] = []
        self._columns: list[Int64s] = []
        self._shares: list[Int64s] = []
        self._data: list[bytes] = []
        self._packets = self._bytes = 0
        self._stripper = Stripper(task.part.file) if task.carries == STRIPPED else None

    @property
    def account(self) -> RangeSummary:
        """Of the range; complete once there are no more chunks."""
        return self.walk.account

    def chunks(self) -> Iterator[tuple[int, ShardPackets]]:
        """Shares and their packets."""
        latest: int | None = None
        for batch, base in self.walk.batches():
            shares, found = self._parser.split(batch)
            self.account.fragments += int((shares == EVERYWHERE).sum())
            so_far = running_latest(batch.time_ns, latest)
            columns = columns_of(batch, base, so_far)
            latest = int(columns[AT["latest"], -1])
            if self.task.lists:
                self._flows.append(np.unique(self._parser.keys))
            if self.task.flows is not None:
                shares[~self.task.flows.pick(self._parser.keys)] = NOWHERE
            if self._stripper is not None:
                here = np.flatnonzero(shares >= 0)
                if len(here):
                    keys = self._parser.keys[here]
                    self._stripper.take(columns[:, here], shares[here], keys, found, self.task.fresh.pick(keys))
                if self._stripper.full:
                    yield from self._stripper.chunks()
                continue
            here = np.flatnonzero(shares != NOWHERE)
            if not len(here):
                continue
            self._columns.append(columns[:, here])
            self._shares.append(shares[here])
            self._packets += len(here)
            if self.task.carries == PACKETS:
                starts, sizes = (np.asarray(column, np.int64)[here] for column in (batch.start, batch.captured))
                view = memoryview(batch.buffer)
                self._data += [bytes(view[start : start + size]) for start, size in zip(starts.tolist(), sizes.tolist())]
                self._bytes += int(sizes.sum())
            if self._packets >= CHUNK_PACKETS or self._bytes >= CHUNK_BYTES:
                yield from self._dealt()
        yield from self._dealt() if self._stripper is None else self._stripper.chunks()
        if self._flows:
            flows = np.unique(np.concatenate(self._flows))
            self.account.flows = flows[flows >= 0].tobytes()

    def _dealt(self) -> Iterator[tuple[int, ShardPackets]]:
        if not self._packets:
            return
        columns, shares, data = np.concatenate(self._columns, axis=1), np.concatenate(self._shares), self._data
        self._columns, self._shares, self._data, self._packets, self._bytes = [], [], [], 0, 0
        everywhere = np.flatnonzero(shares == EVERYWHERE)
        order = np.argsort(shares, kind="stable")
        sorted_shares = shares[order]
        for share in range(self.task.shares) if len(everywhere) else np.unique(shares).tolist():
            low, high = np.searchsorted(sorted_shares, [share, share + 1]).tolist()
            places = order[low:high]
            if len(everywhere):
                places = np.sort(np.concatenate([places, everywhere]))
            if len(places):
                carried = b"".join([data[at] for at in places.tolist()]) if self.task.carries == PACKETS else None
                yield share, ShardPackets(self.task.part.file, columns[:, places], carried)


__all__ = [
    "COLUMNS",
    "NOTHING",
    "PACKETS",
    "STRIPPED",
    "FlowSet",
    "PartitionTask",
    "Partitioner",
    "first_seen",
    "in_several",
    "without",
]
