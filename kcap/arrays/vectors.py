"""Integer columns with nulls: Python values in, numpy arithmetic between, Arrow arrays out.

Law: entries of `values` where `valid` is False have no meaning and never reach an Arrow array.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import Array, nulls, numbers, raw, validity
from kcap.limits import MARKED_MAX

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]


NUMPY: Final[dict[pa.DataType, Any]] = {pa.int8(): np.int8, pa.int16(): np.int16, pa.int32(): np.int32}


@dataclass(frozen=True, slots=True)
class Vector:
    """64-bit integers, some of them null."""

    values: "Int64s"
    valid: "Bools | None"
    """None if no entry is null."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nothing(self) -> bool:
        """Whether every entry is null."""
        return self.valid is not None and not self.valid.any()

    def mask(self) -> "Bools":
        """`valid`, always as an array."""
        return np.ones(len(self.values), np.bool_) if self.valid is None else self.valid

    def where(self, condition: "Bools") -> "Vector":
        """The same entries, null where the condition is False."""
        return Vector(self.values, condition if self.valid is None else self.valid & condition)

    def filled(self, value: int = 0) -> "Int64s":
        """The values, with nulls replaced by `value`."""
        return self.values if self.valid is None else np.where(self.valid, self.values, value)

    def otherwise(self, other: "Vector") -> "Vector":
        """These entries, with nulls replaced by those of `other`."""
        if self.valid is None or other.nothing:
            return self
        valid = None if other.valid is None else self.valid | other.valid
        return Vector(np.where(self.valid, self.values, other.values), valid)

    def minus(self, other: "Vector") -> "Vector":
        """Differences; null where either entry is null."""
        return Vector(self.values - other.values, both(self.valid, other.valid))

    def followed_by(self, other: "Vector") -> "Vector":
        """These entries, followed by those of `other`."""
        valid = None if self.valid is None and other.valid is None else np.concatenate([self.mask(), other.mask()])
        return Vector(np.concatenate([self.values, other.values]), valid)

    def take(self, places: "Int64s") -> "Vector":
        return Vector(self.values.take(places), None if self.valid is None else self.valid.take(places))

    def to_list(self) -> list[Any]:
        """The entries as Python integers; None for null."""
        values: list[Any] = self.values.tolist()
        return values if self.valid is None else [value if known else None for value, known in zip(values, self.valid.tolist())]

    def to_arrow(self, kind: pa.DataType) -> Array:
        """The entries as an array of an integer type that can hold the values."""
        if self.nothing:
            return nulls(len(self.values), kind)
        values = np.ascontiguousarray(self.values) if kind == pa.int64() else self.values.astype(NUMPY[kind])
        return numbers(kind, values, self.valid)


def both(first: "Bools | None", second: "Bools | None") -> "Bools | None":
    """True where both are True; None stands for an array of True."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def vector(made: Array) -> Vector:
    """A fresh array of int64 as a vector."""
    size = len(made)
    if made.null_count == size:
        return nothing(size)
    return Vector(raw(made, np.int64), validity(made))


def nothing(size: int) -> Vector:
    """A vector of nulls."""
    return Vector(np.zeros(size, np.int64), np.zeros(size, np.bool_))


def grouped(values: "Int64s") -> "tuple[Int64s, Int64s, Int64s]":
    """The distinct values in order, the index of the first of each, and for each entry the index of its value.

    As `numpy.unique`, which first imports masked arrays: 0.01 s of every run.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.ones(len(values), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    number = np.empty(len(values), np.int64)
    number[order] = np.cumsum(new) - 1
    return ordered[new], order[new], number


def occurring(numbers: "Int64s", bound: int) -> "tuple[Int64s, Int64s]":
    """The distinct values of numbers from 0 to below a bound, in order, and for each number its index among them."""
    if bound > MARKED_MAX:
        known, _, number = grouped(numbers)
        return known, number
    place = np.zeros(bound, np.int64)
    place[numbers] = 1
    found: Int64s = np.flatnonzero(place)
    place[found] = np.arange(len(found))
    return found, place.take(numbers)
