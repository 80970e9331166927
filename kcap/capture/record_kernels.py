"""Compiled loops over records and blocks.

In: a window. Out: the batches that the plain readers give, with their columns as numpy arrays; where the loop stopped, and the
bytes needed to go on (0: the batch is full, -1: the kernel does not handle the block). Law: the compiled loop equals the plain
one. Whatever is not an ordinary packet record is left to the plain reader at its position.
"""

from typing import Any

import numpy as np

from kcap.capture.sections import Interface
from kcap.capture.window import FileWindow
from kcap.kernels import compiled, uint32
from kcap.limits import BATCH_PACKETS_MAX
from kcap.model import PacketBatch

PACKET_HEADER = 28


def hop_pcap(
    window: FileWindow, at: int, big: bool, interface: Interface, file: int, first_packet: int
) -> tuple[PacketBatch, int, int]:
    """As `PcapReader._hop`."""
    header = interface.record_header
    columns: Any = np.empty((4, BATCH_PACKETS_MAX), np.int64)
    count, at, need = pcap_records(np.frombuffer(window.buffer, np.uint8), at, big, header, interface.multiplier, columns)
    times, starts, sizes, lengths = columns[:, :count]
    positions = starts + (window.base - header)
    return PacketBatch(file, first_packet, window.buffer, times, starts, sizes, lengths, positions, interface.link), at, need


def hop_pcapng(
    window: FileWindow, at: int, big: bool, interfaces: list[Interface], file: int, first_packet: int
) -> tuple[PacketBatch, int, int]:
    """Reads packet blocks from `at` on."""
    columns: Any = np.empty((5, BATCH_PACKETS_MAX), np.int64)
    clocks = np.array([(each.multiplier, each.offset_ns, each.high_limit()) for each in interfaces], np.int64)
    count, at, need = pcapng_packets(np.frombuffer(window.buffer, np.uint8), at, big, clocks, columns)
    times, starts, sizes, lengths, numbers = columns[:, :count]
    positions = starts + (window.base - PACKET_HEADER)
    links = [each.link for each in interfaces]
    link = links[0] if len(set(links)) == 1 else np.array(links)[numbers].tolist()
    return PacketBatch(file, first_packet, window.buffer, times, starts, sizes, lengths, positions, link), at, need


@compiled
def word(data: Any, at: int, big: bool) -> int:
    """An unsigned 32-bit integer in the byte order of the file."""
    if big:
        return int(uint32(data, at))
    return int(data[at + 3]) << 24 | int(data[at + 2]) << 16 | int(data[at + 1]) << 8 | int(data[at])


@compiled
def pcap_records(data: Any, at: int, big: bool, header: int, unit: int, columns: Any) -> tuple[int, int, int]:
    """Reads records of a pcap file."""
    available, count, room = data.size, 0, columns.shape[1]
    while count < room:
        if at + header > available:
            return count, at, header
        size = word(data, at + 8, big)
        end = at + header + size
        if end > available:
            return count, at, end - at
        columns[0, count] = word(data, at, big) * 1_000_000_000 + word(data, at + 4, big) * unit
        columns[1, count] = at + header
        columns[2, count] = size
        columns[3, count] = max(size, word(data, at + 12, big))
        count += 1
        at = end
    return count, at, 0


@compiled
def pcapng_packets(data: Any, at: int, big: bool, clocks: Any, columns: Any) -> tuple[int, int, int]:
    """Reads enhanced packet blocks of a pcapng section whose clocks tick in whole nanoseconds."""
    available, count, room = data.size, 0, columns.shape[1]
    while count < room:
        if at + 28 > available or word(data, at, big) != 6:
            return count, at, -1
        total, interface, high = word(data, at + 4, big), word(data, at + 8, big), word(data, at + 12, big)
        size = word(data, at + 20, big)
        end = at + total
        if end > available or total & 3 or size > total - 32 or interface >= clocks.shape[0] or high >= clocks[interface, 2]:
            return count, at, -1
        columns[0, count] = (high << 32 | word(data, at + 16, big)) * clocks[interface, 0] + clocks[interface, 1]
        columns[1, count] = at + 28
        columns[2, count] = size
        columns[3, count] = max(size, word(data, at + 24, big))
        columns[4, count] = interface
        count += 1
        at = end
    return count, at, 0


@compiled
def copy_pieces(source: Any, starts: Any, sizes: Any, out: Any) -> None:
    """As `kcap.distributed.stripping.gather`."""
    at = 0
    for place in range(starts.size):
        start, size = starts[place], sizes[place]
        for k in range(size):
            out[at + k] = source[start + k]
        at += size
