"""The constants of connections: uid, both endpoints and number, as an object for one connection or as records for many.

In: flow keys, times and initial sequence numbers. Out: the values that each row has of its connection. Law: both forms have the
same values, and a connection of the fast path gets no object before one is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from operator import attrgetter
from struct import Struct, calcsize
from typing import Any, Final, overload

IPV4_FLOW, IPV6_FLOW = Struct(">4s4sHH"), Struct(">16s16sHH")
"""Layout of a flow key: source and destination address, source and destination port."""
FIELDS: Final = {
    "uid": "Q", "client_ip": "17p", "client_port": "H", "server_ip": "17p", "server_port": "H", "number": "q", "tls": "?",
}  # fmt: skip
"""The attributes of an `Identity` in the order and format of a record: the uid's 64 bits, addresses as their size and bytes,
and numbers, big-endian and without padding."""
RECORD: Final = Struct(">" + "".join(FIELDS.values()))
PLACES: Final = {name: calcsize(">" + "".join(list(FIELDS.values())[:at])) for at, name in enumerate(FIELDS)}
"""Byte offset of each field in a record."""
UID_BYTES = ENDPOINTS_AT = PLACES["client_ip"]
PORT_AT, ENDPOINT = PLACES["client_port"] - ENDPOINTS_AT, PLACES["server_ip"] - ENDPOINTS_AT
"""Bytes from an address to its port, and from the client's address to the server's."""
NUMBER_AT, TLS_AT = PLACES["number"], PLACES["tls"]

Server = tuple[str, int]
"""Address and port."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The constants of a connection, which are the same in all its rows."""

    uid: str
    client_ip: str
    client_port: int
    server_ip: str
    server_port: int
    number: int = 1
    """Its number among all TCP connections, by first packet, from 1."""
    tls: bool = False
    """Whether its exchanges were decrypted."""


ATTRIBUTES: Final = attrgetter(*Identity.__dataclass_fields__)


class Identities(Sequence[Identity]):
    """The connections that the rows of a batch refer to by index."""

    __slots__ = ("_objects", "records")

    def __init__(self, objects: Sequence[Identity] = ()) -> None:
        self._objects: dict[int, Identity] = {}
        """Identities that exist as objects, by index: those of the reference path, and those that were made on request."""
        self.records = bytearray()
        """A `RECORD` for each identity."""
        for one in objects:
            self.append(one)

    def __len__(self) -> int:
        return len(self.records) // RECORD.size

    @overload
    def __getitem__(self, index: int) -> Identity: ...
    @overload
    def __getitem__(self, index: slice) -> list[Identity]: ...
    def __getitem__(self, index: int | slice) -> Identity | list[Identity]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        found = self._objects.get(index)
        if found is None:
            if not 0 <= index < len(self):
                raise IndexError(index)
            uid, client, client_port, server, *rest = RECORD.unpack_from(self.records, index * RECORD.size)
            found = self._objects[index] = Identity(uid_of_number(uid), address(client), client_port, address(server), *rest)
        return found

    def uid(self, index: int) -> str:
        """The uid of one connection. No object is made for it."""
        start = index * RECORD.size
        return uid_of_number(int.from_bytes(self.records[start : start + UID_BYTES], "big"))

    def append(self, identity: Identity) -> int:
        """Adds a connection and returns its index."""
        index = len(self)
        self.records += bytes(RECORD.size)
        self.put(index, identity)
        return index

    def extend(self, records: Any) -> None:
        self.records += records.tobytes()

    def put(self, index: int, identity: Identity) -> None:
        self._objects[index] = identity
        uid, client, client_port, server, *rest = ATTRIBUTES(identity)
        RECORD.pack_into(self.records, index * RECORD.size, number_of(uid), packed(client), client_port, packed(server), *rest)

    def renumber(self, index: int, number: int) -> None:
        """Gives a connection another number."""
        start = index * RECORD.size + NUMBER_AT
        self.records[start : start + 8] = number.to_bytes(8, "big")
        self._objects.pop(index, None)


def flows_of(keys: Any, sizes: Any) -> list[bytes]:
    data, width = keys.tobytes(), keys.shape[1]
    return [data[start : start + size] for start, size in zip(range(0, len(data), width), sizes.tolist())]


def endpoints(flow: bytes) -> tuple[str, int, str, int]:
    """Returns source address, source port, destination address and destination port of a flow key."""
    source, destination, source_port, destination_port = (IPV4_FLOW if len(flow) == IPV4_FLOW.size else IPV6_FLOW).unpack(flow)
    return address(source), source_port, address(destination), destination_port


@lru_cache(1 << 14)
def address(data: bytes) -> str:
    """An IP address as text. `ipaddress` is not used here because it takes as long as opening a connection."""
    return ".".join(map(str, data)) if len(data) == 4 else str(ip_address(data))


@lru_cache(1 << 14)
def packed(text: str) -> bytes:
    """The bytes of an IP address that is given as text."""
    return ip_address(text).packed


def uid_of(flow: bytes, first_ns: int, isn: int | None) -> str:
    """Returns a uid that further runs and other splits of the input reproduce. It is a hash of the flow key of the lower
    endpoint, the first packet's time and the client's initial sequence number."""
    seed = b"%b|%d|%d" % (flow, first_ns, -1 if isn is None else isn)
    return "C" + blake2b(seed, digest_size=8).hexdigest()


def number_of(uid: str) -> int:
    """The 64 bits of a uid, which are evenly distributed."""
    return int(uid[1:], 16)


def uid_of_number(number: int) -> str:
    """The uid of these 64 bits."""
    return f"C{number:016x}"
