"""Entry point: arguments in, an exit code out. Errors become one line on stderr; nothing heavy is loaded before a command runs.

Exit codes: 0 done, 2 usage, 3 a capture could not be read, 4 the output could not be written, 5 an optional part is missing,
130 interrupted.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Final

import click

from kcap import limits
from kcap.cli.commands import COMMANDS
from kcap.cli.configuration import defaults, settings
from kcap.cli.places import Invocation
from kcap.cli.standard_streams import open_closed, say, say_lines
from kcap.errors import CaptureError, KcapError, OutputError, UsageError, did_you_mean, said
from kcap.runtime import ends_with, enough_room, give_up, start_quickly, taken_signals

USAGE, INTERRUPTED = 2, 130
BROWSE = "browse"
OWN = frozenset({"-h", "--help", "--version"})
"""Options of kcap itself."""
SMALL = frozenset({"decode", "schema", "split", "merge", "completion"})
"""Commands that build no tables."""
FIRST = ("browse", "check", "stats", "latency", "rows", "sql")
"""Commands that are shown first."""
START = """\
Usage: kcap COMMAND FILE...

Reads packet captures of Apache Kafka traffic (pcap, pcapng, compressed, - is
standard input). Commands to begin with:

  kcap a.pcap            open the terminal UI: exchanges, bytes, reports
  kcap check a.pcap      report what is wrong, where, and what to do
  kcap stats a.pcap      show which requests take the time
  kcap latency a.pcap    show latency percentiles and what dominates them
  kcap rows a.pcap       show one row per exchange; -o rows.parquet, .csv, .json
  kcap sql a.pcap        query the same rows with SQL

kcap --help lists all commands; kcap COMMAND --help shows examples."""
"""The text without arguments; it fits a screen of 80 columns and 24 lines."""
COMPLETE = "_KCAP_COMPLETE"
"""The variable through which a shell requests completions (click's protocol)."""
IMPORTS: Final = "importlib._bootstrap"
"""The module whose functions are on the stack during an import."""
AGAIN_S: Final = 0.02
"""Seconds after which a signal that arrived during an import is handled again."""


class Kcap(click.Group):
    """The group of all commands, each of which is loaded when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if cmd_name not in SMALL:
            enough_room(limits.ADDRESS_SPACE_TABLES)
        command = entry.load()
        command.context_class = Invocation
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Allows options of the terminal UI in the place of a command: `kcap -Y FILTER FILE`."""
        if args and args[0].startswith("-") and args[0] not in OWN:
            args = [BROWSE, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The called command; the terminal UI for a file in its place, and advice for a mistyped name."""
        word = args[0]
        if word not in COMMANDS and is_file(word):
            args = [BROWSE, *args]
        elif word not in COMMANDS and not word.startswith("--"):
            raise click.UsageError(not_a_command(word), ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None and not ctx.resilient_parsing:
            ctx.default_map = {name: defaults(command, name, settings(), COMMANDS)}
        return name, command, rest


def is_file(word: str) -> bool:
    """Whether a word names captures, which the terminal UI opens."""
    return word == "-" or os.path.exists(word) or os.sep in word or ".pcap" in word


def not_a_command(word: str) -> str:
    """The message for a word that is not a command."""
    advice = did_you_mean(word, COMMANDS) or f"; to begin with: {', '.join(FIRST)}"
    return f"no such command or file {word!r}{advice}"


def show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from kcap.cli.version_text import version_text

        click.echo(version_text())
        ctx.exit()


@click.group(cls=Kcap, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=show_version,
    help="Show the versions of kcap and its libraries.",
)
def kcap() -> None:
    """Reads packet captures of Apache Kafka traffic: which request got which response, how long it took and why.

    kcap FILE... opens captures in the terminal UI. FILEs are pcap, pcapng or snoop files, also compressed, or folders of these.
    Several FILEs are one capture, in time order; - is standard input.
    """


def importing(frame: FrameType | None) -> bool:
    """Whether a frame is within the import of a module."""
    while frame is not None:
        if frame.f_globals.get("__name__") == IMPORTS:
            return True
        frame = frame.f_back
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs kcap; returns its exit code. Without arguments it uses those of the process and sets up the whole process."""
    code = run(arguments)
    if arguments is None:
        ends_with(code, flushed)
    return code


def run(arguments: Sequence[str] | None) -> int:
    """Runs kcap as a process's whole work; returns its exit code."""
    open_closed()
    start_quickly()
    for number in taken_signals():
        signal.signal(number, _terminated)
    if requested := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(kcap, {}, "kcap", COMPLETE, requested)
    try:
        # click's own `main` returns 1 for a broken pipe and prints an empty line for an interrupt.
        with kcap.make_context("kcap", list(sys.argv[1:] if arguments is None else arguments)) as context:
            code = kcap.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(START if error.ctx.parent is None else error.format_message(), file=sys.stderr)
        return USAGE
    except click.UsageError as error:
        where = f" (kcap{_command(error)} --help says more)" if error.ctx is not None else ""
        say_lines(f"{error.format_message().rstrip('.')}{where}")
        return USAGE
    except click.ClickException as error:
        say(error.format_message())
        return error.exit_code
    except KeyboardInterrupt:
        # If the interrupt arrived within an exec, as when modules with dataclasses are imported, CPython would end with the
        # signal instead of this code, although it was caught. The next exec resets that (pythonrun.c, run_eval_code_obj).
        exec("")  # noqa: S102
        return INTERRUPTED
    except KcapError as error:
        (say_lines if isinstance(error, UsageError) else say)(str(error))
        return error.exit_code
    except BrokenPipeError:
        give_up(1)  # the reader of stdout has closed it
        return 0
    except MemoryError:
        say("out of memory")
        return CaptureError.exit_code
    except OSError as error:
        say(f"{error.filename or 'standard output'}: {said(error)}")
        return OutputError.exit_code
    finally:
        flushed()
    return code if isinstance(code, int) else 0


def flushed() -> None:
    """Flushes the standard streams, so that the interpreter's own flush at exit reports no error."""
    try:
        sys.stdout.flush()
    except OSError:
        give_up(1)
    with suppress(OSError):
        sys.stderr.flush()


def _command(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else ""
    return path.removeprefix("kcap")


def _terminated(number: int, frame: FrameType | None) -> None:
    """Ends in an orderly way, with the exit code that a shell gives to this signal; unfinished files are removed.

    While a module is imported the end is delayed: compiled modules replace an exception by one of their own, or lose it.
    """
    if not importing(frame) or not hasattr(signal, "setitimer"):  # Windows has no timer, and no SIGTERM from other processes
        sys.exit(128 + number)
    signal.signal(signal.SIGALRM, lambda _, later: _terminated(number, later))
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
