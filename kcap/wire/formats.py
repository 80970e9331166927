"""Offsets of fields in record batches and messages, from their first byte. Pure data.

Sources: DefaultRecordBatch.java (magic 2, KIP-98), LegacyRecord.java (magic 0 and 1, KIP-32).
"""

from typing import Final

OVERHEAD: Final = 12
"""Bytes of offset (8) and size (4), the same in every format. The size counts the bytes after them."""

SIZE_AT: Final = 8
MAGIC_AT: Final = 16

MESSAGE_ATTRIBUTES_AT: Final = 17
"""int8, magic 0 and 1."""
BATCH_CRC_AT: Final = 17
"""uint32, magic 2."""
BATCH_ATTRIBUTES_AT: Final = 21
"""int16, magic 2; the codec is in its second byte. The CRC-32C starts here."""
BATCH_COUNT_AT: Final = 57
"""int32, magic 2."""

MESSAGE0_MIN: Final = 26
MESSAGE1_MIN: Final = 34
BATCH_MIN: Final = 61

MINIMA: Final = (MESSAGE0_MIN, MESSAGE1_MIN, BATCH_MIN)
"""By magic: smallest size of a message with null key and value, and of an empty batch."""

CODEC_MASK: Final = 0x07
"""Bits of the attributes that hold the codec, in every format."""
CODECS_KNOWN: Final = 5
"""Number of codecs, including none. A batch never has a larger codec number."""
