"""Builds the display filter for the exchanges that a number counts.

In: columns, values, and the groups of a report. Out: text that `kcap.filter` parses. Law: the filter parses for any name on the
wire and selects the exchanges with that name. Names that reports shorten are matched by their beginning, which may select other
names with the same beginning.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from kcap.columns import WITHOUT_POLLS
from kcap.reports.definition import Key, Row
from kcap.reports.names import beginning

ANSWERED: Final = "outcome == answered && latency_ns"
FAILED: Final = "error_code != 0"
UNANSWERED: Final = "outcome == unanswered"
ANY_ERROR: Final = "error_count > 0"
THROTTLED: Final = "throttle_time_ms > 0"
HAS_THROTTLE_TIME: Final = "throttle_time_ms >= 0"
UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
"""The form in which Kafka prints a topic's id."""


def quoted(text: str) -> str:
    """The text as a string of a filter."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def about(column: str, name: str) -> str:
    """Exchanges whose column has the name. A name that reports shorten is matched by its beginning."""
    start = beginning(name)
    return f"{column} == {quoted(name)}" if start is None else f"{column} contains {quoted(start)}"


def equals(column: str, value: Any) -> str:
    """Exchanges whose column equals the value, or whose list has it as an entry."""
    from kcap.filter.fields import fields, named_values

    field = fields()[column]
    if field.kind == "flag":
        return column if value else f"!{column}"
    if value is None:
        return f"!{column}"
    if isinstance(value, int):
        return f"{column} == {value}"
    words = named_values(field.columns[0])
    if words and str(value).lower() not in words:
        return f"{column} contains {quoted(str(value))}"  # names of a release that the filter's list lacks
    return f"{column} == {value}" if words else about(column, str(value))


def every(*parts: str | None) -> str:
    """Conjunction of the conditions."""
    terms = [f"({part})" if "||" in part and len(parts) > 1 else part for part in parts if part]
    return " && ".join(terms)


def topic(name: str | None) -> str:
    """Exchanges that concern a topic. A topic without a known name is matched by its id."""
    if name is None:
        return "!topics"
    return about("topics", name) + (f" || topic_ids == {quoted(name)}" if UUID.fullmatch(name) else "")


def moment(time_ns: int) -> str:
    """The time in the form of a filter: seconds since the epoch, to the microsecond."""
    seconds, rest = divmod(time_ns // 1000, 1_000_000)
    return f"{seconds}.{rest:06d}"


def between(first_ns: int, end_ns: int | None) -> str:
    """Exchanges of a time span; the end is excluded."""
    return every(f"time >= {moment(first_ns)}", f"time < {moment(end_ns)}" if end_ns is not None else None)


def within(low_ns: int | None, high_ns: int | None, time: str = WITHOUT_POLLS) -> str:
    """Exchanges whose time is in a class; the upper edge is excluded. `time` is the filter's name for the time."""
    parts = [f"{time} >= {low_ns}" if low_ns is not None else "", f"{time} < {high_ns}" if high_ns is not None else ""]
    return every(*parts)


def group(keys: Sequence[Key], row: Row) -> str:
    """Exchanges of one group of a report."""
    return every(*(part(key, row.get(key.name)) for key in keys))


def part(key: Key, value: Any) -> str:
    """Exchanges with one value of a grouping key."""
    if key.step_ns:
        return between(start := nanoseconds(value), start + key.step_ns) if value is not None else "!time"
    if key.column in ("topics", "topic"):
        return topic(value)
    from kcap.filter.fields import fields  # loaded here, since text on a terminal needs no filters

    return equals(key.column, value) if key.column in fields() else ""


def nanoseconds(text: str) -> int:
    """Parses a time of a report into nanoseconds since the epoch."""
    from datetime import datetime

    whole, _, rest = text.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 1_000_000_000 + int(f"{rest:0<9}")


def exchange(name: str | None) -> tuple[str, int] | None:
    """The connection and number that `UID.N` names."""
    uid, _, number = (name or "").rpartition(".")
    return (uid, int(number)) if uid and number.isdecimal() else None
