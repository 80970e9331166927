"""The projection's interpreter in plain Python: rows and bytes in, slots, texts and topics out.

It stops where the bytes end and goes on when there are more: its state is the row, the position and the counters. Law: slots,
spans and status equal those of `kcap.decode.projection_kernels`, message by message, and those of one call over the whole body,
however the body was split.
"""

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Final

from kcap.decode.opcodes import (
    COMPACT_PARTITIONS,
    COMPACT_RECORDS,
    COMPACT_STRING,
    COMPACT_TOPIC_NAME,
    COUNTERS,
    DOWNGRADE,
    ELEMENT,
    END,
    ERROR,
    FIXED,
    INT,
    LOOP,
    NULLABLE,
    NULLABLE_TAGGED,
    PARTITIONS,
    RECORDS,
    STRUCT,
    TAG,
    TAG_END,
    TAGS,
    TOPIC_ID,
)
from kcap.decode.plan import Row
from kcap.decode.slots import (
    BATCH_COUNT,
    CODECS,
    ELEMENTS,
    ERROR_CODE,
    ERROR_COUNT,
    MAGICS,
    NOTHING,
    PARTITION,
    PARTITION_COUNT,
    RECORD_COUNT,
    RECORDS_BYTES,
    RECORDS_START,
    SLOTS,
    TOP_ERROR,
    WIDTH,
)
from kcap.limits import PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE
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

UNKNOWN, COMPLETE, SHORT, MALFORMED, TRAILING = range(-1, 4)
"""How a message ended: no program, consumed exactly, out of bytes, not as its schema says, bytes left after it."""

_INT16 = Struct(">h").unpack_from
_INT32 = Struct(">i").unpack_from
_INTS: Final = {
    1: Struct(">b").unpack_from,
    2: _INT16,
    4: _INT32,
    8: Struct(">q").unpack_from,
}

_HEADER: Final = MAGIC_AT + 1
"""Bytes up to the magic, inclusive."""
_MESSAGE_HEADER: Final = MESSAGE_ATTRIBUTES_AT + 1

_TEXTS: Final = len(SLOTS)
_ZEROS: Final = [0] * WIDTH
_WIDE: Final = len(ELEMENTS)
_NO_FACTS: Final = (-1, -1, *[NOTHING] * (_WIDE - PARTITION))
"""Initial records and facts of a partition."""


class State:
    """The position of the interpreter in one message, and what it has found. One state may serve message after message."""

    __slots__ = (
        "counters",
        "elements",
        "ends",
        "group",
        "mask",
        "message",
        "pc",
        "position",
        "records_end",
        "room",
        "status",
        "topic_room",
        "topics",
        "values",
        "wrapped",
    )

    def __init__(self) -> None:
        self.counters = [0] * COUNTERS
        self.ends = [0] * COUNTERS
        """Position at which the open tagged fields must end, by counter."""
        # Flat arrays, since thousands of small tuples would trigger the garbage collector again and again.
        self.topics = array("i")
        """Rows of four: (message, name start, name end, uuid start); -1 for a value that is null or not in the version. A
        message with more than TOPICS_OF_MESSAGE topics has one row more than that."""
        self.wrapped: list[int] = []
        """Rows of three: (message, start, end) of compressed magic 0 and 1 messages, whose records are not counted."""
        self.elements = array("q")
        """Rows of `slots.ELEMENTS`, one per partition; one more than PARTITIONS_OF_MESSAGE if a message has more partitions."""
        self.group = -1, -1
        """The group of the current partitions."""
        self.values = [0] * WIDTH
        self.begin(0, 0, 0)

    def begin(self, message: int, pc: int, position: int) -> None:
        """Prepares for a message; topics and wrapped messages of earlier ones remain."""
        self.message = message
        self.pc = pc
        self.position = position
        self.status = SHORT
        self.mask = 0
        """Presence bits: integers of `slots.SLOTS`, then `slots.TEXTS`."""
        self.records_end = -1
        """End of the records field that is being walked; -1 outside of one."""
        self.values[:] = _ZEROS
        self.group = -1, -1
        self.room = len(self.elements) + (PARTITIONS_OF_MESSAGE + 1) * _WIDE
        """Size of `elements` from which on the last partition replaces the one before."""
        self.topic_room = len(self.topics) + (TOPICS_OF_MESSAGE + 1) * 4
        """The same for topics."""


