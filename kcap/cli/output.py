"""Writes the rows of a pass over a capture in the chosen format to the chosen place, and messages about it to stderr."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kcap.capture.frame_lengths import FrameLengths
from kcap.capture_pass import CapturePass
from kcap.cli.options import csv_is_safe
from kcap.cli.progress import Progress
from kcap.cli.standard_streams import say, unreadable
from kcap.errors import UsageError
from kcap.limits import REREAD_BYTES_MAX
from kcap.session import Capture, no_kafka

if TYPE_CHECKING:
    import pyarrow as pa

    from kcap.output.sink import OutputSink
    from kcap.output.sorting import Key
    from kcap.output.tshark_fields import FieldLayout
    from kcap.output.writers import Writer
    from kcap.table.builder import Table

BINARY: Final = frozenset({"parquet", "arrow", "feather"})
SHOWN: Final = frozenset({"table", "tabs", "markdown", "html"})
"""Formats for people: without --columns they have the columns of the screen."""


def is_terminal(output: str | None) -> bool:
    """Whether rows go to a terminal."""
    return output is None and sys.stdout.isatty()


def to_file(output: str | None) -> bool:
    """Whether rows go to a file, which is read only when it is complete; also if a shell opened it as standard output."""
    if output is not None:
        from kcap.output.sink import is_device

        return not is_device(output)
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # it is closed, or no file of the system
        return False


def colored(output: str | None) -> bool:
    """Whether colors are wanted (no-color.org)."""
    return is_terminal(output) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def place(output: str | None, *, folder: bool = False, private: bool = False) -> Iterator[Any]:
    """Stdout, or a file that appears when it is complete, compressed if its name implies it; or the path of a folder that does
    so. Only its owner can read a `private` file.

    Raises UsageError for an output that is an input.
    """
    from kcap.inputs import refuse_input
    from kcap.output.formats import compression
    from kcap.output.sink import compressed, new_file, new_folder, output_errors

    if folder and output is not None:
        with new_folder(output) as path:
            yield path
        return
    if output is None or output == "-":
        refuse_input("-")
        with output_errors("standard output"):
            out: BinaryIO = sys.stdout.buffer
            yield out
            out.flush()
        return
    with new_file(output, private=private) as file, compressed(file, compression(output)) as sink:
        yield sink


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """What to write, and how."""

    table: str
    form: str
    columns: Sequence[str] | None = None
    output: str | None = None
    limit: int | None = None
    resolve: bool = False
    """Whether a stream also waits for the facts of the whole capture."""
    layout: "FieldLayout | None" = None
    """Layout of the format `fields`."""
    keys: "Sequence[Key]" = ()
    """Sort keys of the rows."""
    quiet: bool = False
    """Whether only errors are reported."""
    clock: str = "utc"
    """Format of times, one of `kcap.output.time_format.CLOCKS`."""
    children: Sequence[str] = ()
    """Nested tables of each exchange: `partitions`, `records`."""
    parted: Sequence[str] = ()
    """Partition columns of Parquet; `output` is then a folder."""
    payloads: str | None = None
    """Form of keys and values of records, one of `kcap.output.payloads.WAYS`; None: as bytes."""


def write_rows(capture: Capture, order: OutputRequest) -> int:
    """Writes a table; returns the exit code."""
    from kcap.runtime import for_tables

    for_tables()
    from kcap.output.grid import DEFAULTS
    from kcap.output.payloads import as_text
    from kcap.output.payloads import shown as readable
    from kcap.output.time_format import timed, timed_schema
    from kcap.table.backfill import Backfill
    from kcap.table.builder import Table
    from kcap.table.schema import choose, is_body_field
    from kcap.table.table_builders import CODED_TABLES

    table, form, columns, limit = order.table, order.form, order.columns, order.limit
    output = None if order.output == "-" else order.output
    if form in BINARY and is_terminal(output):
        raise UsageError(f"{form} is binary and cannot be shown on a terminal; name a file with -o, or use a pipe")
    composed = form in SHOWN and columns is None and table in DEFAULTS
    names = DEFAULTS[table] if composed else columns
    inside: list[str] = []
    if names is not None and table == "exchanges" and any(map(is_body_field, names)):
        inside = list(dict.fromkeys(filter(is_body_field, names)))
        requested, names = names, [name for name in names if not is_body_field(name)] or ["exchange"]
    made = beside(names, [*dict(order.keys), *sources(order.parted)])
    in_file = to_file(output)
    direct = form in BINARY and output is not None and not order.keys and not order.parted and rewritable(table, names)
    waits = order.resolve or bool(order.keys) or output is not None or in_file
    most = None if order.keys else limit
    policy = Backfill.REWRITE if direct else Backfill.WAIT if waits else Backfill.AS_KNOWN
    shown = Table(
        lambda: reading,
        table,
        made,
        backfill=policy,
        limit=most,
        only=capture.only,
        children=order.children,
        body_fields=inside,
        coded=form == "parquet" and table in CODED_TABLES and not order.keys and not order.parted,
    )
    reading = capture.read()
    reading.patient = in_file
    measured = order.layout is not None and order.layout.needs_lengths
    left = limit
    with (
        closing(reading.files),
        closing(FrameLengths()) if measured else nullcontext() as reading.frame_lengths,
        place(output, folder=bool(order.parted)) as sink,
        Progress(reading, shown=not is_terminal(output) and not order.quiet) as progress,
    ):
        reading.watch = progress.step
        schema = shown.schema if names is None else with_children(shown, [column.name for column in choose(table, names)])
        if inside:
            schema = in_order_of(schema, requested)
        kept = shown.schema if order.parted else schema
        if order.parted:
            from kcap.output.partitioned import PartitionedWriter

            writer: Writer = PartitionedWriter(str(sink), kept, schema, order.parted)
        else:
            writer = make_writer(
                form,
                sink,
                as_text(timed_schema(schema, order.clock), order.payloads),
                output,
                composed=composed,
                layout=order.layout,
                reading=reading,
            )
        rows = in_order(shown, order.keys, kept, apart=bool(inside))
        for batch in readable(timed(rows, order.clock, lambda: first_time(reading)), order.payloads):
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            writer.write(batch)
            del batch  # otherwise it would live while the next one is built
            if left == 0:
                break
        writer.close()
        if direct and shown.tracker is not None and shown.tracker.knows_better():
            write_again(form, sink, shown)
    if left != 0 and not reading.analyzer.kafka_connections and not order.quiet:
        say(no_kafka(reading))
    if reading.not_kept and not order.quiet:
        said = "1 message was" if reading.not_kept == 1 else f"{reading.not_kept:,} messages were"
        size = f"up to {REREAD_BYTES_MAX >> 20} MiB"
        say(f"{said} not kept: large ones {size} are read again from the file, which pipes and compressed files do not allow")
    return report_failed(reading)


def beside(columns: Sequence[str] | None, more: Sequence[str]) -> Sequence[str] | None:
    """The columns, and those that rows are sorted or partitioned by."""
    if columns is None:
        return None
    return [*columns, *(name for name in dict.fromkeys(more) if name not in columns)]


def sources(parted: Sequence[str]) -> list[str]:
    """The columns that partition columns are computed from."""
    from kcap.output.partitioned import PARTS

    return [PARTS[name] for name in parted]


def with_children(shown: "Table", names: Sequence[str]) -> "pa.Schema":
    """The schema of some columns of a table and of its nested tables."""
    import pyarrow as pa

    wanted = [*names, *shown.schema.names[len(shown.columns) :]]
    return pa.schema([shown.schema.field(name) for name in wanted]).with_metadata(shown.schema.metadata)


def first_time(reading: CapturePass) -> int | None:
    """The time of the capture's first packet."""
    return min((file.first_ns for file in reading.capture_files if file.first_ns is not None), default=None)


