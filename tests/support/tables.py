"""Tables made of batches by hand, where a test looks at what is between two batches."""

from collections.abc import Sequence

import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.batch.columns import BatchColumns
from kcap.columns import Column
from kcap.facts.tracker import Fact, MetadataTracker
from kcap.model import CaptureFile
from kcap.table.exchanges import ExchangeColumns, Exchanges, NameColumn, needs_of


class ExchangeTable:
    """Turns the batches of one capture, all of them, in order."""

    def __init__(
        self, columns: Sequence[Column], files: Sequence[CaptureFile], tracker: MetadataTracker | None = None,
        needs: Fact | None = None,
    ) -> None:  # fmt: skip
        self.tracker = tracker or MetadataTracker()
        self._columns, self._files = ExchangeColumns(columns), files
        self._needs = needs_of(columns) if needs is None else needs

    def turn(self, batch: RowBatch) -> pa.RecordBatch:
        """One batch as Arrow."""
        columns = BatchColumns(batch)
        context = self.tracker.observe(columns, self._needs, self._files)
        return self._columns.make(Exchanges(columns, context, NameColumn([file.name for file in self._files])))
