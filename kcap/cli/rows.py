"""`kcap rows`: the rows of a table, by default of exchanges."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kcap.cli.completion_words import columns_of, listed
from kcap.cli.options import TABLE_NAMES, analyzer_options, column_names, columns_under, filters, inputs, outputs, paths_of
from kcap.columns import PAYLOADS, RECORDS
from kcap.errors import UsageError
from kcap.output.formats import format_of

if TYPE_CHECKING:
    from kcap.cli.output import OutputRequest
    from kcap.output.tshark_fields import FieldLayout

TSHARK: Final = {"fields": "fields", "json": "json", "jsonl": "jsonl", "ek": "ek", "tabs": "tabs", "text": "table"}
"""Value of tshark's -T -> format."""
CLOCKS: Final = {name: name for name in ("utc", "local", "epoch", "relative", "delta")} | {
    "a": "local", "ad": "local", "u": "utc", "ud": "utc", "e": "epoch", "r": "relative", "d": "delta", "dd": "delta",
}  # fmt: skip
"""Typed word or tshark's letters -> name in `kcap.output.time_format`."""


PLAIN: Final = "plain"
"""Value of --payloads if none is given."""
WAYS: Final = ("text", "hex", "base64", "json")


class WithPayloads(click.Command):
    """A command with --payloads, which takes the next word only if it is a form of payloads."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Adds the default value of --payloads."""
        words = [
            f"--payloads={PLAIN}" if word == "--payloads" and after not in WAYS else word
            for word, after in zip(args, [*args[1:], ""])
        ]
        return super().parse_args(ctx, words)


F = TypeVar("F", bound=Callable[..., object])


