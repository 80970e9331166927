"""What each server offered, and since when. One address may stand for brokers of several releases, one after another (an
upgrade) or at once (a load balancer).

In: offers in ApiVersions responses, with their times. Out: the offer that counts for a request. Law: it is the last one that
the server sent before the request, or else its first one; neither batch borders nor shards nor later offers change it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from kcap import limits
from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

OfferedBy = tuple[Server, Offer | None]
"""A server and its offer; None if no offer is known."""
SINCE = attrgetter("since")


@dataclass(slots=True)
class Run:
    """Consecutive equal offers of a server."""

    since: int
    """Time of the first in nanoseconds."""
    until: int
    """Time of the last in nanoseconds."""
    offer: Offer


class OfferHistory:
    """The offers of all servers; nearly all servers have one."""

    def __init__(self) -> None:
        self._runs: dict[Server, list[Run]] = {}
        """In order of time; several at one time are ordered by their bytes."""
        self._common: dict[Server, Offer] = {}
        self._changes = 0

    def add(self, server: Server, time_ns: int, offer: Offer) -> bool:
        """Adds an offer; False if there are too many changes to add another."""
        runs = self._runs.get(server)
        if runs is None:
            self._runs[server] = [Run(time_ns, time_ns, offer)]
            return True
        last = runs[-1]
        if last.offer.packed == offer.packed and time_ns >= last.since:
            last.until = max(last.until, time_ns)
            return True
        if self._changes >= limits.OFFERS_KEPT:
            return False
        before = len(runs)
        place = bisect_right(runs, (time_ns, offer.packed), key=lambda run: (run.since, run.offer.packed))
        earlier = runs[place - 1] if place else None
        if earlier is not None and earlier.offer.packed == offer.packed:
            earlier.until = max(earlier.until, time_ns)
        elif earlier is not None and (earlier.until, earlier.offer.packed) > (time_ns, offer.packed):
            runs[place:place] = [Run(time_ns, time_ns, offer), Run(earlier.until, earlier.until, earlier.offer)]
            earlier.until = earlier.since
        elif place < before and runs[place].offer.packed == offer.packed:
            runs[place].since = time_ns
        else:
            runs.insert(place, Run(time_ns, time_ns, offer))
        self._changes += len(runs) - before
        self._common.pop(server, None)
        return True

    def continues(self, server: Server, times: "Int64s", offer: Offer) -> bool:
        """Adds equal offers, in order of time, if they continue the server's last ones or are its first; returns whether."""
        first, last = int(times[0]), int(times[-1])
        runs = self._runs.setdefault(server, [Run(first, last, offer)])
        if runs[-1].offer.packed != offer.packed or first < runs[-1].since:
            return False
        runs[-1].until = max(runs[-1].until, last)
        return True

    def latest(self, server: Server) -> Offer | None:
        """The last offer of a server."""
        runs = self._runs.get(server)
        return runs[-1].offer if runs else None

    def all_latest(self) -> dict[Server, Offer]:
        """The last offer of each server, in the order of the servers' first offers."""
        return {server: runs[-1].offer for server, runs in self._runs.items()}

    def servers(self) -> Iterable[Server]:
        """Servers with an offer."""
        return self._runs.keys()

    def runs(self, server: Server) -> Sequence[Run]:
        """The offers of a server in the order of time."""
        return self._runs.get(server, ())

    def at(self, server: Server, time_ns: int) -> Offer | None:
        """The offer that counts for a request to a server at a time."""
        runs = self._runs.get(server)
        return runs[max(bisect_right(runs, time_ns, key=SINCE) - 1, 0)].offer if runs else None

    def common(self, server: Server) -> Offer | None:
        """For each API, the versions that are common to all offers of a server that name the API."""
        runs = self._runs.get(server)
        if not runs or len(runs) == 1:
            return runs[0].offer if runs else None
        found = self._common.get(server)
        if found is None:
            ranges: dict[int, tuple[int, int]] = {}
            for offer in {run.offer.packed: run.offer for run in runs}.values():
                for key, (first, last) in offer.ranges.items():
                    low, high = ranges.get(key, (first, last))
                    ranges[key] = max(first, low), min(last, high)
            found = self._common[server] = Offer(ranges)
        return found

    def of_rows(
        self, number: "Int64s", servers: Sequence[Server], times: "Callable[[], Int64s]"
    ) -> "tuple[Int64s, list[OfferedBy]]":
        """The offer that counts for each row. `number`: server of each row, by number among `servers`; `times`: nanoseconds of
        the requests, read only if a server changed its offer.

        Returns one number per row, and the server and offer of each number.
        """
        offered: list[OfferedBy] = [(server, runs[0].offer if (runs := self.runs(server)) else None) for server in servers]
        several = [place for place, server in enumerate(servers) if len(self.runs(server)) > 1]
        if several:
            number, when = number.copy(), times()
            for place in several:
                rows, runs = np.flatnonzero(number == place), self.runs(servers[place])
                since = np.array([run.since for run in runs], np.int64)
                steps, step = np.unique(np.searchsorted(since[1:], when[rows], side="right"), return_inverse=True)
                number[rows] = step + len(offered)
                offered += [(servers[place], runs[at].offer) for at in steps.tolist()]
        return number, offered
