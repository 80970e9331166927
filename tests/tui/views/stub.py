"""A book and an app for views on their own: the book reads its captures as the command line does."""

import asyncio
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa
from textual.app import App

import kcap
from kcap.analyzer import Options
from kcap.filter.parse import parse
from kcap.reports.definition import Report, ReportRequest
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.versions.profiles import ConnectionProfiles, gather
from kcap.runtime import releasing
from kcap.tui.capture_model import read_whole
from kcap.tui.conclusions import conclude, differ
from kcap.tui.config import UiSettings
from kcap.tui.versions_source import VersionsInside, VersionsSource
from kcap.tui.views import load
from kcap.tui.views.home import ViewPlace

PCAPS = Path(__file__).resolve().parents[3] / "pcaps"


@cache
def whole(name: str, table: str, text: str = "") -> pa.Table:
    """A table of a capture in pcaps/."""
    capture = kcap.open(str(PCAPS / name))
    return (capture.filter(text) if text else capture).table(table).to_arrow()


@cache
def talks_of(name: str) -> ConnectionProfiles:
    return gather(kcap.open(str(PCAPS / name)).read(keep_connections=True))


@cache
def result_of(name: str, report: Report, asked: ReportRequest, text: str) -> dict[str, Any]:
    return run(report, ReportInput([str(PCAPS / name)], only=parse(text)), asked)


@cache
def frames_of(name: str, uid: str, number: int) -> Any:
    with read_whole(str(PCAPS / name)) as book:
        return book.exchange(uid, number)


def with_records(name: str) -> tuple[str, int]:
    """An exchange that carries records."""
    table = whole(name, "exchanges", "api == Produce && record_count > 0")
    return table["connection"][0].as_py(), table["exchange"][0].as_py()


@cache
def conclusions_of(name: str) -> dict[str, Any]:
    """Findings, groups and transactions of a capture in pcaps/."""
    with NamedTemporaryFile() as file:
        conclude([str(PCAPS / name)], Options(), {}, file.name, releasing)
        found: dict[str, Any] = pickle.load(file)
    return found


@cache
def differences_of(other: str, name: str) -> dict[str, Any]:
    """What changed from one capture in pcaps/ to another."""
    with NamedTemporaryFile() as file:
        differ(other, [str(PCAPS / name)], Options(), file.name, releasing)
        found: dict[str, Any] = pickle.load(file)
    return found


class StubBook:
    """As kcap.tui.capture_model.Book, read to its end."""

    def __init__(self, name: str, text: str = "") -> None:
        self.name = name
        self.paths = [str(PCAPS / name)]
        self.state = "done"
        self.done = True
        self.looking = False
        self.ignored = 0
        self.filter_text = text
        self.only = parse(text)
        self.rows = self.passed = self.exchanges().num_rows

    def exchanges(self, columns: Sequence[str] | None = None, *, filtered: bool = True) -> pa.Table:
        table = whole(self.name, "exchanges", self.filter_text if filtered else "")
        return table.select(list(columns)) if columns is not None else table

    def groups(self, columns: Sequence[str], most: int) -> int:
        return min(self.exchanges(columns).group_by(list(columns)).aggregate([]).num_rows, most)

    @contextmanager
    def asked_by(self, who: object) -> Iterator[None]:
        yield

    def give_up(self, who: object) -> None:
        pass

    def wanted(self, who: object) -> bool:
        return True

    def comparing(self, other: str) -> str:
        return ""

    def stop_comparing(self, other: str) -> None:
        pass

    def table(self, name: str) -> pa.Table | None:
        return whole(self.name, name)

    def topic_names(self) -> dict[str, str]:
        return {}

    def conclusions(self) -> dict[str, Any] | None:
        return conclusions_of(self.name)

    def no_conclusions(self) -> str:
        return "they are made when the capture has been read"

    def versions(self) -> VersionsSource | None:
        return VersionsInside(talks_of(self.name))

    def report(self, report: Report, asked: ReportRequest) -> dict[str, Any]:
        return result_of(self.name, report, asked, self.filter_text)

    def exchange(self, uid: str, number: int) -> Any:
        return frames_of(self.name, uid, number)

    def find(self, uid: str, number: int) -> int:
        table = self.exchanges(["connection", "exchange"], filtered=False)
        pairs = list(zip(table["connection"].to_pylist(), table["exchange"].to_pylist()))
        return pairs.index((uid, number)) if (uid, number) in pairs else -1

    def compared(self, other: str) -> bool:
        return bool(other)

    def differences(self, other: str) -> Any:
        return differences_of(other, self.name)