def _uvarint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Returns (value, next position); the value is -1 if the bytes end, -2 if it is too long."""
    value = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 28:
            return -2, position
    return -1, position


def _walk(state: State, buffer: Buffer, position: int, end: int) -> int:
    """Steps over the batches up to `state.records_end` by their headers; returns that, or where more bytes are needed."""
    stop = state.records_end
    values = state.values
    while position < stop:
        left = stop - position
        if left < MESSAGE0_MIN:
            return stop
        if position + _HEADER > end:
            return position
        total = OVERHEAD + _INT32(buffer, position + SIZE_AT)[0]
        magic = buffer[position + MAGIC_AT]
        if magic > 2 or total < MINIMA[magic] or total > left:
            return stop
        if magic == 2:
            if position + BATCH_MIN > end:
                return position
            codec = buffer[position + BATCH_ATTRIBUTES_AT + 1] & CODEC_MASK
            values[RECORD_COUNT] += max(0, _INT32(buffer, position + BATCH_COUNT_AT)[0])
        else:
            if position + _MESSAGE_HEADER > end:
                return position
            codec = buffer[position + MESSAGE_ATTRIBUTES_AT] & CODEC_MASK
            if codec:
                state.wrapped += (state.message, position, position + total)
            else:
                values[RECORD_COUNT] += 1
        values[BATCH_COUNT] += 1
        values[CODECS] |= 1 << codec
        values[MAGICS] |= 1 << magic
        position += total
    return stop


def repeats_last(topics: "array[int]", message: int, size: int) -> bool:
    """Whether the last topic belongs to the message, has no id and no letters, and is null exactly if `size` is negative."""
    owner, start, end, uuid = topics[-4:]
    return owner == message and uuid < 0 and start == end and (start < 0) == (size < 0)


def run(state: State, rows: Sequence[Row], buffer: Buffer, end: int) -> None:  # noqa: C901
    """Continues from the state until the message is complete or malformed, or the bytes before `end` are used up.

    This is one function with many branches on purpose: a call per row would take twice the time. The position may be beyond
    `end` afterwards, because bytes that are skipped need not be there.
    """
    pc, position, mask = state.pc, state.position, state.mask
    counters, values, topics = state.counters, state.values, state.topics
    status = SHORT
    while position <= end:
        op, a, b, c = rows[pc]
        if op == FIXED:
            position += a
            pc += 1
        elif op == LOOP:
            left = counters[b] = counters[b] - 1
            pc = a if left > 0 else pc + 1
        elif op == TAGS:
            if position < end and buffer[position] == 0:
                position += 1
                pc = a
                continue
            n, at = _uvarint(buffer, position, end)
            if n < 0:
                status = MALFORMED if n == -2 else SHORT
                break
            counters[b] = n
            position = at
            pc += 1
        elif op <= COMPACT_TOPIC_NAME:
            if op & 1:
                if position + 2 > end:
                    break
                n = _INT16(buffer, position)[0]
                at = position + 2
            else:
                n, at = _uvarint(buffer, position, end)
                if n == -1:
                    break
                n -= 1
            if n < -1 or n > STRING_BYTES_MAX:
                status = MALFORMED
                break
            if op > COMPACT_STRING:
                if n > 0 and at + n > end:
                    break
                start, stop = (at, at + n) if n >= 0 else (-1, -1)
                if c:
                    topics[-3:-1] = array("i", (start, stop))
                else:
                    if n <= 0 and topics and repeats_last(topics, state.message, n):
                        del topics[-4:]
                    if len(topics) == state.topic_room:
                        del topics[-4:]
                    topics.extend((state.message, start, stop, -1))
            elif a >= 0 and (c or not mask >> _TEXTS + a & 1):
                if n > 0 and at + n > end:
                    break
                if c:
                    state.group = (at, at + n) if n >= 0 else (-1, -1)
                    if mask >> _TEXTS + a & 1:
                        position = at + max(n, 0)
                        pc += 1
                        continue
                mask |= 1 << _TEXTS + a
                values[_TEXTS + 2 * a], values[_TEXTS + 2 * a + 1] = (at, at + n) if n >= 0 else (-1, -1)
            position = at + n if n > 0 else at
            pc += 1
        elif op == ERROR:
            if position + 2 > end:
                break
            n = _INT16(buffer, position)[0]
            position += 2
            pc += 1
            if a:
                if n and not values[TOP_ERROR]:
                    values[ERROR_CODE] = n
                    mask |= 1 << ERROR_CODE
                if not values[TOP_ERROR]:
                    values[TOP_ERROR] = n
                mask |= 1 << TOP_ERROR
            if n:
                values[ERROR_COUNT] += 1
                if not values[ERROR_CODE]:
                    values[ERROR_CODE] = n
                    mask |= b << ERROR_CODE
        elif op == INT:
            if position + a > end:
                break
            if not mask >> b & 1:
                values[b] = _INTS[a](buffer, position)[0]
                mask |= 1 << b
            position += a
            pc += 1
        elif op <= COMPACT_PARTITIONS:
            if op & 1:
                if position + 4 > end:
                    break
                n = _INT32(buffer, position)[0]
                at = position + 4
            else:
                n, at = _uvarint(buffer, position, end)
                if n == -1:
                    break
                n -= 1
            if n < -1:
                status = MALFORMED
                break
            position = at
            if n <= 0:
                pc = a
                continue
            if op >= PARTITIONS:
                values[PARTITION_COUNT] += n
            if c > 0:
                position += n * c
                pc = a
            elif c == 0:
                if n > end - position:
                    status = MALFORMED
                    break
                pc = a
            else:
                counters[b] = n
                pc += 1
        elif op == TOPIC_ID:
            if position + 16 > end:
                break
            if c:
                topics[-1] = position
            else:
                if len(topics) == state.topic_room:
                    del topics[-4:]
                topics.extend((state.message, -1, -1, position))
            position += 16
            pc += 1
        elif op == NULLABLE:
            if position >= end:
                break
            pc = a if buffer[position] > 127 else pc + 1
            position += 1
        elif op <= COMPACT_RECORDS:
            if state.records_end < 0:
                if op & 1:
                    if position + 4 > end:
                        break
                    n = _INT32(buffer, position)[0]
                    at = position + 4
                else:
                    n, at = _uvarint(buffer, position, end)
                    if n == -1:
                        break
                    n -= 1
                if n < -1:
                    status = MALFORMED
                    break
                position = at
                if op < RECORDS or n <= 0:
                    position += max(n, 0)
                    pc += 1
                    continue
                values[RECORDS_BYTES] += n
                state.records_end = position + n
                if c:
                    state.elements[RECORDS_START - _WIDE : PARTITION - _WIDE] = array("q", (position, position + n))
            position = _walk(state, buffer, position, end)
            if position < state.records_end:
                break
            state.records_end = -1
            pc += 1
        elif op == TAG:
            if counters[b] == 0:
                pc = a
                continue
            tag, at = _uvarint(buffer, position, end)
            n = -1
            if tag >= 0:
                n, at = _uvarint(buffer, at, end)
            if n < 0:
                status = MALFORMED if tag == -2 or n == -2 else SHORT
                break
            counters[b] -= 1
            state.ends[b] = at + n
            for case in range(pc + 1, pc + 1 + c):
                if rows[case][1] == tag:
                    position = at
                    pc = rows[case][2]
                    break
            else:
                position = at + n
        elif op == TAG_END:
            if position != state.ends[b]:
                status = MALFORMED
                break
            pc = a
        elif op == NULLABLE_TAGGED:
            n, at = _uvarint(buffer, position, end)
            if n < 0:
                status = MALFORMED if n == -2 else SHORT
                break
            pc = a if n == 0 else pc + 1
            position = at
        elif op == STRUCT:
            pc += 1
        elif op == DOWNGRADE:
            if position + 2 > end:
                break
            pc = b if _INT16(buffer, position)[0] == a else pc + 1
        elif op == END:
            mask |= a
            status = COMPLETE if position == end else TRAILING
            break
        elif op == ELEMENT:
            if len(state.elements) == state.room:
                del state.elements[-_WIDE:]
            state.elements.extend((state.message, len(topics) // 4 - 1, *state.group, *_NO_FACTS))
            pc += 1
        else:
            if position + a > end:
                break
            n = _INTS[a](buffer, position)[0]
            state.elements[b - _WIDE] = max(n, state.elements[b - _WIDE]) if c & 2 else n
            position += 0 if c & 1 else a
            pc += 1
    state.pc, state.position, state.mask, state.status = pc, position, mask, status
