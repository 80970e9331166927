"""`kcap merge`: several captures as one file, in time order."""

import click

from kcap.cli.capture_output import FORMS, counted, only_plain, unreadable
from kcap.cli.places import Reads, Writes
from kcap.errors import UsageError


@click.command("merge", short_help="Several captures as one file.")
@click.argument("files", metavar="FILE...", nargs=-1, type=Reads())
@click.option("-r", "more_files", metavar="FILE", multiple=True, type=Reads(), help="Another capture, as tshark users type it.")
@click.option(
    "-o", "-w", "--output", metavar="FILE", required=True, type=Writes(),
    help="Write there; the name says pcap or pcapng. - is stdout.",
)  # fmt: skip
@click.option("-F", "--format", "form", type=click.Choice(FORMS), help="The file's format, where its name says none.")
def run(files: tuple[str, ...], more_files: tuple[str, ...], output: str, form: str | None) -> int:
    """Writes all packets of the FILEs into one, in the order of their times; of equal times the file that comes first by name.

    The packets of each FILE keep their order. FILEs of several link types need pcapng, which also keeps the interfaces,
    comments, names, TLS secrets and drop counts of pcapng input. The name of -o says the format, or else what the input needs.
    """
    from kcap.cli.output import place
    from kcap.cli.standard_streams import say
    from kcap.export.merge import merge

    paths = [*files, *more_files]
    if not paths:
        raise UsageError("no capture given; name a file, or - for standard input")
    only_plain(output, form)
    with place(output) as sink:
        packets, failed = merge(paths, output, form, sink)
    if not packets:
        say("no packets")
    else:
        say(counted(packets, "packet"))
    return unreadable(failed)
