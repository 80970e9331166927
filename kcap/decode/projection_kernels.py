"""The projection's interpreter, compiled by numba: a batch as arrays in, the columns of `kcap.decode.interpreter` out.

It is imported only for batches that are large enough. Law: slots, spans, topics and status equal those of the plain interpreter
for all bytes. A side buffer that is full stops the kernel before that message; it then goes on with a larger buffer.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kcap.decode import opcodes, slots
from kcap.kernels import compiled, int16, int32, routine
from kcap.limits import COPIED_MAX, PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE
from kcap.model import Buffer
from kcap.wire.cursor import STRING_BYTES_MAX
from kcap.wire.formats import (
    BATCH_ATTRIBUTES_AT,
    BATCH_COUNT_AT,
    BATCH_MIN,
    CODEC_MASK,
    MAGIC_AT,
    MESSAGE0_MIN,
    MESSAGE_ATTRIBUTES_AT,
    MINIMA,
    OVERHEAD,
    SIZE_AT,
)

_FIXED, _LOOP, _TAGS = opcodes.FIXED, opcodes.LOOP, opcodes.TAGS
_COMPACT_STRING, _COMPACT_TOPIC_NAME = opcodes.COMPACT_STRING, opcodes.COMPACT_TOPIC_NAME
_ERROR, _INT, _PARTITIONS, _COMPACT_PARTITIONS = opcodes.ERROR, opcodes.INT, opcodes.PARTITIONS, opcodes.COMPACT_PARTITIONS
_TOPIC_ID, _NULLABLE, _RECORDS, _COMPACT_RECORDS = opcodes.TOPIC_ID, opcodes.NULLABLE, opcodes.RECORDS, opcodes.COMPACT_RECORDS
_END, _ELEMENT = opcodes.END, opcodes.ELEMENT
_WIDE, _NOTHING, _PARTITION = len(slots.ELEMENTS), slots.NOTHING, slots.PARTITION
_RECORDS_START, _RECORDS_END = slots.RECORDS_START, slots.RECORDS_END
_NULLABLE_TAGGED, _STRUCT, _TAG, _TAG_END = opcodes.NULLABLE_TAGGED, opcodes.STRUCT, opcodes.TAG, opcodes.TAG_END
_DOWNGRADE = opcodes.DOWNGRADE
_COUNTERS = opcodes.COUNTERS
_MOST, _MOST_TOPICS = PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE
_TEXTS = len(slots.SLOTS)
_STRING_MAX = STRING_BYTES_MAX
_ERROR_CODE, _TOP_ERROR, _ERROR_COUNT = slots.ERROR_CODE, slots.TOP_ERROR, slots.ERROR_COUNT
_PARTITION_COUNT, _BATCH_COUNT, _RECORD_COUNT = slots.PARTITION_COUNT, slots.BATCH_COUNT, slots.RECORD_COUNT
_RECORDS_BYTES, _CODECS, _MAGICS = slots.RECORDS_BYTES, slots.CODECS, slots.MAGICS

_HEADER = MAGIC_AT + 1
_MESSAGE_HEADER = MESSAGE_ATTRIBUTES_AT + 1

UNKNOWN, COMPLETE, SHORT, MALFORMED, TRAILING = range(-1, 4)
_FULL = 4
"""A side buffer has no room for the message."""


Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Table = TypeVar("Table", Int64s, Int32s)


@compiled
def _integer(b, p, size):  # type: ignore[no-untyped-def]
    value = (np.int64(b[p]) ^ 128) - 128
    for k in range(1, size):
        value = (value << 8) | np.int64(b[p + k])
    return value


@compiled
def _uvarint(b, p, end):  # type: ignore[no-untyped-def]
    value = np.int64(0)
    shift = 0
    while p < end:
        byte = np.int64(b[p])
        p += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, p
        shift += 7
        if shift > 28:
            return np.int64(-2), p
    return np.int64(-1), p


@compiled
def _walk(b, p, end, stop, i, out, wrapped, count):  # type: ignore[no-untyped-def]
    while p < stop:
        left = stop - p
        if left < MESSAGE0_MIN:
            return stop, count
        if p + _HEADER > end:
            return p, count
        total = OVERHEAD + int32(b, p + SIZE_AT)
        magic = b[p + MAGIC_AT]
        if magic > 2 or total > left:
            return stop, count
        if total < MINIMA[magic]:
            return stop, count
        if magic == 2:
            if p + BATCH_MIN > end:
                return p, count
            codec = np.int64(b[p + BATCH_ATTRIBUTES_AT + 1] & CODEC_MASK)
            out[_RECORD_COUNT, i] += max(np.int64(0), int32(b, p + BATCH_COUNT_AT))
        else:
            if p + _MESSAGE_HEADER > end:
                return p, count
            codec = np.int64(b[p + MESSAGE_ATTRIBUTES_AT] & CODEC_MASK)
            if codec:
                if count == len(wrapped):
                    return np.int64(-1), count
                wrapped[count, 0] = i
                wrapped[count, 1] = p
                wrapped[count, 2] = p + total
                count += 1
            else:
                out[_RECORD_COUNT, i] += 1
        out[_BATCH_COUNT, i] += 1
        out[_CODECS, i] |= np.int64(1) << codec
        out[_MAGICS, i] |= np.int64(1) << np.int64(magic)
        p += total
    return stop, count


@routine
def message(  # type: ignore[no-untyped-def]  # noqa: C901
    b, p, end, rows, pc, mask, records_end, i, out, topics, t, wrapped, w, elements, part, counters, ends
):
    """Continues with one message from row `pc` and position `p`. Returns status, position, row, mask, end of the records that
    are being walked or -1, number of topics so far, and number of wrapped messages so far.

    `part` has the number of partitions so far, the group of the current ones, and, if there may be more than the limits, the
    numbers of partitions and of topics from which on the last one replaces the one before. A table of elements with one row
    holds only the last partition; for a program without partitions, it holds the position of the last records. After SHORT, the
    same call goes on with more bytes.
    """
    one = np.int64(1)
    while p <= end:
        op = rows[pc, 0]
        a = np.int64(rows[pc, 1])
        v = np.int64(rows[pc, 2])
        c = np.int64(rows[pc, 3])
        if op == _FIXED:
            p += a
            pc += 1
        elif op == _LOOP:
            counters[v] -= 1
            pc = a if counters[v] > 0 else pc + 1
        elif op == _TAGS:
            n, at = _uvarint(b, p, end)
            if n < 0:
                return MALFORMED if n == -2 else SHORT, p, pc, mask, records_end, t, w
            p = at
            if n == 0:
                pc = a
            else:
                counters[v] = n
                pc += 1
        elif op <= _COMPACT_TOPIC_NAME:
            if op & 1:
                if p + 2 > end:
                    return SHORT, p, pc, mask, records_end, t, w
                n = int16(b, p)
                at = p + 2
            else:
                n, at = _uvarint(b, p, end)
                if n == -1:
                    return SHORT, p, pc, mask, records_end, t, w
                n -= 1
            if n < -1 or n > _STRING_MAX:
                return MALFORMED, p, pc, mask, records_end, t, w
            captured = op > _COMPACT_STRING or (a >= 0 and (c or not (mask >> (_TEXTS + a)) & 1))
            if captured and n > 0 and at + n > end:
                return SHORT, p, pc, mask, records_end, t, w
            start = at if n >= 0 else np.int64(-1)
            stop = at + n if n >= 0 else np.int64(-1)
            if op > _COMPACT_STRING:
                if c:
                    topics[t - 1, 1] = start
                    topics[t - 1, 2] = stop
                else:
                    if n <= 0 and t > 0 and topics[t - 1, 0] == i and topics[t - 1, 3] < 0:
                        t -= np.int64(topics[t - 1, 1] == topics[t - 1, 2] and (topics[t - 1, 1] < 0) == (n < 0))
                    if len(part) > 4 and t == part[4]:
                        t -= 1
                    if t == len(topics):
                        return _FULL, p, pc, mask, records_end, t, w
                    topics[t, 0] = i
                    topics[t, 1] = start
                    topics[t, 2] = stop
                    topics[t, 3] = -1
                    t += 1
            elif captured:
                if c:
                    part[1] = start
                    part[2] = stop
                    if (mask >> (_TEXTS + a)) & 1:
                        p = at + max(n, np.int64(0))
                        pc += 1
                        continue
                mask |= one << (_TEXTS + a)
                out[_TEXTS + 2 * a, i] = start
                out[_TEXTS + 2 * a + 1, i] = stop
            p = at + n if n > 0 else at
            pc += 1
        elif op == _ERROR:
            if p + 2 > end:
                return SHORT, p, pc, mask, records_end, t, w
            n = int16(b, p)
            p += 2
            pc += 1
            if a:
                if out[_TOP_ERROR, i] == 0:
                    if n != 0:
                        out[_ERROR_CODE, i] = n
                        mask |= one << _ERROR_CODE
                    out[_TOP_ERROR, i] = n
                mask |= one << _TOP_ERROR
            if n != 0:
                out[_ERROR_COUNT, i] += 1
                if out[_ERROR_CODE, i] == 0:
                    out[_ERROR_CODE, i] = n
                    mask |= v << _ERROR_CODE
        elif op == _INT:
            if p + a > end:
                return SHORT, p, pc, mask, records_end, t, w
            if not (mask >> v) & 1:
                out[v, i] = _integer(b, p, a)
                mask |= one << v
            p += a
            pc += 1
        elif op <= _COMPACT_PARTITIONS:
            if op & 1:
                if p + 4 > end:
                    return SHORT, p, pc, mask, records_end, t, w
                n = int32(b, p)
                at = p + 4
            else:
                n, at = _uvarint(b, p, end)
                if n == -1:
                    return SHORT, p, pc, mask, records_end, t, w
                n -= 1
            if n < -1:
                return MALFORMED, p, pc, mask, records_end, t, w
            p = at
            if n <= 0:
                pc = a
                continue
            if op >= _PARTITIONS:
                out[_PARTITION_COUNT, i] += n
            if c > 0:
                p += n * c
                pc = a
            elif c == 0:
                if n > end - p:
                    return MALFORMED, p, pc, mask, records_end, t, w
                pc = a
            else:
                counters[v] = n
                pc += 1
        elif op == _TOPIC_ID:
            if p + 16 > end:
                return SHORT, p, pc, mask, records_end, t, w
            if c:
                topics[t - 1, 3] = p
            else:
                if len(part) > 4 and t == part[4]:
                    t -= 1
                if t == len(topics):
                    return _FULL, p, pc, mask, records_end, t, w
                topics[t, 0] = i
                topics[t, 1] = -1
                topics[t, 2] = -1
                topics[t, 3] = p
                t += 1
            p += 16
            pc += 1
        elif op == _NULLABLE:
            if p >= end:
                return SHORT, p, pc, mask, records_end, t, w
            pc = a if b[p] > 127 else pc + 1
            p += 1
        elif op <= _COMPACT_RECORDS:
            if records_end < 0:
                if op & 1:
                    if p + 4 > end:
                        return SHORT, p, pc, mask, records_end, t, w
                    n = int32(b, p)
                    at = p + 4
                else:
                    n, at = _uvarint(b, p, end)
                    if n == -1:
                        return SHORT, p, pc, mask, records_end, t, w
                    n -= 1
                if n < -1:
                    return MALFORMED, p, pc, mask, records_end, t, w
                p = at
                if op < _RECORDS or n <= 0:
                    p += max(n, np.int64(0))
                    pc += 1
                    continue
                out[_RECORDS_BYTES, i] += n
                records_end = p + n
                if c or len(elements) == 1:
                    e = part[0] - 1 if c else np.int64(0)
                    elements[e, _RECORDS_START] = p
                    elements[e, _RECORDS_END] = records_end
            p, w = _walk(b, p, end, records_end, i, out, wrapped, w)
            if p < 0:
                return _FULL, p, pc, mask, records_end, t, w
            if p < records_end:
                return SHORT, p, pc, mask, records_end, t, w
            records_end = np.int64(-1)
            pc += 1
        elif op == _TAG:
            if counters[v] == 0:
                pc = a
                continue
            tag, at = _uvarint(b, p, end)
            n = np.int64(-1)
            if tag >= 0:
                n, at = _uvarint(b, at, end)
            if n < 0:
                return MALFORMED if tag == -2 or n == -2 else SHORT, p, pc, mask, records_end, t, w
            counters[v] -= 1
            ends[v] = at + n
            found = False
            for case in range(pc + 1, pc + 1 + c):
                if rows[case, 1] == tag:
                    p = at
                    pc = np.int64(rows[case, 2])
                    found = True
                    break
            if not found:
                p = at + n
        elif op == _TAG_END:
            if p != ends[v]:
                return MALFORMED, p, pc, mask, records_end, t, w
            pc = a
        elif op == _NULLABLE_TAGGED:
            n, at = _uvarint(b, p, end)
            if n < 0:
                return MALFORMED if n == -2 else SHORT, p, pc, mask, records_end, t, w
            pc = a if n == 0 else pc + 1
            p = at
        elif op == _STRUCT:
            pc += 1
        elif op == _DOWNGRADE:
            if p + 2 > end:
                return SHORT, p, pc, mask, records_end, t, w
            pc = v if int16(b, p) == a else pc + 1
        elif op == _END:
            return COMPLETE if p == end else TRAILING, p, pc, mask | a, records_end, t, w
        elif op == _ELEMENT:
            e = np.int64(0)
            if len(elements) > 1:
                e = part[0] - 1 if part[0] == part[3] else part[0]
            if e == len(elements):
                return _FULL, p, pc, mask, records_end, t, w
            elements[e, 0] = i
            elements[e, 1] = t - 1
            elements[e, 2] = part[1]
            elements[e, 3] = part[2]
            elements[e, _RECORDS_START] = elements[e, _RECORDS_END] = -1
            for k in range(_PARTITION, _WIDE):
                elements[e, k] = _NOTHING
            part[0] = e + 1
            pc += 1
        else:
            if p + a > end:
                return SHORT, p, pc, mask, records_end, t, w
            e, n = part[0] - 1, _integer(b, p, a)
            elements[e, v] = max(n, elements[e, v]) if c & 2 else n
            p += np.int64(0) if c & 1 else a
            pc += 1
    return SHORT, p, pc, mask, records_end, t, w


@compiled
def batch(b, rows, starts, ends, programs, first, out, facts, topics, t, wrapped, w, elements, part, counters, tag_ends):  # type: ignore[no-untyped-def]
    """Reads messages from `first` on. Returns the message to go on with, and the numbers of topics and of wrapped messages."""
    for i in range(first, len(starts)):
        if programs[i] < 0:
            facts[0, i] = UNKNOWN
            facts[2, i] = starts[i]
            continue
        before = part[0]
        part[1] = part[2] = -1
        part[3] = before + _MOST + 1
        part[4] = t + _MOST_TOPICS + 1
        none = np.int64(-1)
        status, p, _, mask, _, topic, wrap = message(
            b, starts[i], ends[i], rows, programs[i], np.int64(0), none, i, out, topics, t, wrapped, w, elements, part,
            counters, tag_ends,
        )  # fmt: skip
        if status == _FULL:
            for slot in range(out.shape[0]):
                out[slot, i] = 0
            part[0] = before
            return i, t, w
        t, w = topic, wrap
        facts[0, i] = status
        facts[1, i] = mask
        facts[2, i] = p
    return len(starts), t, w


def _longer(table: Table, used: int, most: int = 0) -> Table:
    """Returns the used rows of a table in one with twice its room. A large table gets room for `most` rows at once, since
    memory that is not written is not allocated, while a copy takes time.
    """
    made = np.empty((used + max(2 * len(table), most if used > COPIED_MAX else 0), table.shape[1]), table.dtype)
    made[:used] = table[:used]
    return made


def project_arrays(
    buffer: Buffer, rows: NDArray[np.int32], starts: Int64s, ends: Int64s, programs: Int64s, room: int, most: int | None
) -> tuple[Int64s, Int64s, Int32s, Int64s, Int64s] | None:
    """Projects the whole batch. Returns values and (status, mask, position), with one column per message; topics (message, name
    start, name end, uuid start), in 32 bits, since a batch has room for sixteen million; wrapped (message, start, end); and
    elements (`slots.ELEMENTS`), of which `room` are expected. Returns None if there are more than `most` elements.
    """
    data = np.frombuffer(buffer, np.uint8)
    n = len(starts)
    values = np.zeros((slots.WIDTH, n), np.int64)  # rows that no message has remain untouched memory
    facts = np.zeros((3, n), np.int64)
    topics = np.empty((2 * n + 16, 4), np.int32)
    wrapped = np.empty((n // 4 + 16, 3), np.int64)
    elements = np.empty((room, _WIDE), np.int64)
    part, counters, tag_ends = np.zeros(5, np.int64), np.zeros(_COUNTERS, np.int64), np.zeros(_COUNTERS, np.int64)
    at = t = w = 0
    while at < n:
        at, t, w = batch(
            data, rows, starts, ends, programs, at, values, facts, topics, t, wrapped, w, elements, part, counters, tag_ends
        )
        if most is not None and part[0] > most:
            return None
        if at < n:
            full = [2 * used >= len(table) for used, table in ((t, topics), (w, wrapped), (part[0], elements))]
            every = not any(full)  # one message needs more than half of the room of some table
            if most is not None and (full[2] or every) and len(elements) >= most:
                return None
            topics = _longer(topics, t, int((ends[at:] - starts[at:]).sum())) if full[0] or every else topics
            wrapped = _longer(wrapped, w) if full[1] or every else wrapped
            elements = _longer(elements, int(part[0])) if full[2] or every else elements
    return values, facts, topics[:t], wrapped[:w], elements[: part[0]]


def ended(buffer: Buffer, rows: NDArray[np.int32], pc: int, start: int, end: int) -> tuple[int, int]:
    """Returns (status, position) of one run over `buffer[start:end]` from row `pc` on, without other results.

    The status is SHORT if there are more names in the bytes than there is room for.
    """
    room = (end - start) // 4 + 16  # memory that is not written costs nothing
    data = np.frombuffer(buffer, np.uint8)
    values, facts = np.zeros((slots.WIDTH, 1), np.int64), np.zeros((3, 1), np.int64)
    topics, wrapped = np.empty((room, 4), np.int32), np.empty((room, 3), np.int64)
    elements, part = np.empty((1, _WIDE), np.int64), np.zeros(5, np.int64)
    one = np.array([[start], [end], [pc]], np.int64)
    loops = np.zeros((2, _COUNTERS), np.int64)
    done = batch(data, rows, one[0], one[1], one[2], 0, values, facts, topics, 0, wrapped, 0, elements, part, *loops)[0]
    return (int(facts[0, 0]), int(facts[2, 0])) if done else (SHORT, start)
