"""`kcap rows`: the rows of a table, exchanges unless another is asked for."""

import click

from kcap.cli.options import TABLE_NAMES, analyzer_options, column_names, filters, format_of, inputs, outputs, paths_of
from kcap.columns import PAYLOADS, RECORDS
from kcap.errors import UsageError


@click.command("rows", short_help="One row an exchange.")
@inputs
@filters
@click.option("--table", type=click.Choice(TABLE_NAMES), default="exchanges", show_default=True, help="Which table.")
@click.option("--payloads", is_flag=True, help="With --table records: the columns key and value too.")
@click.option(
    "--resolve", is_flag=True, help="Rows wait until the whole capture told its names and ids; those of -o do so anyway."
)
@outputs
def run(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    decode_as: tuple[str, ...],
    not_kafka: tuple[int, ...],
    tls_keylog: str | None,
    only: str,
    table: str,
    payloads: bool,
    resolve: bool,
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

    capture = Capture(paths_of(files, more_files), analyzer_options(decode_as, not_kafka), tls_keylog).filter(only)
    names = chosen(table, column_names(columns), payloads)
    return write_rows(capture, table, names, format_of(form, output), output, limit, resolve=resolve)


def chosen(table: str, columns: list[str] | None, payloads: bool) -> list[str] | None:
    """The columns to show: keys and values of records only where payloads were asked for.

    Raises UsageError where options contradict.
    """
    if table != "records":
        if payloads:
            raise UsageError("--payloads goes with --table records")
        return columns
    if columns is None:
        return [column.name for column in RECORDS if payloads or column.name not in PAYLOADS]
    hidden = next((name for name in columns if name in PAYLOADS), None)
    if hidden is not None and not payloads:
        raise UsageError(f"column {hidden!r} is what applications wrote; --payloads shows it")
    return columns
