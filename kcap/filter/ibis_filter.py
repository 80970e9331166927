"""A filter as an Ibis condition over the table `exchanges`: DuckDB runs it here, PySpark at scale.

In: a checked tree and an Ibis table. Out: a boolean column that is never null. Law: the same rows as
`kcap.filter.row_predicate`. A filter on decoded bodies has no such condition, since tables do not have bodies.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any, Final

from kcap.errors import UsageError
from kcap.filter.ast import (
    And,
    Compare,
    Deep,
    FieldRef,
    Filter,
    FunctionCall,
    Membership,
    Network,
    Not,
    Operand,
    Or,
    Present,
    Xor,
    is_deep,
    packets_of,
)  # fmt: skip
from kcap.filter.row_predicate import EPOCH, MICROSECOND, OPERATORS

IP4_PARTS: Final = 4
ANY_GROUP: Final = 0xFFFF
"""The highest group of an IPv6 address. Groups that may have any value are not tested, since each costs a long expression."""


def predicate(tree: Filter | None, table: Any) -> Any:
    """The condition. Raises UsageError for a filter on decoded bodies or on packets."""
    import ibis

    if tree is None:
        return ibis.literal(True)
    if is_deep(tree):
        raise UsageError("a saved table has no decoded bodies: request.* and response.* fields work while a capture is read")
    if packets_of(tree):
        raise UsageError(
            "a saved table has no packets but the first and the last of a frame: frame.number == needs a capture; "
            "request_last_packet and its like work here"
        )
    return _Predicate(table, ibis).of(tree)


class _Predicate:
    """Builds the condition over one table."""

    def __init__(self, table: Any, ibis: Any) -> None:
        self.table = table
        self.ibis = ibis

    def of(self, tree: Filter) -> Any:
        """The condition of a tree."""
        if isinstance(tree, And):
            return self.of(tree.left) & self.of(tree.right)
        if isinstance(tree, Or):
            return self.of(tree.left) | self.of(tree.right)
        if isinstance(tree, Xor):
            return self.of(tree.left) != self.of(tree.right)  # not every engine has xor
        if isinstance(tree, Not):
            return self.opposite(tree.of)
        if isinstance(tree, Present):
            return self.present(tree.of)
        if isinstance(tree, Compare) and isinstance(tree.value, FieldRef | Deep | FunctionCall):
            return self.pairs(tree, tree.value)
        return self.entries(tree.of, self.test(tree), every=tree.every)

    def opposite(self, tree: Filter) -> Any:
        """The negation of a condition. DuckDB takes 11 s for 50 nested negations, and no time if they are at the
        single tests."""
        if isinstance(tree, And):
            return self.opposite(tree.left) | self.opposite(tree.right)
        if isinstance(tree, Or):
            return self.opposite(tree.left) & self.opposite(tree.right)
        if isinstance(tree, Xor):
            return self.of(tree.left) == self.of(tree.right)
        return self.of(tree.of) if isinstance(tree, Not) else ~self.of(tree)

    # -- operands -----------------------------------------------------------------------------------------------------
    def sources(self, operand: Operand) -> tuple[list[Any], bool]:
        """The columns of an operand, and whether they are lists."""
        if isinstance(operand, FunctionCall):
            columns, many = self.sources(operand.of)
            if operand.function == "count":
                return [self.count(columns, many=many)], False
            apply: Callable[[Any], Any] = {
                "len": lambda value: value.length(),
                "lower": lambda value: value.lower(),
                "upper": lambda value: value.upper(),
                "abs": lambda value: value.abs(),
            }[operand.function]
            return [column.map(apply) if many else apply(column) for column in columns], many
        assert isinstance(operand, FieldRef)
        needed = (*operand.columns, *((operand.minus,) if operand.minus is not None else ()))
        missing = next((name for name in needed if name not in self.table.columns), None)
        if missing is not None:
            raise UsageError(f"this table has no column {missing!r}, which {operand.name} looks at")
        columns = [self.table[name] for name in operand.columns]
        if operand.minus is not None:
            columns = [column - self.table[operand.minus].fill_null(0) for column in columns]
        if operand.offset:
            columns = [column - operand.offset for column in columns]
        return columns, operand.many

    def constant(self, operand: Operand, value: Any) -> Any:
        """A value in the form in which the engine compares it: times have a type of their own."""
        if isinstance(operand, FieldRef) and operand.kind == "time":
            return self.ibis.literal(EPOCH + value * MICROSECOND, "timestamp('UTC', 6)")
        return value

    def count(self, columns: list[Any], *, many: bool) -> Any:
        """The total number of entries."""
        each = [
            column.filter(lambda value: value.notnull()).length().fill_null(0) if many else column.notnull().cast("int64")
            for column in columns
        ]
        return reduce(lambda a, b: a + b, each)

    def present(self, operand: Operand) -> Any:
        """Whether there is an entry; for a flag, whether it is true."""
        columns, many = self.sources(operand)
        if isinstance(operand, FieldRef) and operand.kind == "flag":
            return reduce(or_, (column.fill_null(False) for column in columns))
        return self.count(columns, many=many) > 0

    def entries(self, operand: Operand, test: Callable[[Any], Any], *, every: bool) -> Any:
        """Whether any, or every, entry passes a test; false if there is none."""
        columns, many = self.sources(operand)
        if many:
            (column,) = columns
            some = column.filter(lambda value: value.notnull() & test(value)).length().fill_null(0)
            return (some == self.count(columns, many=True)) & (some > 0) if every else some > 0
        tests = [test(column).fill_null(every) for column in columns]
        if not every:
            return reduce(or_, tests)
        return reduce(and_, tests) & reduce(or_, (column.notnull() for column in columns))

    def pairs(self, tree: Compare, other: Operand) -> Any:
        """A comparison of two operands that have one value each."""
        compare = OPERATORS[tree.operator]
        (mine, many), (theirs, others_many) = self.sources(tree.of), self.sources(other)
        if many or others_many:
            raise UsageError("lists are compared with values, not with other columns, over a saved table")
        tests = [compare(a, b).fill_null(tree.every) for a in mine for b in theirs]
        if not tree.every:
            return reduce(or_, tests)
        there = (reduce(or_, (column.notnull() for column in side)) for side in (mine, theirs))
        return reduce(and_, [*tests, *there])

    # -- tests --------------------------------------------------------------------------------------------------------
    def test(self, tree: Compare | Membership) -> Callable[[Any], Any]:
        """The condition on one value."""
        if isinstance(tree, Membership):
            singles = [self.constant(tree.of, value) for value in tree.values if not isinstance(value, Network)]
            ranges = [(self.constant(tree.of, low), self.constant(tree.of, high)) for low, high in tree.ranges]
            networks = [value for value in tree.values if isinstance(value, Network)]

            def member(value: Any) -> Any:
                found = [value == single for single in singles]
                found += [(value >= low) & (value <= high) for low, high in ranges]
                found += [self.within(value, network) for network in networks]
                return reduce(or_, found)

            return member
        expected: Any = tree.value
        if tree.operator == "matches":
            return lambda value: value.re_search(f"(?i){expected}")
        if tree.operator == "contains":
            return lambda value: value.contains(expected)
        if isinstance(expected, Network):
            inside = tree.operator == "=="
            return lambda value: self.within(value, expected) if inside else ~self.within(value, expected)
        compare, constant = OPERATORS[tree.operator], self.constant(tree.of, expected)
        return lambda value: compare(value, constant)

    def within(self, value: Any, network: Network) -> Any:
        """Whether an address in text form is in a network."""
        if network.version == IP4_PARTS:
            plain = value.replace(".", "-").split("-")  # Spark treats a separator as a pattern
            parts = [plain[at].try_cast("int64") for at in range(IP4_PARTS)]
            number = parts[0] * (1 << 24) + parts[1] * (1 << 16) + parts[2] * (1 << 8) + parts[3]
            return (~value.contains(":") & (number >= network.first) & (number <= network.last)).fill_null(False)
        groups = self.groups(value)
        # Halves of 64 bits do not fit a signed integer, so the eight groups are compared one after another.
        low, high = ([(end >> shift) & 0xFFFF for shift in range(112, -1, -16)] for end in (network.first, network.last))
        tests = [(group >= a) & (group <= b) for group, a, b in zip(groups, low, high, strict=True) if (a, b) != (0, ANY_GROUP)]
        return reduce(and_, tests, value.contains(":")).fill_null(False)

    def groups(self, value: Any) -> list[Any]:
        """The eight groups of an IPv6 address as numbers; `::` stands for the missing zeros."""
        halves = value.split("::")
        left = self.ibis.ifelse(halves[0] == "", "", halves[0])
        right = self.ibis.ifelse(value.contains("::"), halves[1], "")
        count = self.ibis.ifelse(left == "", 0, left.split(":").length()) + self.ibis.ifelse(
            right == "", 0, right.split(":").length()
        )
        zeros = self.ibis.literal("0:").repeat(8 - count)
        whole = self.ibis.ifelse(
            value.contains("::"),
            self.ibis.ifelse(left == "", "", left.concat(":")).concat(zeros).concat(self.ibis.ifelse(right == "", "", right)),
            value,
        )
        parts = whole.split(":")
        return [self.hexadecimal(parts[at]) for at in range(8)]

    def hexadecimal(self, text: Any) -> Any:
        """Up to four hexadecimal digits as a number."""
        padded = self.ibis.literal("0000").concat(text).right(4)
        digits = "0123456789abcdef"
        return reduce(lambda a, b: a * 16 + b, [self.ibis.literal(digits).find(padded.substr(at, 1)) for at in range(4)])
