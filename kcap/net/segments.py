"""Finds TCP segments: packets of any link type in, segments as columns out.

The loop reads Ethernet, cooked, null and raw packets with IPv4 or IPv6 and TCP in one unpack. Every other packet takes the slow
path through `link`, `ip` and `tunnels`, in order. If the reader's columns are numpy arrays, the compiled loop of
`segment_kernels` is used. Law: all three give the same segments; no bytes raise an exception; packets that are not TCP give
nothing.
"""

from collections.abc import Sequence
from itertools import compress, groupby
from struct import Struct

from kcap.model import PacketBatch, SegmentBatch
from kcap.net.fragments import FragmentPlace, FragmentTable
from kcap.net.ip import TCP, read_ip
from kcap.net.link import LINK_ETHERNET, LINK_LOOP, LINK_NULL, LINK_RAW, LINK_SLL, LINK_SLL2, VLANS, read_link
from kcap.net.packet_cursor import PacketCursor, Report
from kcap.net.segment_columns import ACK_ALONE, ACK_RST_SYN, TIMESTAMPS, SegmentColumns
from kcap.net.tunnels import read_tunnel
from kcap.weird import WeirdKind

HEADER = Struct(">4xIIBB").unpack_from
HEADER_LEAST = 14
"""Bytes of a TCP header up to its flags; with fewer, a segment has no place in its stream."""
WINDOW_UNKNOWN = -1
TIMESTAMPS_BYTES = TIMESTAMPS.to_bytes(4, "big")

# From the ethertype (or the IP version): guard, total length, fragment and protocol, flow, seq, ack, offset, flags, window.
V4_AFTER_GUARD = "HxxIxx12sIIBBH"
V6 = Struct(">4xHBx36sIIBBH").unpack_from


class LinkLayout:
    """Where a link type has its IP header, and the value expected of the four (or two) bytes up to the type of service."""

    __slots__ = ("header", "kind_at", "mask4", "mask6", "tagged", "unpack", "want4", "want6")

    def __init__(self, header: int, kind_at: int | None) -> None:
        self.header = header
        self.kind_at = kind_at
        self.tagged = kind_at is not None and kind_at == header - 2
        self.unpack = Struct(f">{header - 2}xI{V4_AFTER_GUARD}" if self.tagged else f">{header}xH{V4_AFTER_GUARD}").unpack_from
        self.mask4, self.want4 = (0xFFFFFF00, 0x08004500) if self.tagged else (0xFF00, 0x4500)
        self.mask6, self.want6 = (0xFFFFF000, 0x86DD6000) if self.tagged else (0xF000, 0x6000)


LAYOUTS = (
    {LINK_ETHERNET: LinkLayout(14, 12), LINK_SLL: LinkLayout(16, 14), LINK_SLL2: LinkLayout(20, 0)}
    | dict.fromkeys((LINK_NULL, LINK_LOOP), LinkLayout(4, None))
    | dict.fromkeys(LINK_RAW, LinkLayout(0, None))
)
UNMISTAKABLE = frozenset((b"\x08\x00", b"\x86\xdd", b"\x08\x06"))
"""Ethertypes that the payload's first byte distinguishes: IPv4, IPv6, and ARP, which starts with 0."""
TAGS = VLANS
Segment = tuple[bytes, int, int, int, int, int, int, int, bytes | None]
"""Flow, seq, ack, flags, window, payload, captured, length, and the buffer if it is not the packet's."""
SLOW = 1 << 62
"""More bytes than any packet has, so that the loop leaves all packets to the slow path."""


