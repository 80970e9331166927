"""When a view looks again at what is being read.

In: what the book is like, the time, how long the last look took. Out: whether it is due. Law: looking takes at most a quarter
of the time; the end of reading and a new filter are seen at once.
"""

from dataclasses import dataclass
from typing import Any, Final

SHARE: Final = 3
"""Times the last look's length that pass before the next one: reports of a large capture must not slow down its reading."""


@dataclass(slots=True)
class Pace:
    """The state of one view."""

    seen: Any = None
    """What was looked at last."""
    settled: Any = None
    took: float = 0.0
    ended: float = float("-inf")
    busy: bool = False

    def due(self, rows: int, settled: Any, now: float) -> bool:
        """Whether to look. `settled` is what cannot wait: the filter, the end of reading, what the user asked for."""
        if self.busy:
            return False
        if settled != self.settled or self.seen is None:
            return True
        return rows != self.seen and now >= self.ended + SHARE * self.took

    def begin(self, rows: int, settled: Any) -> None:
        """A look begins."""
        self.seen, self.settled, self.busy = rows, settled, True

    def end(self, began: float, now: float) -> None:
        """It is over."""
        self.took, self.ended, self.busy = now - began, now, False
