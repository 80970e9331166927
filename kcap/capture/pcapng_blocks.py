"""Reads the bodies of pcapng blocks other than packets.

In: a block's body (without type and lengths) and its byte order. Out: interfaces, drops, names, secrets. Law: nothing raises;
whatever contradicts the block's length is left out. Numbers are those of draft-ietf-opsawg-pcapng.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from struct import Struct, pack, unpack_from

from kcap.capture.sections import Interface
from kcap.limits import SECOND_NS

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, NAMES, STATISTICS, PACKET, SECRETS = 0x0A0D0D0A, 1, 2, 3, 4, 5, 6, 10
TLS_KEY_LOG = 0x544C534B

OPTION_END, OPTION_COMMENT, OPTION_TSRESOL, OPTION_TSOFFSET, OPTION_IFDROP, OPTION_OSDROP = 0, 1, 9, 14, 5, 7
OFFSET_SECONDS_MAX = 1 << 33
"""Largest time offset of an interface, in seconds. A larger one does not fit into 64 bits of nanoseconds."""
RESOLUTION_MAX = 63
"""Largest exponent of a resolution: a clock finer than 2^-63 (or 10^-63) of a second makes no sense."""


def each_option(body: bytes, order: str, at: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yields the options from `at` up to `stop` in order, including repeated ones. Records of names have the same form."""
    head = Struct(order + "HH")
    while at + 4 <= stop:
        code, size = head.unpack_from(body, at)
        if code == OPTION_END or at + 4 + size > stop:
            return
        yield code, body[at + 4 : at + 4 + size]
        at += 4 + size + (-size & 3)


def read_options(body: bytes, order: str, at: int) -> dict[int, bytes]:
    """Options from `at` on; if a code occurs several times, the first one."""
    options: dict[int, bytes] = {}
    for code, value in each_option(body, order, at, len(body)):
        options.setdefault(code, value)
    return options


def read_interface(body: bytes, order: str) -> tuple[Interface, str]:
    """Reads an Interface Description Block; returns the interface, and what is wrong with the block."""
    if len(body) < 8:
        return Interface(-1, 0), "interface description too short"
    link, snaplen = unpack_from(order + "HxxI", body)
    options = read_options(body, order, 8)
    interface, wrong = Interface(link, snaplen), ""
    resolution = options.get(OPTION_TSRESOL)
    if resolution:
        power = resolution[0] & 0x7F
        if power > RESOLUTION_MAX:
            wrong = f"time resolution {resolution[0]}"
        else:
            ticks = (2 if resolution[0] & 0x80 else 10) ** power
            interface.multiplier, interface.divisor = (SECOND_NS // ticks, 1) if SECOND_NS % ticks == 0 else (SECOND_NS, ticks)
    offset = options.get(OPTION_TSOFFSET)
    if offset is not None:
        seconds = int.from_bytes(offset, "little" if order == "<" else "big", signed=True) if len(offset) == 8 else None
        if seconds is None or abs(seconds) > OFFSET_SECONDS_MAX:
            wrong = "time offset of another size or age"
        else:
            interface.offset_ns = seconds * SECOND_NS
    return interface, wrong


def read_drops(body: bytes, order: str) -> tuple[int, int] | None:
    """Reads an Interface Statistics Block. Returns interface and packets dropped by interface and system; None if they are not
    given.
    """
    if len(body) < 12:
        return None
    options = read_options(body, order, 12)
    counts = [
        unpack_from(order + "Q", options[code])[0]
        for code in (OPTION_IFDROP, OPTION_OSDROP)
        if len(options.get(code, b"")) == 8
    ]
    return (unpack_from(order + "I", body)[0], sum(counts)) if counts else None


def read_names(body: bytes, order: str) -> dict[str, str]:
    """Reads a Name Resolution Block: address -> first of its names."""
    names: dict[str, str] = {}
    for kind, record in each_option(body, order, 0, len(body)):
        width = {1: 4, 2: 16}.get(kind)
        if width is not None and len(record) > width:
            name = record[width:].split(b"\0", 1)[0].decode("utf-8", "replace")
            if name:
                names.setdefault(str(ip_address(record[:width])), name)
    return names


def secrets_body(key_log: bytes) -> bytes:
    """Makes the body of a Decryption Secrets Block (little-endian) with a TLS key log."""
    return pack("<II", TLS_KEY_LOG, len(key_log)) + key_log


def read_secrets(body: bytes, order: str) -> bytes | None:
    """Reads a Decryption Secrets Block: a TLS key log; None for other secrets."""
    if len(body) < 8:
        return None
    kind, size = unpack_from(order + "II", body)
    return body[8 : 8 + size] if kind == TLS_KEY_LOG else None
