"""Compiled loops over records and blocks, loaded when a capture is large enough to pay for numba's import.

In: a window. Out: the same batches as the plain readers give, their columns as numpy arrays. Law: jitted = plain. Whatever is
not an ordinary packet record is left to the plain reader, at the place where it stands.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from kcap.capture.reader import Interface
from kcap.capture.window import Window
from kcap.limits import BATCH_PACKETS_MAX
from kcap.model import PacketBatch

BLOCK_OTHER = -1


class Kernels:
    """The compiled loops, and numpy to feed them."""

    def __init__(self, numpy: Any, pcap: Callable[..., Any], pcapng: Callable[..., Any]) -> None:
        self._numpy = numpy
        self._pcap = pcap
        self._pcapng = pcapng

    def hop_pcap(
        self, window: Window, at: int, big: bool, interface: Interface, file: int, first_packet: int
    ) -> tuple[PacketBatch, int, int]:
        """As `PcapReader._hop`."""
        numpy, header, unit, link = self._numpy, interface.record_header, interface.multiplier, interface.link
        columns = numpy.empty((4, BATCH_PACKETS_MAX), numpy.int64)
        count, at, need = self._pcap(numpy.frombuffer(window.buffer, numpy.uint8), at, big, header, unit, columns)
        times, starts, sizes, lengths = columns[:, :count]
        positions = starts + (window.base - header)
        return PacketBatch(file, first_packet, window.buffer, times, starts, sizes, lengths, positions, link), at, need

    def hop_pcapng(
        self, window: Window, at: int, big: bool, interfaces: list[Interface], file: int, first_packet: int
    ) -> tuple[PacketBatch, int, int]:
        """Packet blocks from `at` on; need is BLOCK_OTHER where another kind of block stands."""
        from kcap.capture.pcapng import PACKET_HEADER, ticks_high_limit

        numpy = self._numpy
        columns = numpy.empty((5, BATCH_PACKETS_MAX), numpy.int64)
        clocks = numpy.array([(i.multiplier, i.offset_ns, ticks_high_limit(i)) for i in interfaces], numpy.int64)
        count, at, need = self._pcapng(numpy.frombuffer(window.buffer, numpy.uint8), at, big, clocks, columns)
        times, starts, sizes, lengths, numbers = columns[:, :count]
        positions = starts + (window.base - PACKET_HEADER)
        links = [interface.link for interface in interfaces]
        link = links[0] if len(set(links)) == 1 else numpy.array(links)[numbers].tolist()
        return PacketBatch(file, first_packet, window.buffer, times, starts, sizes, lengths, positions, link), at, need


@cache
def load_kernels() -> Kernels | None:
    """The kernels, or None where numba cannot be imported or has no place for its cache."""
    try:
        import numpy as np

        from kcap.capture.kernels import hop_pcap, hop_pcapng
    except (ImportError, RuntimeError):
        return None
    return Kernels(np, hop_pcap, hop_pcapng)
