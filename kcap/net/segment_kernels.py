"""The compiled version of the segment loop, for batches whose columns are numpy arrays.

In: a batch and its parser. Out: the segments that the plain loop gives. Law: the compiled loop equals the plain one. Packets
that are not of a simple form go through the parser's slow path, in order.
"""

from typing import Any, Protocol

import numpy as np

from kcap.kernels import compiled, uint16, uint32
from kcap.model import PacketBatch, SegmentBatch
from kcap.net.fragments import FragmentPlace
from kcap.net.sack_kernels import selective
from kcap.net.segment_columns import ABSENT, ACK_ALONE, ACK_RST_SYN, CLEAN, NAMES, SLOW, TIMESTAMPS, SegmentColumns

ETHERNET, SLL, SLL2, NULL, LOOP = 1, 113, 276, 0, 108


class PacketReader(Protocol):
    """Reads packets that are not of a simple form: a `kcap.net.segments.SegmentParser`."""

    def read_packet(self, place: FragmentPlace, buffer: bytes, start: int, captured: int, wire: int, link: int) -> Any: ...


def parse_arrays(batch: PacketBatch, parser: PacketReader) -> SegmentBatch:
    """As `SegmentParser.parse`."""
    found = parse_columns(batch, parser)
    return found.all()


def parse_columns(batch: PacketBatch, parser: PacketReader) -> SegmentColumns:
    """As `SegmentParser.columns`."""
    count = len(batch)
    columns = np.empty((len(NAMES), count), np.int64)
    flow_at = np.empty(count, np.int64)
    flow_size = np.empty(count, np.int64)
    state = np.empty(count, np.uint8)
    links: Any = np.full(count, batch.link) if isinstance(batch.link, int) else np.asarray(batch.link)
    data = np.frombuffer(batch.buffer, np.uint8)
    parse_packets(data, batch.start, batch.captured, links, columns, flow_at, flow_size, state)
    times: Any = batch.time_ns
    positions: Any = batch.position
    out = SegmentColumns(
        batch.file, batch.first_packet, batch.buffer, data, times, positions, columns, flow_at, flow_size, state
    )
    for index in np.flatnonzero(state == SLOW).tolist():
        found = read_slowly(batch, parser, index, int(links[index]))
        if found is None:
            state[index] = ABSENT
            continue
        out.flows[index], columns[:, index] = found[0], found[1:8]
        flow_at[index] = flow_size[index] = 0
        if found[8] is not None:
            out.others[index] = found[8]
    return out


def read_slowly(batch: PacketBatch, parser: PacketReader, index: int, link: int) -> Any:
    """Reads one packet on the slow path, with plain integers instead of numpy's."""
    place = FragmentPlace(batch.file, batch.first_packet + index, int(batch.position[index]), int(batch.time_ns[index]))
    start, captured, wire = int(batch.start[index]), int(batch.captured[index]), int(batch.wire[index])
    return parser.read_packet(place, batch.buffer, start, captured, wire, link)


@compiled
def ip_header(data: Any, at: int, end: int, link: int) -> int:
    """Returns the offset of the IP header; -1 if the plain path has to find it, -2 if there is none."""
    if link == ETHERNET:
        header, kind_at = 14, 12
    elif link == SLL:
        header, kind_at = 16, 14
    elif link == SLL2:
        header, kind_at = 20, 0
    elif link in (NULL, LOOP):
        return at + 4 if at + 24 <= end else -1
    elif link in (12, 14, 101, 228, 229):
        return at if at + 20 <= end else -1
    else:
        return -1
    if at + header + 20 > end:
        return -1
    kind = uint16(data, at + kind_at)
    at += header
    while kind in (0x8100, 0x88A8, 0x9100):
        if at + 24 > end:
            return -1
        kind = uint16(data, at + 2)
        at += 4
    if kind == 0x0800:
        return at if data[at] == 0x45 else -1
    if kind == 0x86DD:
        return at if data[at] >> 4 == 6 else -1
    return -2 if kind in (0x0806, 0x88CC) else -1


@compiled
def flags_of(data: Any, tcp: int, end: int) -> int:
    """Returns the flags of a header with 12 or more bytes of options, with what its selective acknowledgement reports."""
    flags = int(data[tcp + 13])
    if flags & ACK_RST_SYN != ACK_ALONE or (end - tcp == 32 and uint32(data, tcp + 20) == TIMESTAMPS):
        return flags
    return int(flags | selective(data, tcp + 20, end, uint32(data, tcp + 8)))


@compiled
def parse_packets(
    data: Any, starts: Any, sizes: Any, links: Any, columns: Any, flow_at: Any, flow_size: Any, state: Any
) -> None:
    """Parses Ethernet, cooked, null and raw packets with TCP in IPv4 without options or IPv6 without extensions, also inside
    VXLAN.
    """
    for index in range(starts.size):
        start = starts[index]
        end = start + sizes[index]
        link = links[index]
        state[index] = SLOW
        at = ip_header(data, start, end, link)
        while at >= 0 and data[at] == 0x45 and data[at + 9] == 17 and uint16(data, at + 6) & 0x3FFF == 0:
            total = uint16(data, at + 2)
            if total < 28 or at + 28 > end:
                at = -1
                break
            end = min(end, at + total)
            port = uint16(data, at + 22)
            if port not in (4789, 8472):
                known = port in (4790, 6081, 2152, 4754, 5247, 6635) or uint16(data, at + 20) == 5247
                at = -1 if known else -2  # the ports that `tunnels.read_udp` knows
            elif at + 36 > end:
                at = -1
            elif data[at + 28] & 0x08 == 0:
                at = -2
            else:
                at = ip_header(data, at + 36, end, ETHERNET)
        if at < 0:
            if at == -2:
                state[index] = ABSENT
            continue
        if data[at] == 0x45:
            if data[at + 9] != 6 or uint16(data, at + 6) & 0x3FFF != 0:
                continue
            flow, size, tcp, total = at + 12, 12, at + 20, uint16(data, at + 2) - 20
        elif data[at] >> 4 == 6:
            if at + 60 > end or data[at + 6] != 6:
                continue
            flow, size, tcp, total = at + 8, 36, at + 40, uint16(data, at + 4)
        else:
            continue
        if tcp + 20 > end:
            continue
        header = int(data[tcp + 12]) >> 4 << 2
        length = total - header
        if header < 20 or length < 0:
            continue
        payload = tcp + header
        room = max(end - payload, 0)
        flow_at[index] = flow
        flow_size[index] = size
        columns[0, index] = uint32(data, tcp + 4)
        columns[1, index] = uint32(data, tcp + 8)
        columns[2, index] = data[tcp + 13] if header < 32 else flags_of(data, tcp, min(payload, end))
        columns[3, index] = uint16(data, tcp + 14)
        columns[4, index] = payload
        columns[5, index] = min(room, length)
        columns[6, index] = length
        state[index] = CLEAN
