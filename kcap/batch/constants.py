"""The constants of a batch's connections as columns.

In: the records of `Identities`. Out: columns with one entry per connection; each is made once. Law: an entry is the attribute
of the `Identity` with its index.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import Coded, binary, coded
from kcap.identities import ENDPOINT, FIELDS, PLACES, Identities, Server, address, uid_of_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Int64s

    UInt64s = NDArray[np.uint64]

KINDS: Final = {"Q": ">u8", "17p": "V17", "H": ">u2", "q": ">i8", "?": "?"}
RECORD: Final[Any] = np.dtype({
    "names": [*FIELDS, "server"],
    "formats": [*(KINDS[form] for form in FIELDS.values()), f"V{ENDPOINT}"],
    "offsets": [*PLACES.values(), PLACES["server_ip"]],
})  # fmt: skip
"""`kcap.identities.FIELDS` as a numpy type; `server` is address and port together."""
HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
"""The two hexadecimal digits of each byte, as one number."""
OCTETS: Final = np.frombuffer("".join(f"{byte}.".ljust(4, "\0") for byte in range(256)).encode(), np.uint8).reshape(256, 4)
"""The decimal digits of each byte, a full stop, and padding with zeros."""
UID_LETTERS: Final = 17
IPV4: Final = 4
"""Bytes of an IPv4 address."""


class Constants:
    """The constants of connections."""

    def __init__(self, identities: Identities) -> None:
        self._records: Any = np.frombuffer(bytes(identities.records), RECORD)
        self._texts: dict[str, Coded] = {}

    def number(self, name: str) -> "Int64s":
        found: Int64s = self._records[name].astype(np.int64)
        return found

    def uid_numbers(self) -> "UInt64s":
        """The 64 bits of each uid, which are evenly distributed."""
        found: UInt64s = self._records["uid"].astype(np.uint64)
        return found

    def text(self, name: str) -> Coded:
        found = self._texts.get(name)
        if found is None:
            found = self._texts[name] = TEXTS[name](self)
        return found

    def uid_texts(self) -> Coded:
        letters = np.full((len(self._records), UID_LETTERS), ord("C"), np.uint8)
        letters[:, 1:] = HEX[_bytes(self._records["uid"])].view(np.uint8).reshape(len(self._records), UID_LETTERS - 1)
        return _each(np.arange(len(letters) + 1) * UID_LETTERS, letters)

    def client_addresses(self) -> Coded:
        """Addresses of clients; most clients have different ones."""
        field = _bytes(self._records["client_ip"])
        if (field[:, 0] != IPV4).any():
            return Coded(pa.array(list(map(_address, map(bytes, field))), pa.string()), np.arange(len(field)))
        letters = OCTETS[field[:, 1 : 1 + IPV4]]
        letters[:, -1][letters[:, -1] == ord(".")] = 0
        here = letters != 0
        return _each(np.append(0, np.cumsum(here.sum(axis=(1, 2)))), letters[here])

    def server_addresses(self) -> Coded:
        """Addresses of servers; each distinct one is formatted once."""
        numbers, known = self.servers
        return Coded(pa.array([ip for ip, _ in known], pa.string()), numbers)

    @cached_property
    def uids(self) -> list[str]:
        return list(map(uid_of_number, self._records["uid"].tolist()))

    @cached_property
    def servers(self) -> "tuple[Int64s, list[Server]]":
        """The server (address and port) of each connection, as an index of the distinct ones, and these as they first occur."""
        field = self._records["server"]
        numbers, known = coded(binary(pa.binary(field.itemsize), len(field), field.tobytes()))
        return numbers.astype(np.int64), [(_address(one), int.from_bytes(one[-2:], "big")) for one in known]


TEXTS: Final = {
    "uid": Constants.uid_texts, "client_ip": Constants.client_addresses, "server_ip": Constants.server_addresses,
}  # fmt: skip


def _bytes(field: Any) -> "NDArray[np.uint8]":
    """The bytes of a field, one row per entry."""
    return np.frombuffer(field.tobytes(), np.uint8).reshape(len(field), field.itemsize)


def _each(ends: "Int64s", letters: "NDArray[np.uint8]") -> Coded:
    """Adjacent texts, the first of which begins at 0, each as a value of its own."""
    return Coded(binary(pa.string(), len(ends) - 1, ends.astype(np.int32), letters), np.arange(len(ends) - 1))


def _address(field: bytes) -> str:
    return address(field[1 : 1 + field[0]])
