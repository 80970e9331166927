"""`kcap sql`: a query over the tables of captures."""

import os
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from kcap.cli.options import FormatName, analyzer_options, csv_safety, filters, inputs, paths_of
from kcap.cli.places import Writes
from kcap.errors import UsageError
from kcap.output.formats import FORMATS, format_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcap.capture_pass import CapturePass


@click.command("sql", short_help="Query the tables of captures with SQL.")
@click.argument("query", metavar="[QUERY]", required=False)
@partial(inputs, tables=True)
@filters
@click.option(
    "--format", "form", type=FormatName(FORMATS),
    help="Output format. Default: table, or by the suffix of -o.",
)  # fmt: skip
@csv_safety
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
def run(
    query: str | None,
    files: tuple[str, ...],
    only: str,
    form: str | None,
    output: str | None,
) -> int:
    """Run a query in DuckDB's SQL over exchanges, partitions, connections, records and the other tables.

    FILEs are captures, or Parquet files that kcap rows -o wrote. The query may also follow the FILEs. kcap reads only the
    tables that it names. Without a query, kcap opens a prompt with history and with completion of tables and columns (Tab);
    each query ends with a semicolon.
    """

    from kcap.cli.output import make_writer, place, report_failed
    from kcap.cli.progress import Progress
    from kcap.reports.sql import answered
    from kcap.runtime import load_arrow
    from kcap.session import Capture

    if query is None:
        raise UsageError("no capture given; kcap sql FILE opens a prompt, kcap sql QUERY FILE runs one query")
    load_arrow()

    options = analyzer_options()
    behind = [word for word in files if " " in word.strip() and not is_input(word)]
    if is_input(query) and behind:
        query, files = behind[0], (query, *(word for word in files if word != behind[0]))
    if is_input(query):
        from kcap.cli.sql_shell import converse

        if output is not None:
            raise UsageError(f"-o needs a query; {query!r} is a file")
        return converse(Capture(paths_of((query, *files)), options).filter(only), form or "table")
    form = format_of(form, output)
    capture = Capture(paths_of(files), options).filter(only)
    passes: list[CapturePass] = []
    with ExitStack() as lines:

        def watch(reading: "CapturePass") -> "Callable[[], None]":
            passes.append(reading)
            return lines.enter_context(Progress(reading, shown=True)).step

        with answered(query, capture, watch) as (schema, batches), place(output) as sink:
            lines.close()
            writer = make_writer(form, sink, schema, output, composed=False)
            for batch in batches:
                writer.write(batch)
            writer.close()
    return max(map(report_failed, passes), default=0)


def is_input(word: str) -> bool:
    """Whether the word in a query's place names files: no query has the form of a path."""
    return os.path.exists(word) or (" " not in word.strip() and word.endswith((".pcap", ".pcapng", ".parquet")))
