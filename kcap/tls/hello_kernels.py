"""Hellos of simple TLS 1.3 handshakes, which nearly all connections have, compiled.

In: the first records of connections. Out: the cipher suite that client and server agreed on. Law: anything unusual is left to a
session; `kcap.tls.handshake` reads the same from what is read here. Source: RFC 8446 section 4.1.
"""

from struct import unpack_from
from typing import Any, Final

from kcap.kernels import compiled, routine, uint16, uint32
from kcap.tls.handshake import CLIENT_HELLO, COOKIE, EARLY_DATA, RETRY_RANDOM, SERVER_HELLO, SUPPORTED_VERSIONS
from kcap.tls.records import HANDSHAKE, HEADER, TLS13

R_SIDE, R_KIND, R_AT, R_END = range(4)
"""Columns of a record: its side, content type, start and end."""
MESSAGE_HEADER, BEFORE_SESSION = 4, 34
"""Bytes of the header of a message, and of a hello before its session id."""
OTHER: Final = 1
"""Result for a list of versions."""
RETRY: Final = unpack_from(">2I", RETRY_RANDOM)
"""First eight bytes of the random of a HelloRetryRequest, as two integers."""


@routine
def hellos(wire: Any, records: Any, cuts: Any, suites: Any) -> None:
    """Reads the hellos of connections, whose records are between `cuts`. `suites` gets the suite that the server chose; -1 if
    the first two records are not hellos of TLS 1.3, are a retry, or have early data or a cookie.
    """
    for connection in range(suites.size):
        first = cuts[connection]
        suites[connection] = -1
        if cuts[connection + 1] - first < 2:
            continue
        at = behind_session(wire, records[first], 0, CLIENT_HELLO)
        end = records[first, R_END]
        if at < 0 or end - at < 2 or end - at < 3 + uint16(wire, at):
            continue
        at += 2 + uint16(wire, at)
        if extensions(wire, at + 1 + int(wire[at]), end) < 0:
            continue
        at = behind_session(wire, records[first + 1], 1, SERVER_HELLO)
        if at >= 0 and extensions(wire, at + 3, records[first + 1, R_END]) == TLS13:
            suites[connection] = uint16(wire, at)


@compiled
def message_size(data: Any, at: int, end: int) -> int:
    """Bytes of the handshake message that begins here, with its header; 0 if it is incomplete (RFC 8446 section 4)."""
    if end - at < MESSAGE_HEADER:
        return 0
    size = MESSAGE_HEADER + (uint32(data, at) & 0xFFFFFF)
    return size if size <= end - at else 0


@compiled
def behind_session(wire: Any, record: Any, side: int, kind: int) -> int:
    """Offset at which the session id ends in a record with a hello of this kind; -1 if it is none."""
    at, end = record[R_AT] + HEADER, record[R_END]
    if record[R_SIDE] != side or record[R_KIND] != HANDSHAKE or end - at <= MESSAGE_HEADER + BEFORE_SESSION:
        return -1
    body = at + MESSAGE_HEADER
    if wire[at] != kind or message_size(wire, at, end) != end - at or wire[body] != 3:
        return -1
    if uint32(wire, body + 2) == RETRY[0] and uint32(wire, body + 6) == RETRY[1]:
        return -1
    return int(body + BEFORE_SESSION + 1 + int(wire[body + BEFORE_SESSION]))


@compiled
def extensions(wire: Any, at: int, end: int) -> int:
    """Reads the extensions, which are the rest of a hello. Returns the version in them, 0 if there is none, and OTHER for a
    list; -1 if there is early data, a cookie or another such extension, or if they are incomplete.
    """
    version = 0
    if end - at < 2 or uint16(wire, at) != end - at - 2:
        return -1
    at += 2
    while end - at >= 4:
        number, size = uint16(wire, at), uint16(wire, at + 2)
        if number == SUPPORTED_VERSIONS and version == 0:
            version = uint16(wire, at + 4) if size == 2 and end - at >= 6 else OTHER
        elif number in (EARLY_DATA, COOKIE, SUPPORTED_VERSIONS):
            return -1
        at += 4 + size
    return version if at == end else -1
