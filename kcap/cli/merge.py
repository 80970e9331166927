"""`kcap merge`: several captures as one file, in time order."""

from contextlib import ExitStack

import click

from kcap.cli.capture_output import FORMS, SECRETS_STAY, only_plain
from kcap.cli.options import NOT_GIVEN
from kcap.cli.places import Reads, Writes
from kcap.cli.standard_streams import say, unreadable
from kcap.errors import UsageError
from kcap.reports.text import count


@click.command("merge", short_help="Combine several captures into one file.")
@click.argument("files", metavar="FILE...", nargs=-1, type=Reads())
@click.option(
    "-r", "more_files", metavar="FILE", multiple=True, type=Reads(), help="Also read this capture, as with tshark. May repeat."
)
@click.option(
    "-o", "-w", "--output", metavar="FILE", required=True, type=Writes(),
    help="Write to FILE; the suffix chooses pcap or pcapng. - is standard output.",
)  # fmt: skip
@click.option("-F", "--format", "form", type=click.Choice(FORMS), help="Format of the file if its name has no suffix.")
@click.option(
    "--keep-secrets", "secrets", is_flag=True,
    help="Also write the TLS secrets that pcapng input has for its sessions: anyone with the file can then decrypt it.",
)  # fmt: skip
def run(files: tuple[str, ...], more_files: tuple[str, ...], output: str, form: str | None, secrets: bool) -> int:
    """Write all packets of the FILEs into one file, in the order of their times; at equal times, in the order of file names.

    The packets of each FILE stay in their order. FILEs of several link types need pcapng, which also keeps the interfaces,
    comments, names and drop counts of pcapng input, and with --keep-secrets the TLS secrets of its sessions. The suffix of -o
    chooses the format; without one, the input does.
    """
    from kcap.cli.output import place
    from kcap.export.merge import merge
    from kcap.export.scratch import kept, scratch

    paths = [*files, *more_files]
    if not paths:
        raise UsageError(NOT_GIVEN)
    only_plain(output, form)
    with ExitStack() as stack:
        if secrets:  # the sessions are read first
            paths = kept(paths, stack.enter_context(scratch(None if output == "-" else output)))
        sink = stack.enter_context(place(output, private=secrets))
        packets, failed, left = merge(paths, output, form, sink, secrets=secrets)
    if not packets:
        say("no packets")
    else:
        say(count(packets, "packet"))
    if left:
        say(SECRETS_STAY)
    return unreadable(failed)
