"""Lengths of packets on the wire, stored while a capture is read: Wireshark's `frame.len`.

In: batches of packets. Out: the length of a packet by its file and number. Law: a packet takes 4 bytes of a temporary file, and
a batch 16 bytes of memory. Lengths are stored only if they are requested.
"""

import tempfile
from array import array
from bisect import bisect_right
from typing import Final

import numpy as np

from kcap.model import PacketBatch

WIDTH: Final = 4
"""Bytes of a length: no packet is longer than 2 ** 31 bytes."""


class FrameLengths:
    """The lengths of all packets that were read so far."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryFile(prefix="kcap-")  # noqa: SIM115 - see close
        self._end = 0
        self._first: dict[int, array[int]] = {}
        """File -> number of the first packet of each batch."""
        self._starts: dict[int, array[int]] = {}
        """File -> position of the lengths of each batch."""

    def take(self, packets: PacketBatch) -> None:
        """Stores the lengths of a batch."""
        self._first.setdefault(packets.file, array("q")).append(packets.first_packet)
        self._starts.setdefault(packets.file, array("q")).append(self._end)
        self._kept.seek(self._end)
        self._end += self._kept.write(np.asarray(packets.wire, np.dtype("<i4")).tobytes())

    def close(self) -> None:
        """Closes the temporary file."""
        self._kept.close()

    def of(self, file: int, packet: int) -> int:
        """Length on the wire, in bytes, of a packet that was read."""
        batch = bisect_right(self._first[file], packet) - 1
        self._kept.seek(self._starts[file][batch] + WIDTH * (packet - self._first[file][batch]))
        return int.from_bytes(self._kept.read(WIDTH), "little")
