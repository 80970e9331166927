"""One exchange for a group: the first of it, or the slowest.

In: rows, the columns of their groups, a value. Out: the group's columns with connection and exchange. Law: ties go to the
smallest connection, then to the smallest number, on every engine.
"""

from collections.abc import Sequence
from typing import Any

from kcap.reports.definition import KEY


def first_of(rows: Any, by: Sequence[str], value: Any) -> Any:
    """The row with the smallest value."""
    import ibis

    order = ibis.window(group_by=list(by), order_by=[value.asc(nulls_first=False), *KEY])
    ranked = rows.mutate(place_=ibis.row_number().over(order))
    return ranked.filter(ranked.place_ == 0).select(*by, *KEY)


def worst_of(rows: Any, by: Sequence[str], value: Any) -> Any:
    """The row with the largest value, nulls aside: one pass without sorting."""
    import ibis

    first = ibis.struct({"value": -value, **{name: rows[name] for name in KEY}}).min(where=value.notnull())
    found = rows.group_by(list(by)).aggregate(first=first)
    found = found.filter(found.first.notnull())
    return found.select(*by, **{name: found.first[name] for name in KEY})
