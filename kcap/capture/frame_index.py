"""Index of the packets that carry each direction's bytes, for frames whose packets are interleaved with many others.

In: ranges of files. Out: the bytes of a direction from one position of a file to another. Law: no part of a file is read twice
to build the index, and memory does not grow with the file: the entry of each packet with data is in an unnamed file, sorted by
direction.
"""

import os
import tempfile
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from random import SystemRandom
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import numpy as np

from kcap.capture.fileset import ignore
from kcap.capture.packet_source import PacketSource
from kcap.limits import CHUNK_GAP_BYTES, FIRST_WINDOW_BYTES, INDEX_READ_PACKETS, INDEX_RUN_PACKETS, REREAD_AT_ONCE_BYTES
from kcap.model import PacketBatch, SegmentBatch
from kcap.net.segment_columns import CLEAN, NAMES, SegmentColumns, columns_of
from kcap.net.segments import SegmentParser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.capture.frame_location import FrameLocation

    Entries = NDArray[np.void]

ENTRY = np.dtype(
    [("flow", "<u8"), ("position", "<i8"), ("time_ns", "<i8"), ("payload", "<i8"), ("seq", "<u4"), ("captured", "<u4")]
)
"""A packet with data. Its payload is at a position of the file. For a reassembled datagram, it is in the index's own file, and
the position is stored as its bitwise inverse.
"""
NO_ENTRIES = np.empty(0, ENTRY)
FACTOR = SystemRandom().getrandbits(64) | 1
"""Chosen anew by each process, so that addresses with equal sums cannot be crafted."""
SEQ, CAPTURED, LENGTH, PAYLOAD = (NAMES.index(name) for name in ("seq", "captured", "length", "payload"))


class IndexRun(NamedTuple):
    """Entries of all packets with data from one position of a file to another."""

    first: int
    last: int
    """Positions of the first and last packets. If another run begins right behind `last`, there are no unknown packets between
    the two.
    """
    at: int
    """Position in the index's own file."""
    packets: int
    marks: list[tuple[int, int]]
    """Direction and position of every INDEX_READ_PACKETS-th entry; entries are sorted by these."""


class IndexedPiece(NamedTuple):
    """Payload of one packet, or of several consecutive ones."""

    seq: int
    data: bytes | memoryview
    time_ns: int


