"""The values that a filter compares with: from the typed text and its field to a number, text, time or address.

Law: a value that does not fit its field raises ValueError with the reason; accepted values are exact (nothing is rounded).
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from ipaddress import ip_address, ip_network
from typing import Final

from kcap.errors import did_you_mean
from kcap.filter.ast import FieldRef, Network, Value
from kcap.filter.fields import named_values

DURATIONS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "sec": 1_000_000_000, "m": 60_000_000_000,
    "min": 60_000_000_000, "h": 3_600_000_000_000, "d": 86_400_000_000_000,
}  # fmt: skip
"""Unit -> nanoseconds."""
SIZES: Final = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
"""Unit in lower case -> bytes."""
NUMBER: Final = re.compile(r"(?P<sign>[+-]?)(?:0x(?P<hex>[0-9a-fA-F]+)|(?P<digits>\d[\d_]*(?:\.\d+)?))\s*(?P<unit>[a-zA-Zµ]*)")
TRUTH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
TIME_FORMS: Final = ("%b %d, %Y %H:%M:%S.%f", "%b %d, %Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
"""Accepted beside ISO 8601: Wireshark's form, and times without seconds."""


def value_of(text: str, field: FieldRef) -> Value:
    """The typed text as a value of the field. Raises ValueError with the reason if it is not one."""
    if field.kind == "time":
        return time_of(text)
    if field.kind == "address":
        return address_of(text)
    if field.kind == "flag":
        if text.lower() not in TRUTH:
            raise ValueError(f"{field.name} is true or false")
        return TRUTH[text.lower()]
    words = named_values(field.columns[0])
    known = words.get(text.lower())
    if known is not None:
        return known
    if field.kind == "text":
        if words:
            raise ValueError(f"{field.name} is never {text!r}{did_you_mean(text, words)}")
        return text
    return number_of(text, field.columns[0], field.name, words)


def number_of(text: str, column: str, name: str, words: Mapping[str, int | str]) -> int | float:
    """A number in the column's own unit."""
    found = NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number{did_you_mean(text, words)}")
    exact = Fraction(int(found["hex"], 16)) if found["hex"] else Fraction(found["digits"].replace("_", ""))
    unit = found["unit"]
    if found["sign"] == "-":
        exact = -exact
    if unit:
        exact *= _scale(unit, column, name)
    elif (
        exact and column.endswith(("_ns", "_ms")) and name in {"latency", "rtt", "queue", "service", "throttle", "age"} | _SHORT
    ):
        raise ValueError(f"{name} is a duration: say {text}ms, {text}us or {text}s")
    return int(exact) if exact.denominator == 1 else float(exact)


_SHORT: Final = {"long_poll", "muted", "transfer", "request_transfer"}


def _scale(unit: str, column: str, name: str) -> Fraction:
    if unit in DURATIONS and column.endswith(("_ns", "_ms")):
        return Fraction(DURATIONS[unit], 1 if column.endswith("_ns") else 1_000_000)
    if unit.lower() in SIZES and column.endswith("_bytes"):
        return Fraction(SIZES[unit.lower()])
    if unit in DURATIONS:
        raise ValueError(f"{name} is no duration")
    if unit.lower() in SIZES:
        raise ValueError(f"{name} is no number of bytes")
    raise ValueError(f"no unit is called {unit!r}; there are ns us ms s m h d, B kB MB GB KiB MiB GiB")


def time_of(text: str) -> int:
    """Microseconds since the epoch. A time without a zone is UTC, a plain number counts seconds."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return int(Fraction(text) * 1_000_000)
    found: datetime | None = None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        for form in TIME_FORMS:
            try:
                found = datetime.strptime(text, form).replace(tzinfo=UTC)
            except ValueError:
                continue
            break
    if found is None:
        raise ValueError(f'{text!r} is no time; "2026-11-21 06:00:00.5", with Z or +02:00 where it is not UTC')
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    since = found - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def address_of(text: str) -> str | Network:
    """An address in the form that rows have, or a network."""
    try:
        if "/" in text:
            network = ip_network(text, strict=False)
            return Network(network.version, int(network.network_address), int(network.broadcast_address))
        return str(ip_address(text))
    except ValueError:
        raise ValueError(f"{text!r} is no IP address or network") from None
