"""`kcap FILE...`: the terminal UI on captures.

In: captures as every command takes them. Out: a screen; the exit code says whether they could be read. Law: keys come from the
terminal also where the capture comes from standard input.
"""

import os
from typing import Final

import click

from kcap.cli.options import analyzer_options, filters, inputs, paths_of, secret_files
from kcap.errors import CaptureError, UsageError

DUMB: Final = frozenset({"dumb", "unknown"})
"""Types of terminals on which a cursor cannot be placed."""
WEB_DRIVER: Final = "textual.drivers.web_driver:WebDriver"
"""What textual-serve sets: keys come through a pipe from a browser."""
OTHER: Final = "kcap rows FILE prints the exchanges"


@click.command("browse", short_help="Browse captures on the screen.")
@inputs
@filters
@click.option("--follow", is_flag=True, help="Go on reading a file that another program writes, until q or Ctrl-S.")
@click.option("--show-secrets", is_flag=True, help="Passwords and tokens as they are.")
def run(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    decode_as: tuple[str, ...],
    not_kafka: tuple[int, ...],
    only: str,
    follow: bool,
    show_secrets: bool,
) -> int:
    """Browses captures: exchanges, what is in them, every byte of it, reports of all of them. F1 tells the keys.

    `kcap FILE...` does the same. A file that is being written is followed for as long as it grows.
    """
    from kcap.capture.paths import expand
    from kcap.capture.source import STANDARD_INPUT
    from kcap.filter.parse import parse
    from kcap.runtime import load_arrow

    paths = paths_of(files, more_files)
    options = analyzer_options(decode_as, not_kafka)
    parse(only)  # a fault of the filter is told before the screen is taken
    missing = next((path for path in expand(paths) if path != STANDARD_INPUT and not os.path.exists(path)), None)
    if missing is not None:
        raise CaptureError(f"{missing}: no such file or directory")
    stdin = keys_from_terminal(piped=STANDARD_INPUT in paths)
    load_arrow()
    from kcap.cli.configuration import config_file, settings
    from kcap.reports.findings.report import rules
    from kcap.reports.findings.thresholds import thresholds_of
    from kcap.tui.app import KcapApp
    from kcap.tui.reader_main import ReadRequest

    ports, others = sorted(options.kafka_ports), sorted(options.not_kafka_ports)
    keylogs, keys = map(list, secret_files())
    limits = thresholds_of(settings().get("check", {}), rules(), f"{config_file()}: [check]")
    order = ReadRequest(
        paths, kafka_ports=ports, not_kafka_ports=others, follow=follow, keylogs=keylogs, private_keys=keys,
        thresholds={rule: dict(some) for rule, some in limits.items()},
    )  # fmt: skip
    app = KcapApp(order, stdin, only=only, show_secrets=show_secrets)
    app.run()
    return app.return_code or (CaptureError.exit_code if app.book.heard.error is not None else 0)


def keys_from_terminal(*, piped: bool) -> int | None:
    """Makes standard input the terminal; where it was the capture, the descriptor that this has then.

    Raises UsageError where there is no terminal.
    """
    if os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER and not piped:
        return None
    why = f"the terminal UI needs a terminal; {OTHER}"
    if not os.isatty(2):
        raise UsageError(why)
    if (kind := os.environ.get("TERM")) in DUMB:
        raise UsageError(f"the terminal UI cannot draw on a terminal of type {kind} (TERM); {OTHER}")
    stdin = os.dup(0) if piped else None
    if piped or not os.isatty(0):
        try:
            terminal = os.open("/dev/tty", os.O_RDWR)
        except OSError:
            raise UsageError(why) from None
        os.dup2(terminal, 0)
        os.close(terminal)
    return stdin
