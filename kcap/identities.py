"""The constants of connections: a uid, both endpoints, a number. One object of one connection; columns of many.

In: flow keys, times and initial sequence numbers. Out: what each row says of its connection. Law: the two forms say the same;
no object is made of a connection of the fast path before one is needed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from itertools import chain, islice
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
    """Connections of the fast path that got their indexes together, as arrays."""

    first: int
    """Index of the first of them."""
    slots: Any
    """Where each of them is in the fast path's arrays."""
    uids: Any
    """Objects, 0 for a uid that was not made yet."""
    clients: Any
    """Flow keys of the clients, a row of bytes each."""
    lower: Any
    """Those of the lower endpoints."""
    sizes: Any
    """Bytes of the flow keys."""
    first_ns: Any
    isns: Any
    """Initial sequence numbers of the clients."""
    numbers: Any
    tls: Any
    """Whether their exchanges were decrypted."""

    def __len__(self) -> int:
        return len(self.slots)

    def client(self, at: int) -> bytes:
        """The flow key of a client."""
        return bytes(self.clients[at, : self.sizes[at]])

    def uid(self, at: int) -> str:
        """One of the uids; to look through all of them for each would take the square of their number."""
        return str(self.uids[at] or self.named()[at])

    def named(self) -> Any:
        """The uids, each made when one of them is first needed."""
        new = (self.uids == 0).nonzero()[0]
        if len(new):
            seeds = zip(flows_of(self.lower[new], self.sizes[new]), self.first_ns[new].tolist(), self.isns[new].tolist())
            self.uids[new] = [uid_of(*seed) for seed in seeds]
        return self.uids


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
            block = self._block(index)
            at = index - block.first
            number, tls = int(block.numbers[at]), bool(block.tls[at])
            found = self._objects[index] = Identity(block.uid(at), *endpoints(block.client(at)), number, tls)
        return found

    def __iter__(self) -> Iterator[Identity]:
        return (self[at] for at in range(self._size))

    def _block(self, index: int) -> IdentityBlock:
        return next(block for block in reversed(self._blocks) if block.first <= index)

    def uid(self, index: int) -> str:
        """The uid of one of them, of which no object is made."""
        found = self._objects.get(index)
        if found is not None:
            return found.uid
        block = self._block(index)
        return block.uid(index - block.first)

    def blocks(self) -> Sequence[IdentityBlock]:
        """Those of the fast path."""
        return self._blocks

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
        self._size += len(block)

    def renumber(self, index: int, number: int) -> None:
        """Gives a connection another number."""
        self._objects[index] = replace(self[index], number=number)
        self._columns.clear()

    def column(self, name: str) -> list[Any]:
        """An attribute of each of them; made once, when no more are added."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = [None] * self._size
            values = iter(PICK[name](self._blocks) if self._blocks else ())
            for block in self._blocks:
                found[block.first : block.first + len(block)] = islice(values, len(block))
            pick = attrgetter(name)
            for at, identity in self._objects.items():
                found[at] = pick(identity)
        return found

    def servers(self) -> list[Server]:
        """Address and port of the server of each of them."""
        return list(zip(self.column("server_ip"), self.column("server_port")))


def _addresses(blocks: Sequence[IdentityBlock], side: int) -> list[str]:
    keys, sizes = _keys(blocks)
    if (sizes == IPV4_FLOW.size).all():
        return list(map(_ipv4, keys[:, 4 * side : 4 * side + 4].copy().view(">u4")[:, 0].tolist()))
    halves = sizes // 2 - 2
    return [address(key[side * half : (side + 1) * half]) for key, half in zip(flows_of(keys, sizes), halves.tolist())]


def _ports(blocks: Sequence[IdentityBlock], side: int) -> list[int]:
    import numpy as np

    keys, sizes = _keys(blocks)
    every, at = np.arange(len(keys)), sizes + (2 * side - 4)
    found: list[int] = (keys[every, at].astype(np.int64) << 8 | keys[every, at + 1]).tolist()
    return found


def _keys(blocks: Sequence[IdentityBlock]) -> tuple[Any, Any]:
    import numpy as np

    return np.concatenate([block.clients for block in blocks]), np.concatenate([block.sizes for block in blocks])


PICK: Final[dict[str, Callable[[Sequence[IdentityBlock]], Iterable[Any]]]] = {
    "uid": lambda blocks: chain.from_iterable(block.named().tolist() for block in blocks),
    "number": lambda blocks: chain.from_iterable(block.numbers.tolist() for block in blocks),
    "tls": lambda blocks: chain.from_iterable(block.tls.tolist() for block in blocks),
    "client_ip": lambda blocks: _addresses(blocks, 0),
    "server_ip": lambda blocks: _addresses(blocks, 1),
    "client_port": lambda blocks: _ports(blocks, 0),
    "server_port": lambda blocks: _ports(blocks, 1),
}
"""Attribute of `Identity` -> how it is read from blocks, one after the other."""


def flows_of(keys: Any, sizes: Any) -> list[bytes]:
    """Flow keys, of rows of bytes."""
    data, width = keys.tobytes(), keys.shape[1]
    return [data[start : start + size] for start, size in zip(range(0, len(data), width), sizes.tolist())]


def endpoints(flow: bytes) -> tuple[str, int, str, int]:
    """Source address and port, destination address and port of a flow key."""
    source, destination, source_port, destination_port = (IPV4_FLOW if len(flow) == IPV4_FLOW.size else IPV6_FLOW).unpack(flow)
    return address(source), source_port, address(destination), destination_port


@lru_cache(1 << 14)
def address(packed: bytes) -> str:
    """An IP address as people write it; `ipaddress` costs as much as opening a connection."""
    return ".".join(map(str, packed)) if len(packed) == 4 else str(ip_address(packed))


@lru_cache(1 << 14)
def _ipv4(number: int) -> str:
    return address(number.to_bytes(4, "big"))


def uid_of(flow: bytes, first_ns: int, isn: int | None) -> str:
    """A uid that re-runs and other splits of the input reproduce, from the flow key of the lower endpoint, the first packet's
    time and the client's initial sequence number.
    """
    seed = b"%b|%d|%d" % (flow, first_ns, -1 if isn is None else isn)
    return "C" + blake2b(seed, digest_size=8).hexdigest()


def number_of(uid: str) -> int:
    """The 64 bits of a uid, which are spread evenly."""
    return int(uid[1:], 16)


def numbers_of(uids: Sequence[str]) -> Any:
    """The same of each of them, as an array of uint64."""
    import numpy as np

    return np.frombuffer(bytes.fromhex("".join(uids).replace("C", " ")), ">u8").astype(np.uint64)


def uid_of_number(number: int) -> str:
    """The uid of these bits."""
    return f"C{number:016x}"
