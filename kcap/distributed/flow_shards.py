"""Shards of a capture by flow: the shard of each packet, and the segments of a shard's packets under their own packet numbers.

In: packets of a batch. Out: the number of a shard for each packet; or, for selected packets of a file, segment columns as if
the other packets held no TCP. Law: both directions of a flow are in one shard, whatever tunnel or link layer they came through.
If shards are made by hosts, so are all connections between two hosts. The size of batches changes nothing.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.model import PacketBatch, SegmentBatch
from kcap.net.fragments import FragmentPlace, FragmentTable
from kcap.net.segment_columns import ABSENT, NAMES, SegmentColumns
from kcap.net.segments import Segment, SegmentParser

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from kcap.net.packet_cursor import Report

    Int64s = NDArray[np.int64]
    Bytes = NDArray[np.uint8]
    Words = NDArray[np.uint64]

NO_SHARD: Final = -1
"""Value for a packet without TCP, which is in no shard."""
ALL_SHARDS: Final = -2
"""Value for an IP fragment, which is in every shard, since only a reader of all fragments of a datagram can find its flow."""
FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7], np.uint64)
"""Odd multipliers for the 8-byte words of an endpoint (an address and a port)."""
MIXING: Final = np.uint64(0xBF58476D1CE4E5B9)


def keys_of_flows(flows: "Bytes", *, ports: bool = True) -> "Int64s":
    """A 63-bit number for each flow key (rows of 12 or 36 bytes), the same for both directions of a flow.

    Without `ports`, it is the same for all connections between two hosts.
    """
    size = (flows.shape[1] - 4) // 2
    ends = []
    for address, port in ((0, 2 * size), (size, 2 * size + 2)):
        end = np.zeros((len(flows), -(-(size + 2) // 8) * 8), np.uint8)
        end[:, :size], end[:, size : size + 2] = flows[:, address : address + size], flows[:, port : port + 2] * ports
        words = end.view("<u8")
        mixed: Words = (words * FACTORS[: words.shape[1]]).sum(axis=1, dtype=np.uint64)
        mixed ^= mixed >> np.uint64(31)
        mixed *= MIXING
        ends.append(mixed ^ mixed >> np.uint64(29))
    both = ends[0] + ends[1]
    both ^= both >> np.uint64(32)
    found: Int64s = ((both * MIXING) >> np.uint64(1)).astype(np.int64)
    return found


def shards_of(keys: "Int64s", shards: int) -> "Int64s":
    """The shard of each flow number; NO_SHARD and ALL_SHARDS are unchanged."""
    return np.where(keys < 0, keys, (keys >> 32) % shards)


def keys_of_lists(flows: "Sequence[bytes]", *, ports: bool = True) -> "Int64s":
    """As `keys_of_flows`, for flow keys as bytes."""
    out = np.full(len(flows), NO_SHARD, np.int64)
    sizes = np.array([len(flow) for flow in flows], np.int64)
    for size in np.unique(sizes).tolist():
        where = np.flatnonzero(sizes == size)
        some = np.frombuffer(b"".join(flows[at] for at in where.tolist()), np.uint8)
        out[where] = keys_of_flows(some.reshape(len(where), size), ports=ports)
    return out


def shard_of(flow: bytes, shards: int, *, by_hosts: bool = False) -> int:
    return int(shards_of(keys_of_lists([flow], ports=not by_hosts), shards)[0])


class FragmentRecorder(FragmentTable):
    """Records which packets are IP fragments and reassembles none."""

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[int] = []

    def add(
        self, key: "Hashable", offset: int, more: bool, data: bytes, size: int, place: FragmentPlace, report: "Report"
    ) -> tuple[bytes, int] | None:
        """Records the number of the packet."""
        self.packets.append(place.packet)
        return None


class ShardParser(SegmentParser):
    """Parses segments and finds the shard of each packet."""

    def __init__(self, report: "Report", shards: int, *, keyed: bool = False, by_hosts: bool = False) -> None:
        """`keyed`: find flow numbers even for a single shard; `by_hosts`: all connections of two hosts are in one shard."""
        super().__init__(report)
        self.shards = shards
        self._by_hosts = by_hosts and shards > 1
        self.keys: Int64s = np.zeros(0, np.int64)
        """Flow number of each packet of the current batch; NO_SHARD or ALL_SHARDS if it has none."""
        self._keyed = keyed or shards > 1
        self.seen = self.fragments = FragmentRecorder()

    def split(self, batch: PacketBatch) -> "tuple[Int64s, SegmentBatch | SegmentColumns]":
        """The shard of each packet of a batch (NO_SHARD or ALL_SHARDS for packets without a single one), and the segments."""
        self.seen.packets.clear()
        found = self.columns(batch)
        self.keys = self._keys(batch, found, ports=True)
        return shards_of(self._keys(batch, found, ports=False) if self._by_hosts else self.keys, self.shards), found

    def _keys(self, batch: PacketBatch, found: "SegmentBatch | SegmentColumns", *, ports: bool) -> "Int64s":
        keys = np.full(len(batch), NO_SHARD, np.int64)
        if isinstance(found, SegmentColumns):
            self._of_columns(keys, found, ports=ports)
        elif len(found):
            keys[np.array(found.packet, np.int64) - batch.first_packet] = keys_of_lists(found.flow, ports=ports)
        if self.seen.packets:
            keys[np.array(self.seen.packets, np.int64) - batch.first_packet] = ALL_SHARDS
        return keys

    def _of_columns(self, keys: "Int64s", found: SegmentColumns, *, ports: bool) -> None:
        sizes = np.where(found.state == ABSENT, 0, found.flow_size)
        for size in (12, 36):
            where = np.flatnonzero(sizes == size)
            if not self._keyed:
                keys[where] = 0
            elif len(where):
                keys[where] = keys_of_flows(found.data[found.flow_at[where][:, None] + np.arange(size)], ports=ports)
        for at, flow in found.flows.items():
            if found.state[at] != ABSENT:
                keys[at] = keys_of_lists([flow], ports=ports)[0]


class SelectedParser(SegmentParser):
    """Parses packets that were selected from a file; segments have the numbers that the packets have in the file."""

    def __init__(self, report: "Report", shard: frozenset[int], shards: int, *, by_hosts: bool = False) -> None:
        """`shard`: the shards whose segments are returned; fragments of any shard are reassembled."""
        super().__init__(report)
        self._shard = shard
        self._shards = shards
        self._by_hosts = by_hosts
        self._numbers: Int64s = np.zeros(0, np.int64)
        self._first = 0

    def read_packet(
        self, place: FragmentPlace, buffer: bytes, start: int, captured: int, wire: int, link: int
    ) -> Segment | None:
        """The slow path: oddities have the packet's number in the file, and a reassembled datagram counts in only one shard."""
        place = place._replace(packet=int(self._numbers[place.packet - self._first]))
        found = super().read_packet(place, buffer, start, captured, wire, link)
        if found is None or found[8] is None or self._shards == 1:
            return found
        return found if shard_of(found[0], self._shards, by_hosts=self._by_hosts) in self._shard else None

    def segments(self, batch: PacketBatch, numbers: "Int64s") -> SegmentBatch | SegmentColumns:
        """The segments of a batch; `numbers` are the packet numbers in the file, ascending."""
        self._numbers, self._first = numbers, batch.first_packet
        found = self.columns(batch)
        if isinstance(found, SegmentColumns):
            return spread(found, numbers)
        found.packet = numbers[np.array(found.packet, np.int64) - batch.first_packet].tolist()
        return found


def spread(columns: SegmentColumns, numbers: "Int64s") -> SegmentColumns:
    """Columns with an entry for each packet number from the first to the last; packets between the given ones are absent."""
    first = int(numbers[0])
    where = numbers - first
    span = int(where[-1]) + 1
    if span == len(numbers):
        columns.first_packet = first
        return columns

    def wide(values: Any) -> Any:
        out = np.zeros((*values.shape[:-1], span), values.dtype)
        out[..., where] = values
        return out

    state = np.full(span, ABSENT, np.uint8)
    state[where] = columns.state
    assert columns.numbers.shape[0] == len(NAMES)
    return SegmentColumns(
        columns.file, first, columns.buffer, columns.data, wide(columns.time_ns), wide(columns.position),
        wide(columns.numbers), wide(columns.flow_at), wide(columns.flow_size), state,
        {int(where[at]): flow for at, flow in columns.flows.items()},
        {int(where[at]): other for at, other in columns.others.items()},
    )  # fmt: skip
