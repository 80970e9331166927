"""The rows that a filter lets pass.

In: a checked filter, batches of exchanges or of their rows. Out: the rows that pass, in their order. Law: those that
`kcap.filter.select` passes; bodies are decoded only where everything cheaper holds.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.columns import EXCHANGES, Column
from kcap.filter.nodes import Filter, columns_of, is_deep
from kcap.filter.select import Selection
from kcap.model import CaptureFile
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.table.exchanges import ExchangeTable
from kcap.table.learned import Learner
from kcap.table.records import Exchanged, Reread
from kcap.table.whole import COMPANIONS

if TYPE_CHECKING:
    from kcap.table.vectors import Int64s

SIDES: Final = {"request": REQUEST, "response": RESPONSE}
DECLARED: Final = {column.name: column for column in EXCHANGES}


class Sieve:
    """A filter over rows."""

    def __init__(self, tree: Filter, message: Reread | None = None) -> None:
        """`message` reads large messages again, for filters that look inside."""
        self._tree = tree
        self._message = message
        self.deep = is_deep(tree)
        """It looks into decoded bodies."""
        names = [*columns_of(tree), *(["api_key"] if self.deep else [])]
        self.columns: list[Column] = [DECLARED[name] for name in dict.fromkeys(names)] or [DECLARED["exchange"]]
        self.late = any(column.name in COMPANIONS for column in self.columns)
        """It looks at what the whole capture may know better."""

    def beside(self, columns: Sequence[Column]) -> list[Column]:
        """Columns that must be made: those asked for, then what else the filter looks at."""
        names = {column.name for column in columns}
        return [*columns, *(column for column in self.columns if column.name not in names)]

    def rows(self, rows: pa.RecordBatch, batch: RowBatch | None) -> list[int]:
        """Numbers of the rows that pass. Of `batch`, which has the same rows, only a deep filter needs the bodies."""
        columns = {column.name: values(rows.column(column.name)) for column in self.columns}

        def body(row: int, side: str) -> Mapping[str, Any] | None:
            if batch is None or self._message is None:
                return None
            return Exchanged(batch, row, self._message).body(SIDES[side]) or None

        return Selection(columns, body).rows(self._tree, range(rows.num_rows))

    def passed(self, rows: pa.RecordBatch, batch: RowBatch | None = None) -> pa.RecordBatch:
        """The rows that pass."""
        numbers = self.rows(rows, batch)
        if len(numbers) == rows.num_rows:
            return rows
        taken: pa.RecordBatch = rows.take(pa.array(numbers, pa.int64()))
        return taken


class ExchangeSieve:
    """The exchanges of batches that pass, for tables whose rows are parts of exchanges."""

    def __init__(self, sieve: Sieve, files: Sequence[CaptureFile], learner: Learner | None) -> None:
        self._sieve = sieve
        self._table = ExchangeTable(sieve.columns, files, learner)

    def rows(self, batch: RowBatch) -> "Int64s":
        """Numbers of the exchanges that pass."""
        return np.array(self._sieve.rows(self._table.turn(batch), batch), np.int64)


def values(column: Any) -> list[Any]:
    """A column as Python values; times as microseconds since the epoch."""
    kind = pa.int64() if pa.types.is_timestamp(column.type) else None
    found: list[Any] = (column.cast(kind) if kind is not None else column).to_pylist()
    return found
