"""Sections of a capture file: what is needed to read it from its middle.

In: section headers and interfaces, in the order of the file. Out: the section of any position in the file. Law: a section is
what its headers described. Sections are stored as columns, which take some 35 bytes for a section with one interface; as
objects they would take 300. A file may have one section per packet.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAGIC = b"\x0a\x0d\x0d\x0a"
"""First bytes of a Section Header Block, and thus of a pcapng file."""
TIME_LIMIT = 1 << 63


@dataclass(slots=True)
class Interface:
    """What is needed to read a packet of an interface: its time is ticks * multiplier // divisor + offset_ns."""

    link: int
    snaplen: int
    multiplier: int = 1000
    divisor: int = 1
    offset_ns: int = 0
    record_header: int = 16
    """Bytes before the packet data in a pcap record."""

    def high_limit(self) -> int:
        """Upper half of a pcapng time stamp from which on the time may not fit into 64 bits of nanoseconds."""
        return ((TIME_LIMIT - 1 - abs(self.offset_ns)) * self.divisor // self.multiplier) >> 32


@dataclass(slots=True)
class FileSection:
    """Part of a file with its own byte order and interfaces. A pcap file is one section with one interface."""

    position: int
    order: str
    interfaces: list[Interface] = field(default_factory=list)


@dataclass(slots=True)
class FileSections:
    """The sections of a file; `interfaces` are those of the last one."""

    _positions: "array[int]" = field(default_factory=lambda: array("q"))
    _orders: bytearray = field(default_factory=bytearray)
    _first: "array[int]" = field(default_factory=lambda: array("q"))
    """Number of interfaces in the sections before."""
    _links: "array[int]" = field(default_factory=lambda: array("i"))
    _snaplens: "array[int]" = field(default_factory=lambda: array("I"))
    _offsets: "array[int]" = field(default_factory=lambda: array("q"))
    _clocks: "array[int]" = field(default_factory=lambda: array("H"))
    """Indexes in `_known`."""
    _known: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Multipliers, divisors and record headers. Files have few different ones."""

    def add(self, section: FileSection) -> None:
        self._positions.append(section.position)
        self._orders += section.order.encode()
        self._first.append(len(self._links))
        for interface in section.interfaces:
            self.describe(interface)

    def describe(self, interface: Interface) -> None:
        """Adds an interface to the last section."""
        clock = interface.multiplier, interface.divisor, interface.record_header
        self._links.append(interface.link)
        self._snaplens.append(interface.snaplen)
        self._offsets.append(interface.offset_ns)
        self._clocks.append(self._known.setdefault(clock, len(self._known)))

    def become(self, other: "FileSections") -> None:
        """Takes over everything that another one has."""
        for name in FileSections.__slots__:
            setattr(self, name, getattr(other, name))

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[FileSection]:
        return map(self._section, range(len(self)))

    def number(self, position: int) -> int:
        """The number of the section that a position of the file is in; -1 before the first."""
        return bisect_right(self._positions, position) - 1

    def of(self, position: int) -> FileSection | None:
        """The section that a position of the file is in; None before the first."""
        number = self.number(position)
        return None if number < 0 else self._section(number)

    def order(self, number: int) -> str:
        """Byte order of a section, in the notation of `struct`."""
        return chr(self._orders[number])

    def _section(self, number: int) -> FileSection:
        known = list(self._known)
        end = self._first[number + 1] if number + 1 < len(self) else len(self._links)
        interfaces = []
        for at in range(self._first[number], end):
            multiplier, divisor, header = known[self._clocks[at]]
            interfaces.append(Interface(self._links[at], self._snaplens[at], multiplier, divisor, self._offsets[at], header))
        return FileSection(self._positions[number], self.order(number), interfaces)


def sections_of(sections: Iterable[FileSection]) -> FileSections:
    found = FileSections()
    for section in sections:
        found.add(section)
    return found
