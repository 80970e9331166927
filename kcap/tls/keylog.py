"""Key logs: the secrets of TLS sessions, as clients and brokers write them (NSS key log format).

In: lines of text, from files or from Decryption Secrets Blocks of pcapng. Out: secrets by client random, by session id and by
the beginning of an encrypted premaster secret. Law: a line that does not read is counted and passed over; the order of the
lines does not matter; nothing is printed. Source: draft-ietf-tls-keylogfile; the RSA lines are those of NSS and of Java agents.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kcap import limits

LABELS: Final = frozenset({
    "CLIENT_RANDOM", "CLIENT_EARLY_TRAFFIC_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0", "PMS_CLIENT_RANDOM",
})  # fmt: skip
"""What decrypts records; exporter and ECH secrets do not."""
MASTER_DIGITS: Final = 96
SESSION: Final = re.compile(rb"RSA\s+Session-ID:([0-9a-fA-F]*)\s+Master-Key:([0-9a-fA-F]{96})\s*")
PREMASTER: Final = re.compile(rb"RSA\s+([0-9a-fA-F]{16})\s+([0-9a-fA-F]{96})\s*")
LINE: Final = re.compile(rb"([A-Z][A-Z0-9_]*)\s+([0-9a-fA-F]{64})\s+([0-9a-fA-F]+)\s*")


@dataclass(slots=True)
class GrowingKeyLog:
    """A key log file that may grow while a capture is read."""

    path: str
    read: int = 0
    """Bytes that were taken, up to the end of a line."""

    def copy(self) -> "GrowingKeyLog":
        """Another reading from the same place on."""
        return GrowingKeyLog(self.path, self.read)

    def new_lines(self) -> list[bytes]:
        """The whole lines behind those that were taken; none where the file is gone or shorter than before."""
        try:
            if os.stat(self.path).st_size <= self.read:
                return []
            with open(self.path, "rb") as file:
                file.seek(self.read)
                text = file.read()
        except OSError:
            return []
        text = text[: text.rfind(b"\n") + 1]
        self.read += len(text)
        return text.splitlines()


@dataclass(slots=True)
class KeyLog:
    """The secrets of one or several key logs."""

    by_random: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False)
    """Client random -> label -> secret."""
    by_session: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    """Session id -> master secret."""
    by_premaster: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    """First 8 bytes of an encrypted premaster secret -> premaster secret."""
    unread: int = 0
    """Lines that are neither secrets, comments nor of a label that decrypts nothing."""

    def __bool__(self) -> bool:
        return bool(self.by_random or self.by_session or self.by_premaster)

    def copy(self) -> "KeyLog":
        """A key log of its own with the same secrets."""
        by_random = {random: dict(found) for random, found in self.by_random.items()}
        return KeyLog(by_random, dict(self.by_session), dict(self.by_premaster), self.unread)

    def add(self, text: bytes) -> None:
        """Takes the lines of a key log; later lines for the same session and label replace earlier ones."""
        self.add_lines(text.splitlines())

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Takes lines one at a time."""
        for line in lines:
            bare = line.strip()
            if not bare or bare.startswith(b"#"):
                continue
            if len(self.by_random) >= limits.TLS_SESSIONS_MAX or not self._taken(bare):
                self.unread += 1

    def _taken(self, line: bytes) -> bool:
        found = LINE.fullmatch(line)
        if found is not None:
            label, random, secret = found.groups()
            whole = len(secret) == MASTER_DIGITS or label != b"CLIENT_RANDOM"  # else the file is being written to
            if label.decode() in LABELS and len(secret) % 2 == 0 and whole:
                self.by_random.setdefault(bytes.fromhex(random.decode()), {})[label.decode()] = bytes.fromhex(secret.decode())
            return True
        session = SESSION.fullmatch(line)
        if session is not None:
            self.by_session[bytes.fromhex(session[1].decode()) if len(session[1]) % 2 == 0 else b""] = bytes.fromhex(
                session[2].decode()
            )
            return True
        premaster = PREMASTER.fullmatch(line)
        if premaster is not None:
            self.by_premaster[bytes.fromhex(premaster[1].decode())] = bytes.fromhex(premaster[2].decode())
            return True
        return False
