"""A capture read as a cluster reads it, in this process: ranges dealt out, proven, and read share by share."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kcap.capture.paths import unique_names
from kcap.capture.source import unwrap
from kcap.capture.window import Read
from kcap.distributed.packet_columns import ShardPackets, ranks_of, unpack
from kcap.distributed.partitioner import NOTHING, PACKETS, FlowSet, Partitioner, PartitionTask, first_seen, in_several, without
from kcap.distributed.ranges import ByteRange, RangeSummary
from kcap.distributed.shard_reader import PlacedPackets, ShardContext, ShardReader
from kcap.distributed.stitching import PlannedFile, RangeNumbers, StitchedCapture, plan, recognise, stitch, to_read_again
from kcap.model import CaptureFile


class Shared:
    """Files, laid out and dealt out."""

    def __init__(
        self, paths: Sequence[object], split: int, shares: int, *, carries: str = NOTHING, jit_after: int | None = None,
        large: bool = False, edges: bool = False,
    ) -> None:  # fmt: skip
        """`edges`: connections that lie in one range are read there, the others are dealt out."""
        names = [str(path) for path in paths]
        self.files = [
            CaptureFile(path, name, os.path.getsize(path)) for path, name in zip(names, unique_names(names), strict=True)
        ]
        self.data = [Path(path).read_bytes() for path in names]
        self.shares, self.carries, self.jit_after, self.large, self.edges = shares, carries, jit_after, large, edges
        self.doubted = b""
        self.accounts: dict[int, RangeSummary] = {}
        self.chunks: dict[int, list[tuple[int, ShardPackets]]] = {}
        self.rounds = 0
        numbers = RangeNumbers()
        self.plans: list[PlannedFile] = []
        for index, file in enumerate(self.files):
            self.plans.append(plan(file, index, recognise(file, self.read(index, 0)), split, numbers))
        for planned in self.plans:
            for part in planned.ranges:
                self.deal(part)
        for planned in self.plans:
            while (again := to_read_again(planned, self.accounts, numbers)) is not None:
                self.rounds += 1
                self.deal(again)
        self.folded: StitchedCapture = stitch(self.plans, self.accounts)
        self.edges = edges and not self.folded.fragments
        if self.edges:
            units = list(self.folded.stands)
            self.several = in_several([self.accounts[unit].flows for unit in units])
            fresh = first_seen([self.accounts[unit].flows for unit in units], FlowSet(self.several))
            self.chunks = {
                unit: self.again(unit, FlowSet(self.several), FlowSet(some)) for unit, some in zip(units, fresh, strict=True)
            }

    def doubt(self, flows: bytes) -> None:
        """These flows are dealt out as they are, in place of what was blanked."""
        carries, self.carries, self.doubted = self.carries, PACKETS, flows
        for unit in self.folded.stands:
            self.chunks[unit] += self.again(unit, FlowSet(flows), FlowSet())
        self.carries = carries

    def again(self, unit: int, flows: FlowSet, fresh: FlowSet) -> list[tuple[int, ShardPackets]]:
        """The packets of some flows of a range."""
        task, read = self.task(self.known(unit), flows=flows)
        return list(Partitioner(replace(task, fresh=fresh), read).chunks())

    def read(self, file: int, offset: int):
        def read(size: int) -> bytes:
            nonlocal offset
            part = self.data[file][offset : offset + size]
            offset += len(part)
            return part

        return read

    def read_at(self, file: int, offset: int, size: int) -> bytes:
        return self.data[file][offset : offset + size]

    def task(
        self, part: ByteRange, *, lists: bool = False, flows: FlowSet | None = None, here: bool = False
    ) -> tuple[PartitionTask, Read]:
        """How a range is read, and its bytes."""
        file = self.files[part.file]
        packed = "+" in file.format
        read = self.read(part.file, part.start)
        if packed:
            read = unwrap(read, lambda _detail, _position: None)[1]
        shares, carries = (1, PACKETS) if here else (self.shares, self.carries or (PACKETS if packed else NOTHING))
        return PartitionTask(part, file, None if packed else file.size, shares, carries, self.jit_after, lists, flows), read

    def deal(self, part: ByteRange) -> None:
        dealing = Partitioner(*self.task(part, lists=self.edges))
        self.chunks[part.unit] = list(dealing.chunks())
        self.accounts[part.unit] = dealing.account

    def known(self, unit: int) -> ByteRange:
        """A range as it was proven."""
        account = self.accounts[unit]
        return replace(account.part, start=account.start or 0, context=account.before, known=True)

    def standing(self, share: int) -> list[PlacedPackets]:
        """The chunks of a share in their order, packed and unpacked as on the way between machines."""
        ranks, found = ranks_of([file.name for file in self.files]), []
        for unit, stand in self.folded.stands.items():
            for number, chunk in self.chunks[unit]:
                chunk = without(unpack(chunk.pack(), chunk.data), FlowSet(self.doubted)) if number == share else None
                if chunk is not None:
                    first = int(chunk.column("latest")[0])
                    turn = first if stand.latest_ns is None else max(first, stand.latest_ns)
                    key = turn, ranks[chunk.file], unit, int(chunk.column("number")[0])
                    found.append((key, (chunk, stand)))
        return [standing for _, standing in sorted(found, key=lambda one: (*one[0][:2], one[1][1].packets, one[0][3]))]

    @property
    def whole(self) -> ShardContext:
        """What shares know of the capture."""
        layouts = {
            file: [context.section(position) for position, context in contexts]
            for file, contexts in self.folded.contexts.items()
        }
        return ShardContext(self.files, self.shares, self.folded.last_ns, self.large, layouts)

    def portions(self) -> Iterator[ShardReader]:
        """All that is to be read."""
        yield from self.in_shares()
        yield from self.here()

    def in_shares(self) -> Iterator[ShardReader]:
        """Each share, to be read."""
        for share in range(self.shares):
            yield ShardReader(self.whole, share, self.standing(share), self.read_at)

    def here(self) -> Iterator[ShardReader]:
        """The connections of one range, to be read where that is."""
        for unit, stand in self.folded.stands.items() if self.edges else ():
            dealing = Partitioner(*self.task(self.known(unit), flows=FlowSet(self.several, named=False), here=True))
            own: list[PlacedPackets] = [(chunk, stand) for _, chunk in dealing.chunks()]
            yield ShardReader(replace(self.whole, shares=1), -2, own, self.read_at)
