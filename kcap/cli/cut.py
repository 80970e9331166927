"""`kcap cut`: the packets of the exchanges that a filter selects, as a capture that Wireshark opens."""

from typing import TYPE_CHECKING, Final

import click

from kcap.cli.capture_output import FORMS, SECRETS_STAY, Passes, only_plain
from kcap.cli.options import analyzer_options, filters, inputs, paths_of
from kcap.cli.places import Writes
from kcap.cli.standard_streams import say, unreadable
from kcap.errors import UsageError
from kcap.reports.text import count

if TYPE_CHECKING:
    from kcap.export.cut import Cut
    from kcap.export.rewrite import Rewritten

MADE: Final = "cut"


@click.command("cut", short_help="Save the packets of the exchanges that a filter selects.")
@inputs
@filters
@click.option(
    "-o", "-w", "--output", metavar="FILE", required=True, type=Writes(),
    help="Write to FILE; the suffix chooses pcap or pcapng. - is standard output.",
)  # fmt: skip
@click.option("-F", "--format", "form", type=click.Choice(FORMS), help="Format of the file if its name has no suffix.")
@click.option(
    "--connection", "whole", is_flag=True, help="Save the whole connections of the exchanges, not only their packets."
)
@click.option("--redact", is_flag=True, help="Zero record keys and values, secrets, and whatever could not be read.")
@click.option(
    "--anonymize",
    "key",
    metavar="KEY",
    help="Replace addresses, clients, groups, topics and hosts; the same key gives the same names.",
)
@click.option(
    "--keep-secrets", "secrets", is_flag=True,
    help="Also write the TLS secrets that pcapng input has for these packets: anyone with the file can then decrypt it.",
)  # fmt: skip
@click.option("--allow-empty", is_flag=True, help="Write a file without packets if nothing matches.")
def run(
    files: tuple[str, ...],
    only: str,
    output: str,
    form: str | None,
    whole: bool,
    redact: bool,
    key: str | None,
    secrets: bool,
    allow_empty: bool,
) -> int:
    """Save the packets of the exchanges that -Y selects, each packet once, in the capture's order.

    The output has the packets that carry the requests and responses, the bare ACKs between them, each connection's first packet
    and handshake, and its end if a request is unanswered. Before the file appears, kcap reads it again. Where its rows would
    differ from those of the whole capture, kcap adds what they depend on: the connection's first exchange, the exchange that
    has a topic's name, or else the whole connection. It prints the number of exchanges added to standard error.

    pcapng keeps the interfaces, comments and names of pcapng input; pcap has room for one link type and none of these. TLS
    secrets of pcapng input are left out unless you pass --keep-secrets, so encrypted connections stay encrypted.

    --redact zeroes keys, values and header values of records, passwords, tokens, sensitive configs, and every byte that was not
    read as part of a message. Lengths stay the same, and checksums are corrected (TCP, IP, CRCs of batches). Compressed batches
    are zeroed whole and can no longer be decompressed.

    --anonymize replaces addresses (keeping prefixes), and all text in messages that is not Kafka's own, by other text of the
    same length. It does not change records, so use both options. IP fragments and tunnelled packets that cannot be changed
    safely are left out.

    Without -Y, all exchanges are selected. Input from a pipe is stored in a temporary file, since it is read more than once.
    """
    options = analyzer_options()
    if key is not None and not key:
        raise UsageError("--anonymize takes a key of at least one character")
    changes = redact or key is not None
    if secrets and changes:
        raise UsageError("--keep-secrets writes what --redact and --anonymize hide; they cannot be combined")
    paths = paths_of(files)
    from kcap.runtime import load_arrow

    load_arrow()
    from kcap.cli.output import place
    from kcap.export.cut import cut
    from kcap.export.pseudonyms import Pseudonyms
    from kcap.export.rewrite import Rewriter
    from kcap.export.scratch import hand_over, kept, scratch
    from kcap.session import Capture

    Capture(paths, options).filter(only)  # faults of the filter are shown before anything is read
    only_plain(output, form)
    comment = f"kcap cut{f' -Y {only!r}' if only else ''}{' --connection' if whole else ''}"
    rewritten: Rewritten | None = None
    with scratch(output) as folder, Passes() as passes:
        capture = Capture(kept(paths, folder), options).filter(only)
        made = f"{folder}/{MADE}"
        done = cut(
            capture, made, form, named=output, whole=whole, comment=comment, watch=passes.step, empty=allow_empty,
            secrets=secrets,
        )  # fmt: skip
        if done.packets or allow_empty:
            with place(output, private=secrets) as sink:
                if changes and done.packets:
                    names = Pseudonyms(key) if key is not None else None
                    rewriter = Rewriter(made, options, redact=redact, names=names)
                    rewritten = rewriter.write(sink, done.form, "" if names else comment)
                else:
                    hand_over(made, sink)
    report_cut(done, output, written=bool(done.packets) or allow_empty)
    if rewritten is not None:
        tell_changes(rewritten)
    return unreadable(done.picked.failed)


def report_cut(done: "Cut", output: str, *, written: bool) -> None:
    """Reports on stderr what was cut."""
    rows = done.picked.rows
    if not rows:
        what = "no exchange matches" if done.picked.kafka else "no Kafka found"
        say(f"{what}; {'a file without packets was written' if written else f'{output} was not written'}")
        return
    said = f"{count(rows, 'exchange')} of {count(len(done.picked.chosen), 'connection')}, {count(done.packets, 'packet')}"
    if done.verdict.beside > 0:
        said += f"; also in it, in the same packets or needed to read them: {count(done.verdict.beside, 'exchange')}"
    if done.widened:
        said += f"; {count(done.widened, 'connection')} kept whole, since parts of them would give other rows"
    say(said)
    if done.verdict.rows:
        say(f"{count(done.verdict.rows, 'row')} differ from those of the whole capture")
    if done.left_secrets:
        say(SECRETS_STAY)
    if done.lost:
        say(f"pcap has no room for {done.lost}; pcapng keeps them")


def tell_changes(done: "Rewritten") -> None:
    """Reports on stderr how the packets were changed."""
    if done.compressed:
        say(f"compressed batches that were zeroed and can no longer be decompressed: {done.compressed:,}")
    if done.encrypted:
        say(f"payload of {count(done.encrypted, 'TLS connection')} is zeros: inside of records nothing can be changed")
    if done.left_out:
        say(f"{count(done.left_out, 'packet')} could not be changed safely and stayed out")
