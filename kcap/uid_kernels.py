"""The compiled search of `kcap.uid_table`.

In: the columns of a table. Out: indexes of entries. Law: the result equals that of `UidTable.find` and `UidTable.entry`, called
one by one.
"""

from typing import Any

from kcap.kernels import HALF, compiled, routine


@compiled
def place_of(places: Any, uids: Any, kinds: Any, spread: int, uid: int, kind: int) -> Any:
    """Index in the hash table where the number of an entry is or would be."""
    last = places.size - 1
    place = ((int(uid) ^ int(kind)) * spread >> HALF) & last
    while places[place] and (uids[places[place] - 1] != uid or kinds[places[place] - 1] != kind):
        place = (place + 1) & last
    return place


@routine
def find_each(places: Any, uids: Any, kinds: Any, spread: int, wanted: Any, found: Any) -> None:
    """Writes the index of each uid's entry with number 0, or -1 if there is none."""
    for at in range(wanted.size):
        found[at] = places[place_of(places, uids, kinds, spread, wanted[at], 0)] - 1


@routine
def enter_each(places: Any, uids: Any, kinds: Any, spread: int, first: int) -> None:
    """Adds the entries from `first` on to the hash table."""
    for entry in range(first, uids.size):
        places[place_of(places, uids, kinds, spread, uids[entry], kinds[entry])] = entry + 1
