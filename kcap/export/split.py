"""Splits one capture into several files, by connections or by time.

In: paths, how to split, a folder to write to. Out: the files, numbered from 1. Law: every packet is in exactly one file, in the
capture's order. By connection, no connection is in two files, and packets of no connection have a file of their own. Memory is
flat except for a number per connection; few files are open at once.
"""

import os
import re
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Final

from kcap.capture.fileset import ignore
from kcap.capture.packet_copy import SUFFIXES, PcapCopy, PcapngCopy, SecretsFilter, no_secret
from kcap.capture_pass import CapturePass
from kcap.export.mark_packets import FragmentPackets
from kcap.export.merge import Packets
from kcap.export.session_secrets import Sessions, read_sessions
from kcap.limits import SECOND_NS, SPLIT_FILES_OPEN_MAX
from kcap.model import REF_FILE_SHIFT, PacketBatch, SegmentBatch
from kcap.net.connections import reverse_flow
from kcap.net.segments import SegmentParser
from kcap.session import Capture

REST: Final = 0
"""Number of the file for packets of no connection."""


@dataclass(slots=True)
class SplitFile:
    """A written file: its number, its path, its first packet's time, its number of packets."""

    number: int
    path: str
    first_ns: int
    packets: int = 0


class SplitFiles:
    """Files by number, some of them open."""

    def __init__(
        self, packets: Packets, folder: str, sessions: Sessions | None, connections: Mapping[int, Collection[int]]
    ) -> None:
        """`sessions`: the TLS secrets of pcapng input for the `connections` of each file are written into it."""
        self._sessions, self._connections = sessions, connections
        self.made: dict[int, SplitFile] = {}
        self._packets = packets
        self._folder = folder
        self._copies: dict[int, PcapCopy | PcapngCopy] = {}
        self._open: OrderedDict[int, BinaryIO] = OrderedDict()

    def write(self, number: int, batch: PacketBatch, at: int) -> None:
        """Writes entry `at` of a batch into a file."""
        stream = self._open.get(number)
        if stream is None:
            if len(self._open) >= SPLIT_FILES_OPEN_MAX:
                self._open.popitem(last=False)[1].close()
            part = self.made.get(number)
            if part is None:
                part = self.made[number] = SplitFile(number, os.path.join(self._folder, str(number)), int(batch.time_ns[at]))
            stream = self._open[number] = open(part.path, "ab")  # noqa: SIM115
            copy = self._copies.get(number)
            if copy is None:
                copy = self._copies[number] = self._packets.open(stream, secrets=self._secrets(number))
            copy.moves_to(stream)
        else:
            self._open.move_to_end(number)
        self._copies[number].write(batch, at)
        self.made[number].packets += 1

    def _secrets(self, number: int) -> SecretsFilter:
        return no_secret if self._sessions is None else self._sessions.secrets_of(self._connections.get(number, ()))

    def close(self) -> None:
        """Closes the files."""
        for stream in self._open.values():
            stream.close()
        self._open.clear()


def split_by_time(
    capture: Capture, form: str, folder: str, every_ns: int, watch: Callable[[CapturePass], None] | None = None, *,
    secrets: bool = False,
) -> tuple[list[SplitFile], list[str], bool]:  # fmt: skip
    """Starts a new file whenever `every_ns` have passed since the capture's first packet; intervals without packets give none.

    Returns the files, the inputs that could not be read with the reasons, and whether TLS secrets were omitted. With secrets
    the capture is read three times, and memory has a number for each TLS connection of each file.
    """
    sessions = read_sessions(capture, watch) if secrets else None
    held = {} if sessions is None else connections_of(Packets(capture.paths, form), sessions, every_ns)
    packets, intervals = Packets(capture.paths, form), TimeIntervals(every_ns)
    numbered = ((batch, intervals.numbers(batch)) for batch in packets.batches())
    return written(packets, SplitFiles(packets, folder, sessions, held), numbered, secrets=secrets)


