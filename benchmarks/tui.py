"""Measures the speed of the terminal UI on a large capture, and its memory.

    python benchmarks/tui.py CAPTURE [--rows 5000000] [--source SMALLER]

First rows: from the start of the reading process to rows that can be painted. Then a list of many rows, made by repeating those
of CAPTURE in a separate spill: filter, sort, and the page that a key needs, while another process reads. Then each view over
these rows: its first page, its slowest section after that, the memory that it adds, what a key needs, and the longest time that
keys waited while it was computed in its thread. CPU times are of this process; memory is anonymous (RssAnon of
/proc/self/status), without mapped pages of the spill.
"""

import argparse
import asyncio
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kcap.runtime import SCREENS, collect_rarely, load_arrow, share_heap  # noqa: E402

share_heap()  # memory and garbage collector as `kcap.cli.tui` sets them up
load_arrow(of_library=True)

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402

from kcap.filter.parse import parse  # noqa: E402
from kcap.tui.app import KcapApp  # noqa: E402
from kcap.tui.capture_model import SCHEMA, CaptureModel, read_whole  # noqa: E402
from kcap.tui.list_model import ListModel  # noqa: E402
from kcap.tui.reader_main import ReadRequest  # noqa: E402
from kcap.tui.row_index import RowIndex  # noqa: E402
from kcap.tui.spill import Pages, Spill  # noqa: E402
from kcap.tui.value_codes import ValueCodes, write_codes  # noqa: E402
from kcap.tui.views import VIEWS, load  # noqa: E402

FILTERS = (
    "api == Fetch && latency > 5ms", "error != NONE", 'client_id contains "a" && topic matches "o"', "tcp.port == 9092",
    'software_name contains "a" && software_version matches "1"', 'capture contains "b" && response_capture contains "p"',
)  # fmt: skip
"""The last one tests columns whose values are not numbered."""
STEP = 0.02
"""Seconds between two checks of a view that computes."""
TIMES = ("time", *(f"{side}_{end}_ns" for side in ("request", "response") for end in ("first", "last")))
SORTS = ("latency", "time", "client", "request_bytes", "about")


def anonymous_mb() -> float:
    """Anonymous memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def timed(work: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Lowest wall and CPU seconds of several runs."""
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def first_rows(path: str) -> float:
    """Seconds from the start of the reading process to the first rows that can be shown."""
    began = time.perf_counter()
    with CaptureModel(ReadRequest([path]), forks=True) as book:  # as the program does
        view = ListModel(book)
        while not book.look() or not book.rows:
            time.sleep(0.005)
        view.install(view.arrange())
        view.page(0, 40, [head for head, _ in view.heads(160)])
        return time.perf_counter() - began


class Repeated(CaptureModel):
    """A capture model whose rows repeat those of another, as if they had been read."""

    def __init__(self, order: ReadRequest, rows: RowIndex) -> None:
        super().__init__(order)
        self._repeated = rows

    def look(self) -> bool:
        """Everything is there, while reading seems to continue."""
        super().look()
        self._rows = self._repeated
        return False


def later(batch: Any, micros: int) -> Any:
    """The same rows, some microseconds later."""
    for name in TIMES:
        at, column = batch.schema.get_field_index(name), batch.column(name)
        unit = 1 if name == "time" else 1000
        moved = pc.add(column.view(pa.int64()), micros * unit)
        batch = batch.set_column(at, batch.schema.field(at), moved.view(column.type))
    return batch


def many(source: CaptureModel, count: int, folder: str) -> RowIndex:
    """Many rows in a spill: those of the source repeatedly, each time later than before."""
    spill, pages = Spill(folder, "exchanges", SCHEMA), Pages(folder, "exchanges")
    batches = source.snapshot().batches
    times = [batch.column("time").view(pa.int64()) for batch in batches]
    span_us = max(np.max(column) for column in times) - min(np.min(column) for column in times) + 1
    at = 0
    while spill.rows < count:
        turn, number = divmod(at, len(batches))
        batch = later(batches[number], turn * span_us)
        spill.write(batch.slice(0, min(batch.num_rows, count - spill.rows)))
        at += 1
    pages.follow(spill.close())
    began = time.process_time()
    write_codes(folder, pages.main, pages.release)
    print(f"numbers of values    {time.process_time() - began:6.2f} s CPU, as the reading process makes them behind its end")
    return RowIndex(list(pages.main), SCHEMA, release=pages.release, coded=ValueCodes(folder))


