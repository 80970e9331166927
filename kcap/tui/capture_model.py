"""The part of a capture that was read so far, for everything that shows it. Free of widgets.

In: the spill folder that a reading process fills (`kcap.tui.spill`), its messages (`kcap.tui.reader_main`). Out: tables,
reports, the bytes of one exchange. Law: append-only: a row keeps its number and its facts, except for those that are known only
at the end of the capture (broker ids, topic names, verdicts), which are added when reading is complete. No method requires that
reading is complete, and none raises for data that is not there yet.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from kcap.columns import EXCHANGES, ONLY_ROW, exchange_column
from kcap.errors import UsageError
from kcap.filter.ast import Filter, is_deep
from kcap.inputs import STANDARD as STANDARD_INPUT
from kcap.limits import CONCLUSIONS_UNASKED_BYTES, LIVE_ROWS_MAX
from kcap.table.schema import arrow_schema
from kcap.tui import conclusions, report_cache, saved_index
from kcap.tui.folders import spill_folder
from kcap.tui.reader_main import KEY, ReaderStatus, ReadRequest
from kcap.tui.reader_process import Process, ReadBefore
from kcap.tui.row_index import NONE, NOWHERE, RowIndex, between
from kcap.tui.spill import COLUMNS, OWNERS, PROFILES, Pages, learned, main_path, read_file, unpickled
from kcap.tui.value_codes import ValueCodes

if TYPE_CHECKING:
    from kcap.capture.frame_bytes import FrameBytes
    from kcap.reports.definition import Report, ReportRequest
    from kcap.reports.source import Engine
    from kcap.tls.plaintext import PlaintextStore
    from kcap.tui.row_index import Numbers
    from kcap.tui.versions_source import VersionsSource

SCHEMA: Final = arrow_schema("exchanges", COLUMNS)
NAMES: Final = tuple(column.name for column in EXCHANGES)
"""The table's own columns."""
OF_OWNERS: Final = (*map(exchange_column, OWNERS), ONLY_ROW)
"""Columns of exchanges in the table of partitions."""
CONCLUSIONS: Final = "conclusions"
"""Folder of the pass that makes the conclusions."""
PIPED: Final = "a pipe is read once; save it and open the file"
"""Why a pipe has neither conclusions nor differences."""


