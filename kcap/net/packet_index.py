"""Finds packets by number, for filters on `frame.number`.

In: numbers and ranges of numbers, then the segments of a capture as they are parsed. Out: for each file and flow, number and
position of the wanted packets that carry data. Law: the result is the same whether segments come as columns or as lists.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from kcap.model import SegmentBatch
from kcap.net.segment_columns import ABSENT, SegmentColumns

Found = dict[tuple[int, bytes], list[tuple[int, int]]]
"""(file, flow) -> (packet number, position) of each packet."""


class PacketIndex:
    """The wanted packets found so far."""

    def __init__(self, numbers: Iterable[int], ranges: Iterable[tuple[int, int]]) -> None:
        self._singles = sorted(numbers)
        self._ranges = list(ranges)
        self.found: Found = {}

    def take(self, segments: SegmentColumns | SegmentBatch) -> None:
        """Looks for wanted packets in a batch."""
        batch = self._batch(segments)
        if batch is None:
            return
        for number, flow, position, length in zip(batch.packet, batch.flow, batch.position, batch.length):
            if length and self.wants(number):
                self.found.setdefault((batch.file, flow), []).append((number, position))

    def wants(self, number: int) -> bool:
        """Whether the packet with this number is wanted."""
        return self._wanted(number, number + 1)

    def _batch(self, segments: SegmentColumns | SegmentBatch) -> SegmentBatch | None:
        if isinstance(segments, SegmentBatch):
            return segments
        first = segments.first_packet
        if not self._wanted(first, first + len(segments)):
            return None
        where: Sequence[int] = (segments.state != ABSENT).nonzero()[0].tolist()
        here = [at for at in where if self.wants(first + at)]
        import numpy as np

        return segments.lists(np.array(here, np.int64))

    def _wanted(self, first: int, stop: int) -> bool:
        """Whether any number of a range is wanted."""
        at = bisect_left(self._singles, first)
        one = at < len(self._singles) and self._singles[at] < stop
        return one or any(low < stop and high >= first for low, high in self._ranges)
