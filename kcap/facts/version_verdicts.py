"""Whether the version of a request suits the broker, by the broker's own ApiVersions answer.

In: key and version of each request, the offer that holds for it, the client's software. Out: a verdict a request. A connection
is held to the answer it was given; one that was given none, to its server's answer on another connection, and where that leaves
nothing to object to it is `unnegotiated` - unless its beginning, or the answer it was given, was not captured. Law:
`not_highest` only where the same software, name and version, used a higher version that this broker offers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap import limits
from kcap.arrays.arrow import Array, nulls, take
from kcap.arrays.vectors import Vector
from kcap.facts.api_versions import Offer, Software
from kcap.schema.quirks import API_VERSIONS, BROKERS_ONLY, UNSUPPORTED_VERSION
from kcap.schema.registry import api_keys, version_range
from kcap.schema.releases import removed_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Bools, Int64s

VERDICTS: Final = ("ok", "not_highest", "unnegotiated", "above_broker_max", "below_broker_min")
"""From the best to the worst; the number of a verdict is its place."""
OK, NOT_HIGHEST, UNNEGOTIATED, ABOVE, BELOW = range(5)
NONE: Final = -1
KEYS, VERSIONS = 128, 32
"""Room in the tables; what lies beyond is no version of any release."""
ABSENT: Final = -1


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
"""APIs that the newest release does not have: a broker that does not name them is too new, else too old."""


class Offered:
    """Offers as tables of first and last versions, a row each; row 0 offers nothing."""

    def __init__(self) -> None:
        self._numbers: dict[Offer | None, int] = {None: 0}
        self.low = np.full((8, KEYS), ABSENT, np.int64)
        self.high = self.low.copy()

    def rows(self, offers: Sequence[Offer | None]) -> "Int64s":
        """The row of each offer; those of an earlier call are good no longer."""
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


class Used:
    """The versions that each client library has used."""

    def __init__(self) -> None:
        self.numbers: dict[Software, int] = {}
        self._seen = np.zeros((1, KEYS, VERSIONS), np.bool_)
        self._highest: NDArray[np.int8] | None = None
        self._judged = np.full((1, KEYS, VERSIONS), ABSENT, np.int8)
        self.full = False

    def number(self, software: Software | None) -> int:
        """The row of a library; that of none where nothing is known of it, or too many others are."""
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
        """Takes requests; what only brokers send is no example for clients."""
        common = versions < CLIENTS_BELOW[keys]
        software, keys, versions = software[common], keys[common], versions[common]
        places = (software * KEYS + keys) * VERSIONS + versions
        flat = self._seen.reshape(-1)
        if not flat[places].all():
            flat[places] = True
            self._seen[0] = False
            self._highest = None

    def highest(self, software: Software | None, key: int, last: int) -> int:
        """The highest version a library used up to `last`; -1 for none."""
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
        """Takes what was judged OK, and the broker's highest version then."""
        if len(self._judged) < len(self._seen):
            more = np.full((len(self._seen) - len(self._judged), KEYS, VERSIONS), ABSENT, np.int8)
            self._judged = np.concatenate([self._judged, more])
        np.maximum.at(self._judged, (software, keys, versions), np.minimum(high, VERSIONS - 1).astype(np.int8))

    def knows_better(self) -> bool:
        """Whether something that was judged OK would be NOT_HIGHEST by now."""
        return bool(self._lower()[1].any())

    def settle(self) -> None:
        """All of that was judged again."""
        places, lower = self._lower()
        self._judged.reshape(-1)[places[lower]] = ABSENT

    def _lower(self) -> "tuple[Int64s, Bools]":
        """What was judged OK, and which of it would be NOT_HIGHEST by now."""
        places = np.flatnonzero(self._judged >= 0)
        software, keys, versions = np.unravel_index(places, self._judged.shape)
        high = self._judged.reshape(-1)[places].astype(np.int64)
        return places, self.up_to(software, keys, high) > versions

    def up_to(self, software: "Int64s", keys: "Int64s", high: "Int64s") -> "Int64s":
        """The highest version a library used that is not above another; -1 for none."""
        if self._highest is None:
            steps = np.where(self._seen, np.arange(VERSIONS, dtype=np.int8), np.int8(-1))
            self._highest = np.maximum.accumulate(steps, axis=2)
        found: Int64s = self._highest[software, keys, np.clip(high, 0, VERSIONS - 1)].astype(np.int64)
        return np.where(high < 0, -1, found)


def judge(key: Vector, version: Vector, offer: "Int64s", offered: Offered) -> "Int64s":
    """OK, ABOVE or BELOW by an offer each, a row of `offered`; NONE where that offers nothing, or there is no version."""
    keys = np.where((key.values >= 0) & (key.values < KEYS), key.values, 0)
    outside = keys != key.values
    low, high = offered.low[offer, keys], offered.high[offer, keys]
    absent = (high == ABSENT) | outside
    found = np.where(version.values > high, ABOVE, np.where(version.values < low, BELOW, OK))
    found = np.where(absent, np.where(GONE[keys] & ~outside, BELOW, ABOVE), found)
    known = (offer > 0) & key.mask() & version.mask()
    return np.where(known, found, NONE)


def asked_too_much(key: Vector, error: Vector) -> "Bools":
    """ApiVersions requests that the broker refused for their version: they carry no offer, and need none."""
    refused: Bools = (key.values == API_VERSIONS) & key.mask() & (error.values == UNSUPPORTED_VERSION) & error.mask()
    return refused


def combined(own: "Int64s", servers: "Int64s", *, key: Vector, maybe: "Bools") -> "Int64s":
    """The verdict by the connection's own offer, else by what is known of its server; `maybe`: it may have had an answer."""
    asking = (key.values == API_VERSIONS) | ~key.mask()
    silent = np.where(maybe | asking | (servers == ABOVE) | (servers == BELOW), servers, UNNEGOTIATED)
    return np.where(own != NONE, own, silent)


def final_verdict(verdict: int, offer: Offer | None, key: int, version: int, used: Used, software: Software | None) -> int:
    """What became of a verdict, by what the server is known to offer and the software to use by now."""
    if offer is None:
        return verdict
    first, last = offer.ranges.get(key, (ABSENT, ABSENT))
    if verdict == OK:
        return NOT_HIGHEST if used.highest(software, key, last) > version else OK
    if last == ABSENT:
        found = BELOW if key < KEYS and GONE[key] else ABOVE
    else:
        found = ABOVE if version > last else BELOW if version < first else OK
    return UNNEGOTIATED if verdict == UNNEGOTIATED and found == OK else found


def named(verdicts: "Int64s") -> Array:
    """The column."""
    import pyarrow as pa

    if (verdicts == NONE).all():
        return nulls(len(verdicts), pa.string())
    return take(pa.array([*VERDICTS, None], pa.string()), np.where(verdicts == NONE, len(VERDICTS), verdicts))
