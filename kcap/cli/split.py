"""`kcap split`: one capture as several files, by connections or by time."""

import os
import re
from functools import partial
from typing import Final

import click

from kcap.cli.capture_output import FORMS, SECRETS_STAY, Passes, only_plain
from kcap.cli.options import analyzer_options, inputs, paths_of
from kcap.cli.places import Writes
from kcap.cli.standard_streams import say, unreadable
from kcap.errors import OutputError, UsageError, said
from kcap.inputs import refuse_input
from kcap.reports.text import count

DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
UNITS_NS: Final = {
    "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, None: 10**9,
}  # fmt: skip


class Prefix(Writes):
    """The common beginning of the names of several files."""

    def names(self, value: str) -> list[str]:
        """The existing files with a name that a part may get."""
        from kcap.export.split import parts_at

        return parts_at(value)


@click.command("split", short_help="Divide one capture into several files.")
@partial(inputs, jobs=False)
@click.option("--by-connection", "size", metavar="N", type=click.IntRange(1), help="Put N connections into each file.")
@click.option("--by-time", "every", metavar="60s", help="Write one file for each such interval: 500ms, 60s, 5m, 1h.")
@click.option(
    "-o",
    "-w",
    "--output",
    "prefix",
    metavar="PREFIX",
    required=True,
    type=Prefix(),
    help="What the names of the files begin with.",
)
@click.option("-F", "--format", "form", type=click.Choice(FORMS), help="Format of the files.")
@click.option(
    "--keep-secrets", "secrets", is_flag=True,
    help="Also write the TLS secrets that pcapng input has for each file: anyone with the file can then decrypt it.",
)  # fmt: skip
def run(
    files: tuple[str, ...],
    size: int | None,
    every: str | None,
    prefix: str,
    form: str | None,
    secrets: bool,
) -> int:
    """Write the packets of FILEs, read as one capture, into several files.

    \b
    kcap split big.pcap --by-connection 1 -o conn         conn_00001.pcap, conn_00002.pcap, ...
    kcap split big.pcap --by-connection 500 -o part.pcap  part_00001.pcap with connections 1 to 500, ...
    kcap split ring/ --by-time 60s -o minute              minute_00001_20261121060000.pcap, ...

    --by-connection N puts N TCP connections into each file, in the order of their first packets (as tcp.stream counts them),
    and never divides a connection. N = 1 gives one file per connection, as SplitCap does. Packets of no connection go to
    PREFIX_rest.

    --by-time cuts at equal intervals from the first packet, as editcap -i does. Connections may then continue in the next file;
    kcap reads such a set as one capture again.

    A PREFIX that ends in .pcap or .pcapng chooses the format. TLS secrets of pcapng input are left out unless you pass
    --keep-secrets; each file then gets the secrets of its connections.
    """
    from kcap.capture.packet_copy import form_of
    from kcap.export.merge import looks
    from kcap.export.scratch import kept, scratch
    from kcap.export.split import name_of, split_by_connection, split_by_time
    from kcap.session import Capture

    if (size is None) == (every is None):
        raise UsageError("say how to split: --by-connection N or --by-time 60s")
    every_ns = None if every is None else duration(every)
    only_plain(prefix, form)
    paths, options = paths_of(files), analyzer_options()
    with scratch(prefix) as folder, Passes() as passes:
        inputs_ = kept(paths, folder)
        chosen = form_of(prefix, form, looks(inputs_))
        capture = Capture(inputs_, options)
        if size is not None:
            parts, failed, left = split_by_connection(capture, chosen, folder, size, passes.step, secrets=secrets)
        else:
            assert every_ns is not None
            parts, failed, left = split_by_time(capture, chosen, folder, every_ns, passes.step, secrets=secrets)
        parts.sort(key=lambda part: part.number)
        for part in parts:
            move(part.path, name_of(prefix, part, chosen, timed=every is not None), private=secrets)
    packets = sum(part.packets for part in parts)
    say(f"{count(packets, 'packet')} in {count(len(parts), 'file')}" if parts else "no packets; nothing was written")
    if left:
        say(SECRETS_STAY)
    return unreadable(failed)


def duration(text: str) -> int:
    """A duration in nanoseconds. Raises UsageError for an invalid or zero duration."""
    match = DURATION.fullmatch(text.strip())
    found = round(float(match[1]) * UNITS_NS[match[2]]) if match is not None else 0
    if not found:
        raise UsageError(f"--by-time {text!r} is no duration; it is written 60s, 500ms, 5m or 1h")
    return found


def move(made: str, name: str, *, private: bool = False) -> None:
    """Gives a file its name; only its owner can read a `private` one. Raises OutputError if the name cannot be used, UsageError
    if an input has it."""
    from kcap.output.sink import mode_of

    refuse_input(name)
    try:
        os.chmod(made, mode_of(name, private=private))
        os.replace(made, name)
    except OSError as error:
        raise OutputError(f"{name}: {said(error)}") from None
