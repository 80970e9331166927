"""Evaluates a filter on a record batch, column by column.

In: a checked filter, a batch of `exchanges` with the columns that it tests. Out: one boolean per row. Law: it selects the rows
that `kcap.filter.row_predicate` selects, which evaluates everything that has no quicker way here. Each distinct text is tested
once, not once per row.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import absent, coded, filled, flattened, parents, values
from kcap.filter.ast import (
    And,
    Compare,
    Deep,
    FieldRef,
    Filter,
    FunctionCall,
    Membership,
    Not,
    Operand,
    Or,
    Present,
    Xor,
    columns_of,
    is_deep,
)
from kcap.filter.row_predicate import FUNCTIONS, OPERATORS, RowSelector, test_of
from kcap.limits import FILTERS_TESTED, REPORT_NAME_BYTES, TEXTS_TESTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools: TypeAlias = NDArray[np.bool_]

ORDERED: Final = frozenset({"<", "<=", ">", ">="})


@dataclass(slots=True)
class Entries:
    """The values of one column, or of the lists in it: numbers as they are, texts as numbers of the distinct texts."""

    parents: "NDArray[Any] | None"
    """Row of each entry; None if each row has exactly one."""
    valid: "Bools | None"
    """Which entries are not null; None if none is null."""
    numbers: "NDArray[Any]"
    words: list[Any] | None = None
    """The distinct texts; `numbers` are their positions."""


class NumberedValues:
    """The distinct values of some columns; the rows of a batch have the numbers of their values."""

    def __init__(self, values: pa.RecordBatch) -> None:
        """`values`: each column has the value with number n in row n; columns with fewer values end with nulls."""
        self._names = frozenset(values.schema.names)
        self._passing = lru_cache(maxsize=FILTERS_TESTED)(lambda tree: mask(tree, values))

    def has(self, names: Iterable[str]) -> bool:
        """Whether all of some columns have numbers."""
        return self._names.issuperset(names)

    def rows(self, tree: Compare | Membership | Present, codes: pa.RecordBatch) -> "Bools | None":
        """Which rows pass a condition, where `codes` has the numbers of their values; None if the condition tests other columns
        too."""
        names = columns_of(tree)
        if not names or not self.has(names) or is_deep(tree):
            return None
        if len(names) == 1:
            return self._rows(tree, codes, names[0])
        if not isinstance(tree.of, FieldRef) or tree.of.columns != names or (not isinstance(tree, Present) and tree.every):
            return None
        found = np.zeros(codes.num_rows, np.bool_)
        for name in names:  # alternatives: any may hold
            found |= self._rows(replace(tree, of=replace(tree.of, columns=(name,))), codes, name)
        return found

    def _rows(self, tree: Compare | Membership | Present, codes: pa.RecordBatch, name: str) -> "Bools":
        passing = self._passing(tree)
        if not passing.any():
            return np.zeros(codes.num_rows, np.bool_)
        found: Bools = passing.take(_raw(codes.column(name)))
        return found


def mask(
    tree: Filter | None, batch: pa.RecordBatch, values: NumberedValues | None = None, codes: pa.RecordBatch | None = None
) -> "Bools":
    """True for each row that passes. `codes`: the numbers of the rows' values among `values`, if they are known."""
    return np.ones(batch.num_rows, np.bool_) if tree is None else _Mask(batch, values, codes).of(tree)


def masks(trees: Iterable[Filter | None], batch: pa.RecordBatch) -> "Iterator[Bools]":
    """The masks of several filters, which share the decoded columns."""
    shared = _Mask(batch)
    for tree in trees:
        yield np.ones(batch.num_rows, np.bool_) if tree is None else shared.of(tree)


