"""Key logs: the secrets of TLS sessions, as clients and brokers write them (NSS key log format).

In: lines of text, from files or from Decryption Secrets Blocks of pcapng. Out: secrets by client random, by session id and by
the beginning of an encrypted premaster secret. Law: a line that cannot be read is counted and skipped; the order of the lines
does not matter; nothing is printed. Source: draft-ietf-tls-keylogfile; the RSA lines are those of NSS and of Java agents.
"""

import os
import re
from binascii import unhexlify
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from struct import Struct
from typing import BinaryIO, Final

from kcap import limits
from kcap.limits import KEYLOG_LINE_MAX, SECRET_MAX
from kcap.tls.packed_secrets import PackedSecrets

LABELS: Final = (
    "CLIENT_RANDOM", "CLIENT_EARLY_TRAFFIC_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0", "PMS_CLIENT_RANDOM",
)  # fmt: skip
"""Labels of secrets that decrypt records; exporter and ECH secrets do not."""
MASTERS: Final = [LABELS.index(label) for label in ("CLIENT_RANDOM", "PMS_CLIENT_RANDOM")]
"""Indexes of the labels of TLS before 1.3."""
ENTRY: Final = Struct("<BH")
"""Header of a stored secret: index of its label in LABELS, and its size."""
STORED_ONCE: Final = len(LABELS) * (ENTRY.size + 64)
"""Bytes of a session's secrets above which some are repeated, or differ from others of their label."""
STORED_AT_MOST: Final = limits.TLS_SECRETS_STORED * STORED_ONCE
"""Bytes from which on repeated secrets are dropped with each line."""
PIECE: Final = 1 << 20
"""Bytes of a file that are read at once."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which some editors begin a file."""
TRAFFIC_DIGITS: Final = (64, 96)
"""Number of hexadecimal digits of a secret of TLS 1.3, which is as long as SHA-256 or SHA-384."""
WHOLE: Final = {"CLIENT_RANDOM": (96,), "PMS_CLIENT_RANDOM": range(0, 2 * SECRET_MAX + 1, 2)}
"""Digits of a complete secret of a label, if they are not TRAFFIC_DIGITS."""
ENTRIES: Final = {
    (label.encode(), digits): ENTRY.pack(place, digits // 2)
    for place, label in enumerate(LABELS)
    for digits in WHOLE.get(label, TRAFFIC_DIGITS)
}
"""Header of a stored secret, by its label and its digits. A line that was cut, or is being written, has none."""
ENTRIES.update({(b"EXPORTER_SECRET", digits): b"" for digits in TRAFFIC_DIGITS})
"""Every session of TLS 1.3 has an exporter secret, which is not stored."""
RANDOM_DIGITS: Final = 64
SESSION: Final = re.compile(rb"RSA\s+Session-ID:([0-9a-fA-F]{0,64})\s+Master-Key:([0-9a-fA-F]{96})\s*")
PREMASTER: Final = re.compile(rb"RSA\s+([0-9a-fA-F]{16})\s+([0-9a-fA-F]{96})\s*")
LINE: Final = re.compile(rb"([A-Z][A-Z0-9_]*)\s+([0-9a-fA-F]{64})\s+([0-9a-fA-F]+)\s*")


@dataclass(slots=True)
class GrowingKeyLog:
    """A key log file that may grow while a capture is read."""

    path: str
    read: int = 0
    """Bytes that were taken, up to the end of a line."""

    def copy(self) -> "GrowingKeyLog":
        """Another reader of the file that starts at the same position."""
        return GrowingKeyLog(self.path, self.read)

    def new_lines(self) -> list[bytes]:
        """The complete lines after those that were taken; none if the file is gone. A file that became shorter was written anew
        by a program that restarted."""
        try:
            size = os.stat(self.path).st_size
            if size < self.read:
                self.read = 0
            if size == self.read:
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

    stored: PackedSecrets = field(default_factory=PackedSecrets, repr=False)
    """Client random -> its secrets, each after its `ENTRY`. Of several with one label, the last one is most likely right."""
    by_session: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    """Session id -> master secret."""
    by_premaster: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    """First 8 bytes of an encrypted premaster secret -> premaster secret."""
    unread: int = 0
    """Number of lines that are neither secrets nor comments, and have no label that is known to decrypt nothing."""
    dropped: int = 0
    """Number of lines of sessions after the first TLS_SESSIONS_MAX."""
    _asked: tuple[bytes, dict[str, bytes]] = field(default=(b"", {}), repr=False, compare=False)
    """The last argument of `of` and its result, because a handshake calls it several times."""

    def __bool__(self) -> bool:
        return len(self) > 0

    def __len__(self) -> int:
        """Number of sessions that it has secrets of."""
        return len(self.stored) + len(self.by_session) + len(self.by_premaster)

    @property
    def has_masters(self) -> bool:
        """Whether it has a master or premaster secret, which TLS 1.3 does not have."""
        return bool(self.by_session or self.by_premaster) or any(some[0] in MASTERS for some in self.stored.values())

    def copy(self) -> "KeyLog":
        """A separate key log with the same secrets."""
        return KeyLog(self.stored.copy(), dict(self.by_session), dict(self.by_premaster), self.unread, self.dropped)

    def of(self, random: bytes) -> dict[str, bytes]:
        """The secrets of the session with this client random, by label; of several with one label, the last one."""
        if random != self._asked[0]:
            self._asked = random, unpacked(self.stored.get(random, b""))
        return self._asked[1]

    def variants(self, random: bytes) -> Sequence[dict[str, bytes]]:
        """As `of`, followed by sets with the other secrets of labels that have several."""
        stored = self.stored.get(random, b"")
        return variants(stored)[1:] if stored else ()

    def sessions(self) -> Iterator[tuple[bytes, dict[str, bytes]]]:
        """Yields the client random of each session and its secrets by label, and again for other secrets of the same labels."""
        return ((random, secrets) for random, stored in self.stored.items() for secrets in variants(stored))

    def add_file(self, file: BinaryIO) -> int:
        """Takes the lines of a file, a piece at a time. Returns its number of bytes up to the end of its last complete line."""
        read, taken, rest = 0, 0, b""
        while piece := file.read(PIECE):
            whole = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if whole:
                self.add_lines((rest + piece[:whole]).splitlines())
                taken, rest = read + whole, b""
            read += len(piece)
            rest = (rest + piece[whole:])[:KEYLOG_LINE_MAX]
        self.add_lines(rest.splitlines())
        return taken

    def add(self, text: bytes) -> None:
        """Takes the lines of a key log. Of several for the same session and label, the last few that differ are stored."""
        self.add_file(BytesIO(text))

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Takes lines one at a time."""
        fresh: dict[bytes, bytes] = {}
        for line in lines:
            words = line.removeprefix(BYTE_ORDER_MARK).split()
            if not words or self._secret(words, fresh) or words[0].startswith(b"#"):
                continue
            bare = line.strip()
            if LINE.fullmatch(bare) is not None:
                continue
            self._store(fresh)
            if not self._taken(bare):
                self.unread += 1
        self._store(fresh)

    def _secret(self, words: list[bytes], fresh: dict[bytes, bytes]) -> bool:
        """Takes a line with label, client random and secret into `fresh`, a mapping like `stored`; False for another line."""
        if len(words) != 3 or len(words[1]) != RANDOM_DIGITS or (entry := ENTRIES.get((words[0], len(words[2])))) is None:
            return False
        try:
            both = unhexlify(words[1] + words[2])
        except ValueError:
            return False
        if not entry:
            return True
        random = both[: RANDOM_DIGITS // 2]
        known = fresh.get(random, b"") + entry + both[RANDOM_DIGITS // 2 :]
        fresh[random] = known if len(known) <= STORED_AT_MOST else settled(known)
        return True

    def _store(self, fresh: dict[bytes, bytes]) -> None:
        """Stores the secrets of sessions, and empties `fresh`."""
        for random, secrets in fresh.items():
            known = self.stored.get(random, b"")
            if known or len(self) < limits.TLS_SESSIONS_MAX:
                self.stored[random] = settled(known + secrets) if known or len(secrets) > STORED_ONCE else secrets
            else:
                self.dropped += sum(1 for _ in entries(secrets))
        self._asked = b"", {}
        fresh.clear()

    def _taken(self, line: bytes) -> bool:
        """Takes a line of another form; False if it is none."""
        if len(self) >= limits.TLS_SESSIONS_MAX:
            self.dropped += 1
            return True
        session = SESSION.fullmatch(line)
        if session is not None:
            self.by_session[unhexlify(session[1]) if len(session[1]) % 2 == 0 else b""] = unhexlify(session[2])
            return True
        premaster = PREMASTER.fullmatch(line)
        if premaster is not None:
            self.by_premaster[unhexlify(premaster[1])] = unhexlify(premaster[2])
            return True
        return False


def entries(stored: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the stored secrets of a session, each after the index of its label in LABELS."""
    at = 0
    while at < len(stored):
        place, size = ENTRY.unpack_from(stored, at)
        at += ENTRY.size + size
        yield place, stored[at - size : at]


def unpacked(stored: bytes) -> dict[str, bytes]:
    """The stored secrets of a session by label; of several with one label, the last one."""
    return {LABELS[place]: secret for place, secret in entries(stored)}


def by_label(stored: bytes) -> dict[int, list[bytes]]:
    """The different secrets of each label, by its index in LABELS: the last TLS_SECRETS_TRIED ones, newest first."""
    found: dict[int, dict[bytes, None]] = {}
    for place, secret in reversed(list(entries(stored))):
        found.setdefault(place, {})[secret] = None
    return {place: list(secrets)[: limits.TLS_SECRETS_TRIED] for place, secrets in found.items()}


def variants(stored: bytes) -> list[dict[str, bytes]]:
    """Sets of secrets by label that together contain every stored secret. The first set has the last one of each label."""
    found = by_label(stored)
    count = max(map(len, found.values()), default=0)
    return [{LABELS[place]: some[min(at, len(some) - 1)] for place, some in found.items()} for at in range(count)]


def settled(stored: bytes) -> bytes:
    """The same without repeated secrets, and without those that are not tried."""
    found = by_label(stored)
    return b"".join(ENTRY.pack(place, len(secret)) + secret for place, secrets in found.items() for secret in reversed(secrets))
