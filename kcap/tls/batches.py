"""The interface of a TLS session for code that reads records in batches and holds many sessions.

In: a session. Out: the complete records in a packet, and the position of the first application data after a handshake. Law: the
session is as if it had read every record itself.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from kcap.tls.direction import Direction, Epoch, Event, epochs13
from kcap.tls.early_data import EarlyData
from kcap.tls.key_search import NO_SECRETS, KeySearch
from kcap.tls.record_ciphers import Whole
from kcap.tls.records import APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, TLS13
from kcap.tls.turns import Hidden, Seen, Turns

CLIENT: Final = 0
Flight = list[int]
"""A record of a handshake: its side, content type, start and end in the gathered bytes, stream offset, and the time of the
packet that completed it.
"""


class InBatches(KeySearch):
    """The part of a `TlsSession` that reads well-ordered records."""

    turns: Turns | None
    refused: bool
    early: EarlyData
    events: list[Event]

    def _handshake(self, side: int, data: bytes, time_ns: int) -> None:
        """Takes the content of a handshake record."""
        raise NotImplementedError

    def _change_keys(self, side: int) -> None:
        """Takes a ChangeCipherSpec before TLS 1.3."""
        raise NotImplementedError

    def whole_records(self, side: int, buffer: bytes, at: int, end: int, time_ns: int) -> tuple[int, list[Whole]]:
        """Opens the records of application data that are complete in `buffer[at:end]`, which are the next stream bytes, all in
        one packet.

        Returns the position of the first byte that was not taken, which is for `feed`, and the plaintext of the records before
        it. It does what `data` does for a well-ordered direction, without the parts that only handshakes and losses need, and
        stops at any other record.
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
        """Whether the next record of a direction can be opened without the parts that only handshakes and losses need."""
        direction = self.sides[side]
        known = direction.finished_ns is not None or self.facts.handshake_ns is not None or self.client is None
        return known and direction.in_good_order

    @property
    def for_batches(self) -> bool:
        """Whether the records of both directions can be opened in batches."""
        if self.turns is not None or not self.in_good_order(0) or not self.in_good_order(1):
            return False
        one, other = self.sides
        return one.opener.opens_many and other.opener.opens_many

    def passed(self, side: int, records: int, size: int) -> None:
        """The next records of a direction, of `size` bytes, were opened elsewhere."""
        self.sides[side].passed(records, size)
        self.facts.decrypted += records

    def rest(self) -> None:
        """No more bytes are expected: drops keys that the key log has, which are restored if more bytes come after all."""
        for side, direction in enumerate(self.sides):
            direction.rest(partial(self._again, side))
        if self.client is not None:
            self.traffic = NO_SECRETS

    def _again(self, side: int) -> list[Epoch]:
        """The epochs that would be made for the next record if a direction had none."""
        found = self.traffic if self.client is None else self.secrets.traffic(self.client.random)
        return [] if self.suite is None else epochs13(side, self.suite, found)

    @property
    def handshaken(self) -> bool:
        """Whether the Finished messages of both directions were read, so that application data follows."""
        return self.sides[0].over and self.sides[1].over

    def handshake(self, data: bytes, flights: Iterable[Flight], read: list[int]) -> bool:
        """Reads the next records of both directions, up to the Finished of each, and stores in `read` the stream offset after
        the last record of each. Returns False if the handshake is not simple; the session must not be used then.
        """
        sides, ahead = self.sides, False
        for side, kind, at, end, offset, time_ns in flights:
            direction = sides[side]
            if direction.over:
                if sides[1 - side].over:
                    break
                ahead = ahead or side == CLIENT  # a request may be here
                continue
            if direction.sealed and (kind != CHANGE_CIPHER_SPEC or self.version != TLS13):
                content = direction.handshake_record(data[at:end]) if direction.epochs else None
                if content is None:
                    return False
                self.replay(side, kind, content, end - at - HEADER, time_ns)
            elif kind == HANDSHAKE:
                self._handshake(side, data[at + HEADER : end], time_ns)
            elif kind != CHANGE_CIPHER_SPEC or not self.version:
                return False
            elif self.version != TLS13:
                self._change_keys(side)
            read[side] = offset + end - at
        if self.events or self.early.held or self.refused:
            return False
        return self.handshaken or not ahead

    def replay(self, side: int, kind: int, content: bytes, size: int, time_ns: int) -> None:
        """Takes the handshake messages of a record with this outer content type and size, which was opened if the side
        encrypts.
        """
        direction = self.sides[side]
        if direction.sealed:
            if direction.finished_ns is None:
                self._time_handshake(direction, kind, size, time_ns)
            self.facts.decrypted += 1
        self._handshake(side, content, time_ns)

    def _time_handshake(self, direction: Direction, kind: int, size: int, time_ns: int, *, whole: bool = True) -> None:
        """Stores when a direction's handshake ended, given its first encrypted record: the outer content type, the length, and
        the time at which it was complete.
        """
        client, first = self.client, direction.finished_ns is None
        if not first or client is None or self.server is None or self.facts.hello_ns is None:
            return
        if direction.lost_bytes or (self.version == TLS13 and self.early.offered):
            return
        if kind != (APPLICATION if self.version == TLS13 else HANDSHAKE):
            return
        if self.version == TLS13 and direction is self.sides[CLIENT] and whole and self.suite is not None:
            self.refused = size in Hidden.of(self.suite).handshake_alert
            if self.refused:
                return
        direction.finished_ns = time_ns
        ends = [side.finished_ns for side in self.sides if side.finished_ns is not None]
        if len(ends) == 2:
            self.facts.handshake_ns = max(ends) - self.facts.hello_ns