class SegmentParser:
    """Finds the TCP segments of packets. Its state, the incomplete IP fragments, can be pickled."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.fragments = FragmentTable()

    def columns(self, batch: PacketBatch) -> SegmentBatch | SegmentColumns:
        """Returns the segments of a batch, as columns if the compiled loop reads them."""
        if isinstance(batch.time_ns, list):
            return self.parse(batch)
        from kcap.net.segment_kernels import parse_columns

        return parse_columns(batch, self)

    def parse(self, batch: PacketBatch) -> SegmentBatch:
        """Returns the segments of a batch, in its order."""
        if not isinstance(batch.time_ns, list):
            from kcap.net.segment_kernels import parse_arrays

            return parse_arrays(batch, self)
        out = SegmentBatch(batch.file, batch.buffer)
        count = len(batch)
        absent: list[int] = []
        if isinstance(batch.link, int):
            self._scan(batch, batch.link, 0, count, out, absent)
        else:
            first = 0
            for link, run in groupby(batch.link):
                last = first + sum(1 for _ in run)
                self._scan(batch, link, first, last, out, absent)
                first = last
        numbers: Sequence[int] = range(batch.first_packet, batch.first_packet + count)
        if not absent:
            out.packet, out.time_ns, out.position = list(numbers), batch.time_ns, list(batch.position)
            return out
        present = bytearray(b"\x01") * count
        for index in absent:
            present[index] = 0
        out.packet = list(compress(numbers, present))
        out.time_ns = list(compress(batch.time_ns, present))
        out.position = list(compress(batch.position, present))
        return out

    def finish(self) -> None:
        """Ends the capture: incomplete fragments are reported."""
        self.fragments.finish(self.report)

    def _scan(self, batch: PacketBatch, link: int, first: int, last: int, out: SegmentBatch, absent: list[int]) -> None:
        """Reads packets `first` to `last`, which are all of one link type, and adds those that are not segments to `absent`."""
        buffer = batch.buffer
        layout, least4, least6 = choose_layout(batch, link, first, last)
        unpack, unpack6, tagged, header = layout.unpack, V6, layout.tagged, layout.header
        mask4, want4, mask6, want6 = layout.mask4, layout.want4, layout.mask6, layout.want6
        add_flow, add_seq, add_ack, add_flags = out.flow.append, out.seq.append, out.ack.append, out.flags.append
        add_window, add_payload, add_captured, add_length = (
            out.window.append,
            out.payload.append,
            out.captured.append,
            out.length.append,
        )
        whole = first == 0 and last == len(batch)
        starts, sizes = (batch.start, batch.captured) if whole else (batch.start[first:last], batch.captured[first:last])
        index = first - 1
        for start, size in zip(starts, sizes):
            index += 1
            length = -1  # of options and payload, if one unpack reads the segment
            if size >= least4:
                guard, total, carried, flow, seq, ack, offset, flags, window = unpack(buffer, start)
                after = start + least4
                fits = guard & mask4 == want4
                if not fits and tagged and guard >> 16 in TAGS and size >= least4 + 4:
                    guard, total, carried, flow, seq, ack, offset, flags, window = unpack(buffer, start + 4)
                    after += 4
                    fits = guard & mask4 == want4
                if fits:
                    if carried & 0x3FFF00FF == TCP:
                        length = total - 40
                elif guard & mask6 == want6 and size >= least6 and after == start + least4:
                    total, carried, flow, seq, ack, offset, flags, window = unpack6(buffer, start + header)
                    after = start + header + 60
                    if carried == TCP:
                        length = total - 20
            if length >= 0 and 0 <= (rest := (offset >> 2 & 60) - 20) <= length:
                if rest > 11:
                    flags |= reported(buffer, after, min(after + rest, start + size), flags, ack)
                after += rest
                length -= rest
                room = start + size - after
                captured = length if length <= room else room if room > 0 else 0
            else:
                place = FragmentPlace(batch.file, batch.first_packet + index, batch.position[index], batch.time_ns[index])
                found = self.read_packet(place, buffer, start, size, batch.wire[index], link)
                if found is None:
                    absent.append(index)
                    continue
                flow, seq, ack, flags, window, after, captured, length, other = found
                if other is not None:
                    out.buffers[len(out.flow)] = other
            add_flow(flow)
            add_seq(seq)
            add_ack(ack)
            add_flags(flags)
            add_window(window)
            add_payload(after)
            add_captured(captured)
            add_length(length)

    def read_packet(
        self, place: FragmentPlace, buffer: bytes, start: int, captured: int, wire: int, link: int
    ) -> Segment | None:
        """Reads one packet on the slow path."""
        cursor = PacketCursor(buffer, start, start + captured, start + wire)
        kind = read_link(link, cursor)
        while kind:
            protocol = read_ip(kind, cursor, self.fragments, place, self.report)
            if protocol == TCP:
                found = read_tcp(cursor)
                if found is not None:
                    return *found, None if cursor.buffer is buffer else cursor.buffer
                break
            kind = read_tunnel(protocol, cursor)
        if cursor.fault is not None:
            detail = f"{cursor.fault_detail}; {captured} of {wire} bytes captured"
            self.report(cursor.fault, detail, place.file, place.packet, place.position)
        return None


def reported(buffer: bytes, at: int, end: int, flags: int, ack: int) -> int:
    """Returns what the selective acknowledgement in 12 or more bytes of options reports. Not compiled, since few have one."""
    if flags & ACK_RST_SYN != ACK_ALONE or (end - at <= 12 and buffer[at : at + 4] == TIMESTAMPS_BYTES):
        return 0
    from kcap.net import sack_kernels

    return int(sack_kernels.selective.py_func(buffer, at, end, ack))


def choose_layout(batch: PacketBatch, link: int, first: int, last: int) -> tuple[LinkLayout, int, int]:
    """Returns the layout of a link type, and the packet sizes from which it applies to IPv4 and IPv6."""
    layout = LAYOUTS.get(link)
    if layout is None:
        return LAYOUTS[LINK_ETHERNET], SLOW, SLOW
    if layout.kind_at is not None and not layout.tagged:
        buffer, at = batch.buffer, layout.kind_at
        kinds = {buffer[start + at : start + at + 2] for start in batch.start[first:last]}
        if not kinds <= UNMISTAKABLE:
            return layout, SLOW, SLOW
    return layout, layout.header + 40, layout.header + 60


def read_tcp(cursor: PacketCursor) -> tuple[bytes, int, int, int, int, int, int, int] | None:
    """Reads a TCP header (RFC 9293 section 3.1). One that is cut behind its flags still gives the segment's place and size."""
    if not cursor.have(HEADER_LEAST, "TCP"):
        return None
    at, buffer = cursor.at, cursor.buffer
    seq, ack, offset, flags = HEADER(buffer, at)
    size = offset >> 2 & 60
    length = cursor.stop - at - size
    if size < 20 or length < 0:
        cursor.fail(WeirdKind.PACKET_MALFORMED, "TCP header contradicts its datagram")
        return None
    if size > 31:
        flags |= reported(buffer, at + 20, min(at + size, cursor.end), flags, ack)
    window = cursor.short(14) if at + 16 <= cursor.end else WINDOW_UNKNOWN
    captured = min(max(cursor.end - at - size, 0), length)
    return cursor.addresses + buffer[at : at + 4], seq, ack, flags, window, at + size, captured, length
