"""The instructions of a plan: small integers, one row `(op, a, b, c)` each. Pure data.

A reader walks the rows with a row number `pc`, a byte position, and a counter for each open array or tag section. Jump targets
are absolute row numbers. The docstring of each op gives the meaning of its columns; a column that is not named is 0. An op that
has a compact form (KIP-482) is odd, and its compact form is the even number after it.
"""

FIXED = 0
"""`a` bytes of adjacent fixed-size fields."""
LOOP = 1
"""End of an array's body: decrements counter `b`, and goes back to row `a` while the counter is above 0."""
TAGS = 2
"""Stores the number of tagged fields in counter `b`; goes to row `a` if there are none (KIP-482)."""
STRING = 3
"""int16 length (-1 null) and UTF-8. `a`: its text slot, or -1. `c`: 1 for the group of the partitions after it."""
COMPACT_STRING = 4
"""Unsigned varint of length + 1 (0 null) and UTF-8 (KIP-482); otherwise as STRING."""
TOPIC_NAME = 5
"""A topic's name, as STRING; `c` is 1 if it belongs to the id before it."""
COMPACT_TOPIC_NAME = 6
ERROR = 7
"""int16 error code. `a` is 1 for that of the outermost struct; `b` is 1 if no error of the outermost struct can follow."""
INT = 8
"""Stores a signed integer of `a` bytes in slot `b`; the first one of a message wins."""
ARRAY = 9
"""int32 count (-1 null), stored in counter `b`; goes to row `a` if it is empty. `c`: size of elements to skip, or -1."""
COMPACT_ARRAY = 10
"""Unsigned varint of count + 1 (0 null); otherwise as ARRAY."""
PARTITIONS = 11
"""An ARRAY whose elements are counted as partitions."""
COMPACT_PARTITIONS = 12
TOPIC_ID = 13
"""A topic's uuid (KIP-516), 16 bytes; `c` is 1 if it belongs to the name before it."""
NULLABLE = 14
"""int8 before a struct: a negative value is null and goes to row `a`."""
BYTES = 15
"""int32 length (-1 null) and bytes."""
COMPACT_BYTES = 16
RECORDS = 17
"""As BYTES, holding record batches; `c` is 1 if they belong to the current partition."""
COMPACT_RECORDS = 18
NULLABLE_TAGGED = 19
"""Unsigned varint before a struct that is a tagged field: 0 is null and goes to row `a`."""
STRUCT = 20
"""A nested struct, up to row `a`; it has no bytes of its own."""
TAG = 21
"""Reads the next tagged field of counter `b`; goes to row `a` if there is none. `c` CASE rows follow."""
CASE = 22
"""The value of tag number `a` is read from row `b` on."""
TAG_END = 23
"""The tagged field must end here; goes back to TAG row `a` of counter `b`."""
DOWNGRADE = 24
"""If the next int16 is `a`, the message continues at row `b`; no bytes are consumed (see quirks.DOWNGRADES)."""
END = 25
"""The message is complete. `a` has the presence bits of facts that only such a message gives: counts, absence of errors."""

ELEMENT = 26
"""A partition begins: adds an entry to the side buffer of partitions. Occurs only in plans that are made for partitions."""
FIELD = 27
"""Stores a signed integer of `a` bytes in column `b` of that entry. In `c`, bit 0 is set if the next row reads the integer too,
and bit 1 if the largest of several counts."""

COUNTERS = 12
"""Number of arrays and tag sections that can be open at once. Kafka 4.4's deepest message needs 5, which a test verifies."""

OPS = {name: value for name, value in list(globals().items()) if name.isupper() and isinstance(value, int)}
del OPS["COUNTERS"]
