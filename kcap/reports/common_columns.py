"""Columns that many tables for people have: names, numbers, durations, times of day, sizes, shares, histograms.

In: the name of a value in rows, a heading. Out: columns (`kcap.reports.text`). Law: a column sorts by its values, not by their
texts; a value that is not there is an empty text, or `-` for a name.
"""

from collections.abc import Sequence
from typing import Any

from kcap.output.grid import duration
from kcap.reports.definition import EDGES_NS, counts_of
from kcap.reports.text import Row, Style, TextColumn, clock, duration_short, number, size, spark, words


def bold(_row: Row) -> str:
    """The tone of a row's subject."""
    return "bold"


def named(name: str, head: str | None = None, rank: int = 0, *, right: bool = False, **more: Any) -> TextColumn:
    """A column of unchanged values."""
    return TextColumn(
        head or name, lambda row: words(row.get(name)), right, rank, key=lambda row: value_key(row.get(name)), **more
    )


def counted(name: str, head: str | None = None, rank: int = 0, *, zero: bool = True, **more: Any) -> TextColumn:
    """A number; empty for 0 unless `zero`."""
    return TextColumn(
        head or name, lambda row: number(row.get(name) if zero else row.get(name) or None), True, rank,
        key=lambda row: row.get(name), **more,
    )  # fmt: skip


def lasting(name: str, head: str, rank: int = 0, *, zero: bool = True, **more: Any) -> TextColumn:
    """A duration in nanoseconds; empty for 0 unless `zero`."""
    return TextColumn(
        head, lambda row: duration(row.get(name) if zero else row.get(name) or None), True, rank,
        key=lambda row: row.get(name), **more,
    )  # fmt: skip


def clocked(name: str, head: str, rank: int = 0, *, right: bool = False) -> TextColumn:
    """A time of day, which is never cut, since the rest would be useless."""
    return TextColumn(head, lambda row: clock(row[name]), right, rank, whole=True, key=lambda row: row[name])


def sized(name: str, head: str, rank: int = 0, **more: Any) -> TextColumn:
    """A size in bytes."""
    return TextColumn(head, lambda row: size(row.get(name)), True, rank, key=lambda row: row.get(name), **more)


def part(head: str, rank: int, name: str, *less: str) -> TextColumn:
    """A part of the summed latency in per cent: a sum of the row less others."""

    def share(row: Row) -> float:
        value = row[name] - sum(row[other] for other in less)
        return 100 * value / row["sum_ns"] if row["sum_ns"] > 0 and value > 0 else 0.0

    return TextColumn(
        head, lambda row: "" if not share(row) else f"{share(row):.0f}%" if share(row) >= 1 else "<1%", rank=rank, key=share
    )


def classes(counts: Sequence[int]) -> range:
    """The classes of a histogram, from the first that is not empty to the last; the first one if all are empty."""
    there = [at for at, count in enumerate(counts) if count] or [0]
    return range(there[0], there[-1] + 1)


def shape(rows: Sequence[Row], style: Style, rank: int, between: str = " to ", *, right: bool = False) -> TextColumn:
    """The histogram of each row as bars, over the classes that are not empty in all rows."""
    found = classes(counts_of(rows))
    first = duration_short(EDGES_NS[found.start - 1]) if found.start else "0"
    last = duration_short(EDGES_NS[found.stop - 1]) if found.stop <= len(EDGES_NS) else "more"
    return TextColumn(
        f"{first}{between}{last}", lambda row: spark(row["histogram"][found.start : found.stop], style), right, rank,
        whole=True, key=lambda row: row.get("max_ns"),
    )  # fmt: skip


def when(row: Row) -> str:
    """Beginning and end of something: `at 08:15:30.250` if both read the same."""
    first, last = clock(row["first_ns"]), clock(row["last_ns"])
    return f"at {first}" if first == last else f"from {first} to {last}"


def value_key(value: Any) -> Any:
    """A sort key for values of mixed types: numbers by size, before texts; lists by their text."""
    if value is None:
        return None
    return (0, value, "") if isinstance(value, int | float) else (1, 0, words(value))
