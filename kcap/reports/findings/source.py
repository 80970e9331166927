"""The tables of a capture for the rules: one reading, four tables, and messages on demand.

In: captures,
    or a folder of tables that were saved from them. Out: `Observed` for as long as the block lasts. Law: a capture is read
once; a message is read again from the file where a rule asks for it, and is missing where that cannot be.
"""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kcap import limits
from kcap.arrays.arrow import booleans, coded
from kcap.capture.frame_location import location_of
from kcap.capture_pass import CapturePass
from kcap.decode.message import decode_request, decode_response
from kcap.reports.definition import REQUESTS_OF_BROKERS, is_broker
from kcap.reports.findings.columns import BESIDE_COLUMNS, COLUMNS, MESSAGE_COLUMNS
from kcap.reports.findings.inner import OF_CLUSTER
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.findings.running import Runner
from kcap.reports.names import shorter
from kcap.reports.plans import CompiledPlan
from kcap.reports.recorded import Recorded, Replay, name_of, table
from kcap.reports.saved import faults_named, readable, saved_files, table_of, without_column, without_tables
from kcap.reports.source import Engine, ReportInput, bounded, written
from kcap.runtime import release_reading
from kcap.session import Capture
from kcap.table.backfill import Backfill
from kcap.table.schema import choose
from kcap.table.table_builders import TableRequest

LINK_BYTES = 16
"""Bytes of a connection in a Parquet file, at least where clients are many: counting small files takes a statement."""
ADDRESSES = ("client_ip", "server_ip")
"""Columns whose names stay as they are: messages are found by the addresses of their connection."""


def marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a table with long names shortened, and with `OF_CLUSTER` where it is of exchanges or of their partitions."""
    batch = shorter(batch)
    if "api" not in batch.schema.names:
        return batch
    own = np.zeros(len(batch), np.bool_)
    for name, is_own in (("client_id", is_broker), ("api", REQUESTS_OF_BROKERS.__contains__)):
        places, values = coded(batch.column(name), nulls_too=True)
        own |= np.array([is_own(value) for value in values], np.bool_)[places]
    return batch.append_column(OF_CLUSTER, booleans(own))


class MessageReader:
    """Requests and responses of a capture's exchanges, read again from its files."""

    def __init__(self, reading: CapturePass, engine: Engine) -> None:
        """`engine` has the view `exchanges`."""
        self._reading, self._engine = reading, engine
        self._messages: dict[tuple[str, int, str], Row | None] = {}
        self._bytes = 0
        self._rows: dict[tuple[str, int], Row] = {}

    def __call__(self, connection: str, number: int, side: str) -> Row | None:
        """A message as Kafka's JSON; None where a byte of it is missing or does not read: callers rely on its fields."""
        key = connection, number, side
        if key not in self._messages:
            if len(self._messages) >= limits.REPORT_MESSAGES_KEPT or self._bytes >= limits.MESSAGES_KEPT_BYTES:
                self._messages.clear()
                self._bytes = 0
            self._messages[key] = self._read(connection, number, side)
        return self._messages[key]

    def prepare(self, keys: Collection[tuple[str, int]], between: tuple[int, int] | None = None) -> None:
        """Finds the rows of these exchanges by one query, for the calls that follow; `between` as in `Engine.rows_of`."""
        wanted = {key for key in keys if key not in self._rows}
        if not wanted:
            return
        if len(self._rows) >= limits.REPORT_MESSAGES_KEPT:
            self._rows.clear()
        for row in self._engine.rows_of("exchanges", MESSAGE_COLUMNS, wanted, between):
            self._rows[row["connection"], row["exchange"]] = row

    def _read(self, connection: str, number: int, side: str) -> Row | None:
        self.prepare([(connection, number)])
        row = self._rows.get((connection, number))
        reading = self._reading
        data = b"" if row is None else reading.frames.frame(location_of(row, side, reading.file_numbers))
        if row is None or len(data) < 8:
            return None
        self._bytes += len(data)
        message = (
            decode_request(data[4:]) if side == "request" else decode_response(data[4:], row["api_key"], row["api_version"])
        )
        value = None if message.undecoded else message.to_json()
        return value if isinstance(value, dict) else None


def courses(files: Sequence[str], filters: Sequence[str], span: tuple[int, int]) -> list[list[int]]:
    """`of_files` of the module `courses`, which only `check` needs."""
    from kcap.reports.findings.courses import of_files

    return of_files(files, filters, span)


