"""Decides when a view is computed again while the capture is being read.

In: the state of the capture model, the time, the duration of the last computation. Out: whether a refresh is due. Law:
refreshing takes at most a quarter of the time; the end of reading and a new filter refresh at once.
"""

from dataclasses import dataclass
from typing import Any, Final

SHARE: Final = 3
"""Number of durations of the last refresh that must pass before the next one: reports of a large capture must not slow down its
reading."""


@dataclass(slots=True)
class Pace:
    """The state of one view."""

    seen: Any = None
    """State of the last refresh."""
    settled: Any = None
    took: float = 0.0
    ended: float = float("-inf")
    busy: bool = False

    def due(self, rows: int, settled: Any, now: float) -> bool:
        """Whether to refresh. A change of `settled` (the filter, the end of reading, the user's settings) is always due."""
        if self.busy:
            return False
        if settled != self.settled or self.seen is None:
            return True
        return rows != self.seen and now >= self.ended + SHARE * self.took

    def begin(self, rows: int, settled: Any) -> None:
        self.seen, self.settled, self.busy = rows, settled, True

    def end(self, began: float, now: float) -> None:
        self.took, self.ended, self.busy = now - began, now, False
