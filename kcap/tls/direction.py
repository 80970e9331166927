"""What is known of one side of a TLS connection, and what comes out of it.

In: values that `kcap.tls.session` sets. Out: the keys of a direction as epochs, its place among records, and the events of a
session. Law: values alone, which can be pickled; no secret is in a `repr`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kcap import limits
from kcap.tls.key_schedule import WriteKeys, traffic_keys
from kcap.tls.record_ciphers import OpenedRecord, RecordOpener, Whole, opener_of
from kcap.tls.records import HEADER, TLS13, RecordPiece, RecordReader, TlsRecord
from kcap.tls.suites import RecordCipher, Suite

if TYPE_CHECKING:
    from kcap.tls.handshake import Hello

LABELS: Final = (
    ("CLIENT_EARLY_TRAFFIC_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"),
)
"""Secrets of client and server in the order of their use."""
EARLY: Final = LABELS[0][0]
LAST: Final = frozenset(labels[-1] for labels in LABELS)
SMALLEST_RECORD: Final = HEADER + 17
EPOCHS_AHEAD: Final = 2


class RecordSpan(NamedTuple):
    """Plaintext bytes `start` to `end` came in one packet."""

    start: int
    end: int
    piece: RecordPiece


class Plaintext(NamedTuple):
    """Application data of one record."""

    side: int
    data: bytes
    spans: list[RecordSpan]


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
    made: RecordOpener | None = field(repr=False)
    """What opens its records; None of TLS 1.3 where it is made of the secret when it is used."""
    secret: bytes = field(default=b"", repr=False)
    """Of TLS 1.3, from which the next one follows."""
    suite: Suite | None = None
    """Of TLS 1.3."""
    master: bytes | None = field(default=None, repr=False)
    """The master secret, before TLS 1.3."""

    @property
    def opener(self) -> RecordOpener:
        """What opens its records."""
        if self.made is None:
            assert self.suite is not None
            assert self.suite.cipher is not None
            self.made = RecordOpener(TLS13, self.suite.cipher, traffic_keys(self.secret, self.suite))
        return self.made

    def release(self) -> None:
        """Drops what is quickly made again: keys whose secret is here, else a cipher; connections come by the ten thousand."""
        if self.suite is not None:
            self.made = None
        elif self.made is not None:
            self.made.release()


@dataclass(slots=True)
class Direction:
    """One side of the connection."""

    reader: RecordReader = field(default_factory=RecordReader)
    handshake: bytearray = field(default_factory=bytearray)
    """The beginning of a handshake message whose end is in later records."""
    epochs: list[Epoch] = field(default_factory=list)
    hellos: "tuple[Hello, Hello] | tuple[()]" = ()
    """Before TLS 1.3: those of client and server that the newest keys were made of."""
    at: int = 0
    """The epoch in use."""
    number: int = 0
    """Of the next record in it."""
    sealed: bool = False
    """Records are encrypted."""
    lost_bytes: int = 0
    """Stream bytes of records since the last one that was opened."""
    lost_records: int = 0
    unopened: int = 0
    """Whole ones among the lost records, which no key opened."""
    missing: int = 0
    """Those of the lost bytes that are of no record."""
    lost: bool = False
    """The number of the next record is not known."""
    waiting: list[TlsRecord] | tuple[()] = ()
    """Encrypted records that came before the keys could be known. No list while there are none: connections come by the ten
    thousand.
    """
    over: bool = False
    """Its Finished was read, and application data follows."""
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
        """Whether application data was opened, nothing waits or is lost, and what is held begins a record."""
        return (
            self.ready
            and self.sealed
            and bool(self.epochs)
            and not self.lost
            and not self.lost_bytes
            and not self.waiting
            and not self.handshake
            and self.reader.tidy
        )

    @property
    def opener(self) -> RecordOpener:
        """What opens the next records, where there are keys."""
        return self.epochs[self.at].opener

    @property
    def packed(self) -> bytes:
        """As `RecordOpener.packed`, of the same keys."""
        return self.opener.packed

    def settle(self) -> None:
        """The next record has the number that is due."""
        self.lost = False
        self.lost_bytes = self.lost_records = self.unopened = self.missing = 0

    def unseal(self) -> None:
        """The next records are in the open, and nothing of those before counts: the server refused the early data."""
        self.sealed, self.epochs, self.at, self.number = False, [], 0, 0
        self.waiting = ()
        self.settle()

    def wait(self, record: TlsRecord) -> None:
        """Keeps a record whose keys may still come."""
        self.waiting = self.waiting or []
        self.waiting.append(record)

    def candidates(self, *, begun: bool) -> Iterator[tuple[int, Iterable[int]]]:
        """Epochs and numbers that the next record may have beside those that are due. `begun`: what was sent from the hello on
        is known, or how much of it is missing.

        Each record has a number, so that whole ones count exactly, and bytes of none as many as they have room for. The last
        record before other keys says that they follow (RFC 8446 section 5.1), but for early data that the server refuses: it
        was lost or, of a handshake message that was not understood, opened.
        """
        at, number, unopened = self.at, self.number, self.unopened
        if begun and unopened > limits.TLS_UNOPENED_RECORDS:
            yield at, (number + unopened,)
            return
        room = self.missing if begun else self.lost_bytes
        unseen = min(room // SMALLEST_RECORD + 2, limits.TLS_NUMBER_TRIES) if room or not begun else 0
        unsaid = not begun or number > 0 or self.is_early
        last = self.lost_records + unseen if self.lost else 0
        ahead = [(at + by, last + unsaid - by + 1) for by in range(1, EPOCHS_AHEAD + 1) if by <= last + unsaid]
        for later, _ in ahead:
            yield later, (0,)
        if not self.lost:
            return
        due = number + unopened
        first = due - min(self.lost_records - unopened, due)
        yield at, (candidate for candidate in range(first, due + unseen + 1) if candidate != number)
        for later, count in ahead:
            yield later, range(1, count)

    def move(self, at: int, number: int) -> None:
        """The next record, which no message announced, has this number in this epoch."""
        self.enter(at, number)
        self.release()

    def enter(self, at: int, number: int = 0) -> None:
        """The next record has this number in this epoch."""
        if is_last(self.epochs[at]):  # no record goes back to the keys before
            del self.epochs[:at]
            at, self.over = 0, True
        self.at, self.number = at, number

    def rest(self, again: Callable[[], list[Epoch]]) -> None:
        """No more records are expected: drops ciphers, and all epochs where none opened data and those of `again`, which would
        be made for the next record, are their equals. Connections that ended are held for a while, by the ten thousand.
        """
        for epoch in self.epochs:
            epoch.release()
        if not self.ready and not self.waiting and self.epochs == again():
            self.epochs = []

    def release(self) -> None:
        """Drops the ciphers of epochs that are not in use, and epochs behind KeyUpdates that were tried and opened nothing."""
        last = next((at for at, epoch in enumerate(self.epochs) if is_last(epoch)), len(self.epochs))
        del self.epochs[max(last, self.at) + 1 :]
        for at, epoch in enumerate(self.epochs):
            if at != self.at or not self.number:
                epoch.release()

    @property
    def is_early(self) -> bool:
        """Whether the records at hand are 0-RTT data."""
        return bool(self.epochs) and self.epochs[self.at].label == EARLY

    def handshake_record(self, record: bytes) -> bytes | None:
        """The handshake messages of the next record, header included; None where it does not open, or holds anything else."""
        epoch = self.epochs[self.at]
        content = (epoch.made or epoch.opener).handshake(self.number, record)
        self.budget -= len(record) - HEADER + limits.TLS_TRIAL_COST
        self.number += content is not None
        return content

    def shaken(self, offset: int, data: bytes, pieces: list[RecordPiece] | tuple[()]) -> None:
        """The handshake was read, and ends at this offset; `data` stands behind it, from these packets."""
        self.ready = True
        self.budget += limits.TLS_TRIAL_FACTOR * (offset + len(data))
        self.reader.restart(offset, data, pieces)

    @property
    def held(self) -> tuple[int, bytes, Sequence[RecordPiece]]:
        return self.reader.held()

    def restart(self, offset: int, data: bytes, pieces: list[RecordPiece] | tuple[()]) -> None:
        """As `RecordReader.restart`."""
        self.reader.restart(offset, data, pieces)

    def passed(self, records: int, size: int) -> None:
        """The next records, of `size` bytes, were opened."""
        self.number += records
        self.budget += (limits.TLS_TRIAL_FACTOR - 1) * size - limits.TLS_TRIAL_COST * records

    def whole_records(self, buffer: bytes, at: int, end: int) -> tuple[int, list[Whole]]:
        """Opens the records of application data that lie whole in `buffer[at:end]`; where the first other byte stands."""
        taken: list[Whole] = []
        open_whole, number, start = self.opener.open_whole, self.number, at
        while end - at > HEADER:
            stop = at + HEADER + (buffer[at + 3] << 8 | buffer[at + 4])
            if stop > end:
                break
            inner = open_whole(number, buffer[at:stop])
            if inner is None:
                break
            taken.append(inner)
            number += 1
            at = stop
        if taken:
            self.passed(len(taken), at - start)
        return at, taken

    def lost_before(self, side: int, version: int, time_ns: int) -> "Iterator[Event]":
        """What was lost of the application data since the last record that was opened."""
        if not self.lost_bytes or not self.epochs:
            return
        cipher = self.opener.cipher
        added = 17 if version == TLS13 else {"gcm": 24, "ccm": 24, "ccm8": 16, "chacha": 16}.get(cipher.kind, 0)
        records = max(self.lost_records, 1)
        exact = cipher.kind not in ("cbc", "null") and self.lost_records > 0 and not self.reader.skipped
        yield LostPlaintext(side, max(self.lost_bytes - records * (HEADER + added), 1), exact, time_ns)


Event = Plaintext | LostPlaintext


def is_last(epoch: Epoch) -> bool:
    """Whether an epoch is that of application data, from which those behind KeyUpdates follow."""
    return epoch.label in LAST


def epoch13(label: str, secret: bytes, suite: Suite) -> Epoch | None:
    """Keys of a traffic secret; None where no record of the suite can be opened, which a damaged ServerHello may name."""
    return Epoch(label, None, secret, suite) if opens13(suite) else None


def opens13(suite: Suite) -> bool:
    """Whether records of a suite of TLS 1.3 can be opened, which the library has to have a cipher for."""
    return suite.cipher is not None and _opens13(suite.cipher.kind, suite.cipher.algorithm, suite.cipher.key_bytes)


@cache
def _opens13(kind: str, algorithm: str, key_bytes: int) -> bool:
    return opener_of(TLS13, RecordCipher(kind, algorithm, key_bytes), WriteKeys(bytes(key_bytes), bytes(12))) is not None


def spans(record: TlsRecord, opened: OpenedRecord) -> list[RecordSpan]:
    """Which packet brought which bytes of a record's plaintext: ciphertext and plaintext keep pace."""
    first = record.offset + HEADER + opened.start
    size, out = len(opened.plaintext), []
    for piece in record.pieces:
        start, end = max(piece.start - first, 0), min(piece.end - first, size)
        if start < end:
            out.append(RecordSpan(start, end, piece))
    return out


def epochs13(side: int, suite: Suite, traffic: dict[str, bytes]) -> list[Epoch]:
    """The epochs of a side (0 client, 1 server) of TLS 1.3 whose secrets are known; none where a cipher is missing."""
    if not opens13(suite):
        return []
    known = (label for label in LABELS[side] if len(traffic.get(label, b"")) == suite.hash_bytes)
    return [Epoch(label, None, traffic[label], suite) for label in known]
