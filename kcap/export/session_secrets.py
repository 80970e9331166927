"""Selects the key log lines that decrypt some TLS sessions and no others.

In: captures with Decryption Secrets Blocks (little-endian), the client randoms of the sessions. Out: block bodies with the
lines of these sessions. Law: lines for other client randoms are omitted. NSS's RSA lines, which name a session id or an
encrypted premaster secret, are included only if a session has no line of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcap.capture.packet_copy import PCAPNG, SecretsFilter, notes_of
from kcap.capture.pcapng_blocks import read_secrets, secrets_body
from kcap.capture_pass import CapturePass
from kcap.model import CaptureFile
from kcap.session import Capture
from kcap.tls.keylog import LINE, PREMASTER, SESSION


@dataclass(slots=True)
class BlockLines:
    """The lines of one block."""

    lines: list[bytes] = field(default_factory=list, repr=False)
    by_random: dict[bytes, list[int]] = field(default_factory=dict, repr=False)
    """Client random -> positions of its lines."""
    by_key_exchange: list[int] = field(default_factory=list)
    """Positions of RSA lines."""

    @classmethod
    def read(cls, body: bytes) -> "BlockLines":
        block = cls((read_secrets(body, "<") or b"").splitlines(keepends=True))
        for place, line in enumerate(block.lines):
            bare = line.strip()
            found = LINE.fullmatch(bare)
            if found is not None:
                block.by_random.setdefault(bytes.fromhex(found[2].decode()), []).append(place)
            elif SESSION.fullmatch(bare) or PREMASTER.fullmatch(bare):
                block.by_key_exchange.append(place)
        return block


class KeyLogLines:
    """The lines of all blocks of some captures, which are searched once however many files are written."""

    def __init__(self, files: Sequence[CaptureFile]) -> None:
        bodies = (body for notes in notes_of(files, PCAPNG) for body in notes.secrets)
        self._blocks = {body: BlockLines.read(body) for body in dict.fromkeys(bodies)}

    def of(self, randoms: Iterable[bytes]) -> SecretsFilter:
        """The lines for the sessions of these client randoms (32 bytes each)."""
        wanted = set(randoms)
        without = any(not any(random in block.by_random for block in self._blocks.values()) for random in wanted)

        def chosen(body: bytes) -> bytes:
            block = self._blocks.get(body, BlockLines())
            places = [place for random in wanted for place in block.by_random.get(random, ())]
            places += block.by_key_exchange if without else ()
            return secrets_body(b"".join(block.lines[place] for place in sorted(places))) if places else b""

        return chosen


@dataclass(slots=True)
class Sessions:
    """The connections of some captures, and the lines of their TLS sessions."""

    lines: KeyLogLines
    starts: dict[int, int] = field(default_factory=dict)
    """Reference of each connection's first packet -> the connection's number."""
    randoms: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """Number -> client randoms of each TLS connection with known ones."""

    def secrets_of(self, numbers: Iterable[int]) -> SecretsFilter:
        """The lines for these connections."""
        return self.lines.of(random for number in numbers for random in self.randoms.get(number, ()))


def read_sessions(capture: Capture, watch: Callable[[CapturePass], None] | None = None) -> Sessions:
    """Makes a pass over a capture for its connections."""
    reading = capture.read(keep_connections=True)
    starts: dict[int, int] = {}
    randoms: dict[int, tuple[bytes, ...]] = {}

    def step() -> None:
        closed, reading.connections = reading.connections, []
        for connection in closed:
            values: dict[str, Any] = connection.values
            number = starts[connection.ref] = values["number"]
            if values.get("randoms"):
                randoms[number] = values["randoms"]
        if watch is not None:
            watch(reading)

    reading.watch = step
    for _ in reading.batches():
        pass
    step()
    return Sessions(KeyLogLines(reading.capture_files), starts, randoms)
