"""The topics of rows as a kernel lays them out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.batch.topic_kernels import topics_of_rows

Topic = tuple[int, int, int]
"""Twice the row, and 1 more for a request; name; id."""
TOPICS = st.lists(st.tuples(st.integers(0, 7), st.integers(-1, 3), st.integers(-1, 3)), max_size=60)


def laid(topics: list[Topic], rows: int) -> list[list[tuple[int, int]]]:
    """The topics of each row by the kernel."""
    keys, names, ids = np.array(topics, np.int64).reshape(-1, 3).T.copy()
    by_name, by_id = np.full((2, 2, max(names.max(initial=0), ids.max(initial=0)) + 1), -1)
    room = 2 << len(topics).bit_length()
    out, counts = np.empty((2, len(topics)), np.int64), np.empty(rows, np.int64)
    ends, order, table = np.zeros(2 * rows, np.int64), np.empty(len(topics), np.int64), np.full(room, -1)
    count = topics_of_rows(keys, names, ids, ends, order, by_name, by_id, table, out, counts, 7)
    assert count == counts.sum()
    entries = iter(zip(*out.tolist()))
    return [[next(entries) for _ in range(many)] for many in counts.tolist()]


def slowly(topics: list[Topic], row: int) -> list[tuple[int, int]]:
    """The law, a topic at a time."""
    found: list[tuple[int, int]] = []
    for _, name, uuid in sorted((one for one in topics if one[0] >> 1 == row), key=lambda one: one[0]):
        if name < 0 and uuid < 0:
            continue
        for at, (known_name, known_uuid) in enumerate(found):
            named = name >= 0 and name == known_name and (uuid == known_uuid or min(uuid, known_uuid) < 0)
            same = uuid >= 0 and uuid == known_uuid and (name == known_name or min(name, known_name) < 0)
            if named or same:
                found[at] = max(known_name, name), max(known_uuid, uuid)
                break
        else:
            found.append((name, uuid))
    return found


@given(TOPICS)
def test_each_topic_of_a_row_is_there_once(topics: list[Topic]) -> None:
    """Law: response first, halves joined, whatever other rows have."""
    assert laid(topics, 4) == [slowly(topics, row) for row in range(4)]


def test_many_topics_of_one_row_are_not_compared_with_each_other() -> None:
    """Thirty thousand pairs of equal names, one after the other and again: a comparison of all with all would take minutes."""
    pairs = [(0, at % 3, at) for at in range(30_000)]
    assert laid([*pairs, *((1, name, uuid) for _, name, uuid in pairs)], 1) == [[(name, uuid) for _, name, uuid in pairs]]
