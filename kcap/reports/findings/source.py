"""The tables of a capture for the rules: one reading, four tables, and messages on demand.

In: captures,
    or a folder of tables that were saved from them. Out: `Observed` for as long as the block lasts. Law: a capture is read
once; a message is read again from the file where a rule asks for it, and is missing where that cannot be.
"""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from kcap.capture.frame_bytes import FrameBytes, read
from kcap.decode.message import decode_request, decode_response
from kcap.errors import UsageError
from kcap.reports.findings.columns import COLUMNS, MESSAGE_COLUMNS
from kcap.reports.findings.courses import of_files
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.plans import Plan
from kcap.reports.recorded import Recorded, Replay, name_of, table
from kcap.reports.source import Engine, ReportInput, saved_files, table_of, written
from kcap.session import Capture, CapturePass
from kcap.table.backfill import Backfill
from kcap.table.table_builders import TableRequest

MESSAGES_KEPT = 4096
"""Messages of exchanges that stay decoded for other rules."""


class Messages:
    """Requests and responses of a capture's exchanges, read again from its files."""

    def __init__(self, reading: CapturePass, engine: Engine) -> None:
        """`engine` has the view `exchanges`."""
        self._reading, self._engine = reading, engine
        self._frames: dict[tuple[str, int], tuple[Row, FrameBytes] | None] = {}
        self._rows: dict[tuple[str, int], Row] = {}

    def __call__(self, connection: str, number: int, side: str) -> Row | None:
        """A message as Kafka's JSON; None where a byte of it is missing or does not read: callers rely on its fields."""
        key = connection, number
        if key not in self._frames:
            if len(self._frames) >= MESSAGES_KEPT:
                self._frames.clear()
            self._frames[key] = self._read(connection, number)
        found = self._frames[key]
        if found is None:
            return None
        row, frames = found
        frame = frames.request if side == "request" else frames.response
        if len(frame) < 8:
            return None
        message = (
            decode_request(frame[4:]) if side == "request" else decode_response(frame[4:], row["api_key"], row["api_version"])
        )
        value = None if message.undecoded else message.to_json()
        return value if isinstance(value, dict) else None

    def prepare(self, keys: Collection[tuple[str, int]]) -> None:
        """Finds the rows of these exchanges by one query, for the calls that follow."""
        wanted = set(keys) - self._rows.keys()
        if not wanted:
            return
        if len(self._rows) >= MESSAGES_KEPT:
            self._rows.clear()
        for row in self._engine.rows_of("exchanges", MESSAGE_COLUMNS, wanted):
            self._rows[row["connection"], row["exchange"]] = row

    def _read(self, connection: str, number: int) -> tuple[Row, FrameBytes] | None:
        reading = self._reading
        self.prepare([(connection, number)])
        row = self._rows.get((connection, number))
        if row is None:
            return None
        return row, read(row, reading.capture_files, reading.files.layouts, reading.files.spools, reading.plaintext)


@contextmanager
def observed(given: ReportInput) -> Iterator[Observed]:
    """The rules' view of captures or of saved tables.

    Raises UsageError for saved tables of which one is missing, CaptureError where nothing can be read.
    """
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder:
        saved, reading = saved_files(given.paths), None
        if saved is None:
            reading = given.reading = Capture(list(given.paths), given.options).read(keep_connections=True)
            reading.files.keeps = True
            if given.watch is not None:
                reading.watch = given.watch(reading)
            requests = {name: TableRequest.of(name, columns, backfill=Backfill.REWRITE) for name, columns in COLUMNS.items()}
            places = {name: [path] for name, path in written(requests, reading, folder).items()}
            given.captures = [file.name for file in reading.capture_files]
        else:
            places = {}
            for path in saved:
                places.setdefault(table_of(path)[0], []).append(path)
            missing = [name for name in COLUMNS if name not in places]
            if missing:
                raise UsageError(f"this report needs the tables {', '.join(COLUMNS)}; {missing[0]} is not among the saved ones")
            given.captures = list(saved)
        engine = Engine(folder)
        try:
            for name in COLUMNS:
                engine.define(name, places[name])
            plan = Plan(("findings", [(name, engine.columns(name)) for name in COLUMNS]))
            replay = Replay(engine.viewed)

            def run(expression: Recorded) -> list[Row]:
                return engine.rows(plan.sql(name_of(expression), lambda: engine.sql(replay(expression))))

            message = None if reading is None else Messages(reading, engine)
            exchanges, partitions, connections, brokers = map(table, COLUMNS)
            seen = Observed(run, exchanges, partitions, connections, brokers, message)
            seen.courses = partial(of_files, places["exchanges"])
            yield seen
            plan.keep()
        finally:
            engine.close()
