"""Fields of the decoded bodies of each exchange, as list columns beside its own columns.

In: a batch of exchanges, the rows to build, names of fields such as `request.topics.partitions.fetch_offset`. Out: one list
column per name, null if the exchange has no such body or its message no such field. Law: the values are those that a filter on
the same name tests, in the order of the message; nulls are omitted, as Wireshark omits fields that a packet lacks. Credentials
are masked as everywhere. Only bodies of written exchanges whose API has the field are decoded.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kcap.batch.columns import BatchColumns
from kcap.errors import UsageError, did_you_mean
from kcap.facts.tracker import Reread
from kcap.filter.ast import Deep
from kcap.filter.fields import deep_fields, fractions, lookup
from kcap.filter.row_predicate import values_at
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.table.records import Exchanged

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

SIDES: Final = {"request": REQUEST, "response": RESPONSE}
TYPES: Final[dict[str, tuple[pa.DataType, type | tuple[type, ...]]]] = {
    "number": (pa.int64(), int), "text": (pa.string(), str), "flag": (pa.bool_(), bool),
}  # fmt: skip
"""Kind of a field -> Arrow's type and Python's."""
FRACTION: Final = pa.float64(), (int, float)


def body_field(name: str) -> Deep:
    """The field with that name. Raises UsageError for a name that does not exist, has fields itself, or is that of records."""
    found = lookup(name)
    if not isinstance(found, Deep):
        raise UsageError(f"no field is called {name!r}{did_you_mean(name, deep_fields())}")
    if found.kind == "struct":
        inner = sorted(one for one in deep_fields() if one.startswith(f"{name}.") and one.count(".") == name.count(".") + 1)
        raise UsageError(f"{name} has fields itself; name one of them: {', '.join(inner[:6])}")
    if found.path[-1] == "records":
        raise UsageError(f"{name} holds records, which are rows of --table records")
    return found


def body_columns(names: Sequence[str]) -> list["pa.Field[Any]"]:
    """The list columns. Raises what `body_field` raises."""
    return [pa.field(name, pa.list_(_type_of(body_field(name))[0]), metadata={"doc": f"{name} of the message"})
            for name in names]  # fmt: skip


def _type_of(field: Deep) -> tuple[pa.DataType, type | tuple[type, ...]]:
    return FRACTION if (field.side, field.path) in fractions() else TYPES[field.kind]


class BodyFields:
    """The list columns of a pass."""

    def __init__(self, names: Sequence[str], reread: Reread) -> None:
        self.fields = body_columns(names)
        self._wanted = [(field := body_field(name), _type_of(field)) for name in names]
        self._reread = reread

    def make(self, columns: BatchColumns, where: "Int64s") -> list[Any]:
        """The list columns of the rows at `where`."""
        keys = columns.number("api_key")
        known = keys.mask()
        found: list[list[Any]] = [[] for _ in self._wanted]
        for at in where.tolist():
            key = int(keys.values[at]) if known[at] else None
            bodies: dict[str, Mapping[str, Any]] = {}
            exchanged = None
            for out, (field, (_, kind)) in zip(found, self._wanted):
                if key not in field.apis or key is None:
                    out.append(None)
                    continue
                if field.side not in bodies:
                    exchanged = exchanged or Exchanged(columns, at, self._reread)
                    bodies[field.side] = exchanged.shown(SIDES[field.side])
                values = [value for value in values_at(bodies[field.side], field.path) if isinstance(value, kind)]
                out.append(values or None)
        return [pa.array(values, column.type) for values, column in zip(found, self.fields)]
