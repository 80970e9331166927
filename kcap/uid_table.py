"""A table that maps uids to entries.

In: the 64 bits of uids, one or many at a time. Out: indexes of entries, from 0 in the order in which they were added. Law:
searching for many uids at once gives what searching for each gives.
"""

import os
from array import array
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST_PLACES: Final = 1 << 8
"""Size of the hash table of a new `UidTable`."""
FIND_NS: Final = 500
"""Processor time of a search in Python, ns."""


class UidTable:
    """Entries by uid and a number below 256. Each takes 13 bytes, plus a hash table with open addressing. Can be pickled."""

    def __init__(self) -> None:
        self._places = array("i", bytes(4 * FIRST_PLACES))
        """Number of an entry, from 1; 0 for none."""
        self._spread = int.from_bytes(os.urandom(8), "big") >> 2 | 1
        """Whoever writes a capture may choose uids that are near each other, but does not know this multiplier."""
        self.uids = array("Q")
        """64 bits of the uid of each entry."""
        self.kinds = bytearray()
        """The number of each entry."""

    def __len__(self) -> int:
        return len(self.uids)

    def find(self, uid: int, kind: int = 0) -> int:
        """Returns the index of an entry, from 0; -1 if there is none."""
        return self._places[self._place(uid, kind)] - 1

    def entry(self, uid: int, kind: int = 0) -> int:
        """Returns the index of an entry, from 0; appends the entry if there is none."""
        place = self._place(uid, kind)
        found = self._places[place]
        if found:
            return found - 1
        self.uids.append(uid)
        self.kinds.append(kind)
        self._places[place] = len(self.uids)
        if 2 * len(self.uids) > len(self._places):
            self._enter(0, 2 * len(self._places))
        return len(self.uids) - 1

    def find_all(self, uids: "NDArray[np.uint64]") -> "NDArray[np.int64]":
        """Returns the indexes of many uids' entries with number 0; -1 if there is none."""
        import numpy as np

        from kcap import kernels

        if not kernels.worthwhile(FIND_NS * len(uids)):
            return np.array([self.find(uid) for uid in uids.tolist()], np.int64)
        from kcap.uid_kernels import find_each

        found = np.empty(len(uids), np.int64)
        find_each(*self._columns(), self._spread, np.ascontiguousarray(uids).view(np.int64), found)
        return found

    def entries(self, uids: "NDArray[np.uint64]") -> "NDArray[np.int64]":
        """The same; appends entries for uids without one."""
        import numpy as np

        found = self.find_all(uids)
        new = np.sort(uids[found < 0])
        if len(new):
            new = new[np.append(True, new[1:] != new[:-1])]
            first = len(self.uids)
            self.uids.frombytes(new.tobytes())
            self.kinds.extend(bytes(len(new)))
            room = len(self._places)
            while 2 * len(self.uids) > room:
                room *= 2
            self._enter(first, room)
            found = self.find_all(uids)
        return found

    def _enter(self, first: int, room: int) -> None:
        """Adds the entries from `first` on to the hash table. If the table has fewer than `room` places, it is rebuilt with
        `room` places and all entries."""
        from kcap import kernels

        if room > len(self._places):
            self._places, first = array("i", bytes(4 * room)), 0
        if not kernels.worthwhile(FIND_NS * (len(self.uids) - first)):
            for entry in range(first, len(self.uids)):
                self._places[self._place(self.uids[entry], self.kinds[entry])] = entry + 1
            return
        from kcap.uid_kernels import enter_each

        enter_each(*self._columns(), self._spread, first)

    def _columns(self) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Hash table, uids and numbers as arrays, only for the time of a call: an array cannot grow while views of it exist."""
        import numpy as np

        columns = (self._places, np.int32), (self.uids, np.int64), (self.kinds, np.uint8)
        places, uids, kinds = (np.frombuffer(column, kind) for column, kind in columns)
        return places, uids, kinds

    def _place(self, uid: int, kind: int) -> int:
        """Index in the hash table where the number of an entry is or would be."""
        places, uids, kinds = self._places, self.uids, self.kinds
        last = len(places) - 1
        place = ((uid ^ kind) * self._spread >> 32) & last
        while (entry := places[place]) and (uids[entry - 1] != uid or kinds[entry - 1] != kind):
            place = (place + 1) & last
        return place
