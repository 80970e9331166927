"""The instructions of a plan: small integers, one row `(op, a, b, c)` each. Pure data.

A reader walks the rows with a row number `pc`, a byte position and a counter for each open array or tag section. Jump targets
are absolute row numbers. What the columns mean stands beside each op; a column that is not named is 0. An op that has a compact
form (KIP-482) is odd and the form is the even number behind it.
"""

FIXED = 0
"""`a` bytes of adjacent fixed-size fields."""
LOOP = 1
"""End of an array's body: counter `b` goes down, while it is above 0 back to row `a`."""
TAGS = 2
"""Number of tagged fields into counter `b`; to row `a` when there are none (KIP-482)."""
STRING = 3
"""int16 length (-1 null) and UTF-8; `a`: the text slot it goes to or -1; `c`: 1 for the group of the partitions behind it."""
COMPACT_STRING = 4
"""Unsigned varint of length + 1 (0 null) and UTF-8 (KIP-482); else as STRING."""
TOPIC_NAME = 5
"""A topic's name as STRING; `c` is 1 when it joins the id before it."""
COMPACT_TOPIC_NAME = 6
ERROR = 7
"""int16 error code; `a` is 1 for the outermost struct's own, `b` is 1 where no outermost one can follow."""
INT = 8
"""A signed integer of `a` bytes into slot `b`; the first one of a message wins."""
ARRAY = 9
"""int32 count (-1 null) into counter `b`; to row `a` when empty. `c`: size of elements that can be stepped over, or -1."""
COMPACT_ARRAY = 10
"""Unsigned varint of count + 1 (0 null); else as ARRAY."""
PARTITIONS = 11
"""An ARRAY whose elements are counted as partitions."""
COMPACT_PARTITIONS = 12
TOPIC_ID = 13
"""A topic's uuid (KIP-516), 16 bytes; `c` is 1 when it joins the name before it."""
NULLABLE = 14
"""int8 before a struct: negative is null and goes to row `a`."""
BYTES = 15
"""int32 length (-1 null) and bytes."""
COMPACT_BYTES = 16
RECORDS = 17
"""As BYTES, holding record batches; `c` is 1 where they belong to the partition at hand."""
COMPACT_RECORDS = 18
NULLABLE_TAGGED = 19
"""Unsigned varint before a struct that is a tagged field: 0 is null and goes to row `a`."""
STRUCT = 20
"""A struct in line, up to row `a`; no bytes of its own."""
TAG = 21
"""Next tagged field of counter `b`, else to row `a`; `c` CASE rows follow."""
CASE = 22
"""Tag number `a` has its value at row `b`."""
TAG_END = 23
"""The tagged field must end here; back to TAG row `a` of counter `b`."""
DOWNGRADE = 24
"""If the next int16 is `a`, the message goes on at row `b`; no bytes are consumed (see quirks.DOWNGRADES)."""
END = 25
"""The message is complete; `a` has the presence bits of facts that only a complete message gives: counts, the absence of
errors.
"""

ELEMENT = 26
"""A partition begins: a new entry of the side buffer of partitions; only in the plans that are made for these."""
FIELD = 27
"""A signed integer of `a` bytes into column `b` of that entry; `c` has bit 0 where the next row reads it, too, bit 1 where
the largest of several counts."""

COUNTERS = 12
"""Arrays and tag sections that can be open at once; the deepest message of Kafka 4.4 needs 5, a test looks."""

OPS = {name: value for name, value in list(globals().items()) if name.isupper() and isinstance(value, int)}
del OPS["COUNTERS"]
