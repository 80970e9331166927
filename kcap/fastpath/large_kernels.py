"""Large frames in the fast path, compiled: what a row needs of them is read as they pass, and little of them is stored.

In: the bytes of a frame as packets bring them. Out: a row of `large`, whose columns are the state of the projection's
interpreter (`kcap.decode.projection_kernels.message`), and the few bytes that it points into. Law: the same values as
`kcap.decode.projection.Resumable` has after the same bytes, however they were cut.
"""

from typing import Any

import numpy as np

from kcap import limits
from kcap.decode import opcodes, slots
from kcap.decode.projection_kernels import COMPLETE, SHORT, TRAILING, message
from kcap.fastpath.layout import (
    L_CODE,
    L_COUNTERS,
    L_CURSOR,
    L_ENDS,
    L_EXCERPT_BYTES,
    L_EXCERPTS,
    L_FIELDS,
    L_GROUP_END,
    L_GROUP_START,
    L_LOW,
    L_MASK,
    L_PART,
    L_PASSED,
    L_PC,
    L_RECORDS_END,
    L_SIZE,
    L_SKIP,
    L_STATUS,
    L_TOP,
    L_TOPICS,
    L_WHOLE,
    L_WRAPPED,
    LARGE_WIDTH,
    M_LARGE_FREE,
)  # fmt: skip
from kcap.kernels import compiled, routine

PIECE = limits.FAST_PATH_LARGE_PIECE
COUNTED_MAX = limits.FRAME_GATHERED_MAX + 4
COUNTERS = opcodes.COUNTERS
RECORDS_START, RECORDS_END = slots.RECORDS_START, slots.RECORDS_END
TOPIC_LEAST, WRAPPED_LEAST = 2, 14
"""The fewest bytes that one topic, or one message of magic 0, takes."""
TOPICS_ROOM, WRAPPED_ROOM = PIECE // TOPIC_LEAST + 1, PIECE // WRAPPED_LEAST + 1
"""Entries that one piece may add."""


@compiled
def open_large(program: int, size: int, big: Any, meta: Any) -> int:
    """Takes a free row for a frame of `size` bytes."""
    meta[M_LARGE_FREE] -= 1
    frame = big.free[meta[M_LARGE_FREE]]
    row = big.large[frame]
    for k in range(LARGE_WIDTH):
        row[k] = 0
    row[L_CODE], row[L_SIZE], row[L_PC], row[L_STATUS] = program, size, program, SHORT
    row[L_RECORDS_END] = row[L_GROUP_START] = row[L_GROUP_END] = row[L_LOW] = -1
    for k in range(big.values.shape[0]):
        big.values[k, frame] = 0
    return int(frame)


@compiled
def moved_down(row: Any, distance: int) -> None:
    """Positions of the interpreter's state move down, since bytes before them are gone."""
    row[L_CURSOR] -= distance
    if row[L_RECORDS_END] >= 0:
        row[L_RECORDS_END] -= distance
    for k in range(COUNTERS):
        row[L_ENDS + k] -= distance


@compiled
def excerpt(data: Any, at: int, count: int, frame: int, big: Any) -> None:
    """Keeps `data[at:at + count]`, the next bytes of a frame's body, beside what is stored: these stay in their place."""
    row, spans, kept = big.large[frame], big.excerpts[frame], big.excerpted[frame]
    number, top, place = row[L_EXCERPTS], row[L_EXCERPT_BYTES], row[L_PASSED]
    if number < 0:
        return
    follows = number > 0 and spans[number - 1, 0] + spans[number - 1, 1] == place
    if top + count > kept.size or (not follows and number == spans.shape[0]):
        row[L_EXCERPTS] = -1
        return
    for k in range(count):
        kept[top + k] = data[at + k]
    if follows:
        spans[number - 1, 1] += count
    else:
        spans[number, 0], spans[number, 1] = place, count
        row[L_EXCERPTS] += 1
    row[L_EXCERPT_BYTES] += count


@routine
def take_large(data: Any, at: int, end: int, frame: int, big: Any) -> int:
    """Takes `data[at:end]`, the next bytes of a frame's body; returns how far it came: there is no room for more."""
    row, body, topics, wrapped, elements = (
        big.large[frame],
        big.stored[frame],
        big.topics[frame],
        big.wrapped[frame],
        big.elements,
    )
    while at < end:
        step = min(row[L_SKIP], end - at)
        if row[L_FIELDS] and step:
            excerpt(data, at, step, frame, big)
        at += step
        row[L_SKIP] -= step
        row[L_PASSED] += step
        if row[L_SKIP]:
            return at
        if row[L_STATUS] == COMPLETE and at < end:
            row[L_STATUS] = TRAILING
        if row[L_STATUS] != SHORT:
            row[L_PASSED] += end - at
            return end
        top, count = row[L_TOP], end - at if end - at < PIECE else PIECE
        if (
            top + count > body.size
            or row[L_TOPICS] + TOPICS_ROOM > topics.shape[0]
            or row[L_WRAPPED] + WRAPPED_ROOM > wrapped.shape[0]
        ):
            return at
        for k in range(count):
            body[top + k] = data[at + k]
        excerpt(data, at, count, frame, big)
        at += count
        top += count
        row[L_PASSED] += count
        elements[0, RECORDS_START] = -1
        before, records_end = row[L_WRAPPED], row[L_RECORDS_END]
        status, cursor, pc, mask, stop, t, w = message(
            body, row[L_CURSOR], top, big.rows, row[L_PC], row[L_MASK], row[L_RECORDS_END], frame, big.values, topics,
            row[L_TOPICS], wrapped, before, elements, row[L_PART : L_GROUP_END + 1], row[L_COUNTERS:L_ENDS],
            row[L_ENDS : L_ENDS + COUNTERS],
        )  # fmt: skip
        row[L_STATUS], row[L_CURSOR], row[L_PC], row[L_MASK], row[L_RECORDS_END] = status, cursor, pc, mask, stop
        row[L_TOPICS], row[L_WRAPPED], row[L_TOP] = t, w, top
        if elements[0, RECORDS_START] >= 0:
            row[L_LOW], records_end = elements[0, RECORDS_START], elements[0, RECORDS_END]
        if status != SHORT:
            continue
        if w > before and row[L_SIZE] <= COUNTED_MAX:
            row[L_WHOLE] = 1  # the records inside of compressed messages are counted when the frame has passed
        if row[L_WHOLE]:
            continue
        low = row[L_LOW]
        if stop >= 0 and low >= 0:  # batches that were stepped over are not needed any more
            rest = max(top - cursor, np.int64(0))
            for k in range(rest):
                body[low + k] = body[top - rest + k]
            row[L_SKIP], row[L_FIELDS] = max(cursor - top, np.int64(0)), 0
            row[L_TOP] = low + rest
            moved_down(row, cursor - low)
        elif cursor > top:
            row[L_SKIP], row[L_FIELDS] = cursor - top, int(cursor != records_end)
            moved_down(row, cursor - top)
    return at
