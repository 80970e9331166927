"""Stitches the ranges of capture files: verifies where each one begins, and finds its position in the file.

In: plans of files, and summaries of their ranges. Out: the ranges that have to be re-read because they began with a wrong
guess; once there are none, the position of each range (packets and latest time before it) and the facts of the files. Law: a
range is verified if it begins as the previous one ended, at the same byte with the same interfaces, back to the beginning of
the file. The stitched ranges are then what one pass over the whole file gives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kcap.capture.source import form_of, no_capture, unwrap
from kcap.capture.window import Read
from kcap.distributed.ranges import ByteRange, CountedWeird, RangeContext, RangeScan, RangeSummary
from kcap.errors import CaptureError
from kcap.limits import GUESSES_WRONG, RANGE_BYTES_LEAST
from kcap.model import CaptureFile
from kcap.weird import WeirdKind


@dataclass(slots=True)
class PlannedFile:
    """A file and its ranges, in file order."""

    file: CaptureFile
    index: int
    ranges: list[ByteRange]
    wrong: int = 0
    """Number of guessed ranges that turned out wrong."""


@dataclass(frozen=True, slots=True)
class RangePosition:
    """Position of a range in its file."""

    packets: int
    """Number of packets of the file before it."""
    latest_ns: int | None
    """The latest packet time before it, in nanoseconds; None at the beginning."""


@dataclass(slots=True)
class StitchedCapture:
    """The verified ranges of all files."""

    files: list[CaptureFile]
    positions: dict[int, RangePosition] = field(default_factory=dict)
    """Number of a range -> its position."""
    oddities: list[tuple[int, CountedWeird]] = field(default_factory=list)
    """Oddities of files and packets, each with the index of its file; packets are numbered within the file."""
    contexts: dict[int, list[tuple[int, RangeContext]]] = field(default_factory=dict)
    """File index -> offsets, and the context that applies from each on."""
    last_ns: int = 0
    """Latest packet time of the capture, in nanoseconds."""
    fragments: int = 0


class RangeNumbers:
    """Gives ranges their numbers, unique within a capture."""

    def __init__(self) -> None:
        self.next = 0

    def take(self) -> int:
        self.next += 1
        return self.next - 1


def recognise(file: CaptureFile, read: Read) -> RangeContext | None:
    """Sets the format of a file by its first bytes, and returns the context after its header.

    None for a file that can only be read as a single range because it is compressed or has no packet. Raises CaptureError for a
    file that is not a capture.
    """
    head, read, wrappings = unwrap(read, lambda _detail, _position: None)
    name = form_of(head)
    if not name:
        raise CaptureError(f"{file.path}: {no_capture(head, wrappings)}")
    file.format = "+".join([name, *reversed(wrappings)])
    if wrappings:
        return None
    scan = RangeScan(ByteRange(0, 0, 0, None), read, file, file.size)
    for _ in scan.batches():
        break
    else:
        return None
    return scan.context()


def plan(file: CaptureFile, index: int, context: RangeContext | None, split_bytes: int, numbers: RangeNumbers) -> PlannedFile:
    """Cuts a file into ranges of about `split_bytes`."""
    size, step = file.size, max(split_bytes, RANGE_BYTES_LEAST)
    count = 1 if context is None or size is None else max(1, -(-size // step))
    ranges = []
    for at in range(count):
        stop = (at + 1) * step if at + 1 < count else None
        ranges.append(ByteRange(numbers.take(), index, at * step, stop, context if at else None, verified=not at))
    return PlannedFile(file, index, ranges)


def next_unverified(planned: PlannedFile, summaries: dict[int, RangeSummary], numbers: RangeNumbers) -> ByteRange | None:
    """Returns the first range that does not begin where the previous one ended, corrected so that it can be re-read.

    It replaces the wrong range in the plan. Returns None once all ranges are verified; ranges after the end of the file are
    dropped.
    """
    ranges, count = planned.ranges, 0
    place, context, ended = 0, ranges[0].context, False
    for at, part in enumerate(ranges):
        if ended or (at and part.stop is not None and place >= part.stop):
            continue
        summary = summaries[part.unit]
        if at and (summary.start != place or summary.before != context):
            planned.wrong += 1
            last = _last_to_merge(planned, summaries, at)
            again = ByteRange(numbers.take(), part.file, place, ranges[last].stop, context)
            planned.ranges = [*ranges[:count], again, *ranges[last + 1 :]]
            return again
        ranges[count], count = part, count + 1
        place, context, ended = summary.end, summary.after, summary.ended
        if summary.timeless and len(ranges) > 1:
            again = ByteRange(numbers.take(), part.file, 0, None)
            planned.ranges = [again]
            return again
    del ranges[count:]
    return None


def _last_to_merge(planned: PlannedFile, summaries: dict[int, RangeSummary], first: int) -> int:
    """The last range to merge into the one that is re-read: ranges without a record, and more after many wrong guesses."""
    ranges = planned.ranges
    last = first
    while last + 1 < len(ranges) and summaries[ranges[last + 1].unit].start is None:
        last += 1
    if planned.wrong > GUESSES_WRONG:
        last = max(last, first + (1 << min(planned.wrong - GUESSES_WRONG, 30)) - 1)
    return min(last, len(ranges) - 1)


def stitch(plans: Sequence[PlannedFile], summaries: dict[int, RangeSummary]) -> StitchedCapture:
    """Combines the summaries of all ranges, once `next_unverified` returns None for every file."""
    stitched = StitchedCapture([planned.file for planned in plans])
    for planned in plans:
        _stitch_file(stitched, planned, [summaries[part.unit] for part in planned.ranges])
    return stitched


def _stitch_file(stitched: StitchedCapture, planned: PlannedFile, summaries: Iterable[RangeSummary]) -> None:
    file, drops = planned.file, dict[tuple[int, int], int]()
    latest: int | None = None
    final: int | None = None
    oddities: dict[WeirdKind, CountedWeird] = {}
    for summary in summaries:
        facts, before = summary.facts, file.packets
        stitched.positions[summary.part.unit] = RangePosition(before, latest)
        if summary.first_ns is not None:
            if final is not None and summary.first_ns < final:
                back, place = f"{final - summary.first_ns} ns", summary.first_position
                _add(oddities, CountedWeird(WeirdKind.TIME_WENT_BACK, back, 1, place, summary.first_ns), before)
            final = summary.final_ns
        for oddity in summary.oddities.values():
            _add(oddities, oddity, before)
        file.packets += facts.packets
        file.packet_bytes += facts.packet_bytes
        file.cut_packets += facts.cut_packets
        file.links |= facts.links
        file.snaplen = max(file.snaplen or 0, facts.snaplen or 0) or None
        file.names = facts.names | file.names
        file.secrets += facts.secrets
        file.skipped_secrets += facts.skipped_secrets
        file.complete = file.complete and facts.complete
        if facts.first_ns is not None and facts.last_ns is not None:
            file.first_ns = facts.first_ns if file.first_ns is None else min(file.first_ns, facts.first_ns)
            file.last_ns = latest = facts.last_ns if latest is None else max(latest, facts.last_ns)
        drops |= summary.drops
        stitched.fragments += summary.fragments
        context = summary.before or (summary.after if summary.after is not None else None)
        if context is not None:
            stitched.contexts.setdefault(planned.index, []).append((summary.start or 0, context))
    if not file.packets:
        _add(oddities, CountedWeird(WeirdKind.FILE_EMPTY, "no packet", 0, 0, 0), 0)
    if drops:
        file.kernel_drops = sum(drops.values())
    if file.kernel_drops:
        _add(oddities, CountedWeird(WeirdKind.KERNEL_DROPS, f"{file.kernel_drops} packets", 0, 0, latest or 0), 0)
    stitched.oddities += [(planned.index, oddity) for oddity in oddities.values()]
    stitched.last_ns = max(stitched.last_ns, latest or 0)


def _add(oddities: dict[WeirdKind, CountedWeird], oddity: CountedWeird, packets: int) -> None:
    """Adds an oddity of a range that `packets` packets of the file precede."""
    seen = oddities.get(oddity.kind)
    if seen is not None:
        seen.count += oddity.count
    else:
        oddities[oddity.kind] = replace(oddity, packet=oddity.packet + packets if oddity.packet else 0)
