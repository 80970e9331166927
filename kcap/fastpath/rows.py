"""Rows of the fast path as columns, and their order among the rows of the reference path.

In: the kernel's table of rows. Out: the parts of `model.ROW`, as columns or as tuples. Law: `tuples` equals what
`Conversation.emit` would make of the same exchanges.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kcap.fastpath import layout as at
from kcap.kafka.frames import FLAG

FRAME_PARTS = ("start", "bytes", "first_ns", "first_ref", "last_ns", "last_ref", "pos", "end_pos")
COLUMN: Final[dict[str, int]] = {
    "identity": at.R_IDENTITY, "exchange": at.R_NUMBER, "api_key": at.R_KEY, "api_version": at.R_VERSION,
    "correlation_id": at.R_CORRELATION, "rtt_min_ns": at.R_RTT, "previous_ns": at.R_PREVIOUS,
    "in_flight": at.R_IN_FLIGHT, "age_ns": at.R_AGE,
    "flags": at.R_FLAGS, "request_slot": at.R_REQUEST_SLOT, "response_slot": at.R_RESPONSE_SLOT,
} | {f"request_{part}": at.R_REQUEST + place for place, part in enumerate(FRAME_PARTS)} | {
    f"response_{part}": at.R_RESPONSE + place for place, part in enumerate(FRAME_PARTS)
}  # fmt: skip
"""Part of a row -> its column in the kernel's table."""
SOMETIMES: Final = frozenset(
    {"rtt_min_ns", "previous_ns", "in_flight", "age_ns", *(f"response_{part}" for part in FRAME_PARTS)}
)
"""Parts that may be missing."""
CODED: Final[dict[str, tuple[str | None, ...]]] = {"outcome": at.OUTCOMES, "reason": at.REASONS}
"""Parts that are encoded in R_OUTCOME."""
FRAME_FLAGS: Final = {
    "request_flags": (("snaplen", at.CUT_REQUEST),),
    "response_flags": (("snaplen", at.CUT_RESPONSE), ("resynced", at.RESYNCED_RESPONSE), ("truncated", at.UNENDED_RESPONSE)),
}
"""Bit of R_CUT -> flag that frames of the fast path may have."""
CUT_BY_SLOT: Final = (
    (at.R_REQUEST_SLOT, at.CUT_REQUEST), (at.R_RESPONSE_SLOT, at.CUT_RESPONSE | at.UNENDED_RESPONSE),
)  # fmt: skip
"""The slot of a body, and the bits of R_CUT that mark it as incomplete."""


@dataclass(frozen=True, slots=True)
class FastPathRows:
    """Rows in the order in which they were decided."""

    columns: Any
    """An array of int64 for each `layout.R_*`."""
    names: list[str | None]
    """Client ids."""

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def numbers(self, name: str) -> tuple[Any, Any]:
        """A numeric part: its values, and which of them are present (None: all)."""
        if name in FRAME_FLAGS:
            bits = self.columns[at.R_CUT]
            if not bits.any():
                return np.zeros(len(self), np.int64), None
            return sum(np.where(bits & bit, FLAG[flag], 0) for flag, bit in FRAME_FLAGS[name]), None
        place = COLUMN.get(name)
        if place is None:
            return np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        values = self.columns[place]
        if name in SOMETIMES:
            valid = values != at.NONE
            return values, None if valid.all() else valid
        return values, None

    def part(self, name: str) -> list[object]:
        if name == "client_id":
            return [self.names[number] for number in self.columns[at.R_NAME].tolist()]
        if name in CODED:
            return [CODED[name][number] for number in self.columns[at.R_OUTCOME].tolist()]
        values, valid = self.numbers(name)
        if valid is None:
            return list(values.tolist())
        return [value if here else None for value, here in zip(values.tolist(), valid.tolist())]

    def counts(self, name: str) -> Counter[str]:
        """Number of rows with each value of a part that is encoded in R_OUTCOME."""
        found: Counter[str] = Counter()
        numbers = np.bincount(self.columns[at.R_OUTCOME], minlength=len(at.OUTCOMES)).tolist()
        for value, number in zip(CODED[name], numbers, strict=True):
            if value is not None and number:
                found[value] += number
        return found

    def tuples(self, names: tuple[str, ...]) -> list[tuple[object, ...]]:
        return list(zip(*(self.part(name) for name in names)))

    def among(
        self, names: tuple[str, ...], slots: dict[int, str], tuples: list[tuple[object, ...]], orders: list[int]
    ) -> list[tuple[object, ...]]:
        """The rows whose bodies have these slots and were not cut, merged in order with some rows of the reference path."""
        bits, left = self.columns[at.R_CUT], set(slots)
        for place, cut in CUT_BY_SLOT:
            left.difference_update(self.columns[place, bits & cut != 0].tolist())
        wanted = np.array(sorted(left), np.int64)
        where = np.isin(self.columns[[place for place, _ in CUT_BY_SLOT]], wanted).any(axis=0)
        some = FastPathRows(np.ascontiguousarray(self.columns[:, where]), self.names)
        both = some.tuples(names) + tuples
        return [both[place] for place in some.merged(orders).tolist()]

    def merged(self, orders: list[int]) -> Any:
        """The order of all rows: indexes into these rows followed by those of the reference path, which were decided at
        `orders`.
        """
        return np.argsort(np.concatenate([self.columns[at.R_ORDER], np.array(orders, np.int64)]), kind="stable")
