"""Merges all packets of some files into one, in time order; ties are ordered by file name.

In: paths, a stream. Out: the packets on the stream. Law: every packet is written once, and the order within a file is kept;
memory is flat. The metadata of pcapng input are kept if the output is pcapng.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

from kcap.capture.fileset import FileSet, ignore
from kcap.capture.packet_copy import (
    Origin,
    PcapCopy,
    PcapngCopy,
    SecretsFilter,
    form_of,
    no_secret,
    notes_of,
    open_copy,
)
from kcap.capture.paths import expand
from kcap.capture.sections import FileSections
from kcap.capture.source import Source, open_reader
from kcap.capture.unread import unread
from kcap.capture.writer import PacketStream
from kcap.errors import CaptureError
from kcap.model import CaptureFile, PacketBatch
from kcap.net.link import is_read
from kcap.net.link_names import link_name


def looks(paths: Sequence[str]) -> list[CaptureFile]:
    """The beginnings of the files; files that cannot be read are omitted."""
    found = []
    for path in expand(paths):
        file = CaptureFile(path, path)
        with suppress(CaptureError), closing(Source(path)) as source:
            open_reader(source, file, 0, ignore, jit_after=None)
            found.append(file)
    return found


class Packets:
    """All packets of some files in time order, and what is needed to write them."""

    def __init__(self, paths: Sequence[str], form: str) -> None:
        """Raises CaptureError if no file can be read."""
        self.files = FileSet(paths, ignore)
        self.form = form
        self.origins: list[Origin] = []

    def batches(self) -> Iterator[PacketBatch]:
        """The packets. `origins` is filled before the first packet, and knows the sections of the present ones."""
        for batch in self.files.batches():
            if not self.origins:
                notes = notes_of(self.files.files, self.form)
                self.origins.extend(Origin(file, FileSections(), notes[at]) for at, file in enumerate(self.files.files))
            self.origins[batch.file].sections = self.files.layouts[batch.file]
            links = {batch.link: len(batch)} if isinstance(batch.link, int) else Counter(batch.link)
            for link, count in links.items():
                if not is_read(link):
                    self.files.files[batch.file].unread_links[link_name(link)] += count
            yield batch

    @property
    def secrets(self) -> bool:
        """Whether the files read so far have TLS secrets."""
        return any(file.secrets for file in self.files.files)

    @property
    def failures(self) -> list[str]:
        """Files that could not be read, with the reasons."""
        return [str(error) for _, error in unread(self.files)]

    def open(self, stream: PacketStream, comment: str = "", *, secrets: SecretsFilter) -> PcapCopy | PcapngCopy:
        """Opens the output file; `secrets`: which secrets of pcapng input are written."""
        return open_copy(stream, self.form, self.origins, comment, secrets=secrets)


def secrets_of(paths: Sequence[str]) -> SecretsFilter:
    """The secrets of pcapng input for its TLS sessions."""
    from kcap.export.session_secrets import read_sessions  # it imports the modules that analyze captures
    from kcap.session import Capture

    sessions = read_sessions(Capture(paths))
    return sessions.secrets_of(sessions.randoms)


def merge(
    paths: Sequence[str], output: str, form: str | None, stream: PacketStream, *, secrets: bool = False
) -> tuple[int, list[str], bool]:
    """Writes the packets. Returns their number, the files that could not be read with the reasons, and whether TLS secrets were
    omitted.

    `secrets`: the secrets of pcapng input for its TLS sessions are written too; the input is then read twice. Raises
    OutputError for a second link type in pcap.
    """
    packets = Packets(paths, form or form_of(output, None, looks(paths)))
    copy: PcapCopy | PcapngCopy | None = None
    chosen = secrets_of(paths) if secrets else no_secret
    for batch in packets.batches():
        if copy is None:
            copy = packets.open(stream, secrets=chosen)
            copy.tells_drops = True
        for at in range(len(batch)):
            copy.write(batch, at)
    if copy is None:
        copy = packets.open(stream, secrets=chosen)
    copy.close()
    return copy.packets, packets.failures, packets.secrets and not secrets
