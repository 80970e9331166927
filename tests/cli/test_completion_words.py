"""The words offered are names that the options take."""

import click

from kcap.cli.completion_words import columns_of, filter_words, listed
from kcap.columns import TABLES
from kcap.filter.fields import lookup

CONTEXT = click.Context(click.Command("x"))
PARAMETER = click.Option(["--x"])


def test_columns() -> None:
    complete = listed(columns_of)
    assert complete(CONTEXT, PARAMETER, "time,-client_i") == ["time,-client_ip", "time,-client_id"]
    assert set(complete(CONTEXT, PARAMETER, "")) == {column.name for column in TABLES["exchanges"]}


def test_filters() -> None:
    found = filter_words(CONTEXT, PARAMETER, "api == Fetch and lat")
    assert "api == Fetch and latency" in found
    assert all(lookup(text.rpartition(" ")[2]) is not None for text in found)