@dataclass(slots=True)
class TimeIntervals:
    """Equal time intervals from the first packet on, numbered from 1."""

    every_ns: int
    begin_ns: int | None = None

    def numbers(self, batch: PacketBatch) -> list[int]:
        """The interval of each packet."""
        times = [int(time) for time in batch.time_ns]
        begin = self.begin_ns = times[0] if self.begin_ns is None else self.begin_ns
        return [max(time - begin, 0) // self.every_ns + 1 for time in times]


def connections_of(packets: Packets, sessions: Sessions, every_ns: int) -> dict[int, set[int]]:
    """The TLS connections that have packets in each interval, by number."""
    held: dict[int, set[int]] = {}
    intervals = TimeIntervals(every_ns)
    for batch, numbers in assigned(packets, sessions.starts, 1):
        for file, number in zip(intervals.numbers(batch), numbers):
            if number in sessions.randoms:
                held.setdefault(file, set()).add(number)
    return held


def split_by_connection(
    capture: Capture, form: str, folder: str, size: int, watch: Callable[[CapturePass], None] | None = None, *,
    secrets: bool = False,
) -> tuple[list[SplitFile], list[str], bool]:  # fmt: skip
    """Puts `size` connections into each file, in the order of their first packets; packets of no connection go to file 0.

    Returns as `split_by_time`.
    """
    sessions = read_sessions(capture, watch)
    packets = Packets(capture.paths, form)
    held: dict[int, list[int]] = {}
    for number in sessions.randoms:
        held.setdefault((number - 1) // size + 1, []).append(number)
    parts = SplitFiles(packets, folder, sessions if secrets else None, held)
    return written(packets, parts, assigned(packets, sessions.starts, size), secrets=secrets)


def written(
    packets: Packets, parts: SplitFiles, numbered: Iterable[tuple[PacketBatch, Sequence[int]]], *, secrets: bool
) -> tuple[list[SplitFile], list[str], bool]:
    """Writes each packet into the file with its number. Returns as `split_by_time`."""
    with closing(parts):
        for batch, numbers in numbered:
            for at, number in enumerate(numbers):
                parts.write(number, batch, at)
    return list(parts.made.values()), packets.failures, packets.secrets and not secrets


def assigned(packets: Packets, starts: dict[int, int], size: int) -> Iterator[tuple[PacketBatch, "array[int]"]]:
    """Each batch with the number of the file of each of its packets.

    Packets before a connection's first one with data, and fragments of incomplete datagrams, go to the rest.
    """
    parser = SegmentParser(ignore)
    parser.fragments = FragmentPackets()
    flows: dict[bytes, int] = {}
    for batch in packets.batches():
        segments: SegmentBatch = parser.parse(batch)
        numbers = array("q", bytes(8 * len(batch)))
        base, first = batch.file << REF_FILE_SHIFT, batch.first_packet
        for packet, flow in zip(segments.packet, segments.flow):
            number = starts.get(base | packet)
            if number is not None:
                flows[flow] = flows[reverse_flow(flow)] = number
            else:
                number = flows.get(flow)
            if number is not None:
                numbers[packet - first] = (number - 1) // size + 1
        yield batch, numbers


def stem_of(prefix: str) -> tuple[str, str]:
    """A prefix without the suffix of a capture, and that suffix, which is empty if the prefix has none."""
    stem, suffix = os.path.splitext(prefix)
    return (stem, suffix) if suffix in SUFFIXES else (prefix, "")


def parts_at(prefix: str) -> list[str]:
    """The existing paths that `name_of` may give to a part of this prefix."""
    stem, suffix = stem_of(prefix)
    folder, name = os.path.split(stem)
    form = re.escape(suffix) if suffix else r"\.pcap(ng)?"
    part = re.compile(rf"{re.escape(name)}_(rest|\d{{5,}}(_\d{{14}})?){form}")
    try:
        return sorted(os.path.join(folder, entry) for entry in os.listdir(folder or os.curdir) if part.fullmatch(entry))
    except OSError:
        return []  # nothing exists that could be replaced


def name_of(prefix: str, part: SplitFile, form: str, *, timed: bool) -> str:
    """The name of a file: PREFIX_00001.pcap, with the time of its first packet (UTC) if it was split by time."""
    stem, suffix = stem_of(prefix)
    suffix = suffix or f".{form}"
    if part.number == REST:
        return f"{stem}_rest{suffix}"
    when = datetime.fromtimestamp(part.first_ns // SECOND_NS, UTC).strftime("_%Y%m%d%H%M%S") if timed else ""
    return f"{stem}_{part.number:05}{when}{suffix}"
