"""All compiled bodies in one growing table of rows, which the projection's interpreters run.

A program is a plan, preceded by the tag section of its message's header; its jumps are absolute in the table. Law: rows in the
table never change, so that an index is valid for the life of the process.
"""

from bisect import bisect_right
from typing import Final

from kcap.decode import opcodes, slots
from kcap.decode.plan import Row, partitions_plan_for, plan_for
from kcap.schema import registry
from kcap.schema.quirks import DOWNGRADES

ROWS: Final[list[Row]] = []
"""The table."""

Place = tuple[int, int, int, bool]
"""API key, version, side, and whether partitions are read one by one."""

_INDEX: Final[dict[Place, int]] = {}
_WITH_PARTITIONS: Final[dict[int, int]] = {}

_JUMPS: Final[dict[int, tuple[int, ...]]] = {
    opcodes.LOOP: (1,),
    opcodes.TAGS: (1,),
    opcodes.ARRAY: (1,),
    opcodes.COMPACT_ARRAY: (1,),
    opcodes.PARTITIONS: (1,),
    opcodes.COMPACT_PARTITIONS: (1,),
    opcodes.NULLABLE: (1,),
    opcodes.NULLABLE_TAGGED: (1,),
    opcodes.STRUCT: (1,),
    opcodes.TAG: (1,),
    opcodes.TAG_END: (1,),
    opcodes.CASE: (2,),
}
"""Op -> columns that hold a row number."""


def _moved(row: Row, by: int) -> Row:
    columns = list(row)
    for column in _JUMPS.get(row[0], ()):
        columns[column] += by
    op, a, b, c = columns
    return op, a, b, c


def _compile(api_key: int, version: int, side: int, partitions: bool) -> int:
    plan = (partitions_plan_for if partitions else plan_for)(api_key, version, side)
    if plan is None:
        return -1
    response = side == registry.RESPONSE
    downgrade = DOWNGRADES.get(api_key) if response else None
    lower = program_index(api_key, downgrade[1], side) if downgrade and version > downgrade[1] else -1
    start = len(ROWS)
    header = (registry.response_header_version if response else registry.request_header_version)(api_key, version)
    if header > (0 if response else 1):
        ROWS.extend([(opcodes.TAGS, start + 2, 0, 0), (opcodes.TAG, start + 2, 0, 0)])
    if downgrade and lower >= 0:
        ROWS.append((opcodes.DOWNGRADE, downgrade[0], lower, 0))
    base = len(ROWS)
    ROWS.extend(_moved(row, base) for row in plan.rows)
    return start


def program_index(api_key: int, version: int, side: int, partitions: bool = False) -> int:
    """The program of a request (side 0) or response (side 1), as an index in `ROWS`; -1 for an unknown API or version.

    With `partitions`, the program that reads partitions one by one; -1 also for an API that is not about partitions.

    A program begins right after the fixed header: after the client id of a request (the correlation id in header 0), or after
    the correlation id of a response.
    """
    place = (api_key, version, side, partitions)
    index = _INDEX.get(place)
    if index is None:
        index = _compile(api_key, version, side, partitions)
        if index >= 0:  # there are unlimited unknown versions, which must not fill the memory
            _INDEX[place] = index
    return index


def with_partitions(index: int) -> int:
    """The program that reads everything a program reads, and partitions one by one. It is the same program for an API that is
    not about partitions, and for the one that lists them all."""
    found = _WITH_PARTITIONS.get(index)
    if found is None:
        key, version, side, _ = place_of(index)[0]
        other = -1 if registry.api_name(key) == slots.LISTING else program_index(key, version, side, True)
        found = _WITH_PARTITIONS[index] = index if other < 0 else other
    return found


def place_of(row: int) -> tuple[Place, int]:
    """The inverse, for a row inside a program: the program's place, and the distance from its first row."""
    starts = [*_INDEX.values()]  # in the order in which they were made
    number = bisect_right(starts, row) - 1
    return [*_INDEX][number], row - starts[number]