class EmptyBook(StubBook):
    """A capture of which nothing was read yet."""

    def __init__(self, state: str = "reading") -> None:
        super().__init__("pipelined.pcap", "api == LeaveGroup && api == Fetch")
        self.state, self.done, self.filter_text = state, state == "done", ""
        self.rows = 0

    def exchanges(self, columns: Sequence[str] | None = None, *, filtered: bool = True) -> pa.Table:
        table = whole(self.name, "exchanges", "api == LeaveGroup && api == Fetch")
        return table.select(list(columns)) if columns is not None else table

    def table(self, name: str) -> pa.Table | None:
        return None

    def topic_names(self) -> dict[str, str]:
        return {}

    def conclusions(self) -> dict[str, Any] | None:
        return None

    def compared(self, other: str) -> bool:
        return bool(other)

    def differences(self, other: str) -> Any:
        return None

    def versions(self) -> VersionsSource | None:
        return None

    def report(self, report: Report, asked: ReportRequest) -> dict[str, Any]:
        return result_of(self.name, report, asked, "api == LeaveGroup && api == Fetch")


class StubApp(App[None]):
    """What views ask of the app."""

    def __init__(self, book: Any, view: str | Callable[[], Any], selected: tuple[str, int] | None = None) -> None:
        super().__init__()
        self.book = book
        self.view = view
        self.selected = selected
        self.pair = ((selected[0], 1 if selected[1] > 1 else 2), selected) if selected is not None else (None, None)
        self.show_secrets = False
        self.other = str(PCAPS / "quota-0.10.pcap")
        self.narrowed: list[str] = []
        self.shown: list[tuple[str, int]] = []
        self.marked: list[tuple[str, int]] = []
        self.cut: list[str] = []
        self.saved: list[tuple[str, str]] = []
        self.look = UiSettings()
        self.places: dict[str, ViewPlace] = {}
        self.kept = 0

    def save_settings(self) -> None:
        self.kept += 1

    def free_screens(self) -> None:
        """Collects nothing: the collector would go through all that tests hold."""

    def on_mount(self) -> None:
        self.push_screen(load(self.view)() if isinstance(self.view, str) else self.view())

    def mark(self, uid: str, number: int) -> str:
        self.marked.append((uid, number))
        return "marked"

    def narrow(self, text: str, *, stay: bool = False) -> None:
        self.narrowed.append(text)

    def show_exchange(self, uid: str, number: int) -> None:
        self.shown.append((uid, number))

    def seek_records(self) -> None:
        """The list stays where it is."""

    def save_packets(self, only: str) -> None:
        self.cut.append(only)

    def save_text(self, name: str, text: str) -> None:
        self.saved.append((name, text))


def lines(app: App[Any]) -> list[str]:
    """What is on the screen, as text."""
    return ["".join(segment.text for segment in line).rstrip() for line in app.screen._compositor.render_strips()]


def screen(app: App[Any]) -> str:
    return "\n".join(lines(app))


async def settle(pilot: Any) -> None:
    """Waits until the page is made and shown."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


class Seen:
    """What was to be seen after some keys."""

    def __init__(self, app: StubApp) -> None:
        self.app = app
        self.lines = lines(app)
        self.text = "\n".join(self.lines)
        self.narrowed, self.shown, self.saved = app.narrowed, app.shown, app.saved
        self.name = getattr(app.screen, "NAME", "")


def drive(book: Any, view: Any, *keys: str, size: tuple[int, int] = (80, 24), selected: tuple[str, int] | None = None) -> Seen:
    """Opens a view, presses keys, looks at the screen."""

    async def run_() -> Seen:
        app = StubApp(book, view, selected)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            for key in keys:
                await pilot.press(key)
                await pilot.app.workers.wait_for_complete()
            await settle(pilot)
            return Seen(app)

    return asyncio.run(run_())
