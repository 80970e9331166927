"""Whether the version of a request suits the broker, by the broker's own ApiVersions response.

In: batches of exchanges with the facts of their connections. Out: one verdict per request. The offer that the connection
received counts. Without one, that of its server at that time counts (`OfferHistory`), and a version within that is
`unnegotiated`, unless the beginning of the connection or its ApiVersions response was not captured. Law: `not_highest` only if
the same software, by name and version, used a higher version that is in every offer of the server that names the API. Equal
rows are classified once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap import limits
from kcap.arrays.arrow import Array, Coded, nulls, take
from kcap.arrays.vectors import Vector, grouped, occurring
from kcap.batch.columns import KEYS, VERSIONS
from kcap.facts.api_versions import Offer, Software
from kcap.facts.brokers import Server
from kcap.facts.connection_facts import RowConnections
from kcap.facts.offer_history import OfferedBy, OfferHistory
from kcap.kafka.frames import FLAG
from kcap.schema.quirks import API_VERSIONS, BROKERS_ONLY, UNSUPPORTED_VERSION
from kcap.schema.registry import api_keys, version_range
from kcap.schema.releases import removed_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Bools, Int64s
    from kcap.batch.columns import BatchColumns

VERDICTS: Final = ("ok", "not_highest", "unnegotiated", "above_broker_max", "below_broker_min")
"""From good to bad; the number of a verdict is its position."""
OK, NOT_HIGHEST, UNNEGOTIATED, ABOVE, BELOW = range(5)
NONE: Final = -1
ABSENT: Final = -1
MIDSTREAM: Final = FLAG["midstream"]


def _gone() -> "Bools":
    found = np.zeros(KEYS, np.bool_)
    for key in api_keys():
        versions = version_range(key)
        found[key] = versions is not None and removed_in(key, versions[1]) is not None
    return found


def _clients_below() -> "Int64s":
    found = np.full(KEYS, VERSIONS, np.int64)
    for key, version in BROKERS_ONLY.items():
        found[key] = version
    return found


CLIENTS_BELOW: Final = _clients_below()
"""API key -> the first version that no client sends."""
GONE: Final = _gone()
"""APIs that the newest release lacks. A broker that does not name one of them is too new; for other APIs, too old."""


class Offered:
    """Offers as tables of first and last versions, one row each; row 0 offers nothing."""

    def __init__(self) -> None:
        self._numbers: dict[Offer | None, int] = {None: 0}
        self.low = np.full((8, KEYS), ABSENT, np.int64)
        self.high = self.low.copy()

    def rows(self, offers: Sequence[Offer | None]) -> "Int64s":
        """The row of each offer; rows of an earlier call may become invalid."""
        if len(self._numbers) > limits.ANSWERS_KEPT:
            self.__init__()  # type: ignore[misc]
        numbers = self._numbers
        return np.array([numbers[offer] if offer in numbers else self._add(offer) for offer in offers] or [0], np.int64)

    def _add(self, offer: Offer | None) -> int:
        number = self._numbers[offer] = len(self._numbers)
        if number == len(self.low):
            more = np.full_like(self.low, ABSENT)
            self.low, self.high = np.concatenate([self.low, more]), np.concatenate([self.high, more])
        for key, (first, last) in offer.ranges.items() if offer is not None else ():
            if 0 <= key < KEYS:
                self.low[number, key], self.high[number, key] = first, last
        return number


class UsedVersions:
    """The versions that each client library has used."""

    def __init__(self) -> None:
        self.numbers: dict[Software, int] = {}
        self._seen = np.zeros((1, KEYS, VERSIONS), np.bool_)
        self._highest: NDArray[np.int8] | None = None
        self._classified = np.full((1, KEYS, VERSIONS), ABSENT, np.int8)
        self.full = False

    def number(self, software: Software | None) -> int:
        """The row of a library; row 0 for none, and for libraries beyond SOFTWARE_KEPT."""
        if software is None:
            return 0
        found = self.numbers.get(software)
        if found is None:
            if len(self.numbers) >= limits.SOFTWARE_KEPT:
                self.full = True
                return 0
            found = self.numbers[software] = len(self.numbers) + 1
            if found >= len(self._seen):
                self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
                self._highest = None
        return found

    def take(self, software: "Int64s", keys: "Int64s", versions: "Int64s") -> None:
        """Observes requests, except those that only brokers send: clients need not support these."""
        common = versions < CLIENTS_BELOW[keys]
        software, keys, versions = software[common], keys[common], versions[common]
        places = (software * KEYS + keys) * VERSIONS + versions
        flat = self._seen.reshape(-1)
        if not flat[places].all():
            flat[places] = True
            self._seen[0] = False
            self._highest = None

    def highest(self, software: Software | None, key: int, last: int) -> int:
        """The highest version that a library used, up to `last`; -1 for none."""
        number = self.numbers.get(software) if software is not None else None
        if number is None or not 0 <= key < KEYS:
            return -1
        used = np.flatnonzero(self._seen[number, key, : last + 1])
        return int(used[-1]) if len(used) else -1

    def seen(self, number: int) -> "Bools":
        """Which APIs and versions a library used, by the number of its row."""
        found: Bools = self._seen[number]
        return found

    def note(self, software: "Int64s", keys: "Int64s", versions: "Int64s", high: "Int64s") -> None:
        """Records what was classified as OK, and the highest version of the broker."""
        if len(self._classified) < len(self._seen):
            more = np.full((len(self._seen) - len(self._classified), KEYS, VERSIONS), ABSENT, np.int8)
            self._classified = np.concatenate([self._classified, more])
        np.maximum.at(self._classified, (software, keys, versions), np.minimum(high, VERSIONS - 1).astype(np.int8))

    def knows_better(self) -> bool:
        """Whether something that was classified as OK would now be NOT_HIGHEST."""
        return bool(self._lower()[1].any())

    def settle(self) -> None:
        """Records that all of it was classified again."""
        places, lower = self._lower()
        self._classified.reshape(-1)[places[lower]] = ABSENT

    def _lower(self) -> "tuple[Int64s, Bools]":
        """What was classified as OK, and which of it would now be NOT_HIGHEST."""
        places = np.flatnonzero(self._classified >= 0)
        software, keys, versions = np.unravel_index(places, self._classified.shape)
        high = self._classified.reshape(-1)[places].astype(np.int64)
        return places, self.up_to(software, keys, high) > versions

    def up_to(self, software: "Int64s", keys: "Int64s", high: "Int64s") -> "Int64s":
        """The highest version that a library used and that is not above another; -1 for none."""
        if self._highest is None:
            steps = np.where(self._seen, np.arange(VERSIONS, dtype=np.int8), np.int8(-1))
            self._highest = np.maximum.accumulate(steps, axis=2)
        found: Int64s = self._highest[software, keys, np.clip(high, 0, VERSIONS - 1)].astype(np.int64)
        return np.where(high < 0, -1, found)


def by_offer(key: Vector, version: Vector, offer: "Int64s", offered: Offered) -> "Int64s":
    """OK, ABOVE or BELOW by each request's offer, a row of `offered`; NONE without an offer or a version."""
    keys = np.where((key.values >= 0) & (key.values < KEYS), key.values, 0)
    outside = keys != key.values
    low, high = offered.low[offer, keys], offered.high[offer, keys]
    absent = (high == ABSENT) | outside
    found = np.where(version.values > high, ABOVE, np.where(version.values < low, BELOW, OK))
    found = np.where(absent, np.where(GONE[keys] & ~outside, BELOW, ABOVE), found)
    known = (offer > 0) & key.mask() & version.mask()
    return np.where(known, found, NONE)


