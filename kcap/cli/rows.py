"""`kcap rows`: the rows of a table, exchanges unless another is asked for."""

from typing import TYPE_CHECKING, Final

import click

from kcap.cli.options import TABLE_NAMES, analyzer_options, column_names, filters, format_of, inputs, outputs, paths_of
from kcap.columns import PAYLOADS, RECORDS
from kcap.errors import UsageError

if TYPE_CHECKING:
    from kcap.table.fields import Layout

TSHARK: Final = {"fields": "fields", "json": "json", "jsonl": "jsonl", "ek": "ek", "tabs": "tabs", "text": "table"}
"""What tshark's -T takes -> the form."""
EXAMPLES: Final = """\b
Examples:
  kcap rows a.pcap -Y 'api == Fetch and latency > 50ms' --sort -latency_ns --limit 20
  kcap rows *.pcap -o rows.parquet
  kcap rows a.pcap -T fields -e frame.time_epoch -e kafka.client_id -e latency_ns -E separator=,
  ssh broker tcpdump -U -w - 'tcp port 9092' | kcap rows - -Y 'error != NONE'
"""


@click.command("rows", short_help="One row an exchange.", epilog=EXAMPLES)
@inputs
@filters
@click.option("--table", type=click.Choice(TABLE_NAMES), default="exchanges", show_default=True, help="Which table.")
@click.option("--payloads", is_flag=True, help="With --table records: the columns key and value too.")
@click.option(
    "--resolve", is_flag=True, help="Rows wait until the whole capture told its names and ids; those of -o do so anyway."
)
@click.option(
    "--sort",
    "by",
    metavar="A,-B",
    help="Sorted by these columns, - for the largest first; then the first rows wait for the last.",
)
@click.option(
    "-T", "text_form", type=click.Choice(tuple(TSHARK)), help="As tshark writes: fields with -e, json, jsonl, ek, tabs, text."
)
@click.option("-e", "named", metavar="FIELD", multiple=True, help="With -T fields: a column, or a name that filters know.")
@click.option(
    "-E",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="With -T fields: header=y separator=, quote=d occurrence=f aggregator=;",
)
@click.option("-c", "count", metavar="N", type=click.IntRange(0), help="As --limit.")
@click.option("-q", "--quiet", is_flag=True, help="Says nothing but what went wrong.")
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
    by: str | None,
    text_form: str | None,
    named: tuple[str, ...],
    settings: tuple[str, ...],
    count: int | None,
    quiet: bool,
    form: str | None,
    columns: str | None,
    output: str | None,
    limit: int | None,
) -> int:
    """One row an exchange: request, response, latency and its parts, sizes, errors, throttle, topics.

    FILEs are pcap or pcapng, also compressed; several are one capture, in time order; - is standard input.
    """
    from kcap.cli.output import Order, write_rows
    from kcap.session import Capture

    names = chosen(table, column_names(columns), payloads)
    layout = fields_asked(table, text_form, named, settings, names)
    keys = []
    if by is not None:
        from kcap.table.sorting import sort_keys

        keys = sort_keys(table, by)
    capture = Capture(paths_of(files, more_files), analyzer_options(decode_as, not_kafka), tls_keylog).filter(only)
    order = Order(
        table, TSHARK[text_form] if text_form else format_of(form, output), names if layout is None else layout.needed, output,
        count if limit is None else limit, resolve, layout, keys, quiet,
    )  # fmt: skip
    return write_rows(capture, order)


def fields_asked(
    table: str, text_form: str | None, named: tuple[str, ...], settings: tuple[str, ...], columns: list[str] | None
) -> "Layout | None":
    """What -T fields is to write; None for other forms.

    Raises UsageError where options contradict.
    """
    if text_form != "fields":
        if named or settings:
            raise UsageError("-e and -E go with -T fields")
        return None
    from kcap.table.fields import layout_of

    return layout_of(table, named or tuple(columns or ()), settings)


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