class _Mask:
    """Evaluates filters on one batch."""

    def __init__(
        self, batch: pa.RecordBatch, values: NumberedValues | None = None, codes: pa.RecordBatch | None = None
    ) -> None:
        self.batch, self._values, self._codes = batch, values, codes
        self.rows = batch.num_rows
        self._columns: dict[str, Entries] = {}

    def column(self, name: str) -> Entries:
        """The entries of a column, computed once."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = _entries(self.batch.column(name))
        return found

    def of(self, tree: Filter) -> "Bools":
        """The rows that pass a condition."""
        if isinstance(tree, And | Or):
            found = self.of(tree.left)
            if isinstance(tree, And):
                return found & self.of(tree.right) if found.any() else found
            return found if found.all() else found | self.of(tree.right)
        if isinstance(tree, Xor):
            return self.of(tree.left) ^ self.of(tree.right)
        if isinstance(tree, Not):
            return ~self.of(tree.of)
        if self._values is not None and self._codes is not None:
            known = self._values.rows(tree, self._codes)
            if known is not None:
                return known
        if isinstance(tree, Compare) and isinstance(tree.value, FieldRef | Deep | FunctionCall):
            return self.pairs(tree, tree.of, tree.value)
        parts = self.entries(tree.of)
        if parts is None:
            return self.slowly(tree)
        if isinstance(tree, Present):
            return self.present(tree, parts)
        tests = [_passes(tree, part) for part in parts]
        if not tree.every:
            found = np.zeros(self.rows, np.bool_)
            for part, test in zip(parts, tests):
                found |= self.any(part, test)
            return found
        some, every = np.zeros(self.rows, np.bool_), np.ones(self.rows, np.bool_)
        for part, test in zip(parts, tests):
            there = np.ones(len(part.numbers), np.bool_) if part.valid is None else part.valid
            some |= self.any(part, there)
            every &= ~self.any(part, there & ~test)
        return some & every

    def any(self, part: Entries, test: "Bools") -> "Bools":
        """Rows with an entry for which the test holds."""
        if part.parents is None:
            return test
        found = np.zeros(self.rows, np.bool_)
        found[part.parents[test]] = True
        return found

    def present(self, tree: Present, parts: Sequence[Entries]) -> "Bools":
        """Rows with a value; for a flag, rows where it is true."""
        found = np.zeros(self.rows, np.bool_)
        flag = isinstance(tree.of, FieldRef) and tree.of.kind == "flag"
        for part in parts:
            there = np.ones(len(part.numbers), np.bool_) if part.valid is None else part.valid
            found |= self.any(part, there & (part.numbers != 0) if flag else there)
        return found

    def pairs(self, tree: Compare, one: Operand, other: Operand) -> "Bools":
        """A comparison of two columns of numbers."""
        mine, theirs = self.entries(one), self.entries(other)
        if mine is None or theirs is None or len(mine) != 1 or len(theirs) != 1:
            return self.slowly(tree)
        (a,), (b,) = mine, theirs
        if a.parents is not None or b.parents is not None or a.words is not None or b.words is not None:
            return self.slowly(tree)
        found: Bools = OPERATORS[tree.operator](a.numbers, b.numbers)
        for part in (a, b):
            if part.valid is not None:
                found = found & part.valid
        return found

    def slowly(self, tree: Filter) -> "Bools":
        """Evaluates the condition row by row."""
        columns = {name: values(self.batch.column(name)) for name in columns_of(tree)}
        found = np.zeros(self.rows, np.bool_)
        found[RowSelector(columns).rows(tree, range(self.rows))] = True
        return found

    def entries(self, operand: Operand) -> list[Entries] | None:
        """The entries of an operand; None if only the slow way can evaluate it."""
        if isinstance(operand, Deep):
            return None
        if isinstance(operand, FieldRef):
            found = [self.column(name) for name in operand.columns]
            if operand.minus is not None:  # the numbers have 0 for null
                less = self.column(operand.minus).numbers
                found = [Entries(part.parents, part.valid, part.numbers - less) for part in found]
            if operand.offset:
                found = [Entries(part.parents, part.valid, part.numbers - operand.offset) for part in found]
            return found
        inner = self.entries(operand.of)
        if operand.function == "count" or inner is None:
            return None
        return [_called(operand.function, part) for part in inner]


def _entries(column: Any) -> Entries:
    owners = None
    if pa.types.is_list(column.type):
        owners, column = parents(column), flattened(column)
    valid = ~absent(column) if column.null_count else None
    if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
        numbers, words = coded(column)
        if not words:
            none = np.zeros(0, np.int64)
            return Entries(none, None, none, [])
        return Entries(owners, valid, numbers if valid is None else np.where(valid, numbers, 0), words)
    if pa.types.is_boolean(column.type):
        return Entries(owners, valid, filled(column, False).to_numpy(zero_copy_only=False))
    return Entries(owners, valid, _raw(column))


def _raw(column: Any) -> "NDArray[Any]":
    """The values of an array of fixed width; 0 for nulls."""
    if column.null_count:
        column = filled(column, 0)
    width = column.type.bit_width // 8
    signed = not pa.types.is_unsigned_integer(column.type)
    data = column.buffers()[1]
    kind = np.dtype(f"{'i' if signed else 'u'}{width}")
    if data is None:
        return np.zeros(len(column), kind)
    return np.frombuffer(data, kind, len(column), column.offset * width)


def _called(function: str, part: Entries) -> Entries:
    """A function of each value."""
    apply = FUNCTIONS[function]
    if part.words is None:
        # numpy's abs of the smallest integer of a type is that integer
        return Entries(part.parents, part.valid, np.abs(part.numbers.astype(np.int64)))
    made = [apply(word) for word in part.words]
    if function == "len":
        return Entries(part.parents, part.valid, np.array(made, np.int64)[part.numbers])
    return Entries(part.parents, part.valid, part.numbers, made)


class PassingTexts(dict[Any, bool]):
    """Which texts pass a test. Each text is tested once, even if every batch has it."""

    def __init__(self, tree: Compare | Membership) -> None:
        super().__init__()
        self._test = test_of(tree)

    def __missing__(self, text: Any) -> bool:
        found = bool(self._test(text))
        if isinstance(text, str) and len(text) > REPORT_NAME_BYTES:
            return found
        if len(self) >= TEXTS_TESTED:
            self.clear()
        self[text] = found
        return found


passing_texts: Final = lru_cache(maxsize=FILTERS_TESTED)(PassingTexts)
"""The `PassingTexts` of a test; the last ones are cached."""


def _passes(tree: Compare | Membership, part: Entries) -> "Bools":
    """Which entries pass a test."""
    if part.words is not None:
        tested = passing_texts(tree)
        found: Bools = np.fromiter(map(tested.__getitem__, part.words), np.bool_, len(part.words))[part.numbers]
    elif isinstance(tree, Membership):
        found = np.zeros(len(part.numbers), np.bool_)
        for value in tree.values:
            found |= _compared(part.numbers, "==", value)
        for low, high in tree.ranges:
            found |= _compared(part.numbers, ">=", low) & _compared(part.numbers, "<=", high)
    else:
        found = _compared(part.numbers, tree.operator, tree.value)
    return found if part.valid is None else found & part.valid


def _compared(numbers: "NDArray[Any]", operator: str, value: Any) -> "Bools":
    """Compares numbers with a constant. A fraction is replaced by a neighbouring integer, since floats cannot represent all
    integers."""
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float):
        if value != (whole := math.floor(value)):
            if operator not in ORDERED:
                return np.full(len(numbers), operator == "!=", np.bool_)
            operator, value = ("<=", whole) if operator in ("<", "<=") else (">", whole)
        else:
            value = whole
    found: Bools = OPERATORS[operator](numbers, value)
    return found
