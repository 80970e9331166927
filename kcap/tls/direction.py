"""The state of one direction of a TLS connection, and the events that a session produces.

In: values that `kcap.tls.session` sets. Out: the keys of a direction as epochs, its position among records, and the events of a
session. Law: the state consists of plain values, which can be pickled; no secret is in a `repr`.
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
"""Labels of the secrets of client and server, in the order of their use."""
EARLY: Final = LABELS[0][0]
LAST: Final = frozenset(labels[-1] for labels in LABELS)
SMALLEST_RECORD: Final = HEADER + 17
EPOCHS_AHEAD: Final = 2


class RecordSpan(NamedTuple):
    """Plaintext bytes `start` to `end`, which one packet carried."""

    start: int
    end: int
    piece: RecordPiece


class Plaintext(NamedTuple):
    """Application data of one record."""

    side: int
    data: bytes
    spans: list[RecordSpan]


class LostPlaintext(NamedTuple):
    """Application data that cannot be read, at this position of a direction."""

    side: int
    length: int
    """Number of bytes, at most."""
    exact: bool
    """Whether `length` is exact, without padding and handshake messages."""
    time_ns: int


@dataclass(slots=True)
class Epoch:
    """One set of keys of one direction."""

    label: str
    made: RecordOpener | None = field(repr=False)
    """The opener of its records; None in TLS 1.3 until it is made from the secret on first use."""
    secret: bytes = field(default=b"", repr=False)
    """The traffic secret of TLS 1.3, from which the next one is derived."""
    suite: Suite | None = None
    """The suite, in TLS 1.3."""
    master: bytes | None = field(default=None, repr=False)
    """The master secret, before TLS 1.3."""

    @property
    def opener(self) -> RecordOpener:
        """The opener of its records."""
        if self.made is None:
            assert self.suite is not None
            assert self.suite.cipher is not None
            self.made = RecordOpener(TLS13, self.suite.cipher, traffic_keys(self.secret, self.suite))
        return self.made

    def release(self) -> None:
        """Drops objects that are quickly made again: keys whose secret is stored, otherwise a cipher. There are tens of
        thousands of connections.
        """
        if self.suite is not None:
            self.made = None
        elif self.made is not None:
            self.made.release()


@dataclass(slots=True)
class Direction:
    """One side of the connection."""

    reader: RecordReader = field(default_factory=RecordReader)
    handshake: bytearray = field(default_factory=bytearray)
    """The beginning of an incomplete handshake message."""
    epochs: list[Epoch] = field(default_factory=list)
    hellos: "tuple[Hello, Hello] | tuple[()]" = ()
    """Before TLS 1.3, the hellos of client and server from which the newest keys were made."""
    at: int = 0
    """Index of the current epoch."""
    number: int = 0
    """Number of the next record in that epoch."""
    sealed: bool = False
    """Whether records are encrypted."""
    lost_bytes: int = 0
    """Stream bytes of records since the last one that was opened."""
    lost_records: int = 0
    unopened: int = 0
    """Number of complete records among the lost ones, which no key opened."""
    missing: int = 0
    """Lost bytes that belong to no record."""
    lost: bool = False
    """Whether the number of the next record is unknown."""
    waiting: list[TlsRecord] | tuple[()] = ()
    """Encrypted records that came before their keys could be known. It is not a list while there are none, because there are
    tens of thousands of connections.
    """
    over: bool = False
    """Whether its Finished was read, so that application data follows."""
    ready: bool = False
    """Whether application data was opened."""
    finished_ns: int | None = None
    """Time of the first encrypted record after the ServerHello, if none before it is missing. Before TLS 1.3 this record is the
    Finished; in TLS 1.3 the client's one begins the flight that ends in its Finished.
    """
    budget: int = limits.TLS_TRIAL_BYTES
    """Bytes that may still be spent on trying keys and record numbers."""

    @property
    def in_good_order(self) -> bool:
        """Whether application data was opened, nothing waits or is lost, and the held bytes begin a record."""
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
        """The opener of the next records; None if there are no keys."""
        return self.epochs[self.at].opener

    @property
    def packed(self) -> bytes:
        """As `RecordOpener.packed`, for the current keys."""
        return self.opener.packed

    def settle(self) -> None:
        """The next record has the expected number."""
        self.lost = False
        self.lost_bytes = self.lost_records = self.unopened = self.missing = 0

    def unseal(self) -> None:
        """The next records are not encrypted, and everything before them is reset: the server refused the early data."""
        self.sealed, self.epochs, self.at, self.number = False, [], 0, 0
        self.waiting = ()
        self.settle()

    def wait(self, record: TlsRecord) -> None:
        """Stores a record whose keys may still come."""
        self.waiting = self.waiting or []
        self.waiting.append(record)

    def candidates(self, *, begun: bool) -> Iterator[tuple[int, Iterable[int]]]:
        """Yields epochs and numbers that the next record may have instead of the expected ones. `begun`: everything sent since
        the hello is known, or how much of it is missing.

        Each record has a number. Complete records are counted exactly; bytes that belong to no record count as many records as
        fit into them. The last record before a change of keys announces it (RFC 8446 section 5.1), except for early data that
        the server refuses. That record was lost, or it was opened but had a handshake message that was not understood.
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
        """The next record has this number in this epoch, although no message announced it."""
        self.enter(at, number)
        self.release()

    def enter(self, at: int, number: int = 0) -> None:
        """The next record has this number in this epoch."""
        if is_last(self.epochs[at]):  # no record goes back to earlier keys
            del self.epochs[:at]
            at, self.over = 0, True
        self.at, self.number = at, number

    def rest(self, again: Callable[[], list[Epoch]]) -> None:
        """No more records are expected: drops ciphers. It also drops all epochs if none has opened data and they equal those of
        `again`, which would be made for the next record. Connections that ended are held for a while, in tens of thousands.
        """
        for epoch in self.epochs:
            epoch.release()
        if not self.ready and not self.waiting and self.epochs == again():
            self.epochs = []

    def release(self) -> None:
        """Drops the ciphers of epochs that are not in use, and epochs after KeyUpdates that were tried and opened nothing."""
        last = next((at for at, epoch in enumerate(self.epochs) if is_last(epoch)), len(self.epochs))
        del self.epochs[max(last, self.at) + 1 :]
        for at, epoch in enumerate(self.epochs):
            if at != self.at or not self.number:
                epoch.release()

    @property
    def is_early(self) -> bool:
        """Whether the current records are 0-RTT data."""
        return bool(self.epochs) and self.epochs[self.at].label == EARLY

    def handshake_record(self, record: bytes) -> bytes | None:
        """The handshake messages of the next record, with their headers; None if it does not open, or contains anything
        else.
        """
        epoch = self.epochs[self.at]
        content = (epoch.made or epoch.opener).handshake(self.number, record)
        self.budget -= len(record) - HEADER + limits.TLS_TRIAL_COST
        self.number += content is not None
        return content

    def shaken(self, offset: int, data: bytes, pieces: list[RecordPiece] | tuple[()]) -> None:
        """The handshake was read and ends at this offset. `data` follows it, from these packets."""
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
        """Opens the records of application data that are complete in `buffer[at:end]`. Returns the position of the first other
        byte, and their plaintext.
        """
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
        """Yields the application data that was lost since the last record that was opened."""
        if not self.lost_bytes or not self.epochs:
            return
        cipher = self.opener.cipher
        added = 17 if version == TLS13 else {"gcm": 24, "ccm": 24, "ccm8": 16, "chacha": 16}.get(cipher.kind, 0)
        records = max(self.lost_records, 1)
        exact = cipher.kind not in ("cbc", "null") and self.lost_records > 0 and not self.reader.skipped
        yield LostPlaintext(side, max(self.lost_bytes - records * (HEADER + added), 1), exact, time_ns)


