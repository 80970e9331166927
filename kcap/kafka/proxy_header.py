"""The PROXY protocol header with which a load balancer may begin a connection to a server; it names the client behind it.

In: the first bytes of a client's stream. Out: a `ProxyHeader`, or None if there is none. Nothing raises. Source: HAProxy's
doc/proxy-protocol.txt, versions 1 (text) and 2 (binary).
"""

import re
from ipaddress import ip_address
from struct import Struct
from typing import Final, NamedTuple

TEXT: Final = re.compile(
    rb"PROXY (?:TCP[46] ([0-9A-Fa-f.:]+) ([0-9A-Fa-f.:]+) ([0-9]{1,5}) ([0-9]{1,5})|UNKNOWN[^\r\n]{0,92})\r\n"
)
"""A header of version 1."""
TEXT_BYTES: Final = 107
"""Largest size of a version 1 header, bytes."""
BINARY: Final = b"\r\n\r\n\x00\r\nQUIT\n"
"""The signature of version 2."""
HEAD: Final = Struct(">12sBBH")
"""Version 2: signature, version and command, address family and transport, size of what follows."""
HEADER_MOST: Final = HEAD.size + (1 << 16)
"""More bytes than a header of either version has."""
NAME: Final = "PROXY protocol"
"""Beginning of the detail of a connection with such a header."""
ADDRESSES: Final = {1: 4, 2: 16}
"""Address family -> bytes of an address."""


class ProxyHeader(NamedTuple):
    """One header: `size` in bytes, the version as text, and the addresses in it (empty if there are none)."""

    size: int
    version: str
    addresses: str

    @property
    def text(self) -> str:
        """The header as text for people."""
        return f"{self.version}: {self.addresses}" if self.addresses else self.version


def proxy_header(data: bytes | bytearray) -> ProxyHeader | None:
    """The complete header that these bytes begin with; None if there is none."""
    found = TEXT.match(data)
    if found:
        client, server, client_port, server_port = (part.decode() if part else "" for part in found.groups())
        return ProxyHeader(found.end(), f"{NAME} v1", named((client, client_port), (server, server_port)))
    if len(data) < HEAD.size or not data.startswith(BINARY):
        return None
    _, command, family, size = HEAD.unpack_from(data)
    if command >> 4 != 2 or len(data) < HEAD.size + size:
        return None
    width = ADDRESSES.get(family >> 4, 0)
    body = bytes(data[HEAD.size : HEAD.size + size])
    addresses = ""
    if command & 15 == 1 and width and len(body) >= 2 * width + 4:
        ends = (str(ip_address(body[at : at + width])) for at in (0, width))
        ports = (str(int.from_bytes(body[at : at + 2], "big")) for at in (2 * width, 2 * width + 2))
        client, server = zip(ends, ports)
        addresses = named(client, server)
    return ProxyHeader(HEAD.size + size, f"{NAME} v2", addresses)


def named(client: tuple[str, str], server: tuple[str, str]) -> str:
    """Both endpoints as text; empty without addresses."""
    return f"{client[0]} port {client[1]} to {server[0]} port {server[1]}" if client[0] else ""


def is_text(data: bytes | bytearray | str) -> bool:
    """Whether a header that begins with `data`, or that the connection detail `data` names, is of version 1."""
    return data.startswith(f"{NAME} v1") if isinstance(data, str) else data.startswith(b"P")


def header_without_addresses(size: int, text: bool) -> bytes:
    """Makes a header of this size without a client: UNKNOWN in version 1, LOCAL in version 2."""
    if text:
        return b"PROXY UNKNOWN".ljust(size - 2) + b"\r\n"
    return HEAD.pack(BINARY, 0x20, 0, min(size - HEAD.size, 0xFFFF)).ljust(size, b"\0")


def has_header(detail: str | None) -> bool:
    """Whether a connection with this detail begins with such a header."""
    return (detail or "").startswith(NAME)


def begins_one(data: bytes | bytearray) -> bool:
    """Whether these bytes may be the beginning of an incomplete header."""
    head = bytes(data)
    if head.startswith(b"PROXY ") and len(head) < TEXT_BYTES:
        return b"\r\n" not in head
    return bool(head) and (b"PROXY ".startswith(head) or BINARY.startswith(head) or head.startswith(BINARY))
