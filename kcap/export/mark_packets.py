"""Finds the packets of a selection in a second pass over the files.

In: `Selection`, the files. Out: for each file the numbers of the selected packets, in increasing order. Law: a packet belongs
to the newest connection between its endpoints (a packet before the first one with data belongs to the first connection); all
fragments of a selected IP datagram are included.
"""

from array import array
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from kcap.capture.fileset import FileSet, ignore
from kcap.export.selection import SelectedConnection, Selection
from kcap.model import REF_FILE_SHIFT, PacketBatch, SegmentBatch
from kcap.net.connections import reverse_flow
from kcap.net.fragments import FragmentPlace, FragmentTable
from kcap.net.packet_cursor import Report
from kcap.net.segments import SegmentParser

PENDING_LEAST = 1024
"""Number of incomplete datagrams from which abandoned ones are searched for."""


@dataclass(slots=True)
class FragmentPackets(FragmentTable):
    """IP fragments, and the packets that they came in."""

    waiting: dict[Hashable, list[int]] = field(default_factory=dict)
    whole: dict[int, list[int]] = field(default_factory=dict)
    """Reference of the packet that completed a datagram -> those of its other packets."""

    def add(
        self, key: Hashable, offset: int, more: bool, data: bytes, size: int, place: FragmentPlace, report: Report
    ) -> tuple[bytes, int] | None:
        """As the table of fragments; also records the packet."""
        found = FragmentTable.add(self, key, offset, more, data, size, place, report)
        ref = place.file << REF_FILE_SHIFT | place.packet
        before = self.waiting.setdefault(key, [])
        if found is not None:
            self.whole[ref] = self.waiting.pop(key)
        else:
            before.append(ref)
        if len(self.waiting) > PENDING_LEAST + 2 * len(self.datagrams):
            self.waiting = {key: refs for key, refs in self.waiting.items() if key in self.datagrams}
        return found


class PacketWalk:
    """A pass over the packets of some files."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.files = FileSet(paths, ignore)
        self.parser = SegmentParser(ignore)
        self.pieces = self.parser.fragments = FragmentPackets()

    def __iter__(self) -> Iterator[tuple[PacketBatch, SegmentBatch]]:
        for batch in self.files.batches():
            yield batch, self.parser.parse(batch)
            self.pieces.whole.clear()


def mark(paths: Sequence[str], picked: Selection) -> "list[array[int]]":
    """The numbers of the selected packets, for each file."""
    walk = PacketWalk(paths)
    marks = [array("q") for _ in walk.files.files]
    flows: dict[bytes, list[SelectedConnection | None]] = {}
    """Flow -> the connection that currently has these ports, in a list that both directions share."""
    owners: dict[int, SelectedConnection] = {}
    for ref, uid in sorted(picked.starts.items(), reverse=True):
        chosen = picked.chosen.get(uid)
        if chosen is not None:
            chosen.start()
            now = flows.setdefault(chosen.flow, [None])
            now = flows.setdefault(reverse_flow(chosen.flow), now)
            flows[chosen.flow] = now
            now[0] = chosen  # the first connection remains at the end; packets before it belong to it
            owners[ref] = chosen
    whole = walk.pieces.whole
    for _, segments in walk:
        base = segments.file << REF_FILE_SHIFT
        add = marks[segments.file].append
        for at, flow in enumerate(segments.flow):
            open_now = flows.get(flow)
            if open_now is None:
                continue
            number = segments.packet[at]
            ref = base | number
            if ref in picked.starts:
                open_now[0] = owners.get(ref)
            chosen = open_now[0]
            if chosen is None:
                continue
            direction = int(flow != chosen.flow)
            if chosen.wants(
                direction, segments.file, segments.position[at], number, segments.flags[at], segments.length[at], ref
            ):
                add(number)
                for before in whole.get(ref, ()):
                    marks[before >> REF_FILE_SHIFT].append(before & ((1 << REF_FILE_SHIFT) - 1))
    return [array("q", sorted(set(numbers))) for numbers in marks]
