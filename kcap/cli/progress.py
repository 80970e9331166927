"""The progress of a long run: one line on stderr, rewritten, removed at the end. Only on a terminal, and only after
a moment.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

from kcap.runtime import PageRelease

if TYPE_CHECKING:
    from kcap.capture_pass import CapturePass

AFTER_SECONDS: Final = 0.7
EVERY_SECONDS: Final = 0.2
MEGABYTE: Final = 1e6


class Watched(Protocol):
    """The pass whose progress is shown."""

    @property
    def bytes(self) -> int: ...

    @property
    def total_bytes(self) -> int | None: ...

    rows: int


class Progress:
    """Shows the line until the end of the block; memory pages that reading does not need are released meanwhile."""

    def __init__(self, reading: Watched, *, shown: bool) -> None:
        self._reading = reading
        self._shown = shown and sys.stderr.isatty()
        self._began = time.monotonic()
        self._next = self._began + AFTER_SECONDS
        self._drawn = False
        self._pages = PageRelease()

    def __enter__(self) -> "Progress":
        return self

    def step(self) -> None:
        self._pages.step()
        if not self._shown:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_SECONDS
            self._drawn = True
            sys.stderr.write(f"\r\x1b[K{describe(self._reading, now - self._began)}")
            sys.stderr.flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def describe(reading: Watched, seconds: float) -> str:
    """`43%  129 of 300 MB  85 MB/s  120,000 rows  2 s left`."""
    done, total = reading.bytes, reading.total_bytes
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done / MEGABYTE:,.0f} MB"]
    if total:
        parts = [f"{min(100 * done // total, 100)}%", f"{done / MEGABYTE:,.0f} of {total / MEGABYTE:,.0f} MB"]
    parts += [f"{rate / MEGABYTE:,.0f} MB/s", f"{reading.rows:,} rows"]
    if total and rate > 0:
        parts.append(f"{max(total - done, 0) / rate:,.0f} s left")
    return "  ".join(parts)


def watcher(stack: ExitStack) -> "Callable[[CapturePass], Callable[[], None]]":
    """Makes a progress display for each pass."""

    def watch(reading: "CapturePass") -> Callable[[], None]:
        return stack.enter_context(Progress(reading, shown=True)).step

    return watch
