"""A capture read as a cluster reads it, in this process: ranges dealt out, proven, and read share by share."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kcap.capture.paths import unique_names
from kcap.capture.sections import sections_of
from kcap.capture.source import unwrap
from kcap.capture.window import Read
from kcap.distributed.chunks import ShardPackets, ranks_of, unpack
from kcap.distributed.partitioner import (
    PACKETS,
    REFERENCES,
    FlowSet,
    Partitioner,
    PartitionTask,
    flows_in_several_ranges,
    newly_seen_flows,
    without_flows,
)
from kcap.distributed.ranges import ByteRange, RangeSummary
from kcap.distributed.shard_reader import PlacedPackets, ShardContext, ShardReader
from kcap.distributed.stitching import PlannedFile, RangeNumbers, StitchedCapture, next_unverified, plan, recognise, stitch
from kcap.model import CaptureFile


class Shared:
    """A capture partitioned into shards in this process, as a Spark job does it with tasks."""

    def __init__(
        self, paths: Sequence[object], split: int, shards: int, *, carries: str = REFERENCES, jit_after: int | None = None,
        large: bool = False, edges: bool = False,
    ) -> None:  # fmt: skip
        """`edges`: connections that lie in one range are read there, the others are partitioned."""
        names = [str(path) for path in paths]
        self.files = [
            CaptureFile(path, name, os.path.getsize(path)) for path, name in zip(names, unique_names(names), strict=True)
        ]
        self.data = [Path(path).read_bytes() for path in names]
        self.shards, self.carries, self.jit_after, self.large, self.edges = shards, carries, jit_after, large, edges
        self.unstripped = b""
        self.summaries: dict[int, RangeSummary] = {}
        self.chunks: dict[int, list[tuple[int, ShardPackets]]] = {}
        self.rounds = 0
        numbers = RangeNumbers()
        self.plans: list[PlannedFile] = []
        for index, file in enumerate(self.files):
            self.plans.append(plan(file, index, recognise(file, self.read(index, 0)), split, numbers))
        for planned in self.plans:
            for part in planned.ranges:
                self.partition(part)
        for planned in self.plans:
            while (partitioned := next_unverified(planned, self.summaries, numbers)) is not None:
                self.rounds += 1
                self.partition(partitioned)
        self.stitched: StitchedCapture = stitch(self.plans, self.summaries)
        self.edges = edges and not self.stitched.fragments
        if self.edges:
            units = list(self.stitched.positions)
            self.several = flows_in_several_ranges([self.summaries[unit].flows for unit in units])
            fresh = newly_seen_flows([self.summaries[unit].flows for unit in units], FlowSet(self.several))
            self.chunks = {
                unit: self.partitioned(unit, FlowSet(self.several), FlowSet(some))
                for unit, some in zip(units, fresh, strict=True)
            }

    def reread_unstripped(self, flows: bytes) -> None:
        """Partitions these flows unstripped, in place of their stripped segments."""
        carries, self.carries, self.unstripped = self.carries, PACKETS, flows
        for unit in self.stitched.positions:
            self.chunks[unit] += self.partitioned(unit, FlowSet(flows), FlowSet())
        self.carries = carries

    def partitioned(self, unit: int, flows: FlowSet, fresh: FlowSet) -> list[tuple[int, ShardPackets]]:
        """The packets of some flows of a range."""
        task, read = self.task(self.verified_range(unit), flows=flows)
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
        self, part: ByteRange, *, lists: bool = False, flows: FlowSet | None = None, read_local: bool = False
    ) -> tuple[PartitionTask, Read]:
        """How a range is read, and its bytes."""
        file = self.files[part.file]
        packed = "+" in file.format
        read = self.read(part.file, part.start)
        if packed:
            read = unwrap(read, lambda _detail, _position: None)[1]
        shards, carries = (
            (1, PACKETS) if read_local else (self.shards, PACKETS if packed and self.carries == REFERENCES else self.carries)
        )
        return PartitionTask(part, file, None if packed else file.size, shards, carries, self.jit_after, lists, flows), read

    def partition(self, part: ByteRange) -> None:
        partitioner = Partitioner(*self.task(part, lists=self.edges))
        self.chunks[part.unit] = list(partitioner.chunks())
        self.summaries[part.unit] = partitioner.summary

    def verified_range(self, unit: int) -> ByteRange:
        """A range as it was verified."""
        summary = self.summaries[unit]
        return replace(summary.part, start=summary.start or 0, context=summary.before, verified=True)

    def placed_chunks(self, shard: int) -> list[PlacedPackets]:
        """The chunks of a shard in their order, packed and unpacked as between machines."""
        ranks, found = ranks_of([file.name for file in self.files]), []
        for unit, range_position in self.stitched.positions.items():
            for number, chunk in self.chunks[unit]:
                chunk = without_flows(unpack(chunk.pack(), chunk.data), FlowSet(self.unstripped)) if number == shard else None
                if chunk is not None:
                    first = int(chunk.column("latest")[0])
                    turn = first if range_position.latest_ns is None else max(first, range_position.latest_ns)
                    key = turn, ranks[chunk.file], unit, int(chunk.column("number")[0])
                    found.append((key, (chunk, range_position)))
        return [placed for _, placed in sorted(found, key=lambda one: (*one[0][:2], one[1][1].packets, one[0][3]))]

    @property
    def shard_context(self) -> ShardContext:
        """What the readers of shards know of the capture."""
        layouts = {
            file: sections_of(context.section(position) for position, context in contexts)
            for file, contexts in self.stitched.contexts.items()
        }
        return ShardContext(self.files, self.shards, self.stitched.last_ns, self.large, layouts)

    def readers(self) -> Iterator[ShardReader]:
        """The readers of all shards and of the connections of single ranges."""
        yield from self.in_shards()
        yield from self.read_local()

    def in_shards(self) -> Iterator[ShardReader]:
        """A reader for each shard."""
        for shard in range(self.shards):
            yield ShardReader(self.shard_context, shard, self.placed_chunks(shard), self.read_at)

    def read_local(self) -> Iterator[ShardReader]:
        """A reader for each range, of the connections that lie in it alone."""
        for unit, range_position in self.stitched.positions.items() if self.edges else ():
            partitioner = Partitioner(
                *self.task(self.verified_range(unit), flows=FlowSet(self.several, listed=False), read_local=True)
            )
            own: list[PlacedPackets] = [(chunk, range_position) for _, chunk in partitioner.chunks()]
            yield ShardReader(replace(self.shard_context, shards=1), -2, own, self.read_at)
