"""Rates per second of a growing capture: exchanges, bytes, failures, the slowest response. Free of widgets.

In: rows as they are decided. Out: values of the last seconds, and a line of sparklines. Law: each exchange counts once, in the
second of its first byte; memory holds the last `SECONDS` seconds, however long the capture is; long polls do not count as slow.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from kcap.output.grid import duration
from kcap.reports.text import size
from kcap.tui.color_rules import FAILING
from kcap.tui.row_index import RowIndex
from kcap.tui.views.bars import EIGHTHS, shares
from kcap.tui.views.sheet import Line

SECONDS: Final = 120
"""Number of seconds that are held."""
LEAST: Final = 6
"""Minimum number of steps of a sparkline."""
MOST: Final = 30
"""Maximum number of steps of a sparkline."""
CHUNK: Final = 1 << 16
"""Number of rows that are processed together."""


@dataclass(slots=True)
class Second:
    """The figures of one second."""

    exchanges: int = 0
    failed: int = 0
    """Errors, requests without a response, responses without a request."""
    size: int = 0
    """Bytes of requests and responses."""
    slowest_ns: int = 0
    """Highest latency."""


PARTS: Final[tuple[tuple[str, Callable[[Second], int], Callable[[int], str], bool], ...]] = (
    ("exchanges/s", lambda one: one.exchanges, "{:,}".format, False),
    ("failed/s", lambda one: one.failed, "{:,}".format, False),
    ("bytes/s", lambda one: one.size, size, False),
    ("slowest", lambda one: one.slowest_ns, lambda ns: duration(ns) if ns else "-", True),
)
"""Name, value, its text, whether bars are logarithmic; on a narrow line the last ones are omitted first."""


class Rates:
    """The last seconds of a capture."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """`now`: the clock of this machine, s."""
        self._now = now
        self._seen = 0
        """Number of rows that were counted."""
        self._seconds: dict[int, Second] = {}
        """Figures by second since the epoch."""
        self._newest, self._newest_s = 0, now()
        """The latest second, and when it arrived."""

    def take(self, rows: RowIndex) -> None:
        names = ["time", "request_bytes", "response_bytes", "latency_ns", "long_poll_ns"]
        first = max(self._seen, rows.first)
        failed = set(rows.passing(FAILING, first).tolist())
        for start in range(first, len(rows), CHUNK):
            numbers = np.arange(start, min(start + CHUNK, len(rows)), dtype=np.int64)
            table = rows.take(numbers, names).to_pydict()
            columns = (table[name] for name in names[1:])
            for at, (when, request, response, latency, poll) in enumerate(zip(table["time"], *columns)):
                second = self._seconds.setdefault(int(when.timestamp()), Second())
                second.exchanges += 1
                second.failed += start + at in failed
                second.size += (request or 0) + (response or 0)
                if latency is not None and not poll:
                    second.slowest_ns = max(second.slowest_ns, latency)
        self._seen = max(self._seen, len(rows))
        newest = max(self._seconds, default=0)
        if newest > self._newest:
            self._newest, self._newest_s = newest, self._now()
        for old in [start for start in self._seconds if start <= self._newest - SECONDS]:
            del self._seconds[old]

    def last(self, count: int) -> list[Second]:
        """The last complete seconds, the oldest first; empty ones for seconds without traffic, also after the last exchange."""
        end = self._newest + int(self._now() - self._newest_s)
        return [self._seconds.get(second, Second()) for second in range(end - count, end)]

    def line(self, width: int) -> Line:
        """Sparklines with the values of the last complete second; empty if nothing was counted."""
        if not self._seconds:
            return []
        current = self.last(1)[0]
        parts = list(PARTS)
        labels = {name: f" {name} " for name, *_ in parts}
        room = [max(8, len(text(value(current)))) + 2 for _, value, text, _ in parts]
        while len(parts) > 1 and sum(len(labels[name]) for name, *_ in parts) + sum(room) + LEAST * len(parts) > width:
            parts.pop()
            room.pop()
        steps = (width - sum(len(labels[name]) for name, *_ in parts) - sum(room)) // len(parts)
        held = self.last(max(LEAST, min(MOST, steps)))
        out: Line = []
        for (name, value, text, logarithmic), cells in zip(parts, room):
            heights = shares([float(value(one)) for one in held], logarithmic=logarithmic)
            bars = "".join(EIGHTHS[max(1, round(height * 8))] if height else "·" for height in heights)
            bad = name == "failed/s" and any(one.failed for one in held)
            out += [(labels[name], "dim"), (bars, "bad" if bad else "one"), (f" {text(value(current)):<{cells - 1}}", "bold")]
        return out
