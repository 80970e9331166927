"""The compiled form of `kcap.batch.topics`: each topic of a row once.

In: the topics of a batch's messages, each with its row and side. Out: the topics of each row. Law: the result equals that of
`TopicColumns._laid`; the time is linear in the topics, whatever their names.
"""

from typing import Any

from kcap.kernels import compiled, home, mixed, routine


@compiled
def spot(table: Any, start: int, out: Any, name: int, uuid: int, seed: int) -> Any:
    """Index in the table of the row's entry with a name and an id, or where it would be. Entries before `start` belong to
    earlier rows.
    """
    place = home(mixed(mixed(seed, name), uuid), table.size)
    while table[place] >= start and (out[0, table[place]] != name or out[1, table[place]] != uuid):
        place = (place + 1) & (table.size - 1)
    return place


@compiled
def sort(keys: Any, ends: Any, order: Any) -> None:
    """Writes the indexes of keys in order, equal ones in their original order, and where each key ends among them."""
    low = 0
    for at in range(keys.size):
        ends[keys[at]] += 1
    for key in range(ends.size):
        ends[key], low = low, low + ends[key]
    for at in range(keys.size):
        order[ends[keys[at]]] = at
        ends[keys[at]] += 1


@compiled
def join(start: int, count: int, name: int, uuid: int, by_name: Any, by_id: Any, table: Any, out: Any, seed: int) -> Any:
    """Adds a topic with a name and an id to a row whose topics begin at `start`, unless it is there; returns the new number.

    It replaces the first entry that has only one of the two.
    """
    place = spot(table, start, out, name, uuid, seed)
    found = table[place]
    for half in (by_name[1, name], by_id[1, uuid]):
        if half >= start and (found < start or half < found):
            found = half
    if found < start:
        found = count
    elif out[1, found] < 0:
        by_name[1, name] = -1
    elif out[0, found] < 0:
        by_id[1, uuid] = -1
    out[0, found], out[1, found], table[place] = name, uuid, found
    first(by_name, name, start, found)
    first(by_id, uuid, start, found)
    return max(count, found + 1)


@compiled
def first(entries: Any, number: int, start: int, found: int) -> None:
    """Stores that an entry has a name or an id, unless an earlier one of the row has it."""
    if entries[0, number] < start or found < entries[0, number]:
        entries[0, number] = found


@routine
def topics_of_rows(
    keys: Any, names: Any, ids: Any, ends: Any, order: Any, by_name: Any, by_id: Any, table: Any, out: Any, counts: Any,
    seed: int,
) -> int:  # fmt: skip
    """Writes names and ids of the topics of each row, and how many each row has; returns the total number.

    `keys` is twice the row, plus 1 for a request. `ends` has room for one number per key and is 0. `order` and the two rows of
    `out` have room for each topic. `by_name` and `by_id` have two rows with a number for each name and id: the first entry with
    it, and an entry that has only it. They and `table` are -1; the size of `table` is a power of two and at least twice the
    number of topics of a row.
    """
    sort(keys, ends, order)
    count, low = 0, 0
    for row in range(counts.size):
        start, high = count, ends[2 * row + 1]
        for at in range(low, high):
            name, uuid = names[order[at]], ids[order[at]]
            if name >= 0 and uuid >= 0:
                count = join(start, count, name, uuid, by_name, by_id, table, out, seed)
            elif name >= 0 and by_name[0, name] < start:
                out[0, count], out[1, count], by_name[0, name], by_name[1, name] = name, uuid, count, count
                count += 1
            elif uuid >= 0 and by_id[0, uuid] < start:
                out[0, count], out[1, count], by_id[0, uuid], by_id[1, uuid] = name, uuid, count, count
                count += 1
        counts[row], low = count - start, high
    return count
