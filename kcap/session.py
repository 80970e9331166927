"""One capture: reads its files, runs the analyzer, hands out tables and exchanges. The edge where I/O meets the core.

In: paths. Out: batches of decided exchanges, tables, or one exchange at a time with its messages read again from the file. Law:
each table and each iteration is a pass of its own over the files and sees the same; memory stays flat.
"""

import os
import select
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO
from weakref import finalize

from kcap.analyzer import Analyzer, ClosedConnection, Options, RowBatch
from kcap.batch.pieces import in_pieces
from kcap.capture.fileset import FileSet
from kcap.capture.frame_lengths import FrameLengths
from kcap.capture.frame_reader import PART, FrameLocation, FrameReader, location
from kcap.capture.packet_source import Packet, PacketSource
from kcap.capture.paths import expand
from kcap.capture.source import STANDARD_INPUT
from kcap.capture.unread import unread
from kcap.errors import CaptureError, UsageError
from kcap.kafka.headers import PREFIX
from kcap.limits import CLOSED_TOGETHER, FAST_PATH_LARGE_FROM, LARGE_BODIES_ROOM, REREAD_BYTES_MAX
from kcap.model import REF_FILE_SHIFT, CaptureFile
from kcap.net.packet_index import PacketIndex
from kcap.net.segments import SegmentParser
from kcap.runtime import trim_heap
from kcap.tls.files import read_secrets
from kcap.tls.plaintext import PlaintextPiece, PlaintextStore
from kcap.weird import Weird, WeirdKind

if TYPE_CHECKING:
    from kcap.decode.message import Message
    from kcap.facts.tracker import MetadataTracker
    from kcap.filter.ast import Filter
    from kcap.table.builder import Table
    from kcap.table.exchanges import Exchanges
    from kcap.table.row_filter import RowFilter

EAGER_SECONDS = 0.25
"""Rows wait no longer than this for a batch to fill; the first ones do not wait at all."""


