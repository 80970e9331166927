"""What rows were made with that later facts may change: topic ids without a name, and the facts of servers.

In: what rows have. Out: whether some row would be different by now. Law: never no where one would be; memory does not grow with
the capture, so that beyond NAMELESS_KEPT of either the answer is yes.
"""

from collections.abc import Callable, Container, Iterable

from kcap import limits
from kcap.facts.brokers import Server

Facts = tuple[int | None, str | None, int | None]
"""Node and cluster id of a server, and how many brokers it lists."""


class Provisional:
    """What rows have so far; a picklable value."""

    def __init__(self) -> None:
        self._nameless: set[str] = set()
        self._identified: dict[Server, Facts] = {}
        self._doubtful = False
        """Some rows have other facts of their server than the first, or are beyond what is kept."""

    def nameless(self, ids: Iterable[str]) -> None:
        """Rows have topic ids without a name."""
        for uuid in ids:
            if len(self._nameless) < limits.NAMELESS_KEPT:
                self._nameless.add(uuid)
            else:
                self._doubtful |= uuid not in self._nameless

    def identified(self, facts: Iterable[tuple[Server, Facts]]) -> None:
        """Rows have these facts of their servers."""
        for server, one in facts:
            if len(self._identified) < limits.NAMELESS_KEPT:
                self._doubtful |= self._identified.setdefault(server, one) != one
            else:
                self._doubtful |= self._identified.get(server) != one

    def settle(self, named: Container[str], facts: Callable[[Server], Facts]) -> None:
        """All rows so far were made again with today's facts."""
        self._nameless = {uuid for uuid in self._nameless if uuid not in named}
        self._identified = {server: facts(server) for server in self._identified}
        self._doubtful = False

    def outdated(self, named: Container[str], facts: Callable[[Server], Facts]) -> bool:
        """Whether some row may be different with today's facts."""
        return (
            self._doubtful
            or any(uuid in named for uuid in self._nameless)
            or any(known != facts(server) for server, known in self._identified.items())
        )
