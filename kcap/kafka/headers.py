"""Reads request headers and rates how likely they are genuine.

In: bytes behind a length prefix, perhaps cut. Out: a `RequestHeader`, or None if no request can be here. Nothing raises. Header
layout (Kafka protocol guide, RequestHeader.json): api key, version, correlation id, client id with an int16 length in every
header version but 0, tags from header version 2 on.
"""

import re
from struct import Struct
from typing import NamedTuple

from kcap import limits
from kcap.decode.interpreter import COMPLETE, SHORT, UNKNOWN
from kcap.decode.programs import program_index
from kcap.decode.projection import project
from kcap.schema.registry import api_keys, request_header_version, version_range
from kcap.wire.text import decode_text

REQUEST_HEAD = Struct(">ihhih")
"""Length prefix, api key, api version, correlation id, length of the client id."""
HEADER_BYTES_MAX = REQUEST_HEAD.size + 32767
"""The longest fixed part of a request header; the length of the client id is an int16."""
FIXED = Struct(">hhi")
PREFIX = Struct(">i")

API_VERSIONS, SASL_HANDSHAKE, PRODUCE, FETCH = 18, 17, 0, 1

VERSIONS_AHEAD = 2
"""Versions above the newest known one that are accepted for a known key: those of a release newer than this schema."""


def _plain() -> frozenset[int]:
    """`key << 16 | version` of each request whose header has a client id and which the framer's short path may read."""
    plain = set()
    for key in api_keys():
        span = version_range(key)
        if span is not None:
            for version in range(span[1] + VERSIONS_AHEAD + 1):
                if request_header_version(key, version):
                    plain.add(key << 16 | version)
    plain.discard(SASL_HANDSHAKE << 16)  # raw tokens follow it
    return frozenset(plain)


PLAIN_HEADERS = _plain()

SHAPE = re.compile(rb"(?s)(?=[\x00-\x0c]...\x00[\x00-\x60]\x00[\x00-\x28][\x00-\x3f]...(?:\x00.|\xff\xff))")
"""Matches places where resync tries a request: length, key, version and id have plausible sizes."""


class RequestHeader(NamedTuple):
    """A request header as far as it was captured."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: int | None
    """Offset behind the length prefix at which the header's tags or the body start; None if the header is cut."""
    known: bool
    """Whether a Kafka release has this key, and this version or one that is at most `VERSIONS_AHEAD` lower."""


def read_header(data: bytes | bytearray | memoryview, size: int, *, expected: bool = False) -> RequestHeader | None:
    """Reads the header of a request frame of `size` bytes (without its prefix), of which `data` was captured.

    Returns None if these bytes cannot be a request header. A client id that is not UTF-8 rules it out, unless a request is
    `expected` here and its key and version are known: brokers accept any bytes (`kcap.wire.text`).
    """
    if len(data) < 8 or size < 8:
        return None
    key, version, correlation = FIXED.unpack_from(data, 0)
    if key < 0 or version < 0:
        return None
    span = version_range(key)
    known = span is not None and version <= span[1] + VERSIONS_AHEAD
    if request_header_version(key, version) == 0:
        return RequestHeader(key, version, correlation, None, 8, known)
    if size < 10:
        return None
    if len(data) < 10:
        return RequestHeader(key, version, correlation, None, None, known)
    length = int.from_bytes(data[8:10], "big", signed=True)
    if length < -1 or 10 + max(length, 0) > size:
        return None
    if length < 0:
        return RequestHeader(key, version, correlation, None, 10, known)
    raw = bytes(data[10 : 10 + length])
    if len(raw) < length:
        return RequestHeader(key, version, correlation, None, None, known)
    try:
        client_id = raw.decode()
    except UnicodeDecodeError:
        if not (expected and known):
            return None
        client_id = decode_text(raw)
    return RequestHeader(key, version, correlation, client_id, 10 + length, known)


def header_bytes(data: bytes | bytearray, at: int, end: int) -> bytes | bytearray:
    """The bytes before `end` that `read_header` needs of the frame whose length prefix is at `at`."""
    length = int.from_bytes(data[at + 12 : at + 14], "big", signed=True)
    return data[at + 4 : min(at + REQUEST_HEAD.size + max(length, 0), end)]


def names_client(header: RequestHeader) -> bool:
    """Whether the client id is a printable name, which is the strongest sign of a Kafka request."""
    return bool(header.client_id) and (header.client_id or "").isprintable() and not mangled(header)


def mangled(header: RequestHeader) -> bool:
    """Whether the client id has bytes that are not UTF-8, or the replacement character."""
    return "\N{REPLACEMENT CHARACTER}" in (header.client_id or "")


def body_fits(data: bytes | bytearray, header: RequestHeader) -> bool:
    """Whether the complete frame (without its prefix) can be read as a request of this API and version, to the last byte."""
    return _body_status(data, header) == COMPLETE


def body_goes_on(data: bytes | bytearray, header: RequestHeader) -> bool:
    """Whether the body is valid as far as the bytes of the frame go, and does not end within them."""
    return _body_status(data, header) == SHORT


def _body_status(data: bytes | bytearray, header: RequestHeader) -> int:
    """Status with which reading the body ends, as in `kcap.decode.projection`."""
    program = program_index(header.api_key, header.api_version, 0)
    if header.body is None or program < 0:
        return UNKNOWN
    return int(project(bytes(data), [header.body], [len(data)], [program], engine="plain").status[0])


def plausible(header: RequestHeader) -> bool:
    """Whether it can be a connection's first request: a known API, or an unknown one from a client that gives its name.

    Clients newer than the broker send ApiVersions of any version (KIP-511).
    """
    return header.known or header.api_key == API_VERSIONS or (names_client(header) and not noise(header))


def noise(header: RequestHeader) -> bool:
    """Whether key or version is so high that the bytes are no request, rather than one of a future API."""
    return header.api_key >= limits.API_UNKNOWN_MAX or header.api_version >= limits.API_UNKNOWN_MAX


GSSAPI = "gssapi token"
"""Detail of a connection that begins with a Kerberos token (RFC 4121): brokers of 0.9 have no SaslHandshake."""
OTHER_PROTOCOLS = (
    ("tls", re.compile(rb"\x16\x03[\x00-\x04]|\x15\x03[\x00-\x04]\x00\x02")),
    ("http", re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI) |HTTP/[12]")),
    ("ssh", re.compile(rb"SSH-[12]")),
    (GSSAPI, re.compile(rb"(?s)\x00\x00..\x60.{1,4}\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")),
    ("zookeeper", re.compile(rb"(?s)\x00\x00\x00[\x2c-\x2e]\x00\x00\x00\x00.{8}")),
    ("zookeeper command", re.compile(rb"(?:ruok|stat|srvr|mntr|conf|cons|dump|envi|isro)")),
    ("redis", re.compile(rb"\*[0-9]+\r\n\$")),
    ("postgresql", re.compile(rb"\x00\x00\x00.\x00\x03\x00\x00|\x00\x00\x00\x08\x04\xd2\x16\x2f")),
)


def other_protocol(data: bytes | bytearray) -> str | None:
    """The name of the protocol that a stream's first bytes look like; None if unknown."""
    for name, pattern in OTHER_PROTOCOLS:
        if pattern.match(data):
            return name
    return None
