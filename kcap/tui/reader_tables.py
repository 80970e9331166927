"""Writes the tables that views show, from one pass over a capture, to files that the process of the screens reads.

In: batches of decided exchanges. Out: the spill of `exchanges`, and at the end a file for each other table. Law: each table has
the rows that a pass of its own would give; memory grows with connections, not with exchanges.
"""

import os
from typing import TYPE_CHECKING, Final

from kcap.facts.tracker import EVERY_FACT, MetadataTracker
from kcap.limits import NUMBERED_ROWS_LEAST
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.runtime import trim_heap
from kcap.table.backfill import Backfill, Backfiller
from kcap.table.builder import TableSet
from kcap.table.table_builders import TableRequest
from kcap.tui.spill import COLUMNS, OTHERS, PROFILES, RESOLVED, Mapped, Mark, Spill, SpillStream, learned, main_path, pickled
from kcap.tui.value_codes import write_codes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcap.analyzer import RowBatch
    from kcap.capture_pass import CapturePass
    from kcap.reports.findings.live import Watch
    from kcap.table.backfill import Labelled

WATCHED: Final = "watched-"
"""Prefix of the names of tables that rules examine while the capture grows."""
RESOLVED_COLUMNS: Final = ("broker_id", "cluster_id", "cluster_brokers", "topics", "version_verdict")


class ReaderTables:
    """The tables of one pass."""

    def __init__(self, reading: "CapturePass", folder: str, watch: "Watch | None" = None) -> None:
        """`watch` receives the rows that rules examine while the capture grows."""
        self._reading, self._folder, self._watch = reading, folder, watch
        watched: dict[str, TableRequest] = {}
        if watch is not None:
            from kcap.reports.findings.live import requests as of_rules

            watched = of_rules()
        requests = {"exchanges": TableRequest.of("exchanges", [column.name for column in COLUMNS], backfill=Backfill.AS_KNOWN)}
        requests |= {name: TableRequest.of(name) for name in OTHERS}
        requests |= {f"{WATCHED}{name}": request for name, request in watched.items()}
        tracker = MetadataTracker(reading.analyzer.report, reading.message)
        self._talks = ConnectionProfiles(tracker)
        self._tables = TableSet.of(requests, [self._talks], EVERY_FACT)
        self.tracker = self._tables.begin(reading, tracker)
        if watch is not None:
            builders = self._tables.builders
            watch.begin({name: builders[f"{WATCHED}{name}"].made_schema for name in watched})
        self._spill = Spill(folder, "exchanges", requests["exchanges"].schema)
        self._streams: dict[str, SpillStream] = {}

    def take(self, batch: "RowBatch") -> Mark:
        """Takes decided exchanges; returns how far the spill was written."""
        mark = self._write(self._tables.take(batch))
        trim_heap()
        if self._watch is not None:
            self._write(self._tables.close_connections())
        return mark

    def _write(self, rows: "Iterable[Labelled]") -> Mark:
        mark = self._spill.mark
        for name, made in rows:
            if name == "exchanges":
                mark = self._spill.write(made)
            elif self._watch is not None and name.startswith(WATCHED):
                self._watch.take(name.removeprefix(WATCHED), made)
            else:
                if name not in self._streams:
                    self._streams[name] = SpillStream(main_path(self._folder, name), made.schema)
                self._streams[name].write(made)
        return mark

    def finish(self) -> Mark:
        """Writes the rest at the end of the capture."""
        self._write(self._tables.rest())
        for stream in self._streams.values():
            stream.close()
        mark = self._spill.close()
        if self.tracker.knows_better():
            self._resolve(mark)
        self._talks.finish(self._reading)
        pickled(os.path.join(self._folder, PROFILES), self._talks)
        return mark

    def number_values(self, mark: Mark) -> None:
        """Numbers the values of text columns of a large capture for filters, when everything else is written."""
        if mark.rows < NUMBERED_ROWS_LEAST:
            return
        spill = Mapped(main_path(self._folder, "exchanges"))
        write_codes(self._folder, learned(self._folder, spill.grow(mark.end)), spill.release)

    def _resolve(self, mark: Mark) -> None:
        """Writes the columns that a backfill changes again, with all facts of the capture."""
        fill, stream, spill = Backfiller(self.tracker), None, Mapped(main_path(self._folder, "exchanges"))
        for batch in spill.grow(mark.end):
            known = fill(batch).select(RESOLVED_COLUMNS)
            stream = stream or SpillStream(main_path(self._folder, f"{RESOLVED}.part"), known.schema)
            stream.write(known)
            spill.release()
        if stream is not None:
            stream.close()
            os.replace(main_path(self._folder, f"{RESOLVED}.part"), main_path(self._folder, RESOLVED))