Event = Plaintext | LostPlaintext


def is_last(epoch: Epoch) -> bool:
    """Whether an epoch is that of application data, from which those after KeyUpdates follow."""
    return epoch.label in LAST


def epoch13(label: str, secret: bytes, suite: Suite) -> Epoch | None:
    """Keys of a traffic secret; None if no record of the suite can be opened. A damaged ServerHello may name such a suite."""
    return Epoch(label, None, secret, suite) if opens13(suite) else None


def opens13(suite: Suite) -> bool:
    """Whether records of a suite of TLS 1.3 can be opened, for which the library needs its cipher."""
    return suite.cipher is not None and _opens13(suite.cipher.kind, suite.cipher.algorithm, suite.cipher.key_bytes)


@cache
def _opens13(kind: str, algorithm: str, key_bytes: int) -> bool:
    return opener_of(TLS13, RecordCipher(kind, algorithm, key_bytes), WriteKeys(bytes(key_bytes), bytes(12))) is not None


def spans(record: TlsRecord, opened: OpenedRecord) -> list[RecordSpan]:
    """Which packet carried which bytes of a record's plaintext; plaintext bytes are in the order of their ciphertext."""
    first = record.offset + HEADER + opened.start
    size, out = len(opened.plaintext), []
    for piece in record.pieces:
        start, end = max(piece.start - first, 0), min(piece.end - first, size)
        if start < end:
            out.append(RecordSpan(start, end, piece))
    return out


def epochs13(side: int, suite: Suite, traffic: dict[str, bytes]) -> list[Epoch]:
    """The epochs of a side (0 client, 1 server) of TLS 1.3 whose secrets are known; none if a cipher is missing."""
    if not opens13(suite):
        return []
    known = (label for label in LABELS[side] if len(traffic.get(label, b"")) == suite.hash_bytes)
    return [Epoch(label, None, traffic[label], suite) for label in known]
