"""The reading process: a capture in, a spill folder and messages out. It does not handle keys or screens.

In: a `ReadRequest`, as JSON on the command line, and one end of a socket. Out: `exchanges` as a growing spill, the other tables
when reading is complete, and a periodic `ReaderStatus` over the socket. Law: rows are in the spill before they are announced.
The process ends when the other end of the socket closes. After a request to stop, everything that was read has its tables.
"""

import json
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

from kcap.capture.paths import expand
from kcap.columns import ON_REQUEST, PARTITIONS
from kcap.errors import KcapError
from kcap.inputs import STANDARD as STANDARD_INPUT
from kcap.limits import ENDED_MAX, INDEXED_LEAST_BYTES
from kcap.runtime import give_way, start_quickly

if TYPE_CHECKING:
    from types import FrameType

    from kcap.analyzer import Options
    from kcap.capture.sections import FileSections
    from kcap.capture_pass import CapturePass
    from kcap.model import CaptureFile, PacketBatch
    from kcap.reports.definition import Row
    from kcap.reports.findings.live import FindingEvent, Watch
    from kcap.tui.spill import Mark

EVERY_SECONDS: Final = 0.2
"""Interval between two status messages."""
KEY: Final = ("connection", "exchange")
START: Final = "import sys; from kcap.tui.reader_main import main; main(sys.argv[1:])"
"""Not `-m`: pickled objects must belong to this module at both ends. -P: modules are not loaded from the user's folder."""
NICER: Final = 4
"""Niceness once there are rows: keys have priority over reading if both need the same processor."""
WAKES_SECONDS: Final = 0.1
"""Interval between two signals that end a read: one that arrives just before the read blocks has no effect on it."""
RESTS: Final = 4.0
"""The rules take at most one fifth of the time while a capture grows."""
GROWING_SECONDS: Final = 3.0
"""A file that was written to within this time is followed until it has been quiet for as long."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read, and where to write."""

    paths: list[str]
    folder: str = ""
    kafka_ports: list[int] = field(default_factory=list)
    not_kafka_ports: list[int] = field(default_factory=list)
    follow: bool = False
    """Whether a growing file is followed."""
    keylogs: list[str] = field(default_factory=list)
    """Files with secrets of TLS sessions."""
    private_keys: list[str] = field(default_factory=list)
    """Files with RSA private keys of brokers."""
    passing: str = ""
    """A filter on messages; only the names of the exchanges that pass it are written."""
    partitions: bool = False
    """Whether only the table of partitions is written, which takes a separate pass."""
    conclusions: bool = False
    """Whether only findings, groups and transactions are written, which take a separate pass."""
    against: str = ""
    """A capture; only the differences from it are written, which takes a pass over both."""
    span_seconds: int = 0
    """How far back rules look in a pipe or a growing file, in capture time; 0 if they run at the end."""
    every_seconds: int = 5
    """How often they run, in capture time."""
    source: str = ""
    """The source of the capture if it is not a file: `eth0`."""
    thresholds: dict[str, dict[str, float]] = field(default_factory=dict)
    """Rule of `kcap check` -> its thresholds in the configuration."""

    @property
    def endless(self) -> bool:
        """Whether the end of the capture is unknown: a pipe, an interface, a followed file."""
        return self.follow or STANDARD_INPUT in self.paths

    @property
    def list_itself(self) -> bool:
        """Whether the rows of the list are read, for which the user waits; everything else is read in the background."""
        return not (self.passing or self.partitions or self.conclusions or self.against)

    @property
    def large(self) -> bool:
        """Whether the result is stored for the next time the files are opened."""
        if self.keylogs or self.private_keys or self.follow or STANDARD_INPUT in self.paths:
            return False
        try:
            return sum(os.stat(path).st_size for path in expand(list(self.paths))) >= INDEXED_LEAST_BYTES
        except OSError:
            return False

    def options(self) -> "Options":
        """Options of the analyzer. Raises CaptureError for a file of secrets that cannot be read."""
        from kcap.analyzer import Options
        from kcap.tls.files import read_secrets

        secrets = read_secrets(self.keylogs, self.private_keys) if self.keylogs or self.private_keys else None
        return Options(frozenset(self.kafka_ports), frozenset(self.not_kafka_ports), secrets)


