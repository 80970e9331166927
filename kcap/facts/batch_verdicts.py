"""Verdicts of a batch of rows: alike rows are judged once.

In: the columns of a batch and what its connections told. Out: verdicts, and which of them is each row's. Law: as
`kcap.facts.version_verdicts` has them, by what is known so far; whether more is known by now can be asked.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.arrays.vectors import Vector
from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server
from kcap.facts.version_verdicts import (
    ABOVE,
    NONE,
    NOT_HIGHEST,
    OK,
    UNNEGOTIATED,
    VERSIONS,
    Offered,
    Used,
    asked_too_much,
    combined,
    judge,
)  # fmt: skip
from kcap.kafka.frames import FLAG

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s
    from kcap.facts.tracker import RowContext
    from kcap.table.exchanges import Exchanges

MARKED_MAX: Final = 1 << 18
"""Numbers below this are told apart by marking them, which is quicker than sorting."""
MIDSTREAM: Final = FLAG["midstream"]


class VersionJudge:
    """What is known of offers and their use."""

    def __init__(self, offers: dict[Server, Offer], used: Used) -> None:
        self.offers = offers
        self.used = used
        self._offered = Offered()
        self._silent: set[Server] = set()
        """Servers whose rows were judged without their offer."""

    def judged(self, rows: "Exchanges") -> "tuple[Int64s, Int64s]":
        """Verdicts, and which of them is each row's: rows that are alike are judged once."""
        told, (call, calls) = rows.told, rows.calls
        midstream = rows.number("flags").values & MIDSTREAM != 0
        code = ((told.state * len(told.servers) + told.server) * (len(calls) + 1) + call) * 2 + midstream
        kinds, number = distinct(code, 2 * len(told.known) * len(told.servers) * (len(calls) + 1))
        kind, began = np.divmod(kinds, 2)
        kind, call_of = np.divmod(kind, len(calls) + 1)
        state, server = np.divmod(kind, max(len(told.servers), 1))
        found = self._judged(told, [*calls, -1], (state, server, call_of, began > 0))
        refused = asked_too_much(rows.number("api_key"), rows.response.slot("error_code"))
        if refused.any():
            number = np.where(refused, len(found), number)
        return np.append(found, ABOVE), number

    def _judged(self, told: "RowContext", calls: list[int], kinds: "tuple[Int64s, Int64s, Int64s, Bools]") -> "Int64s":
        """The verdict of each kind of row: state of the connection, server, API and version, begun before the capture."""
        state, server, call, midstream = kinds
        codes = np.array(calls, np.int64)[call]
        valid = codes >= 0
        key, version = Vector(codes // VERSIONS, valid), Vector(codes % VERSIONS, valid)
        offered = self._offered
        offers = offered.rows([*(known.offer for known in told.known), *(self.offers.get(known) for known in told.servers)])
        own, theirs = offers[state], offers[server + len(told.known)]
        by_own = judge(key, version, own, offered)
        asked = midstream | np.array([known.asked for known in told.known], np.bool_)[state]
        found = combined(by_own, judge(key, version, theirs, offered), key=key, maybe=asked)
        here = np.flatnonzero((found == OK) & (by_own == OK))
        software = np.array([self.used.number(known.software) for known in told.known], np.int64)[state[here]]
        high = offered.high[own[here], key.values[here]]
        self.used.take(software, key.values[here], version.values[here])
        lower = self.used.up_to(software, key.values[here], high) > version.values[here]
        found[here[lower]] = NOT_HIGHEST
        same = here[~lower]
        self.used.note(software[~lower], key.values[same], version.values[same], high[~lower])
        for number in np.unique(server[((found == UNNEGOTIATED) | (found == NONE)) & valid]).tolist():
            if told.servers[number] not in self.offers:
                self._silent.add(told.servers[number])
        return found

    def settle(self) -> None:
        """All rows so far were made again."""
        self._silent -= self.offers.keys()
        self.used.settle()

    def knows_better(self) -> bool:
        """Whether some row could be judged better by now."""
        return not self._silent.isdisjoint(self.offers) or self.used.knows_better()


def distinct(codes: "Int64s", bound: int) -> "tuple[Int64s, Int64s]":
    """The different numbers among some below a bound, and which of them each is."""
    if bound > MARKED_MAX:
        known, number = np.unique(codes, return_inverse=True)
        return known, number
    place = np.zeros(bound, np.int64)
    place[codes] = 1
    found: Int64s = np.flatnonzero(place)
    place[found] = np.arange(len(found))
    return found, place[codes]