def refused_versions(key: Vector, error: Vector) -> "Bools":
    """ApiVersions requests that the broker refused for their version: they bring no offer, and need none."""
    refused: Bools = (key.values == API_VERSIONS) & key.mask() & (error.values == UNSUPPORTED_VERSION) & error.mask()
    return refused


def combined(own: "Int64s", servers: "Int64s", *, key: Vector, maybe: "Bools") -> "Int64s":
    """The verdict by the connection's own offer, else by its server's; `maybe`: the connection may have received an offer."""
    negotiating = (key.values == API_VERSIONS) | ~key.mask()
    without = np.where(maybe | negotiating | (servers == ABOVE) | (servers == BELOW), servers, UNNEGOTIATED)
    return np.where(own != NONE, own, without)


def final_verdict(
    verdict: int,
    offer: Offer | None,
    common: Offer | None,
    key: int,
    version: int,
    *,
    used: UsedVersions,
    software: Software | None,
) -> int:
    """A verdict with the present facts: the offer that counts for the row, what all offers of its server have in common, and
    the versions that the software has used."""
    if verdict in (NONE, UNNEGOTIATED) and offer is not None:
        first, last = offer.ranges.get(key, (ABSENT, ABSENT))
        if last == ABSENT:
            return BELOW if key < KEYS and GONE[key] else ABOVE
        if not first <= version <= last:
            return ABOVE if version > last else BELOW
        verdict = OK if verdict == NONE else UNNEGOTIATED
    if verdict in (OK, NOT_HIGHEST) and common is not None:
        _, last = common.ranges.get(key, (ABSENT, ABSENT))
        return NOT_HIGHEST if used.highest(software, key, last) > version else OK
    return verdict


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of a batch of rows."""

    kinds: "Int64s"
    """Verdict of each kind of row."""
    kind: "Int64s"
    """Row -> its kind."""

    @property
    def numbers(self) -> "Int64s":
        """The verdict of each row, as a number."""
        return self.kinds[self.kind]

    def select(self, places: "Int64s") -> "Verdicts":
        """The verdicts of some rows."""
        return Verdicts(self.kinds, self.kind[places])

    def to_arrow(self) -> Array | Coded:
        """The verdict of each row, as a text."""
        import pyarrow as pa

        if (self.kinds == NONE).all():
            return nulls(len(self.kind), pa.string())
        names = take(pa.array([*VERDICTS, None], pa.string()), np.where(self.kinds == NONE, len(VERDICTS), self.kinds))
        return Coded(names, self.kind)


class VersionClassifier:
    """Classifies the rows of batches by the offers and used versions so far."""

    def __init__(self, offers: OfferHistory, used: UsedVersions) -> None:
        self.offers = offers
        self.used = used
        self._offered = Offered()
        self._silent: set[Server] = set()
        """Servers whose rows were classified without their offer."""
        self._lower: dict[Server, Offer | None] = {}
        """Servers with rows classified as NOT_HIGHEST -> what their offers had in common at the first of these rows."""

    def classify(self, columns: "BatchColumns", context: RowConnections) -> Verdicts:
        """The verdicts of a batch."""
        call, calls = columns.calls
        midstream = columns.number("flags").values & MIDSTREAM != 0
        by, offered = self.offers.of_rows(context.server, context.servers, lambda: columns.number("request_first_ns").filled())
        code = ((context.state * len(offered) + by) * (len(calls) + 1) + call) * 2 + midstream
        kinds, number = occurring(code, 2 * len(context.states) * len(offered) * (len(calls) + 1))
        kind, began = np.divmod(kinds, 2)
        kind, call_of = np.divmod(kind, len(calls) + 1)
        state, by_of = np.divmod(kind, max(len(offered), 1))
        found = self._of_kinds(context, offered, [*calls, -1], (state, by_of, call_of, began > 0))
        refused = refused_versions(columns.number("api_key"), columns.response.slot("error_code"))
        if refused.any():
            number = np.where(refused, len(found), number)
        return Verdicts(np.append(found, ABOVE), number)

    def _of_kinds(
        self,
        context: RowConnections,
        offered_by: list[OfferedBy],
        calls: list[int],
        kinds: "tuple[Int64s, Int64s, Int64s, Bools]",
    ) -> "Int64s":
        """The verdict of each kind of row: state of the connection, server with the offer that counts, API and version, whether
        it began before the capture."""
        state, by, call, midstream = kinds
        codes = np.array(calls, np.int64)[call]
        valid = codes >= 0
        key, version = Vector(codes // VERSIONS, valid), Vector(codes % VERSIONS, valid)
        offered = self._offered
        common = [self.offers.common(server) for server, _ in offered_by]
        offers = offered.rows([*(known.offer for known in context.states), *(offer for _, offer in offered_by), *common])
        own, theirs = offers[state], offers[by + len(context.states)]
        by_own = by_offer(key, version, own, offered)
        maybe = midstream | np.array([known.negotiated for known in context.states], np.bool_)[state]
        found = combined(by_own, by_offer(key, version, theirs, offered), key=key, maybe=maybe)
        here = np.flatnonzero(found == OK)
        keys, versions, mine = key.values[here], version.values[here], by_own[here] == OK
        software = np.array([self.used.number(known.software) for known in context.states], np.int64)[state[here]]
        high = offered.high[offers[by[here] + len(context.states) + len(offered_by)], keys]
        high = np.where(high == ABSENT, offered.high[own[here], keys], high)
        self.used.take(software[mine], keys[mine], versions[mine])
        lower = self.used.up_to(software, keys, high) > versions
        found[here[lower]] = NOT_HIGHEST
        self.used.note(software[~lower], keys[~lower], versions[~lower], high[~lower])
        for number in grouped(by[here[lower]])[0].tolist():
            self._lower.setdefault(offered_by[number][0], common[number])
        for number in grouped(by[((found == UNNEGOTIATED) | (found == NONE)) & valid])[0].tolist():
            if offered_by[number][1] is None:
                self._silent.add(offered_by[number][0])
        return found

    def settle(self) -> None:
        """Records that all rows so far were classified again."""
        self._silent.difference_update(self.offers.servers())
        self._lower.clear()
        self.used.settle()

    def knows_better(self) -> bool:
        """Whether a row would now have another verdict."""
        return (
            not self._silent.isdisjoint(self.offers.servers())
            or any(self.offers.common(server) is not common for server, common in self._lower.items())
            or self.used.knows_better()
        )
