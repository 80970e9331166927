"""TCP segments as numpy columns: the output of the compiled parser, without a Python object per segment.

In: the parser's arrays. Out: the same segments as a `SegmentBatch`, all or some. Law: `lists` of all segments gives what the
plain parser gives.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kcap.model import SegmentBatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

ABSENT, CLEAN, SLOW = 0, 1, 2
"""State of a packet: no segment, a segment whose flow is in the buffer, a segment whose flow is in `flows`."""
SACKED, SPURIOUS = 0x100, 0x200
"""Bits beside a segment's flags for what its selective acknowledgements report (`sack_kernels`)."""
ACK_ALONE, ACK_RST_SYN = 0x10, 0x16
"""Selective acknowledgements are searched for if, of the flags ACK, RST and SYN, only ACK is set."""
TIMESTAMPS = 0x0101080A
"""First four bytes of options that consist only of timestamps, as in nearly all segments (RFC 7323)."""
HASH_FACTOR = 0x9E3779B1
"""A large odd number: sums of different bytes are rarely equal."""
NAMES = ("seq", "ack", "flags", "window", "payload", "captured", "length")


@dataclass(slots=True)
class SegmentColumns:
    """Packets of one file, some of which are segments; entry i is packet `first_packet + i`."""

    file: int
    first_packet: int
    buffer: bytes
    data: "NDArray[np.uint8]"
    """`buffer` as an array."""
    time_ns: "Int64s"
    position: "Int64s"
    numbers: "Int64s"
    """One row for each of `NAMES`."""
    flow_at: "Int64s"
    flow_size: "Int64s"
    state: "NDArray[np.uint8]"
    flows: dict[int, bytes] = field(default_factory=dict)
    """Flows of entries that the slow path read, by index."""
    others: dict[int, bytes] = field(default_factory=dict)
    """Buffers of entries whose payload is not in `buffer` (reassembled IP fragments), by index."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def of_flows(self, flows: list[bytes]) -> "Int64s":
        """Returns the indexes of segments of some flows, in order. For many flows, others with the same hash may be there."""
        import numpy as np

        clean = self.state == CLEAN
        found = []
        for size in {len(flow) for flow in flows}:
            where: Int64s = (clean & (self.flow_size == size)).nonzero()[0]
            wanted = np.frombuffer(b"".join(flow for flow in flows if len(flow) == size), np.uint8).reshape(-1, size)
            if len(wanted) == 1:
                for at in reversed(range(size)):  # compares ports first, since they differ most
                    where = where[self.data[self.flow_at[where] + at] == wanted[0, at]]
            else:
                seen, hashed = np.zeros(len(where), np.uint64), np.zeros(len(wanted), np.uint64)
                for at in range(size):
                    seen = seen * HASH_FACTOR + self.data[self.flow_at[where] + at]
                    hashed = hashed * HASH_FACTOR + wanted[:, at]
                where = where[np.isin(seen, hashed)]
            found.append(where)
        found.append(np.array([at for at, other in self.flows.items() if other in set(flows)], np.int64))
        return np.sort(np.concatenate(found))

    def all(self) -> SegmentBatch:
        return self.lists((self.state != ABSENT).nonzero()[0])

    def lists(self, where: "Int64s") -> SegmentBatch:
        """Returns the segments at these indexes, in this order."""
        out = SegmentBatch(self.file, self.buffer)
        kept: Any = self.numbers[:, where]
        for name, column in zip(NAMES, kept.tolist()):
            setattr(out, name, column)
        out.packet = (where + self.first_packet).tolist()
        out.time_ns, out.position = self.time_ns[where].tolist(), self.position[where].tolist()
        buffer, flows = self.buffer, self.flows
        starts, sizes = self.flow_at[where].tolist(), self.flow_size[where]
        if flows or (len(sizes) and sizes.min() != sizes.max()):
            spans = zip(where.tolist(), starts, sizes.tolist())
            out.flow = [flows[at] if at in flows else buffer[start : start + size] for at, start, size in spans]
        elif len(sizes):
            size = int(sizes[0])
            out.flow = [buffer[start : start + size] for start in starts]
        if self.others:
            out.buffers = {entry: self.others[at] for entry, at in enumerate(where.tolist()) if at in self.others}
        return out


def columns_of(batch: SegmentBatch) -> SegmentColumns:
    """Makes columns of the same segments, whose buffer is the part of the window that they need, followed by the flows."""
    import numpy as np

    first = batch.packet[0] if batch.packet else 1
    where = np.array(batch.packet, np.int64) - first
    count = len(batch)
    starts = [start for at, start in enumerate(batch.payload) if at not in batch.buffers]
    stops = [batch.payload[at] + size for at, size in enumerate(batch.captured) if at not in batch.buffers]
    low, high = min(starts, default=0), max(stops, default=0)
    buffer = b"".join((memoryview(batch.buffer)[low:high], *batch.flow))
    span = int(where.max()) + 1 if count else 0
    sizes = np.array([len(flow) for flow in batch.flow], np.int64)
    columns: list[Any] = []
    for values in (batch.time_ns, batch.position, np.cumsum(sizes) - sizes + high - low, sizes):
        column = np.zeros(span, np.int64)
        column[where] = values
        columns.append(column)
    numbers = np.zeros((len(NAMES), span), np.int64)
    for row, name in zip(numbers, NAMES):
        row[where] = getattr(batch, name)
    numbers[NAMES.index("payload"), np.delete(where, list(batch.buffers))] -= low
    state = np.full(span, ABSENT, np.uint8)
    state[where] = CLEAN
    times, positions, flow_at, flow_size = columns
    out = SegmentColumns(
        batch.file, first, buffer, np.frombuffer(buffer, np.uint8), times, positions, numbers, flow_at, flow_size, state
    )
    for entry, other in batch.buffers.items():
        out.others[int(where[entry])] = other
        out.flows[int(where[entry])] = batch.flow[entry]
        state[where[entry]] = SLOW
    return out
