"""A filter as a tree: `kcap.filter.parse` builds it and every evaluator walks it. Pure data.

Law: a tree is checked: names exist, values fit the kind of their field, patterns compile. Evaluators raise nothing.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Network:
    """A network: the addresses with a common prefix."""

    version: int
    """IP version, 4 or 6."""
    first: int
    last: int


Value: TypeAlias = int | float | str | bool | Network


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A value of a row: that of one column, of several alternative columns, or a difference of two."""

    name: str
    """Name as in `fields.FIELDS`: a column, or a name that stands for several columns."""
    kind: str
    """`number`, `text`, `flag` (true or false), `time`, `address`."""
    columns: tuple[str, ...]
    """The columns of the value. Several are alternatives, as both ports for `tcp.port`."""
    many: bool = False
    """Whether the columns are lists."""
    minus: str | None = None
    """A column to subtract from the value; null counts as 0."""
    offset: int = 0
    """A number to subtract from the value."""


@dataclass(frozen=True, slots=True)
class Deep:
    """A field inside the decoded request or response."""

    side: str
    """`request` or `response`."""
    path: tuple[str, ...]
    """JSON keys from the body down."""
    kind: str
    apis: frozenset[int]
    """API keys whose schema has the path in some version."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of a value: `len`, `lower`, `upper`, `count`, `abs`."""

    function: str
    of: "Operand"


Operand: TypeAlias = FieldRef | Deep | FunctionCall

PACKETS: Final = "frame.number"
"""The field that every packet of an exchange has, not only those whose numbers are columns."""


@dataclass(frozen=True, slots=True)
class Present:
    """The operand has a value; a flag is true."""

    of: Operand


@dataclass(frozen=True, slots=True)
class Compare:
    """`==`, `!=`, `<`, `<=`, `>`, `>=` with a value or with another operand; `contains` and `matches` with text."""

    of: Operand
    operator: str
    value: "Value | Operand"
    every: bool = False
    """Whether all entries must fulfil the comparison, not just one."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The value is one of some values, or in one of some ranges (both ends included)."""

    of: Operand
    values: tuple[Value, ...]
    ranges: tuple[tuple[Value, Value], ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    of: "Filter"


@dataclass(frozen=True, slots=True)
class And:
    """Both."""

    left: "Filter"
    right: "Filter"


@dataclass(frozen=True, slots=True)
class Or:
    """At least one."""

    left: "Filter"
    right: "Filter"


@dataclass(frozen=True, slots=True)
class Xor:
    """Exactly one."""

    left: "Filter"
    right: "Filter"


Filter: TypeAlias = Present | Compare | Membership | Not | And | Or | Xor


def operands(tree: Filter) -> list[Operand]:
    """Every operand of a filter, including those within functions."""
    if isinstance(tree, Not):
        return operands(tree.of)
    if isinstance(tree, And | Or | Xor):
        return operands(tree.left) + operands(tree.right)
    found: list[Operand] = [tree.of]
    if isinstance(tree, Compare) and isinstance(tree.value, FieldRef | Deep | FunctionCall):
        found.append(tree.value)
    return [inner for operand in found for inner in _inside(operand)]


def _inside(operand: Operand) -> list[Operand]:
    return [operand, *_inside(operand.of)] if isinstance(operand, FunctionCall) else [operand]


def columns_of(tree: Filter) -> tuple[str, ...]:
    """The columns that a filter tests, in the order in which it names them."""
    refs = [operand for operand in operands(tree) if isinstance(operand, FieldRef)]
    names = (name for ref in refs for name in (*ref.columns, *((ref.minus,) if ref.minus is not None else ())))
    return tuple(dict.fromkeys(names))


def packets_of(tree: Filter) -> list[Compare | Membership]:
    """The conditions on packet numbers, which packets other than an exchange's first and last ones can fulfil."""
    if isinstance(tree, Not):
        return packets_of(tree.of)
    if isinstance(tree, And | Or | Xor):
        return packets_of(tree.left) + packets_of(tree.right)
    if isinstance(tree, Present) or not isinstance(tree.of, FieldRef) or tree.of.name != PACKETS:
        return []
    return [] if isinstance(tree, Compare) and tree.operator not in ("==", "!=") else [tree]


def is_deep(tree: Filter) -> bool:
    """Whether a filter tests fields of decoded bodies."""
    return any(isinstance(operand, Deep) for operand in operands(tree))