@dataclass(frozen=True, slots=True)
class ReaderStatus:
    """The progress of reading."""

    mark: "Mark | None" = None
    bytes: int = 0
    total: int | None = None
    """None if it is not known."""
    packets: int = 0
    connections: int = 0
    """Number of ended connections that spoke Kafka."""
    following: bool = False
    files: "list[CaptureFile]" = field(default_factory=list)
    layouts: "dict[int, FileSections]" = field(default_factory=dict)
    spools: dict[int, int] = field(default_factory=dict)
    """File -> number of its bytes that were retained."""
    failed: list[tuple[str, str]] = field(default_factory=list)
    findings: "list[Row]" = field(default_factory=list)
    """Problems that the rules find now in a growing capture."""
    ended: "list[FindingEvent]" = field(default_factory=list)
    """The last problems that have ended."""
    over: bool = False
    stopped: bool = False
    error: str | None = None
    """Why nothing could be read."""
    said: str = ""
    """What the capture has instead of Kafka."""
    captures: int = 0
    """For a comparison, number of captures that were begun; `bytes` and `total` are those of the last one."""

    @property
    def rows(self) -> int:
        """Exchanges decided so far."""
        return self.mark.rows if self.mark is not None else 0

    @property
    def checked(self) -> "Row":
        """The current findings of a growing capture, as the report `check`; `ended`: earlier ones."""
        ended = [event.finding | {"ended_ns": event.time_ns} for event in reversed(self.ended)]
        names = [file.name for file in self.files]
        return {"report": "check", "captures": names, "rows": self.findings, "not_judged": {}, "ended": ended}


class Stopped(Exception):  # noqa: N818 - a word of the user, no error
    """Raised when the user stopped reading."""


