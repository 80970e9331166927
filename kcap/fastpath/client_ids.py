"""Client ids by number: the table that kernel and engine share, compiled.

In: the bytes of a client id. Out: its number, from 1 on; 0 is the null id. Law: until the table is emptied, equal bytes have
equal numbers, and different bytes have different ones.
"""

from typing import Any

from kcap.fastpath.flow_table import key_hash
from kcap.fastpath.layout import M_NAMES
from kcap.kernels import compiled


@compiled
def name_number(data: Any, at: int, size: int, table: Any, blobs: Any, sizes: Any, meta: Any) -> int:
    """The number of `data[at:at + size]`, which gets one if it has none; -1 if there is no room for more."""
    room = table.size - 1
    place = key_hash(data, at, size) & room
    while table[place] != 0:
        number = table[place]
        if sizes[number] == size:
            same = True
            for k in range(size):
                if blobs[number, k] != data[at + k]:
                    same = False
                    break
            if same:
                return int(number)
        place = (place + 1) & room
    number = meta[M_NAMES]
    if number == sizes.size:
        return -1
    meta[M_NAMES] = number + 1
    table[place] = number
    sizes[number] = size
    for k in range(size):
        blobs[number, k] = data[at + k]
    return int(number)
