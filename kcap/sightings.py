"""Oddities by kind and connection: the first sighting of each and the count, in some 60 bytes each.

In: oddities as they are seen. Out: `Weird` objects with their counts, in packet order or in the order of their first sightings.
Law: what comes out is what went in. The table can be pickled.
"""

from array import array
from collections.abc import Iterator
from typing import Final

from kcap.identities import number_of, uid_of_number
from kcap.model import REF_FILE_SHIFT
from kcap.uid_table import UidTable
from kcap.weird import Weird, WeirdKind

KINDS: Final = tuple(WeirdKind)
PLACES: Final = {kind: 2 * place for place, kind in enumerate(KINDS)}
DETAILS_KNOWN: Final = 1 << 8
"""Number of detail texts that are stored once. Most oddities have one of a few, and texts with numbers rarely repeat."""


class Sightings:
    """The oddities of a capture."""

    def __init__(self) -> None:
        self._entries = UidTable()
        """The number of an entry is twice the index of its kind, plus 1 if it belongs to a connection."""
        self._refs = array("q")
        self._positions = array("q")
        self._counts = array("q")
        self._details = array("I")
        self._texts = bytearray()
        """Details, concatenated."""
        self._ends = array("Q", [0])
        """End of each detail in these, from the second entry on."""
        self._known: dict[str, int] = {}
        """Recent details -> their numbers."""

    def __len__(self) -> int:
        return len(self._entries)

    def count(self, kind: WeirdKind, detail: str, ref: int, position: int, uid: str | None, count: int, most: int) -> None:
        """Counts an oddity of a connection. If there are `most` entries and none for it, it is counted without a connection."""
        number, of = (0, PLACES[kind]) if uid is None else (number_of(uid), PLACES[kind] + 1)
        if uid is not None and len(self) >= most and self._entries.find(number, of) < 0:
            number, of = 0, PLACES[kind]
        entry = self._entries.entry(number, of)
        if entry < len(self._counts):
            self._counts[entry] += count
            return
        self._refs.append(ref)
        self._positions.append(position)
        self._counts.append(count)
        self._details.append(self._detail(detail))

    def _detail(self, text: str) -> int:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= DETAILS_KNOWN:
                self._known.clear()
            found = self._known[text] = len(self._ends) - 1
            self._texts += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._texts))
        return found

    def __iter__(self) -> Iterator[tuple[Weird, int]]:
        """Yields each oddity with its count, in packet order; within a packet those of no connection first, others by uid."""
        kinds, uids, refs = self._entries.kinds, self._entries.uids, self._refs
        return map(self._at, sorted(range(len(self)), key=lambda at: (refs[at], kinds[at] & 1, uids[at])))

    def entered(self) -> Iterator[tuple[Weird, int]]:
        """Yields each oddity with its count, in the order of first counting, which decides the entries if `most` is reached."""
        return map(self._at, range(len(self)))

    def _at(self, at: int) -> tuple[Weird, int]:
        detail, kind, ref = self._details[at], self._entries.kinds[at], self._refs[at]
        text = self._texts[self._ends[detail] : self._ends[detail + 1]].decode("utf-8", "surrogatepass")
        file, packet = ref >> REF_FILE_SHIFT, ref & ((1 << REF_FILE_SHIFT) - 1)
        uid = uid_of_number(self._entries.uids[at]) if kind & 1 else None
        return Weird(KINDS[kind >> 1], text, file, packet, self._positions[at], uid), self._counts[at]
