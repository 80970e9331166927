"""What a TLS session offers to those that read its records many at a time: where that may begin, what was read elsewhere.

In: a session. Out: whole records of a packet; the place of the first application data behind a handshake. Law: the session is
as if it had read every record itself.
"""

from typing import Final

from kcap.tls.direction import TLS13, Direction, Event, is_last
from kcap.tls.early_data import EarlyData
from kcap.tls.facts import TlsFacts
from kcap.tls.handshake import Hello
from kcap.tls.record_ciphers import Opened, Whole
from kcap.tls.records import HEADER, Record
from kcap.tls.turns import Seen, Turns

CHANGE_CIPHER_SPEC, APPLICATION = 20, 23
CLIENT: Final = 0
FAULT: Final = -1
"""What `InBatches.to_data` returns for a handshake that it does not read."""


class InBatches:
    """The part of a `TlsSession` that reads records in good order."""

    sides: tuple[Direction, Direction]
    facts: TlsFacts
    turns: Turns | None
    client: Hello | None
    version: int
    early: EarlyData
    events: list[Event]

    def _record(self, side: int, record: Record) -> None:
        """Takes a record, whatever it is."""
        raise NotImplementedError

    def _open(self, direction: Direction, at: int, number: int, record: Record) -> Opened | None:
        """The content of a record under one key and number."""
        raise NotImplementedError

    def _content(self, side: int, record: Record, opened: Opened) -> None:
        """Takes the content of a record."""
        raise NotImplementedError

    def _time_handshake(self, direction: Direction, record: Record) -> None:
        """Notes when a handshake ended."""
        raise NotImplementedError

    def whole_records(self, side: int, buffer: bytes, at: int, end: int, time_ns: int) -> tuple[int, list[Whole]]:
        """Opens the records of application data that lie whole in `buffer[at:end]`, the next stream bytes, all in one packet.

        Returns where the first byte stands that was not taken, for `feed`, and the plaintext of the records before it. This is
        `data` for a direction in good order, without what only handshakes and losses need: it stops at any other record.
        """
        direction = self.sides[side]
        if not direction.reader.idle or not self.in_good_order(side):
            return at, []
        after, taken = direction.whole_records(buffer, at, end)
        self.facts.decrypted += len(taken)
        while self.turns is not None and at < after:
            length = buffer[at + 3] << 8 | buffer[at + 4]
            self.turns.record(Seen(side, time_ns, time_ns, length, whole=True))
            at += HEADER + length
        return after, taken

    def in_good_order(self, side: int) -> bool:
        """Whether the next record of a direction may be opened without what only handshakes and losses need."""
        direction = self.sides[side]
        known = direction.finished_ns is not None or self.facts.handshake_ns is not None or self.client is None
        return known and direction.in_good_order

    @property
    def for_batches(self) -> bool:
        """Whether the records of both directions may be opened many at a time."""
        return self.turns is None and all(self.in_good_order(side) and self.sides[side].opener.opens_many for side in (0, 1))

    def passed(self, side: int, records: int, size: int) -> None:
        """The next records of a direction, of `size` bytes, were opened elsewhere."""
        self.sides[side].passed(records, size)
        self.facts.decrypted += records

    def to_data(self, side: int) -> int | None:
        """Reads the records of a direction up to the first one of application data. Returns the stream offset of that one,
        which is forgotten as if it had not come yet; None while it is not there, FAULT where the handshake is not simple.
        """
        direction = self.sides[side]
        reader = direction.reader
        while (record := reader.next()) is not None:
            if record.proposed or record.behind or not record.whole:
                return FAULT
            if record.content_type == APPLICATION and self._only_data_follows(side, direction):
                direction.ready = True
                reader.restart(record.offset, b"", [])
                return record.offset
            if not (direction.sealed and direction.epochs and self._opens_next(side, direction, record)):
                self._record(side, record)
            if direction.ready and direction.number and len(self.events) <= 1 and not self.early.held:
                self.events.clear()
                direction.number -= 1
                self.facts.decrypted -= 1
                reader.restart(record.offset, b"", [])
                return record.offset
            if direction.ready or direction.waiting or self.events:
                return FAULT
        return None

    def _only_data_follows(self, side: int, direction: Direction) -> bool:
        """Whether a record of application data by its outer type is one, but for rare messages behind the handshake: before
        TLS 1.3, and behind the client's Finished, while session tickets stand behind the server's.
        """
        if self.version != TLS13:
            return self.facts.ready_ns is not None and bool(direction.epochs)
        return side == CLIENT and self.facts.handshake_ns is not None and is_last(direction.epochs[direction.at])

    def _opens_next(self, side: int, direction: Direction, record: Record) -> bool:
        """Takes a record if it is the next one under the present key; nothing waits for keys, and nothing is lost."""
        if record.content_type == CHANGE_CIPHER_SPEC:
            return False
        opened = self._open(direction, direction.at, direction.number, record)
        if opened is None:
            return False
        if self.facts.handshake_ns is None:
            self._time_handshake(direction, record)
        direction.number += 1
        self._content(side, record, opened)
        return True
