"""The ranges of a capture's files put together: which of them are proven, where each stands, what the files are.

In: plans of files, accounts of their ranges. Out: the ranges that have to be read again since they began with a wrong guess;
once there are none, each range's place among the packets and in time, and the files' facts. Law: a range counts where it begins
as the one before it ended, at the same byte and with the same interfaces, back to the file's beginning; so what is put together
is what one reading of the whole file gives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kcap.capture.pcap import byte_order
from kcap.capture.pcapng import MAGIC
from kcap.capture.source import no_capture, unwrap
from kcap.capture.window import Read
from kcap.distributed.ranges import ByteRange, CountedWeird, RangeContext, RangeScan, RangeSummary
from kcap.errors import CaptureError
from kcap.limits import GUESSES_WRONG
from kcap.model import CaptureFile
from kcap.weird import WeirdKind

LEAST_BYTES: Final = 1024
"""A range is no shorter: it should hold a record or two."""


@dataclass(slots=True)
class PlannedFile:
    """One file and its ranges."""

    file: CaptureFile
    index: int
    ranges: list[ByteRange]
    context: RangeContext | None = None
    """What its beginning says; None where it is one range."""
    wrong: int = 0
    """Guesses that did not hold."""


@dataclass(frozen=True, slots=True)
class RangePosition:
    """Where a range stands in its file."""

    packets: int
    """Packets of the file before it."""
    latest_ns: int | None
    """The latest time before it."""


@dataclass(slots=True)
class StitchedCapture:
    """All ranges that are proven, and the files they are of."""

    files: list[CaptureFile]
    stands: dict[int, RangePosition] = field(default_factory=dict)
    """By the number of the range."""
    oddities: list[tuple[int, CountedWeird]] = field(default_factory=list)
    """Of files and packets, with the index of the file; packets numbered within it."""
    contexts: dict[int, list[tuple[int, RangeContext]]] = field(default_factory=dict)
    """Per file: from which place on what holds."""
    last_ns: int = 0
    """Latest time of the capture."""
    fragments: int = 0


class RangeNumbers:
    """Numbers of ranges."""

    def __init__(self) -> None:
        self.next = 0

    def take(self) -> int:
        """One more."""
        self.next += 1
        return self.next - 1


def recognise(file: CaptureFile, read: Read) -> RangeContext | None:
    """Sets a file's format by its first bytes; what a range behind its beginning needs to know, None where it is to be read as
    one: compressed, or without anything to go by.

    Raises CaptureError for what is no capture.
    """
    head, read, wrappings = unwrap(read, lambda _detail, _position: None)
    if byte_order(head):
        name = "pcap"
    elif head.startswith(MAGIC):
        name = "pcapng"
    else:
        raise CaptureError(f"{file.path}: {no_capture(head, wrappings)}")
    file.format = "+".join([name, *reversed(wrappings)])
    if wrappings:
        return None
    walk = RangeScan(ByteRange(0, 0, 0, None), read, file, file.size)
    for _ in walk.batches():
        break
    else:
        return None
    return walk.context()


def plan(file: CaptureFile, index: int, context: RangeContext | None, split_bytes: int, numbers: RangeNumbers) -> PlannedFile:
    """Cuts a file into ranges of about so many bytes."""
    size, step = file.size, max(split_bytes, LEAST_BYTES)
    count = 1 if context is None or size is None else max(1, -(-size // step))
    ranges = []
    for at in range(count):
        stop = (at + 1) * step if at + 1 < count else None
        ranges.append(ByteRange(numbers.take(), index, at * step, stop, context if at else None, known=not at))
    return PlannedFile(file, index, ranges, context)


def to_read_again(planned: PlannedFile, accounts: dict[int, RangeSummary], numbers: RangeNumbers) -> ByteRange | None:
    """The first range of a file whose beginning does not follow from the one before it, as it has to be read; it takes that
    one's place in the plan. None where all are proven: those behind the file's end are left out of the plan then."""
    ranges, kept = planned.ranges, 0
    place, context, ended = 0, ranges[0].context, False
    for at, part in enumerate(ranges):
        if ended or (at and part.stop is not None and place >= part.stop):
            continue
        account = accounts[part.unit]
        if at and (account.start != place or account.before != context):
            planned.wrong += 1
            last = _together(planned, accounts, at)
            again = ByteRange(numbers.take(), part.file, place, ranges[last].stop, context)
            planned.ranges = [*ranges[:kept], again, *ranges[last + 1 :]]
            return again
        ranges[kept], kept = part, kept + 1
        place, context, ended = account.end, account.after, account.ended
        if account.timeless and len(ranges) > 1:
            again = ByteRange(numbers.take(), part.file, 0, None)
            planned.ranges = [again]
            return again
    del ranges[kept:]
    return None


def _together(planned: PlannedFile, accounts: dict[int, RangeSummary], first: int) -> int:
    """Up to which range it is better to read on in one: where nothing was found there is nothing to prove."""
    ranges = planned.ranges
    last = first
    while last + 1 < len(ranges) and accounts[ranges[last + 1].unit].start is None:
        last += 1
    if planned.wrong > GUESSES_WRONG:
        last = max(last, first + (1 << min(planned.wrong - GUESSES_WRONG, 30)) - 1)
    return min(last, len(ranges) - 1)


def stitch(plans: Sequence[PlannedFile], accounts: dict[int, RangeSummary]) -> StitchedCapture:
    """The files, once `to_read_again` has nothing more to say of any."""
    folded = StitchedCapture([planned.file for planned in plans])
    for planned in plans:
        _fold_file(folded, planned, [accounts[part.unit] for part in planned.ranges])
    return folded


def _fold_file(folded: StitchedCapture, planned: PlannedFile, accounts: Iterable[RangeSummary]) -> None:
    file, drops = planned.file, dict[tuple[int, int], int]()
    latest: int | None = None
    final: int | None = None
    oddities: dict[WeirdKind, CountedWeird] = {}
    for account in accounts:
        facts, before = account.facts, file.packets
        folded.stands[account.part.unit] = RangePosition(before, latest)
        if account.first_ns is not None:
            if final is not None and account.first_ns < final:
                back = f"{final - account.first_ns} ns"
                _add(oddities, CountedWeird(WeirdKind.TIME_WENT_BACK, back, 1, account.start or 0, account.first_ns), before)
            final = account.final_ns
        for oddity in account.oddities.values():
            _add(oddities, oddity, before)
        file.packets += facts.packets
        file.packet_bytes += facts.packet_bytes
        file.cut_packets += facts.cut_packets
        file.links |= facts.links
        file.snaplen = max(file.snaplen or 0, facts.snaplen or 0) or None
        file.names = facts.names | file.names
        file.secrets += facts.secrets
        file.complete = file.complete and facts.complete
        if facts.first_ns is not None and facts.last_ns is not None:
            file.first_ns = facts.first_ns if file.first_ns is None else min(file.first_ns, facts.first_ns)
            file.last_ns = latest = facts.last_ns if latest is None else max(latest, facts.last_ns)
        drops |= account.drops
        folded.fragments += account.fragments
        context = account.before or (account.after if account.after is not None else None)
        if context is not None:
            folded.contexts.setdefault(planned.index, []).append((account.start or 0, context))
    if not file.packets:
        _add(oddities, CountedWeird(WeirdKind.FILE_EMPTY, "no packet", 0, 0, 0), 0)
    if drops:
        file.kernel_drops = sum(drops.values())
    if file.kernel_drops:
        _add(oddities, CountedWeird(WeirdKind.KERNEL_DROPS, f"{file.kernel_drops} packets", 0, 0, latest or 0), 0)
    folded.oddities += [(planned.index, oddity) for oddity in oddities.values()]
    folded.last_ns = max(folded.last_ns, latest or 0)


def _add(oddities: dict[WeirdKind, CountedWeird], oddity: CountedWeird, packets: int) -> None:
    """Counts an oddity of a range behind so many packets."""
    seen = oddities.get(oddity.kind)
    if seen is not None:
        seen.count += oddity.count
    else:
        oddities[oddity.kind] = replace(oddity, packet=oddity.packet + packets if oddity.packet else 0)
