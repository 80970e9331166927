"""Timers of streams that hold bytes behind a hole: which of them have waited long enough at a point in capture time.

In: streams whose held bytes changed. Out: the streams whose oldest held bytes are older than the reorder window. Law: a change
costs the logarithm of the number of waiting streams, and advancing time costs only what is due. Closed streams are not
referenced.

Acknowledgements, later segments and full buffers also decide holes, but the packet that brings them does so.
"""

from heapq import heappop, heappush

from kcap.limits import REORDER_NS
from kcap.net.tcp import Stream


class HoleTimers:
    """Streams with held bytes, ordered by the time at which their oldest hole may be given up."""

    def __init__(self) -> None:
        self._known: dict[Stream, tuple[int, int]] = {}
        """Stream -> its due time (ns) and the number of its entry in the heap; 0 if that entry is gone."""
        self._heap: list[tuple[int, int]] = []
        """Due time and number of each entry."""
        self._streams: dict[int, Stream] = {}
        """Number of an entry -> its stream."""
        self._count = 0

    def __contains__(self, stream: Stream) -> bool:
        return stream in self._known

    def watch(self, stream: Stream) -> None:
        """Registers the bytes that the stream holds now."""
        if not stream.held:
            self.forget(stream)
            return
        due = stream.held[0].time_ns + REORDER_NS
        known, entry = self._known.get(stream, (None, 0))
        if known == due:
            return
        if entry and known is not None and known <= due:
            return  # the earlier entry comes up first and then finds the later time
        self._push(stream, due, entry)

    def _push(self, stream: Stream, due: int, entry: int) -> None:
        self._streams.pop(entry, None)
        self._count += 1
        self._known[stream] = due, self._count
        self._streams[self._count] = stream
        heappush(self._heap, (due, self._count))

    def forget(self, stream: Stream) -> None:
        """Removes a stream that holds nothing any more or is closed."""
        _, entry = self._known.pop(stream, (0, 0))
        self._streams.pop(entry, None)

    def due(self, time_ns: int) -> list[Stream]:
        """Returns the streams whose oldest held bytes have waited for the reorder window, once for the same bytes."""
        found = []
        while self._heap and self._heap[0][0] <= time_ns:
            _, entry = heappop(self._heap)
            stream = self._streams.pop(entry, None)
            if stream is None:
                continue
            if not stream.held:
                del self._known[stream]
                continue
            due = stream.held[0].time_ns + REORDER_NS
            if due > time_ns:
                self._push(stream, due, 0)
            else:
                self._known[stream] = due, 0
                found.append(stream)
        return found