class Statements(Runner):
    """Runs recorded expressions by the SQL of a plan. What it holds has the same name for all captures, and so have the
    statements that need it: they are compiled once."""

    def __init__(self, engine: Engine, plan: CompiledPlan, find: Callable[[str], Any]) -> None:
        """`find` gives the Ibis table of a name where the plan lacks an expression."""

        def made(name: str) -> Any:
            self._make(name)
            return find(name)

        super().__init__(lambda expression: engine.rows(self._sql(expression)))
        self._engine, self.plan, self._replay = engine, plan, Replay(made)
        self._views: dict[str, Recorded] = {}
        self.used: dict[str, str] = {}
        """The SQL that ran, by the names of its expressions."""

    def hold(self, name: str, expression: Recorded, *, view: bool = False) -> Any:
        """A table of the engine with the rows of an expression, or a view, made for the first statement that needs it."""
        self._views[name] = expression
        if not view:
            self._make(name, small=True)
        return table(name)

    def names(self, name: str, values: Sequence[str]) -> Any:
        """The column of a table of the engine with these values."""
        self._engine.hold_names(name, values)
        return table(name).name

    def _make(self, name: str, *, small: bool = False) -> None:
        if (expression := self._views.pop(name, None)) is not None:
            self._engine.derive(name, self._sql(expression), small=small)

    def _sql(self, expression: Recorded) -> str:
        name = name_of(expression)
        found = self.used[name] = self.plan.sql(name, lambda: self._engine.sql(self._replay(expression)))
        for view in [view for view in self._views if f'"{view}"' in found]:
            self._make(view)
        return found


@contextmanager
def observed(given: ReportInput, tables: Mapping[str, Sequence[str]] = COLUMNS) -> Iterator[Observed]:
    """The rules' view of captures or of saved tables; `tables`: those that are looked at -> their columns.

    Raises as `observed_by` does.
    """
    with observed_by(given, tables) as (_, seen):
        yield seen


@contextmanager
def observed_by(given: ReportInput, tables: Mapping[str, Sequence[str]] = COLUMNS) -> Iterator[tuple[Engine, Observed]]:
    """The same with the engine, whose views are the tables.

    Raises UsageError for saved tables of which one is missing, CaptureError where nothing can be read.
    """
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder:
        saved, reading, beside = saved_files(given.paths), None, False
        if saved is None:
            reading = given.reading = Capture(list(given.paths), given.options).read(keep_connections="connections" in tables)
            reading.files.keeps = True
            if given.watch is not None:
                reading.watch = given.watch(reading)
            requests = {name: TableRequest.of(name, columns, backfill=Backfill.REWRITE) for name, columns in tables.items()}
            beside = {*BESIDE_COLUMNS} <= {*tables["exchanges"]}  # quicker than to join them
            if beside:
                requests["partitions"] = replace(requests["partitions"], of_exchanges=choose("exchanges", BESIDE_COLUMNS))
            places = {
                name: [path]
                for name, path in written(requests, reading, folder, given.observers, marked if beside else shorter).items()
            }
            given.captures = [file.name for file in reading.capture_files]
            release_reading()
        else:
            places = {}
            for path in saved:
                places.setdefault(table_of(path)[0], []).append(readable(path, folder))
            missing = [name for name in tables if name not in places]
            if missing:
                raise without_tables(missing)
            given.captures = list(saved)
        with faults_named(saved), closing(Engine(folder, jobs=given.jobs)) as engine:
            for name in tables:
                places[name] = bounded(places[name], folder, name, ADDRESSES, saved=saved is not None)
                engine.define(name, places[name])
            found = {name: engine.columns(name) for name in tables}
            for name, columns in found.items():
                lacking = set(tables[name]) - {column for column, _ in columns}
                if lacking and saved is not None:
                    raise without_column(next(path for path in saved if table_of(path)[0] == name), min(lacking))
            plan = CompiledPlan(("findings", list(found.items())))
            message = None if reading is None else MessageReader(reading, engine)
            exchanges, partitions, connections, brokers = map(table, COLUMNS)
            seen = Observed(
                Statements(engine, plan, engine.viewed),
                exchanges,
                partitions,
                connections,
                brokers,
                message,
                partitions if beside else None,
                marked=beside,
            )
            seen.courses = partial(courses, places["exchanges"])
            if sum(map(os.path.getsize, places.get("connections", ()))) > limits.LINKS_KEPT * LINK_BYTES:
                seen.crowded = engine.rows("SELECT count(*) AS n FROM connections")[0]["n"] > limits.LINKS_KEPT
            yield engine, seen
            plan.keep()
