"""What the views of reports share: a report by its name, the columns of its grouping.

In: names, a grouping. Out: reports, columns. Law: the first column of a grouping is what a row is about.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from kcap.reports.shape import Key, Report, Row
from kcap.tui.views.sheet import Field, Sheet, named

NUMBERS: Final = frozenset({"api_version", "partition"})
"""Groupings by a number."""


def keyed(keys: Sequence[Key], heads: dict[str, str] | None = None) -> list[Field]:
    """Columns of the grouping, the first one bold."""
    first, *rest = [(key.name, (heads or {}).get(key.name), key.name in NUMBERS) for key in keys]
    found = [named(first[0], first[1], right=first[2], tone=bold)]
    return found + [named(name, head, right=right) for name, head, right in rest]


def bold(_row: Row) -> str:
    """What a row is about."""
    return "bold"


def report_of(name: str) -> Report:
    """A report by name."""
    found: Any = import_module(f"kcap.reports.{name}").REPORT
    assert isinstance(found, Report)
    return found


def waiting(name: str, why: str = "one moment") -> Sheet:
    """A section that is not worked out yet."""
    return Sheet(name, (), [], lambda _row: None, why)
