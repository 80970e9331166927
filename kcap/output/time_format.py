"""Formats of the column `time` for people and scripts.

In: record batches, one of the formats below. Out: the same batches with `time` as text or as seconds. Law: nothing else
changes; seconds keep all six decimal places.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from kcap.arrays.arrow import Array

CLOCKS: Final = ("utc", "local", "epoch", "relative", "delta")
"""RFC 3339 in UTC, or in the zone of this machine; seconds since the epoch, the first packet, the previous row."""
SECONDS: Final = pa.decimal128(20, 6)


def timed_schema(schema: pa.Schema, clock: str) -> pa.Schema:
    """The schema of the result of `timed`."""
    if "time" not in schema.names or clock == "utc":
        return schema
    kind = pa.string() if clock == "local" else SECONDS
    return schema.set(schema.get_field_index("time"), pa.field("time", kind))


def timed(batches: Iterable[pa.RecordBatch], clock: str, first_ns: Callable[[], int | None]) -> Iterator[pa.RecordBatch]:
    """The batches with formatted times; `first_ns` returns the time of the capture's first packet once there is a row."""
    before: int | None = None
    for batch in batches:
        at = batch.schema.get_field_index("time")
        if at < 0 or clock == "utc":
            yield batch
            continue
        times: Any = batch.column(at)
        micros: list[int] = times.cast(pa.int64()).to_pylist()
        if clock == "local":
            made: Any = pa.array([f"{value.astimezone().isoformat(timespec='microseconds')}" for value in times.to_pylist()])
        else:
            if clock == "delta":
                since = [0 if before is None else before, *micros[:-1]]
                starts = [micros[0], *since[1:]] if before is None and micros else since
            else:
                base = (first_ns() or 0) // 1000 if clock == "relative" else 0
                starts = [base] * len(micros)
            made = seconds([micro - start for micro, start in zip(micros, starts)])
            before = micros[-1] if micros else before
        yield batch.set_column(at, pa.field("time", made.type), made)


def by_second(times: Any, form: str) -> tuple[list[str], list[int], list[int]]:
    """The distinct seconds of a column of times in microseconds, formatted by `strftime`; the number of each time's second
    among these; and its microseconds."""
    import numpy as np

    from kcap.arrays.vectors import grouped

    whole, fractions = np.divmod(times.view(pa.int64()).to_numpy(), 1_000_000)  # a cast loads all functions of Arrow
    _, first, places = grouped(whole)
    return [f"{times[at].as_py():{form}}" for at in first.tolist()], places.tolist(), fractions.tolist()


def seconds(micros: list[int]) -> Array:
    """Microseconds as seconds with six decimal places."""
    from decimal import Decimal

    made: Array = pa.array([Decimal(value).scaleb(-6) for value in micros], SECONDS)
    return made