async def keys(book: CaptureModel, sort: str) -> list[float]:
    """Milliseconds from a key to the painted list in an order, as in the app."""
    app = KcapApp(book)
    app.view.sort = sort
    taken: list[float] = []
    async with app.run_test(size=(160, 50)) as pilot:
        while app.view.due or app.browser._arranging or not len(app.view):
            await pilot.pause(0.05)
        listed = app.browser.listed
        for number in range(60):
            began = time.perf_counter()
            (listed.action_page if number % 3 else listed.action_move)(1 if number % 2 else 7)
            for line in range(listed.size.height):
                listed.render_line(line)
            taken.append(1000 * (time.perf_counter() - began))
            await pilot.pause(0.01)
    app.view.arranged = None  # a process has one list; that of the views is another
    return taken


class Watch:
    """Measures while a view computes: wall and CPU seconds, and the longest time that the screen did not respond."""

    def __init__(self) -> None:
        self.wall, self.cpu, self.deaf = time.perf_counter(), time.process_time(), 0.0

    async def until(self, ready: Callable[[], bool]) -> tuple[float, float]:
        """Wall and CPU seconds until a condition holds."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(STEP)
            self.deaf = max(self.deaf, time.perf_counter() - began - STEP)
            if ready():
                return time.perf_counter() - self.wall, time.process_time() - self.cpu


def idle(screen: Any) -> bool:
    """Whether a view has its sections, and none is being computed."""
    return not screen.pace.busy and bool(screen.shown.sheets)


async def views(book: CaptureModel) -> None:
    """Opens each view over the rows of a model, and prints the figures."""
    app = KcapApp(book)
    async with app.run_test(size=(160, 50)) as pilot:
        while app.view.due or app.browser._arranging or not len(app.view):
            await pilot.pause(0.05)
        for name in VIEWS:
            gc.collect()
            before, watch = anonymous_mb(), Watch()
            screen = load(name)()
            await app.push_screen(screen)
            wall, cpu = await watch.until(partial(idle, screen))
            slowest = 0.0
            for at in range(1, len(screen.shown.sheets)):
                began = time.perf_counter()
                screen.action_section(at)
                await watch.until(partial(idle, screen))
                slowest = max(slowest, time.perf_counter() - began)
            added, taken = anonymous_mb() - before, []
            for number in range(30):
                began = time.perf_counter()
                screen.table.action_move(1 if number % 3 else 7)
                for line in range(screen.table.size.height):
                    screen.table.render_line(line)
                taken.append(1000 * (time.perf_counter() - began))
                await pilot.pause(0.01)
            app.pop_screen()
            await pilot.pause(0.1)
            print(f"{name:<20} {wall:6.2f} s  {cpu:6.2f} s CPU, sections {slowest:5.2f} s, {max(added, 0):4.0f} MB, key "
                  f"{statistics.median(taken):4.1f} ms median {max(taken):5.1f} worst, deaf {1000 * watch.deaf:4.0f} ms"
                  f"{'  ' + screen.failure if screen.failure else ''}")  # fmt: skip


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--source", help="a smaller capture whose rows are repeated", default=None)
    given = parser.parse_args()
    collect_rarely(SCREENS)
    print(f"first rows           {min(first_rows(given.capture) for _ in range(3)):6.2f} s")
    with (
        read_whole(given.source or given.capture) as source,
        tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder,
    ):
        rows = many(source, given.rows, folder)
        print(f"rows                 {len(rows):,}; {anonymous_mb():.0f} MB anonymous")
        for text in FILTERS:
            tree = parse(text)
            assert tree is not None
            wall, cpu = timed(lambda tree=tree: rows.passing(tree))  # type: ignore[misc]
            print(f"filter               {wall:6.2f} s  {cpu:6.2f} s CPU  {text}")
        book = Repeated(ReadRequest([given.capture]), rows)
        book.look()
        view = ListModel(book)
        for name in SORTS:
            view.sort, view.descending = name, True
            wall, cpu = timed(view.arrange, 2)
            print(f"sort                 {wall:6.2f} s  {cpu:6.2f} s CPU  {name}")
        print(f"                     {anonymous_mb():.0f} MB anonymous")
        for name in ("time", "latency"):
            taken = sorted(asyncio.run(keys(book, name)))
            high = taken[int(len(taken) * 0.95)]
            state = "reading goes on" if not book.status.over else "reading was over"
            print(
                f"key to repaint       {statistics.median(taken):6.1f} ms median, {high:.1f} ms p95, {taken[-1]:.1f} ms worst"
                f"  by {name} ({state})"
            )
        print(f"                     {anonymous_mb():.0f} MB anonymous")
        book.close()
        source._rows = rows
        asyncio.run(views(source))


if __name__ == "__main__":
    main()
