"""A capture, and what can be read from it: tables, exchanges, and passes over its files.

In: paths. Out: tables, or one exchange at a time, whose messages are re-read from the file. Law: each table and each iteration
is a separate pass over the files, and all passes see the same.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO
from weakref import finalize

from kcap.analyzer import Options
from kcap.capture.paths import expand
from kcap.capture.source import STANDARD_INPUT
from kcap.capture_pass import CapturePass
from kcap.errors import CaptureError, UsageError
from kcap.tls.files import read_secrets

if TYPE_CHECKING:
    from kcap.exchange import Exchange
    from kcap.filter.ast import Filter
    from kcap.table.builder import Table
    from kcap.table.row_filter import RowFilter


class Capture:
    """One or more files as one capture, in time order. Each table and each iteration is a pass over the files; a pipe allows
    only one pass."""

    def __init__(self, paths: Sequence[str], options: Options | None = None, keylog: str | Sequence[str] | None = None) -> None:
        """`keylog`: NSS key logs, in addition to the secrets of the options. Raises UsageError if there is no path,
        CaptureError if a key log cannot be read."""
        if not paths:
            raise UsageError("no capture given")
        self.paths = list(paths)
        self.options = options
        if keylog:
            names = [keylog] if isinstance(keylog, str) else list(keylog)
            self.options = replace(options or Options(), secrets=read_secrets(names))
        self.only: Filter | None = None
        """Filter for the exchanges; None for all of them."""
        self._passes = 0
        self.copies: FileCopies | None = None
        """Copies of open files, which are removed when nothing uses the capture any more."""

    def filter(self, text: str) -> "Capture":
        """The same capture, limited to the exchanges that pass a display filter (docs/filters.md).

        Raises FilterError, a UsageError that points at the fault.
        """
        if not text.strip():
            return copy(self)
        from kcap.filter.ast import And
        from kcap.filter.parse import parse

        tree, some = parse(text), copy(self)
        some.only = tree if self.only is None or tree is None else And(self.only, tree)
        if tree is None:
            some.only = self.only
        return some

    def read(self, *, keep_connections: bool = False) -> CapturePass:
        """Starts a pass.

        Raises CaptureError if nothing can be read, UsageError if a pipe was read before.
        """
        if STANDARD_INPUT in self.paths and self._passes:
            raise UsageError("a pipe can be read only once")
        self._passes += 1
        kind = CapturePass
        if self.options is not None and self.options.jobs != 1:
            from kcap.jobs.cores import processes

            if processes(expand(self.paths), self.options.jobs) > 1:
                from kcap.jobs.parallel_pass import ParallelPass

                kind = ParallelPass
        return kind(self.paths, self.options, keep_connections=keep_connections)

    def __iter__(self) -> "Iterator[Exchange]":
        """Yields exchanges as they are decided, with the facts that are known at that time."""
        return self.decided(self.read())

    def decided(self, reading: CapturePass) -> "Iterator[Exchange]":
        """As `__iter__`, with a pass that was already started."""
        from kcap.exchange import Exchange, ExchangeRows
        from kcap.facts.tracker import MetadataTracker

        reading.files.keeps = True

        frames, tracker = reading.frames, MetadataTracker(reading.analyzer.report, reading.message)
        only = self._row_filter(reading)
        for batch in reading.batches():
            rows = ExchangeRows(batch, reading.capture_files, tracker)
            places = None if only is None or rows.exchanges is None else only.places(rows.exchanges).tolist()
            for at in range(len(batch)) if places is None else places:
                yield Exchange(rows, at, frames)

    def _row_filter(self, reading: CapturePass) -> "RowFilter | None":
        """The filter, for the exchanges of this pass."""
        if self.only is None:
            return None
        from kcap.table.row_filter import RowFilter

        only = RowFilter(self.only, reading)
        if only.deep:
            reading.keep_bodies()
        return only

    def table(self, name: str, columns: Sequence[str] | None = None) -> "Table":
        """A table by name, one of `kcap.columns.TABLES`."""
        from kcap.table.builder import Table

        return Table(self.read, name, columns, only=self.only)

    def exchanges(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per request/response exchange."""
        return self.table("exchanges", columns)

    def partitions(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per topic partition that an exchange is about."""
        return self.table("partitions", columns)

    def records(self, columns: Sequence[str] | None = None, *, payloads: bool = False) -> "Table":
        """One row per record of a Produce, Fetch or ShareFetch, with keys and values if `payloads` or `columns` requests it."""
        from kcap.columns import PAYLOADS, RECORDS

        shown = [column.name for column in RECORDS if payloads or column.name not in PAYLOADS]
        return self.table("records", shown if columns is None else columns)

    def connections(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per TCP connection, with its byte ledger."""
        return self.table("connections", columns)

    def captures(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per file."""
        return self.table("captures", columns)

    def negotiations(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per connection and API: the versions used and those that the broker offers."""
        return self.table("negotiations", columns)

    def tls_turns(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per request and response that the records of an encrypted connection suggest: inferred, not decrypted."""
        return self.table("tls_turns", columns)

    def topic_names(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per topic id whose name is in the capture."""
        return self.table("topic_names", columns)

    def brokers(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per endpoint of a broker that a response lists."""
        return self.table("brokers", columns)

    def weirds(self, columns: Sequence[str] | None = None) -> "Table":
        """One row per oddity and connection."""
        return self.table("weirds", columns)


def no_kafka(reading: CapturePass) -> str:
    """Returns a sentence that says what a capture contains instead of Kafka, after it was read."""
    from kcap.output.verdict import no_kafka_sentence

    return no_kafka_sentence(sum(file.packets for file in reading.capture_files), reading.phases, reading.weirds)


class FileCopies:
    """Copies of open files, in a folder that is removed with this object."""

    def __init__(self) -> None:
        self._folder: str | None = None

    def path(self, source: Any) -> str:
        """Returns the path of a capture; for an open file, the path of its copy.

        Raises UsageError for anything else.
        """
        if isinstance(source, str | bytes | os.PathLike):
            return os.fsdecode(source)
        if not hasattr(source, "read"):
            raise UsageError(f"a capture is a path or a file that is open for reading bytes, not {type(source).__name__}")
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="kcap-")
            finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        name = getattr(source, "name", None)
        base = os.path.basename(name) if isinstance(name, str) else ""
        path = os.path.join(tempfile.mkdtemp(dir=self._folder), base or "stream")
        with open(path, "wb") as file:
            try:
                shutil.copyfileobj(source, file)
            except (TypeError, UnicodeDecodeError):
                raise UsageError("the file is open for text; captures are bytes: open(path, 'rb')") from None
        return path


Openable = str | bytes | os.PathLike[str] | BinaryIO
"""A path, or a file that is open for reading bytes."""


def open_capture(
    *paths: Openable | Iterable[Openable],
    keylog: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    options: Options | None = None,
    jobs: int | None = None,
) -> Capture:
    """Opens one or more captures as one: files, globs, folders or `-` (standard input), as arguments or in a list.

    `keylog` names NSS key logs, with which TLS is decrypted. An open file is copied to a temporary file from its current
    position on, since a capture is read more than once. With `jobs=2` a second process analyzes packets while this one makes
    rows; the rows are the same.

    Raises CaptureError when a path does not exist.
    """
    copies = FileCopies()
    given: list[str] = []
    for path in paths:
        several: Iterable[Any] = [path]
        if isinstance(path, Iterable) and not isinstance(path, str | bytes) and not hasattr(path, "read"):
            several = path
        given += map(copies.path, several)
    for path in expand(given):
        if path != STANDARD_INPUT and not os.path.exists(path):
            raise CaptureError(f"{path}: no such file or directory")
    logs = [] if keylog is None else [keylog] if isinstance(keylog, str | os.PathLike) else keylog
    if jobs is not None:
        options = replace(options or Options(), jobs=jobs)
    capture = Capture(given, options, [os.fspath(log) for log in logs])
    capture.copies = copies
    return capture
