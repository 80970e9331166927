"""The values of rows that later facts may change: topic ids without a name, and the facts of servers.

In: values of rows. Out: whether a row would be different now. Law: the result is never False if one would be. Memory does not
grow with the capture, so beyond NAMELESS_KEPT of either the result is True.
"""

from collections.abc import Callable, Container, Iterable

from kcap import limits
from kcap.facts.brokers import Server

Facts = tuple[int | None, str | None, int | None]
"""Node and cluster id of a server, and how many brokers it lists."""


class Provisional:
    """The provisional values of the rows so far; can be pickled."""

    def __init__(self) -> None:
        self._nameless: set[str] = set()
        self._identified: dict[Server, Facts] = {}
        self._doubtful = False
        """Whether some rows have other facts of their server than the first ones, or are beyond the bound."""

    def nameless(self, ids: Iterable[str]) -> None:
        """Records topic ids of rows without a name."""
        for uuid in ids:
            if len(self._nameless) < limits.NAMELESS_KEPT:
                self._nameless.add(uuid)
            else:
                self._doubtful |= uuid not in self._nameless

    def identified(self, facts: Iterable[tuple[Server, Facts]]) -> None:
        """Records the facts that rows have of their servers."""
        for server, one in facts:
            if len(self._identified) < limits.NAMELESS_KEPT:
                self._doubtful |= self._identified.setdefault(server, one) != one
            else:
                self._doubtful |= self._identified.get(server) != one

    def settle(self, named: Container[str], facts: Callable[[Server], Facts]) -> None:
        """Records that all rows so far were made again with the present facts."""
        self._nameless = {uuid for uuid in self._nameless if uuid not in named}
        self._identified = {server: facts(server) for server in self._identified}
        self._doubtful = False

    def outdated(self, named: Container[str], facts: Callable[[Server], Facts]) -> bool:
        """Whether a row may be different with the present facts."""
        return (
            self._doubtful
            or any(uuid in named for uuid in self._nameless)
            or any(known != facts(server) for server, known in self._identified.items())
        )
