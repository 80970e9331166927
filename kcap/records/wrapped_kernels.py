"""The compiled count of the messages in a magic 0 or 1 wrapper.

In: the decompressed bytes. Out: the result of `kcap.records.legacy.span_of_messages` for them.
"""

from typing import Any

from kcap.kernels import int32, routine
from kcap.wire.formats import CODEC_MASK, MAGIC_AT, MESSAGE0_MIN, MESSAGE1_MIN, MESSAGE_ATTRIBUTES_AT, OVERHEAD, SIZE_AT


@routine
def wrapped_messages(data: Any) -> tuple[int, int, int]:
    """Number of messages that can be read, and where the first and the last one start."""
    count, first, last, at = 0, 0, 0, 0
    while data.size - at >= MESSAGE0_MIN:
        magic = int(data[at + MAGIC_AT])
        head = MESSAGE1_MIN if magic else MESSAGE0_MIN
        size = OVERHEAD + int32(data, at + SIZE_AT)
        if magic > 1 or size < head or size > data.size - at or data[at + MESSAGE_ATTRIBUTES_AT] & CODEC_MASK:
            break
        end = at + size
        key = int32(data, at + head - 8)
        middle = at + head - 4 + max(0, key)
        if middle + 4 <= end and int32(data, middle) <= end - middle - 4:
            first = first if count else at
            last = at
            count += 1
        at = end
    return count, first, last
