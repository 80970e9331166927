"""Words for the shell's completion of options with known values: columns and filters."""

from collections.abc import Callable

import click


def listed(names: Callable[[str], list[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completes the last of some comma-separated words; `names` are those of the chosen table."""

    def complete(context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
        before, comma, last = text.rpartition(",")
        sign = "-" if last.startswith("-") else ""
        table = context.params.get("table") or "exchanges"
        return [f"{before}{comma}{sign}{name}" for name in names(str(table)) if name.startswith(last.removeprefix("-"))]

    return complete


def columns_of(table: str) -> list[str]:
    from kcap.columns import TABLES

    return [column.name for column in TABLES.get(table, ())]


def filter_words(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
    """Completes the name at the end of a filter."""
    from kcap.filter.fields import fields

    before, space, last = text.rpartition(" ")
    return [f"{before}{space}{name}" for name in fields() if name.startswith(last)]
