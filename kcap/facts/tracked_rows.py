"""The rows of a batch that report facts of connections and servers, as columns.

In: a batch's columns. Out: the rows of a few APIs, with equal numbers for equal bodies. Law: equal bodies need to be read only
once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.arrays.vectors import occurring
from kcap.batch.bodies import Pool, encoded
from kcap.facts.topic_names import listing_sides
from kcap.kafka.frames import NO_BODY
from kcap.schema.registry import REQUEST, RESPONSE, api_key

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s
    from kcap.batch.columns import BatchColumns

API_VERSIONS, HANDSHAKE, AUTHENTICATE = (api_key(name) for name in ("ApiVersions", "SaslHandshake", "SaslAuthenticate"))
LISTING: Final = listing_sides()
TRACKED_APIS: Final = frozenset(LISTING) | {API_VERSIONS, HANDSHAKE, AUTHENTICATE}
ELSEWHERE: Final = NO_BODY - 1
"""Number of a body of an earlier batch, whose bytes are not with those of the others."""


def _is_tracked() -> "Bools":
    found = np.zeros(1 << 7, np.bool_)
    found[[key for key in TRACKED_APIS if key is not None]] = True
    return found


IS_TRACKED: Final = _is_tracked()
"""API key -> whether its messages are read here."""


@dataclass(frozen=True, slots=True)
class TrackedRows:
    """The rows of a batch whose messages are read, as columns."""

    at: "Int64s"
    """Row number in the batch."""
    place: "Int64s"
    """Connection number in the batch."""
    exchange: "Int64s"
    key: "Int64s"
    version: "Int64s"
    answered: "Bools"
    spans: "tuple[Int64s, Int64s, Int64s, Int64s]"
    """Start and end of the request's body, then of the response's, as `BatchColumns.spans`."""

    def lists(self, which: "Bools | Int64s") -> Iterable[tuple[int, ...]]:
        """Some of the rows, with their spans after the other columns."""
        columns = self.at, self.place, self.exchange, self.key, self.version, self.answered, *self.spans
        return zip(*(column[which].tolist() for column in columns))

    def contents(self, columns: "BatchColumns", side: int) -> "Int64s":
        """Numbers of the bodies of one side; equal bodies have equal numbers. NO_BODY without a body, ELSEWHERE for bodies of
        an earlier batch."""
        starts, ends = self.spans[2 * side : 2 * side + 2]
        numbers, _ = encoded(Pool(np.frombuffer(columns.batch.bodies.arena, np.uint8)), np.maximum(starts, NO_BODY), ends)
        numbers[starts < NO_BODY] = ELSEWHERE
        return numbers


def tracked_rows(columns: "BatchColumns") -> TrackedRows:
    """The rows of TRACKED_APIS, and those of raw SASL tokens."""
    keys = columns.number("api_key")
    wanted = IS_TRACKED[np.where((keys.values >= 0) & (keys.values < len(IS_TRACKED)), keys.values, 0)]
    if keys.valid is not None:
        wanted = np.where(keys.valid, wanted, columns.number("request_slot").values != NO_BODY)  # raw SASL tokens
    at = np.flatnonzero(wanted)
    names = ("identity", "exchange", "api_key", "api_version")
    place, exchange, key, version = (columns.number(name).take(at).filled(-1) for name in names)
    slots = [columns.number(f"{side}_slot").take(at).filled(NO_BODY) for side in ("request", "response")]
    first, last = (columns.number(name).take(at) for name in ("request_first_ns", "response_first_ns"))
    answered = first.mask() & last.mask()
    spans = *columns.spans(slots[REQUEST]), *columns.spans(np.where(answered, slots[RESPONSE], NO_BODY))
    return TrackedRows(at, place, exchange, key, version, answered, spans)


def distinct(*columns: "Int64s | Bools") -> "tuple[Int64s, Int64s]":
    """The first position of each distinct combination of values, and for each position the number of its combination."""
    size = len(columns[0])
    alike, count = np.zeros(size, np.int64), min(size, 1)
    for column in columns:
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if low < high:
            known, alike = occurring(alike * (high - low + 1) + column - low, count * (high - low + 1))
            count = len(known)
    first = np.empty(count, np.int64)
    first[alike[::-1]] = np.arange(size)[::-1]  # the last write remains
    return first, alike


def numbered(values: "Int64s") -> "Int64s":
    """For each position, how many before it have the same value; values are small and not negative."""
    number = np.zeros(len(values), np.int64)
    several = np.bincount(values) > 1
    places = np.flatnonzero(several[values]) if several.any() else number[:0]
    order = places[np.argsort(values[places], kind="stable")]
    begins = np.flatnonzero(np.diff(values[order], prepend=-1))
    number[order] = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return number
