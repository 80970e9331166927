"""Large frames in the fast path, compiled: the values that rows need are read piece by piece, and few of the bytes are stored.

In: the bytes of a frame, packet by packet. Out: a row of `large`, whose columns are the state of the projection's interpreter
(`kcap.decode.projection_kernels.message`), and the few bytes that it refers to. Law: the values equal those that
`kcap.decode.projection.Resumable` has after the same bytes, however they were split.
"""

from typing import Any

import numpy as np

from kcap import limits
from kcap.decode import opcodes, slots
from kcap.decode.projection_kernels import COMPLETE, SHORT, TRAILING, message
from kcap.fastpath import layout as at
from kcap.kafka.headers import FETCH, PRODUCE
from kcap.kernels import compiled, copied, int16, int32, routine
from kcap.schema.quirks import MAGIC2_ONLY

PIECE = limits.FAST_PATH_LARGE_PIECE
COUNTED_MAX = limits.FRAME_GATHERED_MAX + 4
FRAME_LEAST = limits.GATHERED_LEAST
PRODUCE_MAGIC2 = MAGIC2_ONLY[PRODUCE]
EXCERPTED_MAX = limits.FAST_PATH_EXCERPTED_MAX
RESPONSE_HEAD = 8
"""Number of bytes after which the API key and version of a request, and the correlation id of a response, are complete."""
COUNTERS = opcodes.COUNTERS
RECORDS_START, RECORDS_END = slots.RECORDS_START, slots.RECORDS_END
NUMBERS, TEXTS, UUID = len(slots.SLOTS), len(slots.TEXTS), 16
TOPIC_LEAST, WRAPPED_LEAST = 2, 14
"""The fewest bytes that one topic, or one message of magic 0, takes."""
TOPICS_ROOM, WRAPPED_ROOM = PIECE // TOPIC_LEAST + 1, PIECE // WRAPPED_LEAST + 1
"""Number of entries that one piece may add."""


@compiled
def open_large(program: int, size: int, head: int, big: Any, meta: Any) -> int:
    """Takes a free row for a frame of `size` bytes. The first `head` bytes of its body are retained, up to its records."""
    meta[at.M_LARGE_FREE] -= 1
    frame = big.free[meta[at.M_LARGE_FREE]]
    row = big.large[frame]
    for k in range(at.LARGE_WIDTH):
        row[k] = 0
    row[at.L_CODE], row[at.L_SIZE], row[at.L_PC], row[at.L_STATUS], row[at.L_KEPT] = program, size, program, SHORT, head
    row[at.L_RECORDS_END] = row[at.L_GROUP_START] = row[at.L_GROUP_END] = row[at.L_LOW] = -1
    if not meta[at.M_EXCERPTS]:
        row[at.L_EXCERPTS] = -1
    for k in range(big.values.shape[0]):
        big.values[k, frame] = 0
    return int(frame)


@compiled
def too_much(size: int, meta: Any) -> bool:
    """Whether the arena has no room for one more incomplete frame of `size` bytes."""
    return bool(size > FRAME_LEAST and meta[at.M_OPEN] + size > meta[at.M_OPEN_MAX])


@compiled
def lacks_row(data: Any, numbers: Any, index: int, place: int, connections: Any, streams: Any, queues: Any, meta: Any) -> bool:
    """Whether a packet begins with a frame that needs a row of `large`, and none is free but one can be made. This is a large
    frame, or one that the arena has no room for and that wraps no messages. A frame that begins after others in its packet is
    not considered.
    """
    slot, cursor, captured, length = place >> 1, numbers[4, index], numbers[5, index], numbers[6, index]
    if (
        meta[at.M_LARGE_FREE]
        or meta[at.M_LARGE_FULL]
        or captured < RESPONSE_HEAD
        or streams[place, at.OPEN_START] >= 0
        or connections[slot, at.LIVE] != at.TALKING
        or connections[slot, at.TLS] != at.CLEAR
        or numbers[0, index] != streams[place, at.NEXT_RAW]
    ):
        return False
    size = int32(data, cursor)
    if size + 4 <= length:
        return False
    large = size > meta[at.M_LARGE_FROM]
    if place & 1 == connections[slot, at.CLIENT]:
        light = large or (too_much(size, meta) and int16(data, cursor + 6) >= PRODUCE_MAGIC2)
        return bool(int16(data, cursor + 4) == PRODUCE and light)
    return bool(large and connections[slot, at.COUNT] and queues[connections[slot, at.HEAD], at.Q_KEY] in (PRODUCE, FETCH))


@compiled
def moved_down(row: Any, distance: int) -> None:
    """Shifts the positions in the interpreter's state, because bytes before them were dropped."""
    row[at.L_CURSOR] -= distance
    if row[at.L_RECORDS_END] >= 0:
        row[at.L_RECORDS_END] -= distance
    for k in range(COUNTERS):
        row[at.L_ENDS + k] -= distance


