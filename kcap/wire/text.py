"""Kafka's strings: bytes in, text out, whatever the bytes are.

Law: the text is what `new String(bytes, UTF_8)` gives in Java, so that it equals what brokers log.
"""

import codecs


def _replace(error: UnicodeError) -> tuple[str, int]:
    """One U+FFFD for what Java replaces by one: an encoded surrogate is three bytes there, in Python three times one."""
    assert isinstance(error, UnicodeDecodeError)
    at = error.start
    head = error.object[at : at + 3]
    if len(head) == 3 and head[0] == 0xED and head[1] & 0xC0 == 0x80 and head[2] & 0xC0 == 0x80:
        return "\N{REPLACEMENT CHARACTER}", at + 3
    return "\N{REPLACEMENT CHARACTER}", error.end


codecs.register_error("kafka", _replace)


def decode_text(data: bytes | bytearray | memoryview) -> str:
    """UTF-8 to text; malformed bytes become U+FFFD."""
    return str(data, "utf-8", "kafka")
