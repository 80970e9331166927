"""`kcap connections`: the table of TCP connections."""

import click

from kcap.cli.options import analyzer_options, column_names, inputs, outputs, paths_of
from kcap.output.formats import format_of


@click.command("connections", short_help="Show one row per TCP connection.")
@inputs
@outputs
def run(
    files: tuple[str, ...],
    form: str | None,
    columns: str | None,
    output: str | None,
    limit: int | None,
) -> int:
    """Show one row per TCP connection: what it is, how it began and ended, and an account of each of its bytes."""
    paths = paths_of(files)
    from kcap.cli.output import OutputRequest, write_rows
    from kcap.session import Capture

    capture = Capture(paths, analyzer_options())
    return write_rows(
        capture, OutputRequest("connections", format_of(form, output), column_names(columns, "connections"), output, limit)
    )
