"""Kafka's strings: bytes in, text out, whatever the bytes are.

Law: the text is what `new String(bytes, UTF_8)` gives in Java, so that it equals what brokers log.
"""

import codecs
import re
from typing import Final

MASKED: Final = "(masked)"
"""Shown in place of what may be a secret."""
BINARY: Final = re.compile(r"[\x00-\x06\x08]")
"""Characters that no name in Kafka has, but SASL tokens do (RFC 4616, RFC 7628)."""
UNNAMED: Final = re.compile(BINARY.pattern.encode())
"""The same in bytes."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Returns one U+FFFD for what Java replaces with one, an encoded surrogate or its first two bytes: each a fault here."""
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
    """A name in a body. It is masked if it cannot be one, because its message is then damaged, and may be a login."""
    return MASKED if UNNAMED.search(data) else data.decode(errors="replace")


def is_client_id(text: str | None) -> bool:
    """Whether a text can be a client id. One with BINARY characters has a damaged length and includes what follows it: a body
    that can hold a credential, or the tags before it, begins with a zero."""
    return text is None or text.isprintable() or BINARY.search(text) is None


def client_text(text: str | None) -> str | None:
    """A client id in the form that rows have."""
    return text if is_client_id(text) else MASKED
