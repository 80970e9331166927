"""Remembers where each view was left, so that it opens there again.

In: an app, the name of a view. Out: its place. Law: a place lives as long as its app.
"""

from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from kcap.tui.views.sheet import SortOrder


@dataclass(slots=True)
class ViewPlace:
    """A place in a view."""

    section: int = 0
    grouping: int = 0
    row: int = 0
    cell: int = 0


Orders = dict[str, SortOrder]
_LEFT: Final[WeakKeyDictionary[Any, dict[str, tuple[ViewPlace, Orders]]]] = WeakKeyDictionary()


def leave(app: Any, view: str, place: ViewPlace, orders: Orders) -> None:
    """Remembers a view's place."""
    _LEFT.setdefault(app, {})[view] = place, orders


def left(app: Any, view: str) -> tuple[ViewPlace, Orders] | None:
    """Where a view was left, None for one that was not open yet."""
    return _LEFT.get(app, {}).get(view)
