"""Numbers the distinct values of text columns, so that filters examine each value once and not each row.

In: the rows of a completely read capture, batch by batch. Out: a file with the values, and one with the number of each row's
value, in the same batches as the rows. Law: a filter selects the same rows with and without these files. Columns with too many
or too long values have none.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.arrays import arrow
from kcap.limits import NUMBERED_BYTES_MAX, NUMBERED_VALUES_MAX
from kcap.table.arrow_filter import NumberedValues
from kcap.table.schema import TYPES, columns_of
from kcap.tui.spill import Mapped, SpillStream, main_path, mapped_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

CODES: Final = "codes"
VALUES: Final = "values"
UNFINISHED: Final = "codes.part"
"""Names of the files."""
NUMBERED: Final = (
    "connection", "client_ip", "server_ip", "api", "client_id", "principal", "outcome", "reason", "error", "topics", "group_id",
    "transactional_id", "flags", "codecs", "software_name", "software_version", "sasl_mechanism", "version_verdict",
)  # fmt: skip
"""The text columns that are numbered, which most filters use: each takes some 25 ns per row, unless it is null."""


def write_codes(folder: str, batches: Iterable[pa.RecordBatch], release: Callable[[], None]) -> None:
    """Writes both files. `release` is called after each batch. Raises OSError."""
    columns = {name: _Column() for name in NUMBERED}
    codes = pa.schema([(name, pa.uint16()) for name in columns])
    stream = SpillStream(main_path(folder, UNFINISHED), codes)
    for batch in batches:
        made: list[Any] = [
            arrow.numbers(pa.uint16(), column.codes(batch.column(name)), None) for name, column in columns.items()
        ]
        stream.write(pa.RecordBatch.from_arrays(made, schema=codes))
        release()
    stream.close()
    kept = {name: list(column.numbers) for name, column in columns.items() if not column.full}
    declared, rows = columns_of("exchanges"), max(map(len, kept.values()), default=0)
    values = pa.schema([(name, TYPES[declared[name].type]) for name in kept])
    stream = SpillStream(main_path(folder, VALUES), values)
    arrays: list[Any] = [
        pa.array([*found, *[None] * (rows - len(found))], values.field(name).type) for name, found in kept.items()
    ]
    stream.write(pa.RecordBatch.from_arrays(arrays, schema=values))
    stream.close()
    os.replace(main_path(folder, UNFINISHED), main_path(folder, CODES))


class _Column:
    """A column while it is numbered."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        """Value, a text or the tuple of a list -> its number."""
        self.full = False
        """Whether there were too many values."""
        self._bytes = 0

    def codes(self, column: Any) -> "NDArray[np.uint16]":
        """The numbers of some rows' values; meaningless once there are too many."""
        if self.full:
            return np.zeros(len(column), np.uint16)
        if column.null_count == len(column):
            return self._of([None])[np.zeros(len(column), np.int64)]
        if pa.types.is_list(column.type):
            return self._lists(column)
        places, words = arrow.coded(column, nulls_too=True)
        return self._of(words)[places]

    def _of(self, values: list[Any]) -> "NDArray[np.uint16]":
        """The numbers of values; new values get new numbers."""
        for value in values:
            if value not in self.numbers:
                self.numbers[value] = len(self.numbers)
                self._bytes += len(repr(value))
        if len(self.numbers) > NUMBERED_VALUES_MAX or self._bytes > NUMBERED_BYTES_MAX:
            self.full, self.numbers = True, {}
            return np.zeros(len(values), np.uint16)
        return np.array([self.numbers[value] for value in values], np.uint16)

    def _lists(self, column: Any) -> "NDArray[np.uint16]":
        """The numbers of lists; lists of the same length are processed together."""
        entries, words = arrow.coded(arrow.flattened(column), nulls_too=True)
        there = ~arrow.absent(column)
        sizes = np.bincount(arrow.parents(column), minlength=len(column))
        starts = np.cumsum(sizes) - sizes
        found = self._of([None, ()])[there.astype(np.int64)]
        single = sizes == 1
        found[single] = self._of([(word,) for word in words])[entries[starts[single]]]
        for size in np.unique(sizes[sizes > 1]).tolist():
            if self.full:
                break
            rows = np.flatnonzero(sizes == size)
            parts = [entries[starts[rows] + at] for at in range(size)]
            keys = parts[0].astype(np.int64)
            for part in parts[1:]:
                keys = np.unique(keys * len(words) + part, return_inverse=True)[1]
            _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
            found[rows] = self._of([tuple(words[int(part[at])] for part in parts) for at in firsts])[places]
        return found


class ValueCodes:
    """The files in a folder, mapped when they are first needed; they do not exist before the capture was read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._codes: Mapped | None = None
        self.values: NumberedValues | None = None

    def codes(self) -> list[pa.RecordBatch]:
        """The numbers of each batch; none if the files do not exist yet."""
        if self._codes is None and os.path.exists(main_path(self._folder, CODES)):
            self.values = NumberedValues(mapped_whole(main_path(self._folder, VALUES)).batches[0])
            self._codes = mapped_whole(main_path(self._folder, CODES))
        return self._codes.batches if self._codes is not None else []

    def release(self) -> None:
        """As `Mapped.release`."""
        if self._codes is not None:
            self._codes.release()
