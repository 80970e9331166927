"""Finds the client of a TLS connection from the unencrypted messages of both sides.

In: the contiguous pieces of both streams. Out: the stream that sends the client's messages; None if no message proves it. Law:
bytes that may be encrypted prove nothing: those after a ChangeCipherSpec, and messages that do not fill their record. Source:
RFC 5246 section 7.4, RFC 8446 section 4.
"""

from collections.abc import Sequence
from typing import Final

from kcap.tls.handshake import (
    CERTIFICATE_REQUEST,
    CERTIFICATE_VERIFY,
    CLIENT_HELLO,
    CLIENT_KEY_EXCHANGE,
    NEW_SESSION_TICKET,
    SERVER_HELLO,
)
from kcap.tls.records import APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, LENGTH_MAX, TYPES

SERVER_KEY_EXCHANGE, SERVER_HELLO_DONE, CERTIFICATE_STATUS = 12, 14, 22
OF_CLIENT: Final = frozenset({CLIENT_HELLO, CERTIFICATE_VERIFY, CLIENT_KEY_EXCHANGE})
OF_SERVER: Final = frozenset({
    SERVER_HELLO, NEW_SESSION_TICKET, SERVER_KEY_EXCHANGE, CERTIFICATE_REQUEST, SERVER_HELLO_DONE, CERTIFICATE_STATUS,
})  # fmt: skip
MESSAGE: Final = 4
"""Bytes of the header of a handshake message."""


def client_of(streams: Sequence[Sequence[bytes | bytearray]]) -> int | None:
    """The index of the client's stream; None if it is not known."""
    for index, pieces in enumerate(streams):
        for piece in pieces:
            for number in open_messages(piece):
                if number in OF_CLIENT:
                    return index
                if number in OF_SERVER:
                    return 1 - index
    return None


def open_messages(data: bytes | bytearray) -> list[int]:
    """The types of the handshake messages in the records at the beginning of `data`, up to those that may be encrypted."""
    found: list[int] = []
    at = 0
    while at + HEADER + MESSAGE < len(data):
        size = data[at + 3] << 8 | data[at + 4]
        if data[at] not in TYPES or data[at + 1] != 3 or size > LENGTH_MAX:
            break
        if data[at] in (CHANGE_CIPHER_SPEC, APPLICATION):
            break
        if data[at] == HANDSHAKE:
            found += _messages(data, at + HEADER, at + HEADER + size)
        at += HEADER + size
    return found


def _messages(data: bytes | bytearray, at: int, end: int) -> list[int]:
    """The types of messages that fill a record; none if they do not, except for a hello that continues after it."""
    found = []
    hello = data[at] in (CLIENT_HELLO, SERVER_HELLO) and data[at + 1] == 0 and data[at + MESSAGE] == 3
    while at + MESSAGE <= min(end, len(data)):
        found.append(data[at])
        at += MESSAGE + (data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3])
    if at == end:
        return found
    return found[:1] if hello else []