class Child:
    def __init__(self, order: ReadRequest, line: Connection) -> None:
        self.order = order
        self._line = line
        self._stop = threading.Event()
        self._in_read = False
        self._sent_s = 0.0
        self._sent: set[int] = set()
        self._following: str | None = None
        self._status = ReaderStatus()
        self._watch: Watch | None = None
        self._ended: deque[FindingEvent] = deque(maxlen=ENDED_MAX)

    # -- the other end ------------------------------------------------------------------------------------------------
    def listen(self) -> None:
        """Waits for a request to stop, or for the other end to close."""
        try:
            while True:
                if self._line.poll(WAKES_SECONDS if self._stop.is_set() else None):
                    self._line.recv()
                    self._stop.set()
                if self._in_read:
                    os.kill(os.getpid(), signal.SIGUSR1)
        except (EOFError, OSError):
            os._exit(0)

    def wake(self, _number: int, _frame: "FrameType | None") -> None:
        """Ends a read that waits for bytes."""
        if self._in_read:
            self._in_read = False
            raise Stopped

    def send_progress(self, reading: "CapturePass", **more: Any) -> None:
        """Sends the progress."""
        self._sent_s = time.monotonic()
        files = [replace(file, secrets=[]) for file in reading.capture_files]
        if self._following is not None:
            files[0] = replace(files[0], path=self._following, size=reading.bytes)
        spools = {} if self._following is not None else reading.files.spools
        for number, spool in spools.items():
            kept = spool.number
            if kept is not None and number not in self._sent:
                self._sent.add(number)
                self._line.send(("spool", number))
                self._hand_over(kept)
        self._status = replace(
            self._status,
            bytes=reading.bytes,
            total=reading.total_bytes,
            packets=sum(file.packets for file in files),
            connections=reading.analyzer.kafka_connections,
            following=self._following is not None and not self._stop.is_set(),
            files=files,
            layouts=dict(reading.files.layouts),
            spools={number: spool.kept for number, spool in spools.items()},
            findings=list(self._watch.active.values()) if self._watch is not None else [],
            ended=list(self._ended),
            failed=[(path, str(error)) for path, error in reading.failed],
            **more,
        )
        self._line.send(self._status)

    def _hand_over(self, number: int) -> None:
        import socket

        with socket.socket(fileno=os.dup(self._line.fileno())) as line:
            socket.send_fds(line, [b"."], [number])

    # -- reading ------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        from kcap.runtime import collect_rarely, load_arrow, share_heap

        share_heap()
        load_arrow()
        collect_rarely()
        signal.signal(signal.SIGUSR1, self.wake)
        threading.Thread(target=self.listen, daemon=True).start()
        try:
            if self.order.conclusions or self.order.against:
                tempfile.tempdir = self.order.folder  # removed with it even if this process is killed
            if self.order.conclusions:
                self._conclude()
            elif self.order.against:
                self._differ()
            elif self.order.partitions:
                from kcap.tui.spill import OWNERS

                self._beside(
                    "partitions", [column.name for column in (*PARTITIONS, *ON_REQUEST["partitions"])], of_exchanges=OWNERS
                )
            elif self.order.passing:
                self._beside("exchanges", KEY, self.order.passing)
            else:
                self._read()
        except KcapError as error:
            self._line.send(replace(self._status, over=True, error=str(error)))

    def _reading(self, *, keep_connections: bool) -> "CapturePass":
        from kcap.session import Capture
        from kcap.tui.growing_file import follow, grows

        order, paths = self.order, list(self.order.paths)
        if len(paths) == 1 and grows(paths[0], GROWING_SECONDS, requested=order.follow):
            self._following = paths[0]
            follow(paths[0], self._stop, None if order.follow else GROWING_SECONDS)
            paths = ["-"]
        reading = Capture(paths, order.options()).read(keep_connections=keep_connections)
        reading.files.keeps = self._following is None
        if self._following is not None:
            reading.capture_files[0].name = os.path.basename(self._following)
        whole = reading.files.batches
        reading.files.batches = lambda: self._until(whole())  # type: ignore[method-assign]
        return reading

    def _until(self, batches: "Iterator[PacketBatch]") -> "Iterator[PacketBatch]":
        """Packets, until reading is stopped."""
        while not self._stop.is_set():
            self._in_read = True
            try:
                batch = next(batches, None)
            except Stopped:
                return
            finally:
                self._in_read = False
            if batch is None:
                return
            yield batch

    def _read(self) -> None:
        from kcap.runtime import PageRelease
        from kcap.tui.reader_tables import ReaderTables

        reading = self._reading(keep_connections=True)
        self._watch = self._watching(reading)
        gathering = ReaderTables(reading, self.order.folder, self._watch)

        pages = PageRelease()

        def watch() -> None:
            pages.step()
            if time.monotonic() - self._sent_s >= EVERY_SECONDS:
                self.send_progress(reading)

        reading.watch = watch
        self.send_progress(reading)
        for batch in reading.batches():
            first = not self._status.rows
            self._status = replace(self._status, mark=gathering.take(batch))
            if self._look():
                self.send_progress(reading)
            if self._status.rows and (first or time.monotonic() - self._sent_s >= EVERY_SECONDS or self._silent()):
                self.send_progress(reading)
                if first:
                    give_way(NICER)
        self.send_progress(reading)
        if self._following is not None:
            reading.capture_files[0].path = self._following
            with suppress(OSError):  # it was removed meanwhile
                reading.capture_files[0].size = os.path.getsize(self._following)
        mark = gathering.finish()
        self._look(last=True)
        said = ""
        if not reading.analyzer.kafka_connections:
            from kcap.session import no_kafka

            said = no_kafka(reading)
        self.send_progress(reading, mark=mark, over=True, stopped=self._stop.is_set(), said=said)
        gathering.number_values(mark)

    def _watching(self, reading: "CapturePass") -> "Watch | None":
        """The observer that looks for problems while the capture grows; None if it is examined as a whole."""
        if not self.order.span_seconds or not self.order.endless:
            return None
        from kcap.reports.findings.live import SECOND, Watch

        order = self.order
        folder = tempfile.mkdtemp(dir=order.folder)
        reading.files.keeps = True  # rules read messages of the last span again
        return Watch(reading, folder, order.span_seconds * SECOND, order.every_seconds * SECOND, order.thresholds, rests=RESTS)

    def _look(self, *, last: bool = False) -> bool:
        """Looks for problems if it is time; returns whether any began or ended."""
        events: list[FindingEvent] = []
        if self._watch is not None:
            found = self._watch.end() if last else self._watch.look(silent=self._silent())
            events = list(found)
            self._ended.extend(event for event in events if event.event == "end")
        return bool(events)

    def _conclude(self) -> None:
        """Writes findings, groups and transactions."""
        from kcap.tui.conclusions import NAME, conclude

        order = self.order
        conclude(order.paths, order.options(), order.thresholds, os.path.join(order.folder, NAME), self._counted)
        self._line.send(replace(self._status, over=True))

    def _differ(self) -> None:
        """Writes the differences from another capture."""
        from kcap.tui.conclusions import DIFFERENCES, differ

        order = self.order
        differ(order.against, order.paths, order.options(), os.path.join(order.folder, DIFFERENCES), self._counted)
        self._line.send(replace(self._status, over=True))

    def _counted(self, reading: "CapturePass") -> Callable[[], None]:
        """Releases pages of a pass, and sends the progress."""
        from kcap.runtime import releasing

        release = releasing(reading)
        self._status = replace(self._status, captures=self._status.captures + 1)

        def watch() -> None:
            release()
            if time.monotonic() - self._sent_s >= EVERY_SECONDS:
                self._sent_s = time.monotonic()
                self._status = replace(self._status, bytes=reading.bytes, total=reading.total_bytes)
                self._line.send(self._status)

        return watch

    def _silent(self) -> bool:
        """Whether a pipe is empty, so that the next read may block for an unknown time."""
        piped = self._following is not None or STANDARD_INPUT in self.order.paths
        return piped and not select.select([0], [], [], 0)[0]

    def _beside(self, name: str, columns: Sequence[str], only: str = "", of_exchanges: Sequence[str] = ()) -> None:
        """Writes one table."""
        from kcap.filter.parse import parse
        from kcap.runtime import releasing
        from kcap.table.builder import Table
        from kcap.tui.spill import SpillStream, main_path

        reading = self._reading(keep_connections=False)
        reading.watch = releasing(reading)
        table = Table(lambda: reading, name, columns, only=parse(only), of_exchanges=of_exchanges)
        stream = SpillStream(main_path(self.order.folder, name), table.schema)
        for batch in table.record_batches():
            stream.write(batch)
            if self._stop.is_set():
                break
        stream.close()
        self.send_progress(reading, over=True)


def arguments(order: ReadRequest, line: int) -> list[str]:
    """The arguments with which the process is started, with its end of the socket."""
    return [sys.executable, "-P", "-c", START, json.dumps(asdict(order)), str(line)]


def main(words: Sequence[str]) -> None:
    start_quickly()
    serve(ReadRequest(**json.loads(words[0])), Connection(int(words[1])))


def serve(order: ReadRequest, line: Connection) -> None:
    """Runs the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is a key of the other process
    if not order.list_itself:
        give_way(NICER)
    try:
        Child(order, line).run()
    except (BrokenPipeError, ConnectionResetError):
        return
