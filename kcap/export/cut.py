"""Cuts the packets of the exchanges that a filter selects into a capture of their own.

In: a capture with its filter, a path to write to. Out: `Cut`, a summary of what was written. Law: the rows of the part include
the selected rows with equal values. If the packets of their frames alone do not give these, what they depend on is added: the
handshake of a TLS session that they resume, the exchange that names a topic, then the whole connection. Each packet is written
once, in the captures' order; memory grows with what was selected.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kcap.analyzer import Options
from kcap.capture.packet_copy import PCAP, PCAPNG, PcapCopy, PcapngCopy, SecretsFilter, form_of, no_secret, notes_of
from kcap.capture.pcapng_blocks import read_secrets
from kcap.capture_pass import CapturePass
from kcap.export.mark_packets import mark
from kcap.export.merge import Packets
from kcap.export.selection import Selection, counted_columns
from kcap.export.session_secrets import KeyLogLines
from kcap.export.verify import CutCheck, check
from kcap.model import CaptureFile
from kcap.session import Capture
from kcap.tls.secrets import Secrets

LEAD = 1
"""Number of packets with data of each side at the beginning of a connection, which show that it is Kafka and which ids to
expect."""
ROUNDS = 7
"""Maximum number of additions: names, then connections, then connections of the exchanges with those names."""
Watch = Callable[[CapturePass], None]


@dataclass(slots=True)
class Cut:
    """Summary of what was written."""

    picked: Selection
    verdict: CutCheck
    form: str
    packets: int
    widened: int = 0
    """Number of connections that are included whole because their rows would otherwise differ."""
    lost: str = ""
    """What the input has and the format cannot represent."""
    left_secrets: bool = False
    """Whether the input has TLS secrets that were not requested."""


def cut(
    capture: Capture,
    path: str,
    form: str | None,
    *,
    named: str | None,
    whole: bool,
    comment: str = "",
    watch: Watch | None = None,
    empty: bool = False,
    secrets: bool = False,
) -> Cut:
    """Writes the packets of the capture's exchanges to `path`. If there are none, writes nothing, or a file without packets.

    `form` is pcap or pcapng, or else that of the name `named` and the input; `whole`: the connections instead of the exchanges;
    `secrets`: the TLS secrets of pcapng input for the sessions of the part are written too. Without this the output has no key
    material.
    """
    picked = Selection(counted_columns(capture), whole=whole)
    picked.read(capture, watch)
    chosen_form = form_of(named, form, picked.files)

    def copied() -> int:
        chosen = secrets_of(picked) if secrets else no_secret
        return write(capture.paths, mark(capture.paths, picked), path, chosen_form, comment, chosen)

    if not picked.rows:
        if empty:
            copied()
        return Cut(picked, CutCheck(), chosen_form, 0)
    options = with_secrets(capture.options, picked.files)
    picked.add_handshakes()
    named_all = False
    widened: set[str] = set()
    packets = copied()
    verdict = check(path, picked, options)
    for _ in range(ROUNDS):
        if verdict.holds:
            break
        more = {uid for uid in verdict.broken if not picked.chosen[uid].whole}
        added = bool(verdict.nameless) and not named_all and add_names(capture, picked)
        if not more and not added:
            # The exchanges with the names may have other rows than in the whole capture.
            more = {uid for uid, chosen in picked.chosen.items() if not chosen.whole and chosen.has_names}
            more = more or {uid for uid in verdict.nameless if not picked.chosen[uid].whole}
            more = more or {
                origin
                for origin in map(picked.origin, sorted(verdict.broken))
                if origin is not None and not picked.chosen[origin].whole
            }
        if not more and not added:
            break
        named_all = named_all or added
        for uid in more:
            chosen = picked.chosen[uid]
            if not chosen.lead:
                chosen.lead = LEAD
            else:
                chosen.whole = True
                widened.add(uid)
        packets = copied()
        verdict = check(path, picked, options, verdict)
    missing = lost(picked.files, secrets=secrets) if chosen_form == PCAP else ""
    left = not secrets and any(file.secrets for file in picked.files)
    return Cut(picked, verdict, chosen_form, packets, len(widened), missing, left)


def with_secrets(options: Options | None, files: Sequence[CaptureFile]) -> Options | None:
    """The options with the key logs of pcapng files, so that a part without them is read as the whole was."""
    if not any(file.secrets for file in files):
        return options
    options = options or Options()
    secrets = Secrets() if options.secrets is None else options.secrets.copy()
    for body in (body for notes in notes_of(files, PCAPNG) for body in notes.secrets):
        text = read_secrets(body, "<")
        if text is not None:
            secrets.keylog.add(text)
    return replace(options, secrets=secrets)


def add_names(capture: Capture, picked: Selection) -> bool:
    """Adds the exchanges that name the topics; returns whether there are any."""
    everything = Capture(capture.paths, capture.options)
    exchanges: dict[str, set[int]] = {}
    for uid, number in picked.name_sources.values():
        exchanges.setdefault(uid, set()).add(number)
    if not exchanges:
        return False
    words = [
        f'(connection == "{uid}" and exchange in {{{", ".join(map(str, sorted(numbers)))}}})'
        for uid, numbers in exchanges.items()
    ]
    picked.read(everything.filter(" or ".join(words)), context=True)
    return True


def secrets_of(picked: Selection) -> SecretsFilter:
    """The secrets of pcapng input for the connections of the part."""
    return KeyLogLines(picked.files).of(random for uid in picked.chosen for random in picked.randoms.get(uid, ()))


def write(
    paths: Sequence[str], marks: "Sequence[array[int]]", path: str, form: str, comment: str, secrets: SecretsFilter = no_secret
) -> int:
    """Copies the marked packets, and some of the secrets of pcapng input; returns the number of packets."""
    packets = Packets(paths, form)
    with open(path, "wb") as stream:
        copy: PcapCopy | PcapngCopy | None = None
        for batch in packets.batches():
            copy = copy or packets.open(stream, comment, secrets=secrets)
            numbers, first = marks[batch.file], batch.first_packet
            for at in range(bisect_left(numbers, first), bisect_left(numbers, first + len(batch))):
                copy.write(batch, numbers[at] - first)
        copy = copy or packets.open(stream, comment, secrets=secrets)
        copy.close()
    return copy.packets


def lost(files: Sequence[CaptureFile], *, secrets: bool = True) -> str:
    """What pcapng input has beside its packets, in words; including TLS secrets if these are requested."""
    notes = notes_of(files, PCAPNG)
    things = {
        "comments and interfaces": any(options for note in notes for section in note.sections for options in section),
        "names": any(note.names for note in notes),
        "TLS secrets": secrets and any(note.secrets for note in notes),
    }
    return " and ".join(name for name, there in things.items() if there)
