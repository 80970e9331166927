"""The compiled search of `kcap.uid_table`.

In: the columns of a table. Out: places of entries. Law: as `UidTable.find` and `UidTable.entry`, one by one.
"""

from typing import Any

from kcap.kernels import HALF, compiled, routine


@compiled
def place_of(places: Any, uids: Any, kinds: Any, spread: int, uid: int, kind: int) -> Any:
    """Where in the table the number of an entry is, or would be."""
    last = places.size - 1
    place = ((int(uid) ^ int(kind)) * spread >> HALF) & last
    while places[place] and (uids[places[place] - 1] != uid or kinds[places[place] - 1] != kind):
        place = (place + 1) & last
    return place


@routine
def find_each(places: Any, uids: Any, kinds: Any, spread: int, wanted: Any, found: Any) -> None:
    """Writes the place of the entry of each uid whose number is 0, -1 for none."""
    for at in range(wanted.size):
        found[at] = places[place_of(places, uids, kinds, spread, wanted[at], 0)] - 1


@routine
def enter_each(places: Any, uids: Any, kinds: Any, spread: int, first: int) -> None:
    """Enters the entries from `first` on."""
    for entry in range(first, uids.size):
        places[place_of(places, uids, kinds, spread, uids[entry], kinds[entry])] = entry + 1
