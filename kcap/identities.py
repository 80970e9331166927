"""The constants of connections: a uid, both endpoints, a number. One object of one connection; columns of many.

In: flow keys, times and initial sequence numbers. Out: what each row says of its connection. Law: the two forms say the same;
no object is made of a connection of the fast path before one is needed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from operator import attrgetter
from struct import Struct
from typing import Any, Final, overload

IPV4_FLOW, IPV6_FLOW = Struct(">4s4sHH"), Struct(">16s16sHH")
"""A flow key: source and destination address, source and destination port."""

Server = tuple[str, int]
"""Address and port."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The constants of a connection, the same in all its rows."""

    uid: str
    client_ip: str
    client_port: int
    server_ip: str
    server_port: int
    number: int = 1
    """Among all TCP connections, by first packet, from 1."""
    tls: bool = False
    """Its exchanges were decrypted."""


@dataclass(slots=True)
class IdentityBlock:
    """Connections of the fast path that got their indexes together, as columns."""

    first: int
    """Index of the first of them."""
    slots: list[int]
    """Where each of them is in the fast path's arrays."""
    uids: list[str]
    clients: list[bytes]
    """Flow keys of the clients."""
    numbers: list[int]


class Identities(Sequence[Identity]):
    """The connections that the rows of a batch refer to by their index."""

    __slots__ = ("_blocks", "_columns", "_objects", "_size")

    def __init__(self, objects: Sequence[Identity] = ()) -> None:
        self._objects: dict[int, Identity] = dict(enumerate(objects))
        """Those that there are as objects, by index: of the reference path, and those that were made before."""
        self._blocks: list[IdentityBlock] = []
        self._size = len(objects)
        self._columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Identity: ...
    @overload
    def __getitem__(self, index: slice) -> list[Identity]: ...
    def __getitem__(self, index: int | slice) -> Identity | list[Identity]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._size))]
        found = self._objects.get(index)
        if found is None:
            if not 0 <= index < self._size:
                raise IndexError(index)
            block = next(block for block in reversed(self._blocks) if block.first <= index)
            at = index - block.first
            found = self._objects[index] = Identity(block.uids[at], *endpoints(block.clients[at]), block.numbers[at])
        return found

    def __iter__(self) -> Iterator[Identity]:
        return (self[at] for at in range(self._size))

    def append(self, identity: Identity) -> int:
        """Adds a connection; its index."""
        self._columns.clear()
        self._objects[self._size] = identity
        self._size += 1
        return self._size - 1

    def extend(self, block: IdentityBlock, objects: dict[int, Identity]) -> None:
        """Adds connections of the fast path; those that have objects are in `objects`, by index."""
        self._columns.clear()
        self._blocks.append(block)
        self._objects |= objects
        self._size += len(block.slots)

    def renumber(self, index: int, number: int) -> None:
        """Gives a connection another number."""
        self._objects[index] = replace(self[index], number=number)
        self._columns.clear()

    def column(self, name: str) -> list[Any]:
        """An attribute of each of them; made once, when no more are added."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = [None] * self._size
            for block in self._blocks:
                found[block.first : block.first + len(block.slots)] = PICK[name](block)
            pick = attrgetter(name)
            for at, identity in self._objects.items():
                found[at] = pick(identity)
        return found

    def servers(self) -> list[Server]:
        """Address and port of the server of each of them."""
        return list(zip(self.column("server_ip"), self.column("server_port")))


def _addresses(block: IdentityBlock, server: bool) -> list[str]:
    return [address(key[half:-4] if server else key[:half]) for key in block.clients for half in (len(key) - 4 >> 1,)]


PICK: Final[dict[str, Callable[[IdentityBlock], list[Any]]]] = {
    "uid": lambda block: block.uids,
    "number": lambda block: block.numbers,
    "tls": lambda block: [False] * len(block.slots),
    "client_ip": lambda block: _addresses(block, server=False),
    "server_ip": lambda block: _addresses(block, server=True),
    "client_port": lambda block: [key[-4] << 8 | key[-3] for key in block.clients],
    "server_port": lambda block: [key[-2] << 8 | key[-1] for key in block.clients],
}
"""Attribute of `Identity` -> how it is read from a block."""


def endpoints(flow: bytes) -> tuple[str, int, str, int]:
    """Source address and port, destination address and port of a flow key."""
    source, destination, source_port, destination_port = (IPV4_FLOW if len(flow) == IPV4_FLOW.size else IPV6_FLOW).unpack(flow)
    return address(source), source_port, address(destination), destination_port


@lru_cache(1 << 14)
def address(packed: bytes) -> str:
    """An IP address as people write it; `ipaddress` costs as much as opening a connection."""
    return ".".join(map(str, packed)) if len(packed) == 4 else str(ip_address(packed))


def uid_of(flow: bytes, first_ns: int, isn: int | None) -> str:
    """A uid that re-runs and other splits of the input reproduce, from the flow key of the lower endpoint, the first packet's
    time and the client's initial sequence number.
    """
    seed = b"%b|%d|%d" % (flow, first_ns, -1 if isn is None else isn)
    return "C" + blake2b(seed, digest_size=8).hexdigest()
