"""`kcap FILE...`: the terminal UI on captures.

In: captures, as for every command. Out: the terminal UI; the exit code shows whether they could be read. Law: keys are read
from the terminal even if the capture comes from standard input.
"""

import os
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from kcap.cli.options import filter_of, filters, inputs, kafka_ports, paths_of, ports_given, secret_files, secrets_given
from kcap.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from kcap.tui.reader_main import ReadRequest

DUMB: Final = frozenset({"dumb", "unknown"})
"""Types of terminals without cursor positioning."""
WEB_DRIVER: Final = "textual.drivers.web_driver:WebDriver"
"""The driver that textual-serve sets: keys come through a pipe from a browser."""
LOOKS_BACK_SECONDS: Final = 60
"""How far back rules look in a growing capture, in s."""
LOOKS_EVERY_SECONDS: Final = 5
OTHER: Final = "kcap rows FILE prints the exchanges"


@click.command("browse", short_help="Browse captures in the terminal UI.")
@partial(inputs, jobs=False)
@filters
@click.option("--follow", is_flag=True, help="Keep reading a file that another program writes, until q or Ctrl-S.")
@click.option("--show-secrets", is_flag=True, help="Show passwords and tokens unmasked.")
def run(
    files: tuple[str, ...],
    only: str,
    follow: bool,
    show_secrets: bool,
) -> int:
    """Browse captures in the terminal UI: exchanges, their fields and bytes, and reports. F1 lists the keys.

    `kcap FILE...` does the same. A file that is being written is read for as long as it grows.
    """
    from kcap.capture.paths import require_capture
    from kcap.inputs import STANDARD as STANDARD_INPUT

    paths = paths_of(files)
    ports = kafka_ports(*ports_given())
    secrets_given()  # faults of secrets, the filter and files are reported before the terminal UI starts
    filter_of(only)
    require_capture(paths)
    order = request(paths, ports, follow=follow)
    return browse(order, keys_from_terminal(piped=STANDARD_INPUT in paths), only, show_secrets=show_secrets)


def request(
    paths: list[str], ports: tuple[frozenset[int], frozenset[int]], *, follow: bool = False, source: str = "",
    span: int = LOOKS_BACK_SECONDS, every: int = LOOKS_EVERY_SECONDS,
) -> "ReadRequest":  # fmt: skip
    """The request to the reading process, with the secrets and the thresholds of the configuration.

    `ports`: Kafka's ports, and ports that are not. `source`: the source of the capture if it is not a file. `span`, `every`:
    how far back rules look in a growing capture, and how often, in s of capture time.
    """
    from kcap.cli.configuration import rule_thresholds, settings
    from kcap.tui.reader_main import ReadRequest

    keylogs, keys = map(list, secret_files())
    limits: dict[str, dict[str, float]] = {}
    if settings().get("check"):  # the rules take longer to load than the first rows of a capture
        from kcap.runtime import load_arrow

        load_arrow(of_library=True)
        limits = rule_thresholds()
    return ReadRequest(
        paths, kafka_ports=sorted(ports[0]), not_kafka_ports=sorted(ports[1]), follow=follow,
        keylogs=keylogs, private_keys=keys, span_seconds=span, every_seconds=every, source=source,
        thresholds={rule: dict(some) for rule, some in limits.items()},
    )  # fmt: skip


def browse(order: "ReadRequest", stdin: int | None, only: str, *, show_secrets: bool = False) -> int:
    """Shows what is read until the user quits; returns the exit code. `stdin`: descriptor of the pipe for `-`."""
    from kcap.runtime import SCREENS, collect_rarely, load_arrow, share_heap

    share_heap()
    load_arrow(of_library=True)
    from kcap.tui.capture_model import CaptureModel

    with CaptureModel(order, stdin, forks=True) as book:  # it reads while the screens are loaded
        from kcap.tui.app import KcapApp

        collect_rarely(SCREENS)  # loaded objects remain and need not be traversed again
        app = KcapApp(book, only=only, show_secrets=show_secrets)
        with app.leaving_on_signals():
            app.run()
        return app.return_code or (CaptureError.exit_code if book.status.error is not None else 0)


def keys_from_terminal(*, piped: bool) -> int | None:
    """Makes standard input the terminal. If it was the capture, returns the descriptor that this has then.

    Raises UsageError if there is no terminal.
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
