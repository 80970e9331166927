"""What runs the expressions of rules.

In: an expression over tables. Out: its rows; or a table or view of an engine that stands for it. Law: an expression over what
was held has the rows of the expression that it stands for.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kcap.reports.definition import Row


class Runner:
    """Runs expressions by a function and holds none of them: each statement computes all that it needs."""

    def __init__(self, run: Callable[[Any], list[Row]]) -> None:
        self._run = run

    def __call__(self, expression: Any) -> list[Row]:
        """The rows of an expression."""
        return self._run(expression)

    def hold(self, name: str, expression: Any, *, view: bool = False) -> Any:
        """A table that stands for an expression which several statements need; `view`: it may have too many rows to hold."""
        return expression

    def names(self, name: str, values: Sequence[str]) -> Any:
        """Values as the argument of `isin`."""
        return list(values)
