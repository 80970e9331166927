"""Findings while packets pass: when each begins and when it ends.

In: a reading that goes on, the span of capture time that rules look back on, and how often they do. Out: events in the order of
time. Law: memory and disk hold the rows of one span, whatever the capture's length; a finding begins when a rule names it first
and ends when the rule no longer does. Time is that of the capture: without packets nothing ends.
"""

import gc
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute, parquet

from kcap.arrays.arrow import joined
from kcap.capture_pass import CapturePass
from kcap.limits import HELD_ROWS, TAIL_BATCHES_MAX
from kcap.reports.findings.columns import COLUMNS
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.findings.report import check
from kcap.reports.findings.source import MessageReader, Statements
from kcap.reports.plans import CompiledPlan
from kcap.reports.recorded import table
from kcap.reports.source import Engine
from kcap.table.backfill import Backfill
from kcap.table.builder import TableSet
from kcap.table.table_builders import TableRequest

SECOND: Final = 1_000_000_000
ENTITIES: Final = ("cluster_id", "client_id", "group_id", "transactional_id", "instance_id", "topic", "principal", "server")
"""What a finding is recognised by from one look to the next; lists of clients and addresses grow."""
COLLECT_SECONDS: Final = 30.0
"""Between two collections of cycles. Expressions of rules form cycles that hold rows of their look; by itself the collector
comes to old objects only when there are a quarter more of them, which takes 5 minutes and 150 MB.
"""


@dataclass(frozen=True, slots=True)
class FindingEvent:
    """A finding that begins or ends."""

    event: str
    """`begin`, `end`, or `open` for one that goes on when the capture ends."""
    time_ns: int
    """Capture time of the look that noticed it, ns since the epoch."""
    finding: Row
    """The finding as in the report `check`; of `end`, as it was last."""

    def row(self) -> Row:
        """The event as plain values."""
        return {"event": self.event, "time_ns": self.time_ns, **self.finding}


LINKS: Final = "connections with open ones"
"""The recorded table that `with_open` makes."""


def identity(finding: Row) -> tuple[str, ...]:
    """What makes two findings of successive looks the same one."""
    who = finding["who"]
    return (finding["id"], *(f"{name}={who[name]}" for name in ENTITIES if who.get(name) is not None))


def requests() -> dict[str, TableRequest]:
    """The tables that rules look at, with the columns they need."""
    return {name: TableRequest.of(name, columns, backfill=Backfill.AS_KNOWN) for name, columns in COLUMNS.items()}