class CapturePass:
    """One pass over a capture, a step at a time; what has been read so far stands in its attributes."""

    def __init__(self, paths: Sequence[str], options: Options | None = None, *, keep_connections: bool = False) -> None:
        self.analyzer = Analyzer(options)
        self.files = FileSet(paths, self._report)
        self._again = paths, options
        self.parser = SegmentParser(self._report)
        self.keep_connections = keep_connections
        self.connections: list[ClosedConnection] = []
        """Connections that are over, where they are kept; a reader of this list may empty it."""
        self._settled = 0
        """How many of them came since the last batch."""
        self.phases: Counter[str] = Counter()
        """What the connections were that are over."""
        self.details: Counter[str] = Counter()
        """What those looked like that were no Kafka."""
        self.rows = 0
        self._secrets = [0] * len(self.files.files)
        """Per file: Decryption Secrets Blocks that were taken."""
        self.not_kept = 0
        """Messages too large to be gathered that were requested and cannot be read again."""
        self.watch: Callable[[], None] | None = None
        """Called now and then, also while the last connections are closed: to show the progress, or to take `connections`."""
        self.positions = [0] * len(self.files.files)
        """How far each file was read, in bytes."""
        self._piped = any(file.path == STANDARD_INPUT for file in self.files.files)
        self._emitted = -EAGER_SECONDS
        self.patient = False
        """Rows leave in full batches, however long they wait: what they go to is not looked at before the end."""
        self.noted: list[PacketIndex] = []
        """Packets that are looked for."""
        self.frame_lengths: FrameLengths | None = None
        """Takes the lengths of packets."""
        self.unwanted: Callable[[RowBatch], Any] | None = None
        """Says which bodies of a batch are not needed (`Analyzer.take`)."""

    def _report(self, kind: WeirdKind, detail: str, file: int, packet: int, position: int) -> None:
        if kind is WeirdKind.LINK_UNKNOWN:
            self.files.files[file].unread_links[detail.partition(";")[0]] += 1
        self.analyzer.report(kind, detail, file << REF_FILE_SHIFT | packet, position)

    def another(self) -> "CapturePass | None":
        """Another pass over the same files; None where one of them can be read once only."""
        if not all(os.path.isfile(file.path) for file in self.files.files):
            return None
        return CapturePass(*self._again)

    def keep_bodies(self, *, records: bool = True, partitions: bool = False) -> None:
        """Bodies will be asked for: batches keep their bytes, and large ones can be read again from what passes but once.

        Without `records` those of large bodies may be left out; `partitions` will be asked for, too.
        """
        self.analyzer.bodies.retain(records=records, partitions=partitions)
        self.files.keeps = True

    @cached_property
    def frames(self) -> "FrameReader":
        """Frames of the files that this pass reads."""
        return FrameReader(source_of(self), self.plaintext)

    def plaintext(self) -> PlaintextStore | None:
        """The plaintext of all TLS connections, by another pass over the files; None where they can be read once only."""
        again = self.another()
        if again is None:
            return None
        store = PlaintextStore()

        def take(flow: bytes, offset: int, data: bytes, ref: int, position: int) -> None:
            file, packet = ref >> REF_FILE_SHIFT, ref & ((1 << REF_FILE_SHIFT) - 1)
            store.take(flow, PlaintextPiece(offset, data, file, packet, position))

        again.analyzer.plaintext = take
        for _ in again.batches():
            pass
        return store

    def message(self, batch: RowBatch, at: int, side: str, following: Sequence[tuple[int, str]] = ()) -> "Message | None":
        """The request or the response of a decided exchange, read again; None where it was not kept. `following`: as of
        `kcap.facts.tracker.Reread`.
        """
        if following:
            self.frames.ahead(batch, following)
        size, found = batch.rows[at][PART[f"{side}_bytes"]] or 0, None
        if size <= REREAD_BYTES_MAX:
            exchange = Exchange(ExchangeRows(batch, self.capture_files), at, self.frames)
            found = exchange.request if side == "request" else exchange.response
        if LARGE_BODIES_ROOM < size <= REREAD_BYTES_MAX:  # the packets that carried it take as much room
            trim_heap()
        values = batch.bodies.carried.get(batch.rows[at][PART[f"{side}_slot"]])
        self.not_kept += found is None and (size > FAST_PATH_LARGE_FROM or (values is not None and values.passed))
        return found

    @property
    def capture_files(self) -> list[CaptureFile]:
        """The files, as far as they were read."""
        return self.files.files

    @cached_property
    def file_numbers(self) -> dict[str, int]:
        """Name of each file -> its place among them."""
        return {file.name: at for at, file in enumerate(self.capture_files)}

    @property
    def failed(self) -> list[tuple[str, CaptureError]]:
        """Files that could not be read, wholly or in part, and why."""
        return unread(self.files)

    @property
    def bytes(self) -> int:
        """How far the files were read."""
        return sum(self.positions)

    @property
    def total_bytes(self) -> int | None:
        """How far there is to read, None where it is not known."""
        sizes = [file.size if "+" not in file.format else None for file in self.files.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def length_of(self, name: str, packet: int) -> int:
        """Bytes on the wire of a packet of the file of this name; 0 where `frame_lengths` were not kept."""
        return 0 if self.frame_lengths is None else self.frame_lengths.of(self.file_numbers[name], packet)

    def batches(self) -> Iterator[RowBatch]:
        """Decided exchanges, as they are decided: the first ones at once, then in full batches as far as time allows."""
        analyzer = self.analyzer
        parse = self.parser.columns if analyzer.options.fast_path else self.parser.parse
        if self.files.large:
            analyzer.expect_many()
        for packets in self.files.batches():
            if self.frame_lengths is not None:
                self.frame_lengths.take(packets)
            segments = parse(packets)
            for noted in self.noted:
                noted.take(segments)
            self._take_secrets(packets.file)
            for _ in analyzer.feeds(segments):
                self._drain()
                yield from in_pieces(self._take())
            self.positions[packets.file] = int(packets.position[-1])
            if analyzer.closed_connections:
                self._drain()
            if self.watch is not None:
                self.watch()
            if self._full or (analyzer.waiting and self._due()):
                yield from in_pieces(self._take())
        self.parser.finish()
        analyzer.secrets.follow()
        for _ in analyzer.ends():
            self._drain()
            if self.watch is not None:
                self.watch()
            if self._full:
                yield from in_pieces(self._take())
        self._drain()
        last = self._take()
        analyzer.fast_path = None  # its arrays need not stay while the last rows are written
        yield from in_pieces(last)

    def _take_secrets(self, file: int) -> None:
        """Takes the key logs that a pcapng file holds, which stand before the packets they are for. Of each an empty one stays:
        they may be as large as the file, and what they say is stored already.
        """
        found = self.files.files[file].secrets
        for at in range(self._secrets[file], len(found)):
            self.analyzer.secrets.keylog.add(found[at])
            found[at] = b""
        self._secrets[file] = len(found)
        self.analyzer.secrets.follow()

    @property
    def _full(self) -> bool:
        """Whether a batch is due: rows or bodies enough, or connections, of which a flood may have millions and no row."""
        return self.analyzer.full or self._settled >= CLOSED_TOGETHER

    def _take(self) -> RowBatch:
        self._emitted, self._settled = time.monotonic(), 0
        batch = self.analyzer.take(self.unwanted)
        self.rows += len(batch)
        return batch

    def _due(self) -> bool:
        """Whether rows leave in a batch that is not full: they have waited long, or the pipe has nothing to say just now."""
        if self.patient:
            return False
        if time.monotonic() - self._emitted >= EAGER_SECONDS:
            return True
        return self._piped and not select.select([0], [], [], 0)[0]

    def _drain(self) -> None:
        for closed in self.analyzer.take_closed():
            self.phases.update(closed.phases)
            self.details.update(closed.details)
            for connection in closed.each() if self.keep_connections else ():
                connection.settle()
                self.connections.append(connection)
                self._settled += 1

    @property
    def weirds(self) -> list[tuple[Weird, int]]:
        """Oddities so far: first sighting and count."""
        return self.analyzer.sightings()


def source_of(reading: CapturePass) -> PacketSource:
    """The packets of the files that a pass reads, once more."""
    return PacketSource(reading.files.files, reading.files.layouts, reading.files.spools)


class Exchange:
    """One exchange of a capture: its row, its two messages, its packets."""

    __slots__ = ("__dict__", "_at", "_frames", "_raw", "_rows")

    def __init__(self, rows: "ExchangeRows", at: int, frames: FrameReader) -> None:
        self._rows = rows
        self._at = at
        self._frames = frames
        self._raw = rows.batch.rows[at]

    @cached_property
    def row(self) -> dict[str, Any]:
        """Every column of the table `exchanges`."""
        return {name: column[self._at] for name, column in self._rows.columns.items()}

    def frame(self, side: str) -> bytes:
        """The bytes of the request or the response with their length prefix, as far as they were captured without a break."""
        return self._frames.frame(self._location(side))

    def _body(self, side: str) -> bytes:
        """The same behind the length prefix."""
        return self._frames.frame(self._location(side), behind=PREFIX.size)

    def _location(self, side: str) -> FrameLocation:
        return location(self._rows.batch, self._at, side)

    @cached_property
    def request(self) -> "Message | None":
        """The request, read again from the file; None where there is none, it is a raw token, or it was not kept."""
        from kcap.decode.message import decode_request

        frame = self._body("request") if self._raw[PART["api_key"]] is not None else b""
        return decode_request(frame) if len(frame) >= 4 else None

    @cached_property
    def response(self) -> "Message | None":
        """The response, read again from the file; None where there is none, it answers a raw token, or it was not kept."""
        from kcap.decode.message import decode_response

        frame = self._body("response") if self._raw[PART["correlation_id"]] is not None else b""
        key, version = self._rows.batch.rows[self._at][PART["api_key"]], self._raw[PART["api_version"]]
        if len(frame) < 4 or not isinstance(key, int | None) or not isinstance(version, int | None):
            return None
        return decode_response(frame, key, version)

    def packets(self) -> list[Packet]:
        """The packets that gave both frames their bytes, in the order of their times."""
        sides = [self._frames.packets(self._location(side))[0] for side in ("request", "response")]
        return sorted(chain.from_iterable(sides), key=lambda packet: packet.time_ns)

    def __repr__(self) -> str:
        row = self.row
        return f"<exchange {row['connection']}.{row['exchange']} {row['api']} v{row['api_version']} {row['outcome']}>"


class ExchangeRows:
    """A batch of exchanges whose columns are made when one of them is first read."""

    def __init__(self, batch: RowBatch, files: Sequence[CaptureFile], tracker: "MetadataTracker | None" = None) -> None:
        """`tracker` observed the batches before; without one, the facts of this batch alone count."""
        self.batch = batch
        self._files = files
        self.exchanges = None if tracker is None or not len(batch) else observed(batch, files, tracker)

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Every column as Python values."""
        from kcap.facts.tracker import MetadataTracker
        from kcap.table.exchanges import ExchangeColumns
        from kcap.table.schema import choose

        exchanges = self.exchanges or observed(self.batch, self._files, MetadataTracker())
        return ExchangeColumns(choose("exchanges", None)).make(exchanges).to_pydict()


def observed(batch: RowBatch, files: Sequence[CaptureFile], tracker: "MetadataTracker") -> "Exchanges":
    """A batch with the facts that hold for its rows."""
    from kcap.batch.columns import BatchColumns
    from kcap.table.exchanges import Exchanges, NameColumn

    columns = BatchColumns(batch)
    return Exchanges(columns, tracker.observe(columns, files=files), NameColumn([file.name for file in files]))


class Capture:
    """Some files as one capture, in time order. Each table and each iteration is a pass over the files; a pipe allows one."""

    def __init__(self, paths: Sequence[str], options: Options | None = None, keylog: str | Sequence[str] | None = None) -> None:
        """`keylog`: NSS key logs, beside the secrets of the options. Raises UsageError for no path, CaptureError for a key log
        that cannot be read."""
        if not paths:
            raise UsageError("no capture given")
        self.paths = list(paths)
        self.options = options
        if keylog:
            names = [keylog] if isinstance(keylog, str) else list(keylog)
            self.options = replace(options or Options(), secrets=read_secrets(names))
        self.only: Filter | None = None
        """The exchanges that count; all of them without a filter."""
        self._passes = 0
        self.copies: FileCopies | None = None
        """Copies of open files, which go when nothing uses the capture any more."""

    def filter(self, text: str) -> "Capture":
        """The same capture, of which only the exchanges count that a display filter lets pass (docs/filters.md).

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

        Raises CaptureError when nothing can be read, UsageError when a pipe was read before.
        """
        if STANDARD_INPUT in self.paths and self._passes:
            raise UsageError("a pipe can be read once")
        self._passes += 1
        kind = CapturePass
        if self.options is not None and self.options.jobs != 1:
            from kcap.jobs.cores import processes

            if processes(expand(self.paths), self.options.jobs) > 1:
                from kcap.jobs.parallel_pass import ParallelPass

                kind = ParallelPass
        return kind(self.paths, self.options, keep_connections=keep_connections)

    def __iter__(self) -> Iterator[Exchange]:
        """The exchanges as they are decided, with what is known by then."""
        reading = self.read()
        reading.files.keeps = True
        from kcap.facts.tracker import MetadataTracker

        frames, tracker = reading.frames, MetadataTracker(reading.analyzer.report, reading.message)
        only = self._row_filter(reading)
        for batch in reading.batches():
            rows = ExchangeRows(batch, reading.capture_files, tracker)
            places = None if only is None or rows.exchanges is None else only.places(rows.exchanges).tolist()
            for at in range(len(batch)) if places is None else places:
                yield Exchange(rows, at, frames)

    def _row_filter(self, reading: CapturePass) -> "RowFilter | None":
        """The filter over the exchanges of a reading."""
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
        """One row a request/response exchange."""
        return self.table("exchanges", columns)

    def partitions(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a topic-partition of an exchange that is about partitions."""
        return self.table("partitions", columns)

    def records(self, columns: Sequence[str] | None = None, *, payloads: bool = False) -> "Table":
        """One row a record of a Produce, Fetch or ShareFetch; with keys and values where `payloads` or `columns` say so."""
        from kcap.columns import PAYLOADS, RECORDS

        shown = [column.name for column in RECORDS if payloads or column.name not in PAYLOADS]
        return self.table("records", shown if columns is None else columns)

    def connections(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a TCP connection, with its byte ledger."""
        return self.table("connections", columns)

    def captures(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a file."""
        return self.table("captures", columns)

    def negotiations(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a connection and API: versions used, beside what the broker offers."""
        return self.table("negotiations", columns)

    def tls_turns(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a request and response as the records of an encrypted connection suggest them: inferred, not decrypted."""
        return self.table("tls_turns", columns)

    def topic_names(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a topic id whose name is in the capture."""
        return self.table("topic_names", columns)

    def brokers(self, columns: Sequence[str] | None = None) -> "Table":
        """One row an endpoint of a broker that a response lists."""
        return self.table("brokers", columns)

    def weirds(self, columns: Sequence[str] | None = None) -> "Table":
        """One row an oddity and connection."""
        return self.table("weirds", columns)


def no_kafka(reading: CapturePass) -> str:
    """What a capture that was read has instead of Kafka."""
    from kcap.output.verdict import no_kafka_sentence

    return no_kafka_sentence(sum(file.packets for file in reading.capture_files), reading.phases, reading.weirds)


class FileCopies:
    """Copies of files that are open already, in a folder that goes with this object."""

    def __init__(self) -> None:
        self._folder: str | None = None

    def path(self, source: Any) -> str:
        """The path of a capture; of an open file that of its copy.

        Raises UsageError for what is neither.
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
    """Several files, globs, folders or `-` as one capture, one by one or in a list; `keylog` names NSS key logs that TLS is
    decrypted with. An open file is copied to a temporary one, from where it stands, for a capture is read more than once.
    With `jobs=2` a second process analyzes packets while this one makes rows; the rows are the same.

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
