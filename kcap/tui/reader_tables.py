"""All tables of a capture from one pass over it.

In: batches of decided exchanges. Out: the spill of `exchanges`, and at the end a file for each other table. Law: each table has
the rows that a pass of its own would give; memory grows with connections, not with exchanges.
"""

import os
from typing import TYPE_CHECKING, Any, Final

from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.facts.negotiations import Negotiations
from kcap.facts.tracker import MetadataTracker
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.table.backfill import MAKERS, VerdictCache, backfill
from kcap.table.exchanges import ExchangeTable
from kcap.table.fact_tables import broker_rows, negotiation_row, topic_rows
from kcap.table.schema import arrow_schema, choose
from kcap.table.side_tables import batch_of, capture_rows, connection_rows, weird_rows
from kcap.tui.spill import Mapped, Mark, Spill, SpillStream, main_path

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch
    from kcap.facts.brokers import Server
    from kcap.session import CapturePass

COLUMNS: Final = (*EXCHANGES, *ON_REQUEST["exchanges"])
"""Of the spill: also those that filters know beside the table's own."""
CONNECTIONS_AT_ONCE: Final = 1024
PROFILES: Final = "talks.pickle"
RESOLVED: Final = "resolved"


class ReaderTables:
    """The tables being made."""

    def __init__(self, reading: "CapturePass", folder: str) -> None:
        self._reading, self._folder = reading, folder
        self.learner = MetadataTracker(reading.analyzer.report)
        self._table = ExchangeTable(
            choose("exchanges", [column.name for column in COLUMNS]), reading.capture_files, self.learner
        )
        self._spill = Spill(folder, "exchanges", self._table.schema)
        self._talks = ConnectionProfiles(self.learner)
        self._negotiations = Negotiations()
        self._servers: set[Server] = set()
        self._columns = choose("connections", None)
        self._connections = SpillStream(main_path(folder, "connections"), arrow_schema("connections", self._columns))

    def take(self, batch: "RowBatch") -> Mark:
        """Takes decided exchanges; how far the spill is."""
        mark = self._spill.mark
        if len(batch):
            rows = self._table.learn(batch)
            self._talks.take(rows)
            self._negotiations.take(rows, self.learner)
            self._servers.update(rows.told.servers)
            mark = self._spill.write(self._table.made(rows))
        if len(self._reading.connections) >= CONNECTIONS_AT_ONCE:
            self._close_connections()
        return mark

    def _close_connections(self) -> None:
        """Writes the connections that are over; all rows of one were in a batch by then."""
        closed, self._reading.connections = self._reading.connections, []
        for connection in closed:
            self._talks.close(connection)
        rows = connection_rows(closed, self._reading.capture_files, self.learner.known)
        self._connections.write(batch_of("connections", self._columns, rows))

    def finish(self) -> Mark:
        """The capture is over: writes the rest."""
        from kcap.tui.reader_main import pickled

        reading = self._reading
        self._close_connections()
        self._connections.close()
        mark = self._spill.close()
        made: dict[str, list[dict[str, object]]] = {
            "captures": capture_rows(reading.capture_files),
            "weirds": weird_rows(reading.weirds, reading.capture_files),
            "topic_names": list(topic_rows(self.learner)),
            "brokers": list(broker_rows(self.learner, self._servers)),
            "negotiations": [negotiation_row(entry, self.learner) for entry in self._negotiations.entries.values()],
        }
        for name, rows in made.items():
            columns = choose(name, None)
            stream = SpillStream(main_path(self._folder, name), arrow_schema(name, columns))
            stream.write(batch_of(name, columns, rows))
            stream.close()
        if self.learner.knows_better():
            self._resolve(mark)
        self._talks.finish(reading)
        self.learner.report = None
        pickled(os.path.join(self._folder, PROFILES), self._talks)
        return mark

    def _resolve(self, mark: Mark) -> None:
        """Writes once more what the end of the capture knows better: the same rows, a few columns."""
        names, judged = list(MAKERS), VerdictCache()
        mapped = Mapped(main_path(self._folder, "exchanges"))
        stream: Any = None
        for batch in mapped.grow(mark.end):
            known = backfill(batch, self.learner, judged).select(names)
            stream = stream or SpillStream(main_path(self._folder, f"{RESOLVED}.part"), known.schema)
            stream.write(known)
        if stream is not None:
            stream.close()
            os.replace(main_path(self._folder, f"{RESOLVED}.part"), main_path(self._folder, RESOLVED))

    def no_kafka(self) -> str:
        """What there is instead of Kafka."""
        reading = self._reading
        packets, connections = sum(file.packets for file in reading.capture_files), sum(reading.phases.values())
        if not connections:
            return f"{packets:,} packets and no TCP connection with data among them"
        found = ", ".join(f"{count:,} {name}" for name, count in reading.phases.most_common())
        return f"{packets:,} packets, {connections:,} connections: {found}"
