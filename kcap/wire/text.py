"""Kafka's strings: bytes in, text out, whatever the bytes are.

Law: the text is what `new String(bytes, UTF_8)` gives in Java, so that it equals what brokers log.
"""

import codecs
import re
from typing import Final

MASKED: Final = "(masked)"
"""In the place of what may be a secret."""
BINARY: Final = re.compile(r"[\x00-\x06\x08]")
"""Characters that no name of Kafka's has, and SASL tokens have (RFC 4616, RFC 7628)."""
UNNAMED: Final = re.compile(BINARY.pattern.encode())
"""The same in bytes."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    """One U+FFFD for what Java replaces by one: an encoded surrogate or the first two bytes of it, each a fault in Python."""
    assert isinstance(error, UnicodeDecodeError)
    at, end = error.start, error.end
    data = error.object[at : at + 3]
    if len(data) > 1 and data[0] == 0xED and data[1] & 0xE0 == 0xA0:
        end = at + 2 + (len(data) == 3 and data[2] & 0xC0 == 0x80)
    return "\N{REPLACEMENT CHARACTER}", end


codecs.register_error("kafka", _replace)


def decode_text(data: bytes | bytearray | memoryview) -> str:
    """UTF-8 to text; malformed bytes become U+FFFD."""
    return str(data, "utf-8", "kafka")


def name_text(data: bytes) -> str:
    """A name in a body, masked where it is none: it stands in a damaged message, which may be a login."""
    return MASKED if UNNAMED.search(data) else data.decode(errors="replace")


def is_client_id(text: str | None) -> bool:
    """Whether a client id may be one. One with such characters has a damaged length and takes in what stands behind it: a body
    that can hold a credential, or the tags before it, begins with a zero.
    """
    return text is None or text.isprintable() or BINARY.search(text) is None


def client_text(text: str | None) -> str | None:
    """A client id as rows have it."""
    return text if is_client_id(text) else MASKED