class CaptureModel:
    """A capture while it is read, and afterwards."""

    def __init__(
        self,
        order: ReadRequest,
        stdin: int | None = None,
        *,
        forks: bool = False,
    ) -> None:
        """`stdin`: descriptor of the pipe for `-`. `forks`: the reading process may start as a copy of this one
        (`kcap.tui.reader_process.serve_as_copy`)."""
        self.order = order
        self._plaintext: PlaintextStore | None = None
        self.paths: Sequence[str] = order.paths
        self.only: Filter | None = None
        self.filter_text = ""
        self.folder = spill_folder()
        self._lock = threading.RLock()
        self._pages: Pages | None = None
        self._rows = RowIndex((), SCHEMA)
        self._passing, self._sifted = NONE, 0
        self._ignored = NONE
        self._tables: dict[str, pa.Table] = {}
        self._beside: dict[str, Process] = {}
        self._looking: Process | None = None
        self._others: dict[str, int] = {}
        """Captures that this one was compared with, by path, and the numbers of the passes that compare them."""
        self._comparisons = count()
        self._conclusions: dict[str, Any] | None = None
        self.done = False
        """Whether reading is complete."""
        self._truncation: str | None = None
        self._closed = False
        self._asking = threading.local()
        self._engines: dict[object, Engine] = {}
        """The requester of a report -> the engine that computes it."""
        self._groups: dict[tuple[object, ...], int] = {}
        """Numbers of groups of the whole capture, by the arguments of `groups`."""
        self._gone: WeakSet[Any] = WeakSet()
        """Requesters that gave up."""
        self._key = saved_index.key_of(order)
        saved = saved_index.opened(self._key) if self._key is not None else None
        self.index = saved[0] if saved is not None else ""
        """Folder of the index of these files; empty if they are read now."""
        self.process: Process | ReadBefore = (
            ReadBefore(saved[1]) if saved is not None else Process(replace(order, folder=self.folder), stdin, forks=forks)
        )
        self.process.start()

    def __enter__(self) -> "CaptureModel":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- how far it is ------------------------------------------------------------------------------------------------
    @property
    def status(self) -> ReaderStatus:
        """The last status of the reading process."""
        return self.process.status

    @property
    def state(self) -> str:
        """`reading`, `done`, `stopped` or `failed`."""
        status = self.status
        if not self.done:
            return "reading"
        return "failed" if status.error is not None else "stopped" if status.stopped else "done"

    @property
    def live(self) -> bool:
        """Whether the capture grows: a pipe, an interface, a file that is being written."""
        return not self.done and (self.order.endless or self.status.following)

    @property
    def rows(self) -> int:
        """Number of exchanges decided so far; while a pipe or a followed file grows, only the latest
        `LIVE_ROWS_MAX` are held."""
        return len(self._rows)

    def look(self) -> bool:
        """Processes announcements; returns whether there is anything new."""
        with self._lock:
            status = self.status
            if self._closed or self.done:
                return False
            before = len(self._rows)
            if status.mark is not None and status.mark.rows > before:
                self._pages = self._pages or Pages(self.index or self.folder, "exchanges")
                self._pages.follow(status.mark)
                rows = RowIndex([*self._pages.main, *self._pages.tail], SCHEMA, release=self._pages.release)
                self._rows = rows.latest(LIVE_ROWS_MAX) if self.order.endless else rows
            if status.over:
                if self._pages is not None and status.mark is not None:
                    self._pages.follow(status.mark)
                    # The tail has rows if the reading process was killed.
                    folder = self.index or self.folder
                    batches = [*learned(folder, self._pages.main), *self._pages.tail]
                    self._rows = RowIndex(batches, SCHEMA, release=self._pages.release, coded=ValueCodes(folder))
                self.done = True
                self._passing, self._sifted = NONE, 0
                return True
            return len(self._rows) != before

    def release(self) -> None:
        """Returns the pages of mapped rows to the system after a filter or an order has read all of them."""
        if self._pages is not None:
            self._pages.release()

    def stop(self) -> None:
        """Stops reading; rows that were read remain."""
        self.process.stop()

    # -- the filter ---------------------------------------------------------------------------------------------------
    def narrow(self, text: str) -> None:
        """Sets the display filter. Raises FilterError."""
        from kcap.filter.parse import parse

        tree = parse(text)
        if self.filter_text == (text if tree is not None else ""):
            return  # its rows are known already
        deep = tree is not None and is_deep(tree)
        if deep and STANDARD_INPUT in self.paths:
            raise UsageError("a pipe is read once: filters on fields inside messages work on files")
        with self._lock:
            self.only, self.filter_text = tree, text if tree is not None else ""
            self._passing, self._sifted = NONE, 0
            old, self._looking = self._looking, None
            if deep and not self._closed:
                self._looking = Process(replace(self.order, folder=tempfile.mkdtemp(dir=self.folder), passing=text))
                self._looking.start()
        if old is not None:
            old.close()

    def sift(self) -> "Numbers | None":
        """Numbers of the rows that pass, in the order in which they were decided; None if all pass. Examines each row once."""
        with self._lock:
            rows, tree = self._rows, self.only
            passing, sifted = self._passing, self._sifted
        if tree is None:
            return None
        if self.looking:
            return NONE
        held = between(passing, rows.first, len(rows))
        if sifted < len(rows) or len(held) < len(passing):
            fresh = self._named(rows, sifted) if self._looking is not None else rows.passing(tree, sifted)
            passing = np.concatenate([held, fresh]) if sifted else fresh
            with self._lock:
                if self.only is tree and self._sifted == sifted:
                    self._passing, self._sifted = passing, len(rows)
        return passing

    def ignore(self, numbers: Iterable[int]) -> None:
        """Sets the rows that reports, views and files omit from now on; the list still has them."""
        self._ignored = np.array(sorted(numbers), np.int64)

    @property
    def ignored(self) -> int:
        """The ignored rows."""
        return len(self._ignored)

    def counted(self) -> "Numbers | None":
        """Numbers of the rows that pass the filter and are not ignored; None if all rows do."""
        passing = self.sift()
        if not len(self._ignored):
            return passing
        return np.setdiff1d(self.snapshot().numbers if passing is None else passing, self._ignored)

    @property
    def looking(self) -> bool:
        """Whether another process still examines messages for the filter."""
        process = self._looking
        return process is not None and not process.status.over

    def _named(self, rows: RowIndex, first: int) -> "Numbers":
        """Numbers of the rows that the other process reported."""
        process = self._looking
        path = main_path(process.order.folder, "exchanges") if process is not None else ""
        if not os.path.exists(path):
            return NONE
        table = read_file(path)
        return rows.named(zip(*(table.column(name).to_pylist() for name in KEY)), first)

    @property
    def passed(self) -> int:
        """Number of rows that pass the filter, among those examined so far."""
        return len(self._passing) if self.only is not None else len(self._rows) - self._rows.first

    # -- tables -------------------------------------------------------------------------------------------------------
    def snapshot(self) -> RowIndex:
        """The rows so far; the result never changes."""
        with self._lock:
            return self._rows

    def exchanges(self, columns: Sequence[str] | None = None, *, filtered: bool = True) -> pa.Table:
        """Exchanges in the order in which they were decided, those that pass the filter and are not ignored.

        Slices of the mapped spill, which are not copied if all rows are wanted.
        """
        rows = self.snapshot()
        passing = self.counted() if filtered else None
        if passing is None:
            return rows.table(columns or NAMES)
        return rows.take(passing[(passing >= rows.first) & (passing < len(rows))], columns or NAMES)

    def table(self, name: str) -> pa.Table | None:
        """`connections`, `weirds`, `captures`, `topic_names`: None until reading is complete, and if it failed.

        `partitions` takes another pass over the files: the first call starts it and returns None, a later one returns the
        table.
        """
        if not self.done or self._closed or self.state == "failed":
            return None
        if name == "partitions" and not self._beside_done(name, replace(self.order, partitions=True)):
            return None
        path = main_path(self._beside_folder(name) if name == "partitions" else self.index or self.folder, name)
        with self._lock:
            if name not in self._tables and os.path.exists(path):
                self._tables[name] = read_file(path)
            return self._tables.get(name)

    def topic_names(self) -> dict[str, str]:
        """Topic ids -> names, as the whole capture has them; while it is read, only those that are the same everywhere."""
        from kcap.facts.topic_names import KNOWN  # it imports schemas, which the first frame does not need

        table = self.table("topic_names")
        return KNOWN | ({row["topic_id"]: row["topic"] for row in table.to_pylist()} if table is not None else {})

    def truncation(self) -> str:
        """What the capture lacks: truncated packets, files that end within a packet; empty until it has been read. A file that
        is no capture is neither."""
        if self._truncation is None and (table := self.table("captures")) is not None:
            rows = [row for row in table.select(["cut_packets", "complete", "format"]).to_pylist() if row["format"]]
            packets, files = sum(row["cut_packets"] or 0 for row in rows), sum(row["complete"] is False for row in rows)
            found = [f"{packets:,} truncated packet{'s' * (packets != 1)}"] if packets else []
            found += [f"{files:,} truncated file{'s' * (files != 1)}"] if files else []
            self._truncation = ", ".join(found)
        return self._truncation or ""

    def _beside_done(self, name: str, order: ReadRequest) -> bool:
        """Whether a separate pass has made what `order` requests; starts the pass if it has not started."""
        if self._beside_folder(name) != os.path.join(self.folder, name):
            return True
        with self._lock:
            process = self._beside.get(name)
            if process is None and STANDARD_INPUT not in self.paths and not self._closed:
                folder = os.path.join(self.folder, name)
                os.makedirs(folder)
                process = self._beside[name] = Process(replace(order, folder=folder))
                process.start()
            return process is not None and process.status.over

    def _beside_folder(self, name: str) -> str:
        """The folder to which a separate pass writes, or wrote when these files were open before."""
        before = os.path.join(self.index, saved_index.PARTS[name]) if self.index and name in saved_index.PARTS else ""
        return os.path.dirname(before) if before and os.path.exists(before) else os.path.join(self.folder, name)

    def conclusions(self) -> dict[str, Any] | None:
        """Results of `check`, `groups` and `transactions` over the whole capture, by name; None until they are made.

        They take another pass over the files, which the first call starts once reading is complete. A growing capture and a
        pipe have only `check`: what the rules find in its last span.
        """
        if self.order.span_seconds and self.order.endless and (not self.done or STANDARD_INPUT in self.paths):
            return {"check": self.status.checked}
        if (
            self._conclusions is None
            and self.done
            and not self._closed
            and self._beside_done(CONCLUSIONS, replace(self.order, conclusions=True))
        ):
            path = os.path.join(self._beside_folder(CONCLUSIONS), conclusions.NAME)
            with self._lock:
                if os.path.exists(path):
                    self._conclusions = unpickled(path)
        return self._conclusions

    def concerning(self, number: int) -> list[dict[str, Any]]:
        """Problems whose filter selects the exchange of a row, as far as they are known now."""
        from kcap.filter.parse import parse
        from kcap.table.arrow_filter import mask

        found = self.conclusions() if self.live or self._conclusions is not None else None
        rows = self.snapshot()
        if found is None or not rows.holds(number):
            return []
        row: Any = rows.take(np.array([number], np.int64))
        out = []
        for one in conclusions.problems(found["check"]):
            tree = parse(one["filter"] or "")
            if tree is not None and not is_deep(tree) and mask(tree, row.to_batches()[0]).any():
                out.append(one)
        return out

    def compared(self, other: str) -> bool:
        """Whether the `differences` from another capture are made, or cannot be made; starts making them."""
        return STANDARD_INPUT in self.paths or self._beside_done(
            self._comparison(other), replace(self.order, against=os.path.abspath(other))
        )

    def comparing(self, other: str) -> str:
        """How far the pass that compares with another capture has read, in words; empty if that is not known."""
        status = self._status_beside(self._comparison(other))
        if status is None or not status.total:
            return ""
        return f"{status.bytes / status.total:.0%} of {'the one before' if status.captures == 1 else 'this capture'} was read"

    def _status_beside(self, name: str) -> ReaderStatus | None:
        """The status of a separate pass; None if there is none."""
        process = self._beside.get(name)
        return process.status if process is not None else None

    def stop_comparing(self, other: str) -> None:
        """Stops the pass that compares with another capture, unless it is complete (blocking). The next call of `compared`
        starts another."""
        name = self._comparison(other)
        with self._lock:
            process = self._beside.get(name)
            if self._closed or process is None or process.status.over:
                return
            del self._beside[name], self._others[os.path.abspath(other)]
        process.close()
        shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def _comparison(self, other: str) -> str:
        """The name of the pass that compares this capture with another."""
        return f"differences-{self._others.setdefault(os.path.abspath(other), next(self._comparisons))}"

    def differences(self, other: str) -> dict[str, Any] | str | None:
        """Result of the report `diff` from another capture to this one, or why there is none; None until it is made. It is read
        from its file each time, which takes long if there are many classes."""
        if STANDARD_INPUT in self.paths:
            return PIPED
        if not self.compared(other):
            return None
        name = self._comparison(other)
        error = self._beside[name].status.error if name in self._beside else "this capture is closed"
        if error is not None:
            return error
        found: dict[str, Any] = unpickled(os.path.join(self.folder, name, conclusions.DIFFERENCES))
        return found

    def no_conclusions(self) -> str:
        """Why there are no conclusions now."""
        if STANDARD_INPUT in self.paths:
            return PIPED
        if not self.done:
            return "they are made when the capture has been read"
        status = self._status_beside(CONCLUSIONS)
        if status is not None and status.over and status.error:
            return f"they cannot be made: {status.error}"
        far = f": {status.bytes / status.total:.0%} of the capture was read" if status is not None and status.total else " …"
        return f"computing{far}"

    @property
    def large(self) -> bool:
        """Whether conclusions are so expensive that they are made only when their view is opened."""
        return sum(file.size or 0 for file in self.status.files) > CONCLUSIONS_UNASKED_BYTES

    def versions(self) -> "VersionsSource | None":
        """The object that computes the view of versions, which the caller must close; None until the capture was read."""
        from kcap.tui.versions_source import source_of

        path = os.path.join(self.index or self.folder, PROFILES)
        return source_of(path) if self.done and self.state != "failed" and os.path.exists(path) else None

    @contextmanager
    def asked_by(self, who: object) -> Iterator[None]:
        """Makes reports in this thread for the requester `who`, which may cancel them with `give_up`."""
        self._asking.who = who
        try:
            yield
        finally:
            self._asking.who = None

    def wanted(self, who: object) -> bool:
        """Whether `who` still waits."""
        return who not in self._gone

    def give_up(self, who: object) -> None:
        """Cancels the reports of `who`: the thread that makes or starts one gets an exception."""
        with self._lock:
            self._gone.add(who)
            if who in self._engines:
                self._engines[who].interrupt()

    @contextmanager
    def _engine(self) -> "Iterator[Engine]":
        """A DuckDB engine for this thread's computations, which `give_up` interrupts."""
        from kcap.reports.source import Engine

        engine, who = Engine(self.folder), getattr(self._asking, "who", None)
        with self._lock:
            self._engines[who] = engine
            if who in self._gone:
                engine.interrupt()
        try:
            yield engine
        finally:
            with self._lock:
                if self._engines.get(who) is engine:
                    del self._engines[who]
            engine.close()

    def groups(self, columns: Sequence[str], most: int) -> int:
        """Number of groups that the exchanges under the filter have by some columns, counted up to `most`. Slow: call it in a
        thread. Raises Interrupted if it was cancelled."""
        settled = self.done and self.only is None and not self.ignored
        known = self._groups.get((*columns, most)) if settled else None
        if known is None:
            names = ", ".join(f'"{name}"' for name in columns)
            with self._engine() as engine:
                engine.register("kept_", self.exchanges(columns))
                distinct = f"SELECT DISTINCT {names} FROM kept_ LIMIT {most:d}"  # noqa: S608 - names of columns of ours
                counted = engine.rows(f"SELECT count(*) AS found FROM ({distinct})")  # noqa: S608
            known = int(counted[0]["found"])
            if settled:
                self._groups[(*columns, most)] = known
        return known

    def report(self, report: "Report", requested: "ReportRequest") -> dict[str, Any]:
        """A report over what was read so far, under the filter. Slow: call it in a thread.

        Raises Interrupted if it was cancelled.
        """
        from kcap.reports.definition import Tables
        from kcap.reports.run import by_views, columns_of

        names = list(dict.fromkeys([*KEY, *columns_of(report, requested)]))
        with self._lock:
            settled = self.done
            every = self.exchanges(names, filtered=False)
        kept = self.exchanges(names) if self.only is not None or self.ignored else every
        partitions = self.table("partitions") if report.partitions else None
        entry = report_cache.name_of(report, requested, partitions=partitions is not None) if settled and kept is every else ""
        places, who = [self.index or self.folder, self.folder], getattr(self._asking, "who", None)
        if entry and self.wanted(who) and (found := report_cache.find(places, entry)) is not None:
            return found
        with self._engine() as engine:
            views = {"every_": every} if kept is every else {"every_": every, "kept_": kept}
            if partitions is not None:
                views["parts_"] = partitions.select(list(dict.fromkeys([*KEY, *report.partitions, *OF_OWNERS])))
            for name, table in views.items():
                engine.register(name, table)

            def tables() -> Tables:
                found = {name: engine.viewed(name) for name in views}
                return Tables.under(found["every_"], found.get("kept_", found["every_"]), found.get("parts_"))

            made: dict[str, Any] = by_views(engine, list(views), tables, report, requested)
        whole = {"report": report.name, "captures": [file.name for file in self.status.files]} | made
        if entry:
            report_cache.store(self.folder, entry, whole)
        return whole

    # -- one exchange -------------------------------------------------------------------------------------------------
    def frames(self, number: int) -> "FrameBytes":
        """The exchange of a row, read again from the file."""
        from kcap.capture.frame_bytes import read

        status = self.status
        rows = self.snapshot()
        if not rows.holds(number):
            raise UsageError("it is older than the exchanges that a live capture holds")
        return read(rows.row(number), status.files, status.layouts, self.process.spools, self._decrypted)

    def _decrypted(self) -> "PlaintextStore | None":
        """The plaintext of all TLS connections, decrypted when the first of their exchanges is opened."""
        with self._lock:
            if self._plaintext is None:
                from kcap.session import Capture

                self._plaintext = Capture(self.paths, self.order.options()).read().plaintext()
            return self._plaintext

    def find(self, uid: str, number: int) -> int:
        """The row of an exchange, -1 if there is none."""
        return self.snapshot().find(uid, number)

    def exchange(self, uid: str, number: int) -> "FrameBytes | None":
        """One exchange, read again from the file; None if there is none with that name."""
        row = self.find(uid, number)
        return None if row == NOWHERE else self.frames(row)

    def close(self) -> None:
        """Stops reading and removes the spill, or stores it as an index."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for process in (self.process, *self._beside.values(), *([self._looking] if self._looking is not None else [])):
            process.close()
        for name, process in self._beside.items():
            if not process.status.over or process.status.error is not None:
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
        if self.index:
            saved_index.add(self.index, self.folder)
        elif self._key is not None and self.done:
            saved_index.keep(self.order, self._key, self.folder, self.status)
        shutil.rmtree(self.folder, ignore_errors=True)


def read_whole(*paths: str) -> CaptureModel:
    """A capture model that has been read to its end (blocking), for tests and scripts. Use it as a context manager."""
    book = CaptureModel(ReadRequest(list(paths), ""))
    book.process.wait()
    book.look()
    return book
