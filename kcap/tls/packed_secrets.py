"""Secrets by client random in a few buffers. A key log of a day has a million lines, and objects would take more memory.

In: client randoms (32 bytes) and a byte string for each. Out: the byte string of a client random. Law: it is a mapping from
which nothing is removed. A copy shares the buffers until one of the two is written to. No secret is in a `repr`.
"""

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Final

RANDOM_BYTES: Final = 32
LEAST_TABLE: Final = 1 << 4
LEAST_WASTE: Final = 1 << 16
"""Bytes of replaced secrets from which their memory is released."""


class PackedSecrets(Mapping[bytes, bytes]):
    """Byte strings by client random, in the order in which these were first added.

    The indexes of the randoms are in a table by `hash`. Its key differs between processes, since clients choose randoms and
    could otherwise cause collisions.
    """

    __slots__ = ("_data", "_last", "_mask", "_randoms", "_shared", "_sizes", "_starts", "_table", "_waste")

    def __init__(self) -> None:
        self.__setstate__((bytearray(), array("I"), array("H"), bytearray()))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._randoms, self._starts, self._sizes, self._data

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._randoms, self._starts, self._sizes, self._data = state
        self._waste = len(self._data) - sum(self._sizes)
        self._shared = False
        self._last: tuple[Any, int] = (None, 0)
        """The last random that was searched for and its index from 1 on, because the lines of a session are adjacent."""
        self._spread()

    def copy(self) -> "PackedSecrets":
        """Another mapping with the same contents."""
        other = PackedSecrets.__new__(PackedSecrets)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        self._shared = other._shared = True
        return other

    def __repr__(self) -> str:
        return f"PackedSecrets({len(self)})"

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[bytes]:
        return (self._random(place) for place in range(len(self)))

    def __contains__(self, random: object) -> bool:
        return self._place(random) > 0

    def __getitem__(self, random: bytes) -> bytes:
        found: bytes | None = self.get(random)
        if found is None:
            raise KeyError("no secrets of this session")
        return found

    def get(self, random: bytes, default: Any = None) -> Any:
        """As in any mapping, without an exception for a missing key."""
        place = self._place(random)
        if not place:
            return default
        start = self._starts[place - 1]
        return bytes(self._data[start : start + self._sizes[place - 1]])

    def __setitem__(self, random: bytes, secrets: bytes) -> None:
        """`secrets` must be shorter than 64 KiB."""
        if self._shared:
            self._part()
        place, data = self._place(random), self._data
        if not place:
            self._randoms += random
            self._starts.append(len(data))
            self._sizes.append(0)
            place = len(self)
            if 2 * place > len(self._table):
                self._spread()
            else:
                self._table[self._slot(random)] = place
            self._last = random, place
        start, size = self._starts[place - 1], self._sizes[place - 1]
        if start + size == len(data):  # the last one grows in place
            del data[start:]
        else:
            self._waste += size
            self._starts[place - 1] = len(data)
        data += secrets
        self._sizes[place - 1] = len(secrets)
        if self._waste > max(len(data) // 4, LEAST_WASTE):
            self._compact()

    def _place(self, random: object) -> int:
        """Index of a random, from 1 on; 0 if it is not there."""
        last, place = self._last
        if last != random:
            place = self._table[self._slot(random)]
            if place:
                self._last = random, place
        return place

    def _slot(self, random: object) -> int:
        """Index in the table where a random is or would be."""
        table, randoms, mask = self._table, self._randoms, self._mask
        at = hash(random) & mask
        while (end := RANDOM_BYTES * table[at]) and randoms[end - RANDOM_BYTES : end] != random:
            at = (at + 1) & mask
        return at

    def _random(self, place: int) -> bytes:
        return bytes(self._randoms[RANDOM_BYTES * place : RANDOM_BYTES * (place + 1)])

    def _spread(self) -> None:
        """Makes the table, with room for as many entries again."""
        size = LEAST_TABLE
        while size < 4 * len(self):
            size *= 2
        self._table, self._mask = array("I", bytes(4 * size)), size - 1
        for place, random in enumerate(self, 1):
            self._table[self._slot(random)] = place

    def _part(self) -> None:
        """Copies the buffers, so that no other object shares them."""
        self._randoms, self._starts, self._sizes = self._randoms[:], self._starts[:], self._sizes[:]
        self._data, self._table = self._data[:], self._table[:]
        self._shared = False

    def _compact(self) -> None:
        """Releases the room of replaced secrets."""
        old, self._data, self._waste = self._data, bytearray(), 0
        for place, (start, size) in enumerate(zip(self._starts, self._sizes)):
            self._starts[place] = len(self._data)
            self._data += old[start : start + size]
