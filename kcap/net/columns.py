"""TCP segments as numpy columns: what the compiled parser finds, before anything becomes a Python object.

In: the parser's arrays. Out: the same segments as `SegmentBatch`, all of them or those at some places. Law: `lists` of everything is
what the plain parser gives.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kcap.model import SegmentBatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

ABSENT, CLEAN, SLOW = 0, 1, 2
"""What is known of a packet: no segment, one whose flow stands in the buffer, or one whose flow stands in `flows`."""
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
    """A row each of `NAMES`."""
    flow_at: "Int64s"
    flow_size: "Int64s"
    state: "NDArray[np.uint8]"
    flows: dict[int, bytes] = field(default_factory=dict)
    """Flows of entries that were read the slow way."""
    others: dict[int, bytes] = field(default_factory=dict)
    """Buffers of entries whose payload is not in `buffer`: reassembled IP fragments."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def lists(self, where: "Int64s") -> SegmentBatch:
        """The segments at these places, in this order."""
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
