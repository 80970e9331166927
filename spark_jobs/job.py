"""The common frame of all jobs: options, a session, progress on stderr, exit codes.

In: the command line. Out: a table on standard output, a result in a file, an exit code as for kcap's commands. Law: an error is
one line; a file that could not be read is reported, and the exit code is 3.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.analyzer import Options
from kcap.cli.options import analyzer_options, filters, ports
from kcap.cli.standard_streams import say_lines
from kcap.errors import CaptureError, KcapError, UsageError
from kcap.inputs import reading, refuse_input
from spark_jobs.capture import SHIPS, SparkCapture, open_capture
from spark_jobs.files import form_of, is_ingested, read_of
from spark_jobs.reports import Saved
from spark_jobs.spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREADABLE: Final = 3
FAILED: Final = 1
INTERRUPTED: Final = 130
UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class JobInput:
    """The options that every job takes."""

    paths: Sequence[str]
    output: str | None
    form: str | None
    only: str | None
    by: tuple[str, ...]
    strict: bool
    split_bytes: int | None
    partitions: int | None
    ship: str
    options: Options

    def open(self, spark: "SparkSession") -> SparkCapture | Saved:
        """Opens the scanned capture, or the tables that `ingest` wrote of it."""
        if len(self.paths) == 1 and is_ingested(self.paths[0]):
            return Saved(spark, self.paths[0], [self.paths[0]])
        say_lines(f"laying out {', '.join(self.paths[:3])}{' ...' if len(self.paths) > 3 else ''}")
        start = time.monotonic()
        capture = open_capture(
            spark, self.paths, self.split_bytes, self.partitions, strict=self.strict, ship=self.ship, options=self.options
        )
        files = capture.scanned.readable
        packets, size = sum(file.packets for file in files), sum(file.size or 0 for file in files)
        say_lines(
            f"{len(files)} file{'' if len(files) == 1 else 's'}, {size / 1e6:,.1f} MB, {packets:,} packets, "
            f"{capture.scanned.shards} shards after {time.monotonic() - start:.1f} s"
        )
        return capture


def size_of(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Parses a size such as `64k`, `128M` or `1000` into bytes."""
    if text is None:
        return None
    unit = UNITS.get(text[-1:].lower())
    number = text[:-1] if unit else text
    if not number.isdigit() or not int(number):
        raise click.BadParameter(f"{text!r} is no size; write 64k, 128M or a number of bytes")
    return int(number) * (unit or 1)


def one_output(given: JobInput, _options: dict[str, Any]) -> None:
    """Refuses an output for a report that is an input, or whose name has the suffix of another format.

    Raises UsageError.
    """
    if given.output is not None:
        refuse_input(given.output, folder=form_of(given.output, given.form) == "delta")


def job(
    name: str, forms: Sequence[str], *, by: bool = False, refuse: Callable[[JobInput, dict[str, Any]], None] = one_output
) -> Callable[[Callable[..., int]], click.Command]:
    """Makes a job from a function of a session and options; `refuse` checks its outputs before it begins."""

    def make(run: Callable[..., int]) -> click.Command:
        def answer(**options: Any) -> int:
            return perform(name, run, options, refuse)

        answer.__doc__ = run.__doc__
        made: Callable[..., int] = answer
        if by:
            made = click.option("--by", metavar="A,B,...", help="Group by these columns, by topic, or by time:10s.")(made)
        for decorator in (
            click.option("--master", metavar="URL", help="Run on this master. Default: local[*], or spark-submit's."),
            click.option("--ship", type=click.Choice(SHIPS), default="auto",
                         help="Choose what travels between tasks: see docs/scale.md."),
            click.option("--partitions", metavar="N", type=click.IntRange(1), help="Divide the connections into N shards."),
            click.option("--split-bytes", metavar="SIZE", callback=size_of, help="Size of a byte range of a file: 64k, 128M."),
            click.option("--strict", is_flag=True, help="Fail if a file cannot be read."),
            ports,
            filters,
            click.option("--format", "form", type=click.Choice(tuple(forms)), help="Output format."),
            click.option("-o", "--output", metavar="PATH", help="Write the result to PATH."),
            click.option("-i", "--input", "inputs", metavar="PATH", multiple=True,
                         help="Read this capture, folder, pattern or URI. May repeat."),
            click.argument("files", metavar="[PATH...]", nargs=-1),
        ):  # fmt: skip
            made = decorator(made)
        return click.command(name, context_settings={"help_option_names": ["-h", "--help"]})(made)

    return make


def perform(
    name: str, run: Callable[..., int], options: dict[str, Any], refuse: Callable[[JobInput, dict[str, Any]], None] = one_output
) -> int:
    """Runs a job; returns the exit code."""
    paths = [*options.pop("inputs"), *options.pop("files")]
    if not paths:
        raise UsageError("no input given; name captures, a folder or a URI with --input")
    by = tuple(word.strip() for word in (options.pop("by", None) or "").split(",") if word.strip())
    given = JobInput(
        paths, options.pop("output"), options.pop("form"), options.pop("only") or None, by, options.pop("strict"),
        options.pop("split_bytes"), options.pop("partitions"), options.pop("ship"),
        analyzer_options(),
    )  # fmt: skip
    master = options.pop("master")
    bar = {"spark.ui.showConsoleProgress": "true"} if sys.stderr.isatty() else {}
    with reading(paths, read_of):
        refuse(given, options)
        spark = session(f"kcap {name}", **({"spark.master": master} if master else {}), **bar)
        try:
            return carried_out(spark, run, given, options)
        finally:
            spark.stop()


def carried_out(spark: "SparkSession", run: Callable[..., int], given: JobInput, options: dict[str, Any]) -> int:
    """Runs a job in a session; returns the exit code."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    start = time.monotonic()
    source = given.open(spark)
    code = run(spark, source, given, **options)
    say_lines(f"done after {time.monotonic() - start:.1f} s")
    failed: list[tuple[str, CaptureError]] = source.scanned.failed if isinstance(source, SparkCapture) else []
    for _, error in failed:
        say_lines(f"left out: {error}")
    return code or (UNREADABLE if failed else 0)


def main(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Runs a job from the command line; returns the exit code."""
    try:
        code: int = command.main(
            list(sys.argv[1:] if arguments is None else arguments), prog_name=command.name, standalone_mode=False
        )
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        say_lines(error.format_message())
        return error.exit_code
    except KcapError as error:
        say_lines(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - Spark's own kinds of failure; all of them end the job
        say_lines(cause(error))
        return FAILED
    return code


def cause(error: Exception) -> str:
    """The line of a failed task's traceback with the cause, or the first line of Spark's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("kcap.errors.")]
    if own:
        return own[-1].partition(": ")[2]
    return f"Spark failed: {type(error).__name__}: {lines[0][:300] if lines else 'no reason given'}"
