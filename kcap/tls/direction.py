"""What is known of one side of a TLS connection, and what comes out of it.

In: values that `kcap.tls.session` sets. Out: the keys of a direction as epochs, its place among records, and the events of a
session. Law: values alone, which can be pickled; no secret is in a `repr`.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kcap import limits
from kcap.tls.key_schedule import traffic_keys
from kcap.tls.record_ciphers import Opened, RecordOpener, opener_of
from kcap.tls.records import HEADER, Piece, Record, RecordReader
from kcap.tls.suites import Suite

TLS13: Final = 0x0304
LABELS: Final = (
    ("CLIENT_EARLY_TRAFFIC_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"),
)
"""Secrets of client and server in the order of their use."""


class Span(NamedTuple):
    """Plaintext bytes `start` to `end` came in one packet."""

    start: int
    end: int
    piece: Piece


class Plaintext(NamedTuple):
    """Application data of one record."""

    side: int
    data: bytes
    spans: list[Span]


class LostPlaintext(NamedTuple):
    """Application data that cannot be read, at this place of a direction."""

    side: int
    length: int
    """Bytes, at most."""
    exact: bool
    """Whether `length` is how many there were; without padding and messages of the handshake among them."""
    time_ns: int


@dataclass(slots=True)
class Epoch:
    """One set of keys of one direction."""

    label: str
    opener: RecordOpener
    secret: bytes = field(default=b"", repr=False)
    """Of TLS 1.3, from which the next one follows."""


@dataclass(slots=True)
class Direction:
    """One side of the connection."""

    reader: RecordReader = field(default_factory=RecordReader)
    handshake: bytearray = field(default_factory=bytearray)
    """The beginning of a handshake message whose end is in later records."""
    epochs: list[Epoch] = field(default_factory=list)
    at: int = 0
    """The epoch in use."""
    number: int = 0
    """Of the next record in it."""
    sealed: bool = False
    """Records are encrypted."""
    lost_bytes: int = 0
    """Stream bytes of records since the last one that was opened."""
    lost_records: int = 0
    lost: bool = False
    """The number of the next record is not known."""
    waiting: list[Record] = field(default_factory=list)
    """Encrypted records that came before the keys could be known."""
    ready: bool = False
    """Application data was opened."""
    finished_ns: int | None = None
    """Time of the first encrypted record behind the ServerHello, where none before it is missing. Before TLS 1.3 it is the
    Finished; in TLS 1.3 the client's begins the flight that ends in its Finished.
    """
    budget: int = limits.TLS_TRIAL_BYTES
    """Bytes that may still be spent on trying keys and record numbers."""

    @property
    def in_good_order(self) -> bool:
        """Whether application data was opened, nothing waits or is lost, and the next byte begins a record."""
        return (
            self.ready
            and self.sealed
            and not self.lost
            and not self.lost_bytes
            and not self.waiting
            and not self.handshake
            and self.reader.idle
        )


Event = Plaintext | LostPlaintext


def is_last(epoch: Epoch) -> bool:
    """Whether an epoch is that of application data, from which those behind KeyUpdates follow."""
    return epoch.label.endswith("TRAFFIC_SECRET_0")


def epoch13(label: str, secret: bytes, suite: Suite) -> Epoch | None:
    """Keys of a traffic secret; None where the library has no such cipher."""
    opener = opener_of(TLS13, suite.cipher, traffic_keys(secret, suite))
    return None if opener is None else Epoch(label, opener, secret)


def spans(record: Record, opened: Opened) -> list[Span]:
    """Which packet brought which bytes of a record's plaintext: ciphertext and plaintext keep pace."""
    first = record.offset + HEADER + opened.start
    size, out = len(opened.plaintext), []
    for piece in record.pieces:
        start, end = max(piece.start - first, 0), min(piece.end - first, size)
        if start < end:
            out.append(Span(start, end, piece))
    return out


def epochs13(side: int, suite: Suite, traffic: dict[str, bytes]) -> list[Epoch]:
    """The epochs of a side (0 client, 1 server) of TLS 1.3 whose secrets are known; none where a cipher is missing."""
    size = 48 if suite.hash == "sha384" else 32
    made = []
    for label in LABELS[side]:
        if len(traffic.get(label, b"")) == size:
            epoch = epoch13(label, traffic[label], suite)
            if epoch is None:
                return []
            made.append(epoch)
    return made
