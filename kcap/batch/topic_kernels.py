"""The compiled form of `kcap.batch.topics`: each topic of a row once.

In: the topics of a batch's messages, each with its row and side. Out: the topics of each row. Law: as `TopicColumns._laid`, and
linear in the topics, whatever they are called.
"""

from typing import Any

from kcap.kernels import compiled, home, mixed, routine


@compiled
def spot(table: Any, start: int, out: Any, name: int, uuid: int, seed: int) -> Any:
    """Where the table has the row's entry of a name and an id, or the place where it would stand; entries before `start` are
    those of earlier rows.
    """
    place = home(mixed(mixed(seed, name), uuid), table.size)
    while table[place] >= start and (out[0, table[place]] != name or out[1, table[place]] != uuid):
        place = (place + 1) & (table.size - 1)
    return place


@compiled
def sort(keys: Any, ends: Any, order: Any) -> None:
    """Writes the places of keys in order, equal ones as they came, and where each key ends among them."""
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
    """Adds a topic with a name and an id to a row whose topics begin at `start`, unless it is there; how many there are then.

    It takes the place of the first entry with one of the two alone.
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
    """Notes that an entry has a name or an id, unless an earlier one of the row has it."""
    if entries[0, number] < start or found < entries[0, number]:
        entries[0, number] = found


@routine
def topics_of_rows(
    keys: Any, names: Any, ids: Any, ends: Any, order: Any, by_name: Any, by_id: Any, table: Any, out: Any, counts: Any,
    seed: int,
) -> int:  # fmt: skip
    """Writes names and ids of the topics of each row, and how many each row has; returns how many there are.

    `keys` is twice the row, and 1 more for a request. `ends` has room for one number a key and is 0; `order` and the two rows
    of `out` have room for each topic. `by_name` and `by_id` have two rows of a number for each name and id: where the first
    entry with it stands, and where one stands that has it alone. They and `table`, a power of two and at least twice as large
    as a row has topics, are -1.
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