class Slices:
    """Rows of the last span, Parquet files for each table and slice of time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._waiting: dict[str, list[pa.RecordBatch]] = {name: [] for name in COLUMNS}
        self._rows = dict.fromkeys(COLUMNS, 0)
        """Rows that wait."""
        self._filling: list[tuple[str, str]] = []
        """Table and file of what was written of the slice that is being filled."""
        self._slices: list[tuple[int, list[tuple[str, str]]]] = []
        self._count = 0

    def take(self, label: str, batch: pa.RecordBatch) -> None:
        """Rows of the slice that is being filled."""
        if not batch.num_rows:
            return
        waiting = self._waiting[label]
        waiting.append(batch)
        self._rows[label] += batch.num_rows
        if self._rows[label] >= HELD_ROWS:
            self._write(label)
        elif len(waiting) > TAIL_BATCHES_MAX:
            waiting[:] = joined(waiting, batch.schema)

    def _write(self, label: str) -> None:
        """Writes the rows of a table that wait."""
        path = os.path.join(self._folder, f"{label}-{self._count}.parquet")
        write: Any = parquet.write_table
        write(pa.Table.from_batches(self._waiting[label]), path)
        self._waiting[label].clear()
        self._rows[label] = 0
        self._count += 1
        self._filling.append((label, path))

    def close(self, end_ns: int, oldest_ns: int) -> None:
        """Ends a slice at a time and forgets those that ended before another."""
        for label, batches in self._waiting.items():
            if batches:
                self._write(label)
        self._slices.append((end_ns, self._filling))
        self._filling = []
        while self._slices and self._slices[0][0] < oldest_ns:
            for _, path in self._slices.pop(0)[1]:
                os.unlink(path)

    def files(self, label: str) -> list[str]:
        """The files of a table that are held."""
        return [path for _, places in self._slices for name, path in places if name == label]


class Watch:
    """Looks at the rules again and again while a capture is read."""

    def __init__(
        self, reading: CapturePass, folder: str, span_ns: int = 60 * SECOND, every_ns: int = 5 * SECOND,
        thresholds: Mapping[str, Mapping[str, float]] | None = None, rests: float = 0.0,
    ) -> None:  # fmt: skip
        """`span_ns` is how far rules look back, `every_ns` how often they look.

        `rests`: after a look, none for so many times as long as it took, on the clock of this machine.
        """
        self._reading, self._folder, self._span, self._every = reading, folder, span_ns, every_ns
        self._thresholds = thresholds
        self._slices = Slices(folder)
        self._empty: dict[str, pa.Schema] = {}
        self._rests = rests
        self._now = self._next = 0
        """Capture time of the latest row, and of the next look, ns since the epoch."""
        self._seen = 0
        """Capture time of the last look."""
        self._looked = self._rested = float("-inf")
        """When the last look ended, and when the next may begin, on the clock of this machine, s."""
        self._collected = time.monotonic()
        self.active: dict[tuple[str, ...], Row] = {}
        """Findings that began and have not ended."""

    def events(self) -> Iterator[FindingEvent]:
        """Reads the capture to its end."""
        tables = TableSet.of(requests())
        tables.begin(self._reading)
        self.begin({label: builder.made_schema for label, builder in tables.builders.items()})
        for batch in self._reading.batches():
            for label, rows in tables.take(batch):
                self.take(label, rows)
            for label, rows in tables.close_connections():
                self.take(label, rows)
            yield from self.look()
        for label, rows in tables.rest():
            self.take(label, rows)
        yield from self.end()

    def begin(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Starts: `schemas` are those of the rows of each table of `requests`."""
        self._empty = dict(schemas)

    def take(self, label: str, rows: pa.RecordBatch) -> None:
        """Rows of a table."""
        if label == "exchanges":
            self._now = max(self._now, latest(rows))
        self._slices.take(label, rows)

    def look(self, *, silent: bool = False) -> Iterator[FindingEvent]:
        """What the rules see, where it is time to look. `silent`: no packet waits, so that the next may be long in coming."""
        self._next = self._next or self._now + self._every
        began = time.monotonic()
        fresh = silent and self._now > self._seen and began >= self._looked + self._every / SECOND
        if (fresh or self._now >= self._next) and began >= self._rested:
            yield from self._look(self._now)
            if began >= self._collected + COLLECT_SECONDS:
                gc.collect()
                self._collected = began
            self._looked = time.monotonic()
            self._rested = self._looked + (self._looked - began) * self._rests
            self._next = self._now + self._every

    def end(self) -> Iterator[FindingEvent]:
        """The last look, and what goes on when the capture ends."""
        yield from self._look(self._now)
        for finding in self.active.values():
            yield FindingEvent("open", self._now, finding)

    def _look(self, now: int) -> Iterator[FindingEvent]:
        self._seen = now
        self._slices.close(now, now - self._span)
        found = {identity(row): row for row in self._findings() if row["severity"] != "info"}
        for key, row in found.items():
            if key not in self.active:
                yield FindingEvent("begin", now, row)
        for key, row in self.active.items():
            if key not in found:
                yield FindingEvent("end", now, row)
        self.active = found

    def _findings(self) -> list[Row]:
        engine = Engine(self._folder)
        try:
            for label, schema in self._empty.items():
                files = self._slices.files(label)
                if files:
                    engine.define(label, files)
                else:
                    engine.register(label, schema.empty_table())

            def find(name: str) -> Any:
                return with_open(find("connections"), find("exchanges")) if name == LINKS else engine.viewed(name)

            plan = CompiledPlan((LINKS, [(label, engine.columns(label)) for label in self._empty]))
            exchanges, partitions, links, brokers = map(table, ("exchanges", "partitions", LINKS, "brokers"))
            run, messages = Statements(engine, plan, find), MessageReader(self._reading, engine)
            seen = Observed(run, exchanges, partitions, links, brokers, messages)
            rows: list[Row] = check(seen, thresholds=self._thresholds)["rows"]
            plan.keep()
            return rows
        finally:
            engine.close()


UNKNOWN: Final = ("client_rtt_min_ns",)
"""Numbers of an open connection that are null, not zero."""


def with_open(connections: Any, exchanges: Any) -> Any:
    """Connections that ended, and those that did not as their exchanges show them: what only packets tell, such as
    retransmissions, is zero until the end.
    """
    import ibis

    going = exchanges.anti_join(connections.select("connection"), "connection")
    schema = connections.schema()
    known = {
        "client_id": going.client_id.min(), "client_ip": going.client_ip.min(), "server_ip": going.server_ip.min(),
        "server_port": going.server_port.min(), "phase": ibis.literal("kafka"), "began": ibis.literal("midstream"),
        "ended": ibis.literal("open"), "tls": going.tls.max(), "exchanges": going.count(),
        "client_captured": going.request_bytes.fill_null(0).sum(), "server_captured": going.response_bytes.fill_null(0).sum(),
        "first_ns": going.request_first_ns.min(), "last_ns": going.request_last_ns.max(), "rtt_min_ns": going.rtt_ns.min(),
        "server_packets": going.response_first_ns.count(), "packets": going.count(),
    }  # fmt: skip
    open_ = going.group_by("connection").aggregate(**known)
    others = {
        name: ibis.literal(0) if kind.is_integer() and name not in UNKNOWN else ibis.null(kind)
        for name, kind in schema.items() if name not in known and name != "connection"
    }  # fmt: skip
    full = open_.mutate(**others).select(*schema.names)
    return connections.union(full.cast({name: schema[name] for name in schema.names}))


def latest(rows: pa.RecordBatch) -> int:
    """The latest time of some exchanges, ns since the epoch."""
    largest: Any = compute.max
    times = (largest(rows.column(name)).as_py() for name in ("request_last_ns", "response_last_ns"))
    return max((time for time in times if time is not None), default=0)
