"""`kcap web FILE...`: the terminal UI in a browser.

In: captures. Out: a web server on this machine, until Ctrl-C. Law: it listens on 127.0.0.1 unless another address is given, and
the URL that it prints works once.
"""

import os
import sys
from functools import partial

import click

from kcap.cli.options import inputs, paths_of, ports_given, secret_files
from kcap.errors import CaptureError, MissingExtraError, OutputError, UsageError, said


@click.command("web", short_help="Open the terminal UI in a browser.")
@partial(inputs, jobs=False)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="TCP port to listen on. Default: any free port.")
def run(
    files: tuple[str, ...], host: str, port: int,
) -> int:  # fmt: skip
    """Serve the terminal UI to a browser until Ctrl-C.

    The printed address has a token that works once, for the first browser that opens it. The connection is not encrypted: use
    an address other than 127.0.0.1 only on a network that you trust.
    """
    from kcap.capture.paths import expand
    from kcap.inputs import STANDARD as STANDARD_INPUT

    paths = paths_of(files)
    if STANDARD_INPUT in paths:
        raise UsageError("kcap web reads files, not a pipe")
    missing = next((path for path in expand(paths) if not os.path.exists(path)), None)
    if missing is not None:
        raise CaptureError(f"{missing}: no such file or directory")
    try:
        from kcap.tui.web import WebServer
    except ImportError as error:
        raise MissingExtraError("kcap web needs textual-serve: pip install 'kcap[web]'") from error
    decode_as, not_kafka = ports_given()
    options = [word for text in decode_as for word in ("-d", text)]
    options += [word for number in not_kafka for word in ("--not-kafka", str(number))]
    keylogs, keys = secret_files()
    options += [word for path in keylogs for word in ("--tls-keylog", os.path.abspath(path))]
    options += [word for path in keys for word in ("--tls-key", os.path.abspath(path))]
    command = [sys.executable, "-P", "-m", "kcap", "browse", *options, "--", *map(os.path.abspath, paths)]
    try:
        server = WebServer(command, host, port, "kcap")
    except OSError as error:
        raise OutputError(f"cannot listen on {host} port {port}: {said(error)}") from error
    click.echo(server.address)
    server.run()
    return 0