def in_order_of(schema: "pa.Schema", names: Sequence[str]) -> "pa.Schema":
    """The columns of these names in their order, followed by the nested tables of exchanges (`--partitions`)."""
    import pyarrow as pa

    fields = [schema.field(name) for name in names]
    fields += [field for field in schema if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)]
    return pa.schema(fields).with_metadata(schema.metadata)


def in_order(
    table: "Table", keys: "Sequence[Key]", schema: "pa.Schema", *, apart: bool = False
) -> "Iterator[pa.RecordBatch]":  # fmt: skip
    """The rows in their order, or sorted and then without columns that are only sort keys.

    `apart`: the columns are not those of the table in its order.
    """
    if not keys:
        rows = table.record_batches()
        return (batch.select(schema.names) for batch in rows) if apart else rows
    from kcap.output.sorting import sort

    return (batch.select(schema.names) for batch in sort(table.record_batches(), keys))


def rewritable(table: str, columns: Sequence[str] | None) -> bool:
    """Whether written rows have all columns that a backfill needs."""
    from kcap.table.backfill import companions
    from kcap.table.schema import choose

    chosen = choose(table, columns)
    return len(companions(table, chosen)) == len(chosen)


def write_again(form: str, sink: "OutputSink", table: "Table") -> None:
    """Rewrites rows with all facts of the capture; a device or a pipe keeps the rows that it has."""
    from kcap.arrays.arrow import with_texts
    from kcap.table.backfill import Backfiller, read_again, taken_back

    with taken_back(sink) as written:
        if written is None or table.tracker is None:
            return
        schema = with_texts(table.schema, coded=False)  # the schema that `read_again` returns
        writer, fill = make_writer(form, sink, schema, None, composed=False), Backfiller(table.tracker)
        for batch in read_again(form, written):
            writer.write(fill(batch))
        writer.close()


def make_writer(
    form: str,
    sink: "OutputSink",
    schema: "pa.Schema",
    output: str | None,
    *,
    composed: bool,
    layout: "FieldLayout | None" = None,
    reading: CapturePass | None = None,
) -> "Writer":
    """The writer of a format. `reading`: the pass of the rows, which provides times and lengths of packets."""
    if layout is not None or form in ("fields", "ek", "tabs"):
        from kcap.output import tshark_fields

        if form == "ek":
            return tshark_fields.Bulk(sink, schema)
        layout = layout or tshark_fields.tabs(schema.names)
        if reading is None:
            return tshark_fields.Fields(sink, schema, layout)
        return tshark_fields.Fields(sink, schema, layout, lambda: first_time(reading), reading.length_of)

    if form == "table":
        from kcap.output.grid import Grid, GridStyle

        width = shutil.get_terminal_size().columns if is_terminal(output) else None
        return Grid(sink, schema, GridStyle(width, color=colored(output), composed=composed))
    from kcap.output.writers import writer_of

    writer = writer_of(form, sink, schema, threaded=reading is not None and reading.processes > 1)
    if form in ("csv", "tsv") and csv_is_safe():
        from kcap.output.csv_safe import SafeCsv

        return SafeCsv(writer)
    return writer


def reported(reading: CapturePass | None, *, found: bool = False) -> int:
    """Reports what a capture has instead of Kafka, unless something was `found`, and which files could not be read; returns the
    exit code. None stands for saved tables, for which there is nothing to report."""
    if reading is None:
        return 0
    if not reading.analyzer.kafka_connections and not found:
        say(no_kafka(reading))
    return report_failed(reading)


def report_failed(reading: CapturePass) -> int:
    """Reports which files could not be read; returns the exit code."""
    return unreadable([error for _, error in reading.failed])