@compiled
def excerpt(data: Any, cursor: int, count: int, frame: int, big: Any) -> None:
    """Stores `data[cursor:cursor + count]`, the next bytes of a frame's body, as an excerpt."""
    row, spans, kept = big.large[frame], big.excerpts[frame], big.excerpted[frame]
    number, top, place = row[at.L_EXCERPTS], row[at.L_EXCERPT_BYTES], row[at.L_PASSED]
    if number < 0:
        return
    follows = number > 0 and spans[number - 1, 0] + spans[number - 1, 1] == place
    if top + count > kept.size or (not follows and number == spans.shape[0]) or big.excerpted_bytes[0] + count > EXCERPTED_MAX:
        row[at.L_EXCERPTS] = -1
        return
    big.excerpted_bytes[0] += count
    copied(data, cursor, cursor + count, kept, top)
    if follows:
        spans[number - 1, 1] += count
    else:
        spans[number, 0], spans[number, 1] = place, count
        row[at.L_EXCERPTS] += 1
    row[at.L_EXCERPT_BYTES] += count


@compiled
def names_end(row: Any, frame: int, topics: int, mask: int, big: Any) -> int:
    """Returns where the names end that the state refers to. Those of the first `topics` topics, and of the texts in `mask`
    except for the last topic, were there before.
    """
    end = row[at.L_KEPT]
    for k in range(max(topics - 1, 0), row[at.L_TOPICS]):
        name, uuid = np.int64(big.topics[frame, k, 2]), np.int64(big.topics[frame, k, 3])
        end = max(end, name, uuid + UUID if uuid >= 0 else end)
    for text in range(TEXTS):
        if (row[at.L_MASK] & ~mask) >> (NUMBERS + text) & 1:
            end = max(end, big.values[NUMBERS + 2 * text + 1, frame])
    return int(max(end, row[at.L_GROUP_END]))


@routine
def take_large(data: Any, cursor: int, end: int, frame: int, big: Any) -> int:
    """Takes `data[cursor:end]`, the next bytes of a frame's body. Returns how far it got before there was no more room."""
    row, body, elements = big.large[frame], big.stored[frame], big.elements
    topics, wrapped = big.topics[frame], big.wrapped[frame]
    while cursor < end:
        step = min(row[at.L_SKIP], end - cursor)
        if row[at.L_FIELDS] and step:
            excerpt(data, cursor, step, frame, big)
        cursor += step
        row[at.L_SKIP] -= step
        row[at.L_PASSED] += step
        if row[at.L_SKIP]:
            return cursor
        if row[at.L_STATUS] == COMPLETE and cursor < end:
            row[at.L_STATUS] = TRAILING
        if row[at.L_STATUS] != SHORT:
            row[at.L_PASSED] += end - cursor
            return end
        top, count = row[at.L_TOP], end - cursor if end - cursor < PIECE else PIECE
        if (
            top + count > body.size
            or row[at.L_TOPICS] + TOPICS_ROOM > topics.shape[0]
            or row[at.L_WRAPPED] + WRAPPED_ROOM > wrapped.shape[0]
        ):
            return cursor
        copied(data, cursor, cursor + count, body, top)
        excerpt(data, cursor, count, frame, big)
        cursor += count
        top += count
        row[at.L_PASSED] += count
        elements[0, RECORDS_START] = -1
        before, records_end = row[at.L_WRAPPED], row[at.L_RECORDS_END]
        topics_before, mask_before = row[at.L_TOPICS], row[at.L_MASK]
        status, reached, pc, mask, stop, t, w = message(
            body, row[at.L_CURSOR], top, big.rows, row[at.L_PC], row[at.L_MASK], row[at.L_RECORDS_END], frame, big.values,
            topics, row[at.L_TOPICS], wrapped, before, elements, row[at.L_PART : at.L_GROUP_END + 1],
            row[at.L_COUNTERS:at.L_ENDS], row[at.L_ENDS : at.L_ENDS + COUNTERS],
        )  # fmt: skip
        row[at.L_STATUS], row[at.L_CURSOR], row[at.L_PC], row[at.L_MASK] = status, reached, pc, mask
        row[at.L_RECORDS_END], row[at.L_TOPICS], row[at.L_WRAPPED], row[at.L_TOP] = stop, t, w, top
        if elements[0, RECORDS_START] >= 0:
            row[at.L_LOW], records_end = elements[0, RECORDS_START], elements[0, RECORDS_END]
        if status != SHORT:
            continue
        row[at.L_KEPT] = names_end(row, frame, topics_before, mask_before, big)
        if w > before and row[at.L_SIZE] <= COUNTED_MAX:
            row[at.L_WHOLE] = 1  # the records in compressed messages are counted when the frame is complete
        if row[at.L_WHOLE]:
            continue
        inside = stop >= 0 and row[at.L_LOW] >= 0
        low = row[at.L_LOW] if inside else min(row[at.L_KEPT], reached, top)
        rest = max(top - reached, np.int64(0))
        copied(body, top - rest, top, body, low)  # fields that were read, and batches that were skipped, are no longer needed
        row[at.L_SKIP], row[at.L_FIELDS] = max(reached - top, np.int64(0)), 0 if inside else int(reached != records_end)
        row[at.L_TOP] = low + rest
        moved_down(row, reached - low)
    return cursor


@compiled
def enter_large(data: Any, cursor: int, end: int, program: int, size: int, head: int, big: Any, meta: Any) -> int:
    """Takes a free row as `open_large`, and then `data[cursor:end]`, the first bytes of the frame's body, as far as there is
    room.
    """
    frame = open_large(program, size, head, big, meta)
    take_large(data, cursor, end, frame, big)
    return int(frame)
