"""The compiled twin of the segment loop, for batches whose columns are numpy arrays.

In: a batch and its parser. Out: the same segments as the plain loop gives. Law: jitted = plain. Packets off the clean path go
through the parser's slow path, in order.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kcap.model import PacketBatch, SegmentBatch
from kcap.net.kernels import ABSENT, CLEAN, SLOW, parse_packets

if TYPE_CHECKING:
    from kcap.net.segments import SegmentParser

COLUMNS = ("seq", "ack", "flags", "window", "payload", "captured", "length")


def parse_arrays(batch: PacketBatch, parser: "SegmentParser") -> SegmentBatch:
    """As `SegmentParser.parse`."""
    count = len(batch)
    columns = np.empty((len(COLUMNS), count), np.int64)
    flow_at = np.empty(count, np.int64)
    flow_size = np.empty(count, np.int64)
    state = np.empty(count, np.uint8)
    links: Any = np.full(count, batch.link) if isinstance(batch.link, int) else np.asarray(batch.link)
    data = np.frombuffer(batch.buffer, np.uint8)
    parse_packets(data, batch.start, batch.captured, links, columns, flow_at, flow_size, state)
    out = SegmentBatch(batch.file, batch.buffer)
    flows: dict[int, bytes] = {}
    others: dict[int, bytes] = {}
    for index in np.flatnonzero(state == SLOW).tolist():
        found = read_slowly(batch, parser, index, int(links[index]))
        if found is None:
            state[index] = ABSENT
            continue
        flows[index], columns[:, index] = found[0], found[1:8]
        if found[8] is not None:
            others[index] = found[8]
    present = state != ABSENT
    kept = columns if present.all() else columns[:, present]
    for name, column in zip(COLUMNS, kept.tolist()):
        setattr(out, name, column)
    where = np.flatnonzero(present)
    out.packet = (where + batch.first_packet).tolist()
    times: Any = batch.time_ns
    positions: Any = batch.position
    out.time_ns, out.position = times[where].tolist(), positions[where].tolist()
    buffer, starts, sizes = batch.buffer, flow_at[where].tolist(), flow_size[where]
    if flows or (len(sizes) and sizes.min() != sizes.max()):
        out.flow = [
            buffer[start : start + size] if size else flows[index]
            for index, start, size in zip(where.tolist(), starts, np.where(state[where] == CLEAN, sizes, 0).tolist())
        ]
    elif len(sizes):
        size = int(sizes[0])
        out.flow = [buffer[start : start + size] for start in starts]
    if others:
        out.buffers = {int(np.searchsorted(where, index)): other for index, other in others.items()}
    return out


def read_slowly(batch: PacketBatch, parser: "SegmentParser", index: int, link: int) -> Any:
    """One packet, with plain integers instead of numpy's."""
    one = PacketBatch(
        batch.file,
        batch.first_packet + index,
        batch.buffer,
        [int(batch.time_ns[index])],
        [int(batch.start[index])],
        [int(batch.captured[index])],
        [int(batch.wire[index])],
        [int(batch.position[index])],
        link,
    )
    return parser.read_packet(one, 0, link)