def shapes(command: F) -> F:
    """The options for the form of rows, which precede those of `outputs`."""
    for decorator in (
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
        click.option("-c", "count", metavar="N", type=click.IntRange(0), help="The same as --limit."),
        click.option(
            "--partition-by", "parted", metavar="A,B,...",
            help="Write a folder of Parquet files by day, hour, minute, broker, client, api, capture, error or outcome.",
        ),
        click.option(
            "--records", "records", is_flag=True, help="Add the records of each exchange; nested in JSON, Parquet and Arrow."
        ),
        click.option("--partitions", "partitions", is_flag=True, help="Add the partitions of each exchange, in the same way."),
        click.option(
            "--time-format", "-t", "clock", type=click.Choice(tuple(CLOCKS)), default="utc",
            help="UTC, local time, or seconds since the epoch, the first packet or the previous row; also tshark's letters.",
        ),
        click.option(
            "-E", "settings", metavar="KEY=VALUE", multiple=True,
            help="Options of -T fields: header=y separator=, quote=d occurrence=f aggregator=; escape=n",
        ),
        click.option(
            "-e", "named", metavar="FIELD", multiple=True, help="With -T fields: print this column or filter name. May repeat."
        ),
        click.option(
            "-T", "text_form", type=click.Choice(tuple(TSHARK)),
            help="Write in a format of tshark: fields (with -e), json, jsonl, ek, tabs, text.",
        ),
        click.option(
            "--sort", "by", metavar="A,-B", shell_complete=listed(columns_of),
            help="Sort by these columns, with - for the largest first. No row is printed until all are read.",
        ),
        click.option(
            "--resolve", is_flag=True,
            help="Hold rows until the names and ids of the whole capture are known. Rows for a file (-o, or > of a shell) are "
            "always held.",
        ),
        click.option(
            "--payloads", metavar="[text|hex|base64|json]", is_flag=False, flag_value=PLAIN, type=click.Choice((PLAIN, *WAYS)),
            help="With --table records: add the columns key and value in this form. Default: text in a table, base64 in JSON "
            "and CSV, bytes in Parquet and Arrow.",
        ),
        click.option(
            "--table", metavar="NAME", type=click.Choice(TABLE_NAMES), default="exchanges", show_default=True,
            help=f"Show this table: {', '.join(TABLE_NAMES)}.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


@click.command("rows", cls=WithPayloads, short_help="Show one row per exchange.")
@inputs
@filters
@shapes
@outputs
def run(
    files: tuple[str, ...],
    only: str,
    **given: Any,
) -> int:
    """Show one row per exchange: request, response, latency and its parts, sizes, errors, throttle, topics.

    FILEs are pcap, pcapng or snoop files, also compressed, or folders of these. Several FILEs are one capture, in time order;
    - is standard input.
    """
    paths = paths_of(files)  # the second process imports its modules meanwhile
    from kcap.session import Capture

    order = order_of(given)
    from kcap.cli.output import write_rows

    return write_rows(Capture(paths, analyzer_options()).filter(only), order)


def order_of(given: dict[str, Any]) -> "OutputRequest":
    """The request made by the options of `shapes` and `outputs`.

    Raises UsageError for contradicting options.
    """
    from kcap.cli.output import BINARY, OutputRequest

    table, text_form, output = given["table"], given["text_form"], given["output"]
    names = chosen(table, column_names(given["columns"], table), given["payloads"] is not None)
    layout = field_layout(table, text_form, given["named"], given["settings"], names)
    form = format_of(TSHARK[text_form] if text_form else given["form"] or ("parquet" if given["parted"] else None), output)
    clock = CLOCKS[given["clock"]]
    children = tuple(name for name in ("partitions", "records") if given[name])
    parted: list[str] = []
    if given["parted"]:
        from kcap.output.partitioned import parts_of

        parted = parts_of(given["parted"])
        if output is None or table != "exchanges" or text_form or given["form"] not in (None, "parquet"):
            raise UsageError("--partition-by writes a folder of exchanges in Parquet; name the folder with -o")
    if children and (table != "exchanges" or form not in ("table", "jsonl", "json", "ek", *BINARY)):
        raise UsageError(
            f"--{children[0]} goes with exchanges as table, JSON, Parquet or Arrow; use --table {children[0]} for others"
        )
    way = given["payloads"]
    if way == PLAIN:
        way = "text" if form == "table" else None
    if way is not None and form in BINARY:
        raise UsageError(f"--payloads {way} is for text; {form} stores bytes unchanged")
    if clock != "utc" and form in BINARY:
        raise UsageError(f"--time-format is for text; {form} stores times unchanged")
    keys = []
    if given["by"] is not None:
        from kcap.output.sorting import sort_keys

        keys = sort_keys(table, sort_columns(given["by"], table))
    count, limit = given["count"], given["limit"]
    return OutputRequest(
        table, form, names if layout is None else layout.needed, output, count if limit is None else limit, given["resolve"],
        layout, keys, given["quiet"], clock, children, parted, way,
    )  # fmt: skip


def sort_columns(text: str, table: str) -> str:
    """The columns of --sort; headings of the printed table stand for their columns."""
    parts = []
    for part in filter(None, map(str.strip, text.split(","))):
        sign = "-" if part.startswith("-") else ""
        name, colon, order = part.removeprefix("-").partition(":")
        parts += [f"{sign}{column}{colon}{order}" for column in columns_under(name, table)]
    return ",".join(parts)


def field_layout(
    table: str, text_form: str | None, named: tuple[str, ...], settings: tuple[str, ...], columns: list[str] | None
) -> "FieldLayout | None":
    """The layout of -T fields; None for other formats.

    Raises UsageError for contradicting options.
    """
    if text_form != "fields":
        if named or settings:
            raise UsageError("-e and -E go with -T fields")
        return None
    from kcap.output.tshark_fields import layout_of

    return layout_of(table, named or tuple(columns or ()), settings)


def chosen(table: str, columns: list[str] | None, payloads: bool) -> list[str] | None:
    """The columns to show; keys and values of records only if payloads were requested.

    Raises UsageError for contradicting options.
    """
    if table != "records":
        if payloads:
            raise UsageError("--payloads goes with --table records")
        return columns
    if columns is None:
        return [column.name for column in RECORDS if payloads or column.name not in PAYLOADS]
    hidden = next((name for name in columns if name in PAYLOADS), None)
    if hidden is not None and not payloads:
        raise UsageError(f"column {hidden!r} has data of applications; --payloads shows it")
    return columns
