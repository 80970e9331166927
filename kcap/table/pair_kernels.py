"""The compiled pairing of the partitions of requests with those of responses.

In: the side buffer of partitions of a batch, requests before responses, each in the order of the exchanges. Out: the pairs that
`kcap.table.partition_pairs` describes. Law: linear in the number of entries, whatever they name.
"""

from typing import Any

from kcap.decode.slots import NOTHING
from kcap.kernels import compiled, home, mixed, routine


@compiled
def same(one: int, other: int, keys: Any) -> Any:
    """Whether two entries name the same partition of one topic and group."""
    return (
        keys[3, one] == keys[3, other]
        and keys[0, one] == keys[0, other]
        and keys[1, one] == keys[1, other]
        and keys[2, one] == keys[2, other]
    )


@compiled
def found_in(table: Any, room: int, entry: int, keys: Any, seed: int) -> Any:
    """The position of an entry's partition in the table, or the empty position where it would be."""
    code = mixed(mixed(seed, keys[0, entry]), keys[1, entry])
    place = home(mixed(mixed(code, keys[2, entry]), keys[3, entry]), room)
    while table[0, place] >= 0 and not same(table[0, place], entry, keys):
        place = (place + 1) & (room - 1)
    return place


@routine
def pair(rows: Any, middle: int, keys: Any, row: Any, at: Any, table: Any, after: Any, seed: int) -> int:
    """Writes the exchange and both entries of each pair, -1 for none; returns the number of pairs.

    `rows` are the exchanges of the entries, `middle` is the first entry of a response, `keys` the numbers of their names, ids,
    groups and partitions. `table` has two rows; its number of columns is a power of two and at least twice the number of
    entries of a request. `after` has one element per entry.
    """
    count, low, other, size = 0, 0, middle, rows.size
    while low < middle or other < size:
        if other == size or (low < middle and rows[low] <= rows[other]):
            exchange = rows[low]
        else:
            exchange = rows[other]
        expected = count
        while low < middle and rows[low] == exchange:
            if keys[3, low] != NOTHING:
                row[count], at[0, count], at[1, count] = exchange, low, -1
                count += 1
            low += 1
        last, room = count, 0
        while other < size and rows[other] == exchange:
            found = -1
            if keys[3, other] == NOTHING:
                other += 1
                continue
            if room == 0 and expected < last:
                if same(at[0, expected], other, keys):
                    found = expected
                    expected += 1
                else:  # the response has another order: the remaining entries of the request go to the table
                    room = 2
                    while room < 2 * (last - expected):
                        room *= 2
                    for place in range(room):
                        table[0, place] = -1
                    for each in range(last - 1, expected - 1, -1):
                        place = found_in(table, room, at[0, each], keys, seed)
                        after[each] = table[1, place] if table[0, place] >= 0 else -1
                        table[0, place], table[1, place] = at[0, each], each
            if room > 0:
                place = found_in(table, room, other, keys, seed)
                if table[0, place] >= 0 and table[1, place] >= 0:
                    found = table[1, place]
                    table[1, place] = after[found]
            if found >= 0:
                at[1, found] = other
            else:
                row[count], at[0, count], at[1, count] = exchange, -1, other
                count += 1
            other += 1
    return count