class FrameIndex:
    """The packets with data of the requested parts of a capture's files."""

    def __init__(self, source: PacketSource) -> None:
        self._source = source
        self._runs: dict[int, list[IndexRun]] = {}
        """The runs of each file, in order and without overlap."""
        self._scratch = tempfile.TemporaryFile(prefix="kcap-", buffering=0)  # noqa: SIM115 - it lives as long as the index
        finalize(self, self._scratch.close)
        self._end = 0
        self._fragmented: set[int] = set()

    def covers(self, file: int, low: int, high: int) -> bool:
        """Reads the parts between two packets that are not indexed yet. Returns whether all of it is indexed; it cannot be if
        fragments of a datagram lie on both sides of an end.
        """
        if file in self._fragmented:
            return False
        begin, at = low, low
        for run in self._among(file, low, high):
            if run.first > at:
                self._read(file, begin, run.first, known=at - 1, end=run.first - 1)
            begin, at = run.last, run.last + 1
        if at <= high:
            self._read(file, begin, high, known=at - 1, end=high)
        return file not in self._fragmented

    def pieces(self, file: int, flow: bytes, low: int, high: int) -> Iterator[IndexedPiece]:
        """Yields the payloads of packets of a direction, in the order of the file."""
        have, data = 0, b""
        for some in self._entries(file, flow, low, high):
            places = some["payload"].tolist()
            columns = zip(places, [*places[1:], -1], some["seq"].tolist(), some["captured"].tolist(), some["time_ns"].tolist())
            for place, following, seq, size, time in columns:
                if place < 0:
                    yield IndexedPiece(seq, self._stored(~place, size), time)
                    continue
                if not have <= place <= place + size <= have + len(data):
                    near = 0 <= following - place - size <= CHUNK_GAP_BYTES
                    have, data = place, self._source.read_bytes(file, max(size, FIRST_WINDOW_BYTES) if near else size, place)
                yield IndexedPiece(seq, data[place - have : place - have + size], time)

    def joined(self, file: int, places: Sequence["FrameLocation"]) -> list[list[IndexedPiece]]:
        """The same for several frames, read in the order of the file. Consecutive packets that came at the time of a frame's
        first byte are one piece, and so are consecutive others. Empty for a frame whose packets are not consecutive in the
        stream.
        """
        pieces: list[list[IndexedPiece]] = [[] for _ in places]
        chosen: list[tuple[int, Entries]] = []
        room = REREAD_AT_ONCE_BYTES
        for number, place in enumerate(places):
            some = np.concatenate([NO_ENTRIES, *self._entries(file, place.flow, place.low, place.high)])
            follow = len(some) and some["payload"].min() >= 0 and (np.diff(some["seq"]) == some["captured"][:-1]).all()
            size = int(some["captured"].sum(dtype=np.int64))
            if follow and size <= room:
                chosen.append((number, some))
                room -= size
        content = self._content(file, np.concatenate([some for _, some in chosen])) if chosen else b""
        at = 0
        for number, some in chosen if content else ():
            begins = some["time_ns"] == places[number].first_ns
            cuts = np.flatnonzero(np.diff(begins, prepend=not begins[0]))
            ends = at + np.cumsum(some["captured"], dtype=np.int64)
            starts = [*(ends - some["captured"])[cuts].tolist(), int(ends[-1])]
            data = [content[begin:end] for begin, end in pairwise(starts)]
            pieces[number] = list(map(IndexedPiece, some["seq"][cuts].tolist(), data, some["time_ns"][cuts].tolist()))
            at = starts[-1]
        return pieces

    def _content(self, file: int, entries: "Entries") -> memoryview:
        """The concatenated payloads of packets; empty if the file lacks some of them."""
        sizes = entries["captured"].astype(np.int64)
        content = memoryview(bytearray(int(sizes.sum())))
        order = np.argsort(entries["payload"], kind="stable")
        places, sizes, targets = (column[order] for column in (entries["payload"], sizes, sizes.cumsum() - sizes))
        ends = places + sizes
        apart = (places[1:] - ends[:-1] > CHUNK_GAP_BYTES) | (np.diff(places // FIRST_WINDOW_BYTES) > 0)
        for low, high in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(entries)]):
            begin, end = int(places[low]), int(ends[low:high].max())
            block = memoryview(self._source.read_bytes(file, end - begin, begin))
            if len(block) < end - begin:
                return memoryview(b"")
            columns = ((places[low:high] - begin).tolist(), sizes[low:high].tolist(), targets[low:high].tolist())
            for place, size, target in zip(*columns):
                content[target : target + size] = block[place : place + size]
        return content

    def _among(self, file: int, low: int, high: int) -> list[IndexRun]:
        runs = self._runs.setdefault(file, [])
        begin = bisect_left(runs, low, key=attrgetter("last"))
        return runs[begin : bisect_right(runs, high, key=attrgetter("first"))]

    def _entries(self, file: int, flow: bytes, low: int, high: int) -> Iterator["Entries"]:
        """Yields the entries of a direction between two positions, some at a time."""
        wanted = sum_of(flow)
        for run in self._among(file, low, high):
            begin = max(bisect_left(run.marks, (wanted, low)) - 1, 0)
            end = bisect_right(run.marks, (wanted, high), lo=begin)
            for mark in range(begin, end):
                first = mark * INDEX_READ_PACKETS
                some = self._of_run(run, first, min(run.packets, first + INDEX_READ_PACKETS))
                position = some["position"]
                yield some[(some["flow"] == wanted) & (position >= low) & (position <= high)]

    def _of_run(self, run: IndexRun, first: int, end: int) -> "Entries":
        return np.frombuffer(self._stored(run.at + first * ENTRY.itemsize, (end - first) * ENTRY.itemsize), ENTRY)

    def _stored(self, at: int, size: int) -> bytes:
        return os.pread(self._scratch.fileno(), size, at)

    def _store(self, data: Any) -> int:
        """Appends data to the index's file; returns its position."""
        at = self._end
        with memoryview(data).cast("B") as view:
            while self._end < at + len(view):
                self._end += os.pwrite(self._scratch.fileno(), view[self._end - at :], self._end)
        return at

    def _read(self, file: int, begin: int, high: int, *, known: int, end: int) -> None:
        """Reads packets from one at `begin` to one at `high`, and takes those behind `known`, up to `end`."""
        parser = SegmentParser(ignore)
        waiting: list[Entries] = []
        first, reached = known + 1, known
        for base, batch in self._source.placed(file, begin, high):
            some = self._entries_of(base, batch, parser)
            waiting.append(some[(some["position"] > known) & (some["position"] <= end)])
            reached = int(batch.position[-1])
            if first <= reached < high and sum(map(len, waiting)) >= INDEX_RUN_PACKETS:
                self._add(file, first, reached, waiting)
                waiting, first = [], reached + 1
        last = end if reached >= high else reached
        if first <= last:
            self._add(file, first, last, waiting)
        if parser.fragments.datagrams:
            self._fragmented.add(file)

    def _add(self, file: int, first: int, last: int, waiting: list["Entries"]) -> None:
        """Adds a run. It is joined with neighbours of similar size, so that there are few runs."""
        runs, run = self._runs[file], self._written(first, last, waiting)
        at = bisect_left(runs, first, key=attrgetter("first"))
        while at and self._joins(runs[at - 1], run, smaller=runs[at - 1]):
            at -= 1
            run = self._joined(runs.pop(at), run)
        while at < len(runs) and self._joins(run, runs[at], smaller=runs[at]):
            run = self._joined(run, runs.pop(at))
        insort(runs, run, key=attrgetter("first"))

    @staticmethod
    def _joins(one: IndexRun, other: IndexRun, *, smaller: IndexRun) -> bool:
        both = one.packets + other.packets
        return one.last + 1 == other.first and 2 * smaller.packets <= both <= INDEX_RUN_PACKETS

    def _joined(self, one: IndexRun, other: IndexRun) -> IndexRun:
        return self._written(one.first, other.last, [self._of_run(run, 0, run.packets) for run in (one, other)])

    def _written(self, first: int, last: int, parts: list["Entries"]) -> IndexRun:
        """Writes entries that are in the order of the file; returns their run."""
        entries = np.concatenate([NO_ENTRIES, *parts])
        entries = entries[np.argsort(entries["flow"], kind="stable")]
        marked = entries[::INDEX_READ_PACKETS]
        marks = list(zip(marked["flow"].tolist(), marked["position"].tolist()))
        return IndexRun(first, last, self._store(entries.tobytes()), len(entries), marks)

    def _entries_of(self, base: int, batch: PacketBatch, parser: SegmentParser) -> "Entries":
        """The entries of a batch whose buffer begins at `base` in the file."""
        found = parser.columns(batch)
        if isinstance(found, SegmentBatch):
            base += min((place for at, place in enumerate(found.payload) if at not in found.buffers), default=0)
            found = columns_of(found)
        where = (found.numbers[LENGTH] > 0).nonzero()[0]
        where = where[found.state[where] != 0]
        entries = np.zeros(len(where), ENTRY)
        entries["flow"] = sums_of(found, where)
        entries["position"], entries["time_ns"] = found.position[where], found.time_ns[where]
        entries["seq"], entries["captured"] = found.numbers[SEQ, where], found.numbers[CAPTURED, where]
        entries["payload"] = found.numbers[PAYLOAD, where] + base
        for at, other in found.others.items():
            begin, size = int(found.numbers[PAYLOAD, at]), int(found.numbers[CAPTURED, at])
            entries["payload"][where == at] = ~self._store(other[begin : begin + size])
        return entries


def sum_of(flow: bytes) -> int:
    """A hash that represents a direction in the index. Two directions have the same one only by coincidence."""
    total = len(flow)
    for byte in flow:
        total = (total * FACTOR + byte) & (1 << 64) - 1
    return total


def sums_of(segments: SegmentColumns, where: "NDArray[np.int64]") -> "NDArray[np.uint64]":
    """`sum_of` the directions of segments."""
    sums = np.zeros(len(where), np.uint64)
    clean, sizes = segments.state[where] == CLEAN, segments.flow_size[where]
    for size in np.unique(sizes[clean]).tolist():
        some = clean & (sizes == size)
        starts, total = segments.flow_at[where[some]], np.full(int(some.sum()), size, np.uint64)
        for at in range(size):
            total = total * np.uint64(FACTOR) + segments.data[starts + at]
        sums[some] = total
    for at, flow in segments.flows.items():
        sums[where == at] = sum_of(flow)
    return sums
