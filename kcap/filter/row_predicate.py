"""Evaluates a filter on rows: a tree and columns in, row numbers out; or a tree in, a condition on one row out.

Nulls are absent values, like fields that a packet lacks in Wireshark: no comparison holds for them, and `not` reverses that.
Law: the same rows as the predicate of `kcap.filter.ibis_filter`, on any engine. Fields of bodies are decoded only for rows that
pass all cheaper conditions.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeGuard

from kcap.filter.ast import (
    PACKETS,
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
)  # fmt: skip

Columns = Mapping[str, Sequence[Any]]
"""Column -> one value per row; `time` in microseconds since the epoch."""
Body = Callable[[int, str], Mapping[str, Any] | None]
"""Row and side -> the decoded body as Kafka's JSON; None if there is none."""
Packets = Callable[[int], list[int]]
"""Row -> numbers of packets."""
OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {"len": len, "lower": str.lower, "upper": str.upper, "abs": abs}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


class RowSelector:
    """A filter over some rows."""

    def __init__(self, columns: Columns, body: Body | None = None, packets: Packets | None = None) -> None:
        """`packets` has further numbers of a row's packets, beside those in its columns."""
        self.columns = columns
        self.body = body
        self.packets = packets

    def rows(self, tree: Filter, rows: Sequence[int]) -> list[int]:
        """The numbers among `rows` of those that pass, in their order."""
        if isinstance(tree, And):
            first, second = (
                (tree.right, tree.left) if is_deep(tree.left) and not is_deep(tree.right) else (tree.left, tree.right)
            )
            return self.rows(second, self.rows(first, rows))
        if isinstance(tree, Or):
            first, second = (
                (tree.right, tree.left) if is_deep(tree.left) and not is_deep(tree.right) else (tree.left, tree.right)
            )
            passed = set(self.rows(first, rows))
            passed.update(self.rows(second, [row for row in rows if row not in passed]))
            return [row for row in rows if row in passed]
        if isinstance(tree, Xor):
            both = set(self.rows(tree.left, rows)) ^ set(self.rows(tree.right, rows))
            return [row for row in rows if row in both]
        if isinstance(tree, Not):
            failed = set(self.rows(tree.of, rows))
            return [row for row in rows if row not in failed]
        test = test_of(tree)
        if not isinstance(tree, Present) and is_plain(tree.of):
            column = self.columns[tree.of.columns[0]]
            if not isinstance(tree, Compare) or not isinstance(tree.value, FieldRef | Deep | FunctionCall):
                return [row for row in rows if (value := column[row]) is not None and test(value)]
        return [row for row in rows if self._holds(tree, test, row)]

    # -- one row ------------------------------------------------------------------------------------------------------
    def _holds(self, tree: Present | Compare | Membership, test: Callable[[Any], bool], row: int) -> bool:
        values = self.values(tree.of, row)
        if isinstance(tree, Present):
            return any(values) if isinstance(tree.of, FieldRef | Deep) and tree.of.kind == "flag" else bool(values)
        if isinstance(tree, Compare) and isinstance(tree.value, FieldRef | Deep | FunctionCall):
            others, compare = self.values(tree.value, row), OPERATORS[tree.operator]
            if not values or not others:
                return False
            pairs = (compare(value, other) for value in values for other in others)
            return all(pairs) if tree.every else any(pairs)
        return bool(values) and (all if tree.every else any)(test(value) for value in values)

    def values(self, operand: Operand, row: int) -> list[Any]:
        """All values of an operand in a row."""
        if isinstance(operand, FunctionCall):
            inner = self.values(operand.of, row)
            return [len(inner)] if operand.function == "count" else [FUNCTIONS[operand.function](value) for value in inner]
        if isinstance(operand, Deep):
            return self._deep(operand, row)
        found = []
        for name in operand.columns:
            value = self.columns[name][row]
            if operand.many:
                found += [entry for entry in value or () if entry is not None]
            elif value is not None:
                if operand.minus is not None:
                    value -= self.columns[operand.minus][row] or 0
                found.append(value - operand.offset if operand.offset else value)
        return found + self.packets(row) if self.packets is not None and operand.name == PACKETS else found

    def _deep(self, operand: Deep, row: int) -> list[Any]:
        key = self.columns["api_key"][row]
        body = self.body(row, operand.side) if self.body is not None and key in operand.apis else None
        if body is None:
            return []
        return values_at(body, operand.path)


def values_at(body: Mapping[str, Any], path: Sequence[str]) -> list[Any]:
    """All values at a path of a decoded body, through its arrays, without nulls."""
    level: list[Any] = [body]
    for step in path:
        found: list[Any] = []
        for struct in level:
            value = struct.get(step) if isinstance(struct, Mapping) else None
            found += value if isinstance(value, list) else [value]
        level = [value for value in found if value is not None]
    return level


def is_plain(operand: Operand) -> TypeGuard[FieldRef]:
    """Whether an operand is the unchanged value of one column."""
    single = isinstance(operand, FieldRef) and len(operand.columns) == 1 and not operand.many
    return single and isinstance(operand, FieldRef) and operand.minus is None and not operand.offset


def test_of(tree: Present | Compare | Membership) -> Callable[[Any], bool]:
    """The condition on one value."""
    if isinstance(tree, Membership):
        singles = frozenset(value for value in tree.values if not isinstance(value, Network))
        networks = [value for value in tree.values if isinstance(value, Network)]
        ranges: Any = tree.ranges
        if not networks and not ranges:
            return singles.__contains__
        return lambda value: (
            value in singles
            or any(low <= value <= high for low, high in ranges)
            or any(within(value, network) for network in networks)
        )
    if isinstance(tree, Compare):
        expected: Any = tree.value
        if tree.operator == "matches":
            from kcap.filter.parse import pattern  # needs RE2, which a Spark executor with only kcap lacks

            search = pattern(expected).search
            return lambda value: search(value) is not None
        if tree.operator == "contains":
            return lambda value: expected in value
        if isinstance(expected, Network):
            wanted = tree.operator == "=="
            return lambda value: within(value, expected) == wanted
        compare = OPERATORS[tree.operator]
        return lambda value: bool(compare(value, expected))
    return bool


def within(text: str, network: Network) -> bool:
    """Whether an address is in a network."""
    address = ip_address(text)
    return address.version == network.version and network.first <= int(address) <= network.last


def condition(tree: Filter | None) -> Callable[..., bool]:
    """The filter as a condition on a row by column name, with the row's body if the filter tests it; None selects
    everything."""

    def passes(row: Mapping[str, Any], body: Body | None = None) -> bool:
        if tree is None:
            return True
        columns = {name: [micros(value)] for name, value in row.items()}
        return bool(RowSelector(columns, body).rows(tree, (0,)))

    return passes


def micros(value: Any) -> Any:
    """A time as the microseconds that filters compare; any other value unchanged."""
    return (value - EPOCH) // MICROSECOND if isinstance(value, datetime) else value
