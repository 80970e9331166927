"""`kcap rows`: the rows of a table, exchanges unless another is asked for."""

import click

from kcap.cli.options import TABLE_NAMES, analyzer_options, column_names, format_of, inputs, outputs, paths_of


@click.command("rows", short_help="One row an exchange.")
@inputs
@click.option("--table", type=click.Choice(TABLE_NAMES), default="exchanges", show_default=True, help="Which table.")
@outputs
def run(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    decode_as: tuple[str, ...],
    not_kafka: tuple[int, ...],
    tls_keylog: str | None,
    table: str,
    form: str | None,
    columns: str | None,
    output: str | None,
    limit: int | None,
) -> int:
    """One row an exchange: request, response, latency and its parts, sizes, errors, throttle, topics.

    FILEs are pcap or pcapng, also compressed; several are one capture, in time order; - is standard input.
    """
    from kcap.cli.output import write_rows
    from kcap.session import Capture

    capture = Capture(paths_of(files, more_files), analyzer_options(decode_as, not_kafka), tls_keylog)
    return write_rows(capture, table, column_names(columns), format_of(form, output), output, limit)
