"""From a pass over a capture to its rows in the chosen form, at the chosen place; and what is said about it on stderr."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

from kcap.cli.main import say
from kcap.cli.progress import Progress
from kcap.errors import UsageError
from kcap.session import Capture, Reading

if TYPE_CHECKING:
    import pyarrow as pa

    from kcap.table.frame import Table
    from kcap.table.sink import Sink
    from kcap.table.writers import Writer

BINARY: Final = frozenset({"parquet", "arrow"})
UNREADABLE: Final = 3


def is_terminal(output: str | None) -> bool:
    """Rows go to somebody's screen."""
    return output is None and sys.stdout.isatty()


def colored(output: str | None) -> bool:
    """Colors are welcome (no-color.org)."""
    return is_terminal(output) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def place(output: str | None) -> Iterator["Sink"]:
    """Stdout, or a file that appears when it is whole."""
    from kcap.table.sink import new_file, output_errors

    if output is None or output == "-":
        with output_errors("standard output"):
            out: BinaryIO = sys.stdout.buffer
            yield out
            out.flush()
        return
    with new_file(output) as file:
        yield file


def write_rows(
    capture: Capture,
    table: str,
    columns: Sequence[str] | None,
    form: str,
    output: str | None,
    limit: int | None,
    *,
    resolve: bool = False,
) -> int:
    """Writes a table; the exit code. `resolve`: a stream too waits for what the whole capture tells."""
    from kcap.cli.lean import Steps, collect_rarely, load_arrow

    load_arrow()
    collect_rarely()
    from kcap.table.frame import Table
    from kcap.table.grid import DEFAULTS

    if output == "-":
        output = None
    if form in BINARY and is_terminal(output):
        raise UsageError(f"{form} is no text for a terminal; name a file with -o, or send it on")
    composed = form == "table" and columns is None and table in DEFAULTS
    names = DEFAULTS[table] if composed else columns
    direct = form in BINARY and output is not None and tells_all(table, names)
    waits = resolve or (output is not None and not direct)
    shown = Table(lambda: reading, table, names, whole=None if direct else waits, limit=limit, only=capture.only)
    reading = capture.read(keep_connections=table == "connections")
    left = limit
    with place(output) as sink, Progress(reading, shown=not is_terminal(output)) as progress:
        reading.watch = Steps(progress.step)
        writer = make_writer(form, sink, shown, output, composed=composed)
        for batch in shown.record_batches():
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            writer.write(batch)
            del batch  # it would stay for as long as the next one is made
            if left == 0:
                break
        writer.close()
        if direct and shown.learner is not None and shown.learner.knows_better():
            write_again(form, sink, shown)
    if left != 0 and not reading.analyzer.kafka_connections:
        say(no_kafka(reading))
    if reading.not_kept:
        said = "1 message was" if reading.not_kept == 1 else f"{reading.not_kept:,} messages were"
        say(f"{said} not kept: large ones are read again from the file, which a pipe or a compressed file does not allow")
    return report_failed(reading)


def tells_all(table: str, columns: Sequence[str] | None) -> bool:
    """Whether rows say of whom they are, so that what the capture tells later can be put in."""
    from kcap.table.schema import choose
    from kcap.table.whole import companions

    chosen = choose(table, columns)
    return table == "exchanges" and len(companions(chosen)) == len(chosen)


def write_again(form: str, sink: "Sink", table: "Table") -> None:
    """Rows that are written, once more with what the whole capture told; a device or a pipe keeps what it has."""
    from kcap.table.whole import learned_again, read_again, taken_back

    learner = table.learner
    with taken_back(sink) as written:
        if written is None or learner is None:
            return
        writer = make_writer(form, sink, table, None, composed=False)
        for batch in read_again(form, written):
            writer.write(learned_again(batch, learner))
        writer.close()


def make_writer(form: str, sink: "Sink", table: "Table", output: str | None, *, composed: bool) -> "Writer":
    """The writer of a format."""
    from kcap.table import writers

    if form == "table":
        from kcap.table.grid import Grid, Look

        width = shutil.get_terminal_size().columns if is_terminal(output) else None
        return Grid(sink, table.schema, Look(width, color=colored(output), composed=composed))
    makers: dict[str, Callable[[Sink, pa.Schema], Writer]] = {
        "jsonl": writers.JsonLines,
        "csv": writers.Csv,
        "parquet": writers.Parquet,
        "arrow": writers.Arrow,
    }
    return makers[form](sink, table.schema)


def no_kafka(reading: Reading) -> str:
    """What there is instead of Kafka."""
    packets = sum(file.packets for file in reading.capture_files)
    connections = sum(reading.phases.values())
    if not connections:
        return f"no Kafka found: {packets:,} packets and no TCP connection with data among them"
    found = ", ".join(f"{count:,} {name}" for name, count in reading.phases.most_common())
    return f"no Kafka found in {connections:,} connections ({found}); -d tcp.port==N,kafka says which are Kafka all the same"


def report_failed(reading: Reading) -> int:
    """Says which files could not be read; the exit code."""
    for _, error in reading.failed:
        say(str(error))
    return UNREADABLE if reading.failed else 0
