"""Finds the keys that open a record: the expected ones, those of the next epochs, other secrets of the same label, and trials.

In: a session, as far as its handshake was read, and a record. Out: the content of the record, and the direction's position in
its epochs. Law: only what authenticates counts, and the number of trials is bounded by the bytes of a direction.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from kcap import limits
from kcap.tls import handshake as messages
from kcap.tls.direction import Direction, Epoch, epoch13, epochs13, is_last
from kcap.tls.facts import TlsFacts
from kcap.tls.handshake import Hello
from kcap.tls.key_schedule import key_block, next_secret
from kcap.tls.record_ciphers import OpenedRecord, opener_of
from kcap.tls.records import TLS13, TlsRecord
from kcap.tls.secrets import Secrets
from kcap.tls.suites import Suite, suite_of, version_name

SUITES13: Final = (0x1301, 0x1302, 0x1303, 0x1304, 0x1305)
NO_SECRETS: Final[dict[str, bytes]] = {}
"""A single object for all sessions without secrets."""


class KeySearch:
    """The part of a `TlsSession` that opens records."""

    secrets: Secrets
    sides: tuple[Direction, Direction]
    facts: TlsFacts
    traffic: dict[str, bytes]
    master: bytes | None
    client: Hello | None
    server: Hello | None
    suite: Suite | None
    version: int

    def _opened(self, side: int, record: TlsRecord) -> OpenedRecord | None:
        """The content of an encrypted record under any key that opens it; None if there is none."""
        direction = self.sides[side]
        if not direction.epochs and not self._find_keys(side, record):
            return None
        opened = self._tried(side, record)
        if opened is None and not (direction.ready and direction.number):
            for epochs in self._other_epochs(side):
                direction.epochs, before = epochs, direction.epochs
                opened = self._tried(side, record)
                if opened is not None:
                    self.master = direction.epochs[direction.at].master or self.master
                    break
                direction.epochs = before
        if opened is None:
            direction.release()
        return opened

    def _other_epochs(self, side: int) -> Iterator[list[Epoch]]:
        """Yields the epochs of a direction made from the other secrets that key logs have for its labels and client random."""
        direction, suite, client, server = self.sides[side], self.suite, self.client, self.server
        if client is None or suite is None:
            return
        for secrets in self.secrets.variants(client.random):
            if self.version == TLS13:
                yield [Epoch(each.label, None, secrets.get(each.label, each.secret), suite) for each in direction.epochs]
            elif server is not None and direction.hellos == (client, server) and "CLIENT_RANDOM" in secrets:
                epoch = self._epoch12(side, suite, secrets["CLIENT_RANDOM"], client, server)
                yield [epoch] if epoch is not None else []

    def _tried(self, side: int, record: TlsRecord) -> OpenedRecord | None:
        """The content of an encrypted record under the epochs of its direction; None if none opens it."""
        direction = self.sides[side]
        opened = self._open(direction, direction.at, direction.number, record)
        if opened is not None:
            direction.number += 1
            return opened
        begun = (self.client, self.server)[side] is not None
        for later, numbers in direction.candidates(begun=begun):
            if not self._has_epoch(direction, later):
                continue
            for candidate in numbers:
                if direction.budget < 0:
                    break
                opened = self._open(direction, later, candidate, record)
                if opened is not None:
                    direction.move(later, candidate + 1)
                    return opened
        return None

    def _open(self, direction: Direction, at: int, number: int, record: TlsRecord) -> OpenedRecord | None:
        direction.budget -= len(record.body) + limits.TLS_TRIAL_COST
        return direction.epochs[at].opener.open(number, record.content_type, record.version, record.body)

    def _has_epoch(self, direction: Direction, at: int) -> bool:
        """Whether there are keys of an epoch. Those after a KeyUpdate are made when they are needed."""
        epochs = direction.epochs
        while at >= len(epochs) and self.version == TLS13 and self.suite is not None and is_last(epochs[-1]):
            epoch = epoch13(epochs[-1].label, next_secret(epochs[-1].secret, self.suite), self.suite)
            if epoch is None:
                return False
            epochs.append(epoch)
        return at < len(epochs)

    def _find_keys(self, side: int, record: TlsRecord) -> bool:
        """Finds keys of a direction that has none yet, from the handshake or by trial. Returns whether there are any now."""
        if not self.secrets:
            return False
        direction = self.sides[side]
        if self.version and self.version != TLS13 and self.client is not None:
            return False  # ChangeCipherSpec or `_late_keys` makes them
        if self.client is not None and self.suite is not None:
            self.traffic = self.traffic | self.secrets.traffic(self.client.random)
        if self.traffic and self.suite is not None:
            direction.epochs = epochs13(side, self.suite, self.traffic)
            return bool(direction.epochs)
        if self.client is not None and self.server is None:
            return self._try_suites(side, record, self.secrets.traffic(self.client.random), tuple(self.client.suites))
        hidden = self.client is not None and messages.ENCRYPTED_HELLO in self.client.extensions
        if self.client is None or (hidden and not any(each.waiting or each.lost_records for each in self.sides)):
            return self._try_sessions(side, record)
        return False

    def _try_suites(
        self, side: int, record: TlsRecord, traffic: dict[str, bytes], offered: tuple[int, ...], numbers: int | None = None
    ) -> bool:
        """Finds keys of TLS 1.3 without a ServerHello: the length of the secrets gives the hash, and the record shows which
        suite fits. `numbers` is how many record numbers are tried; None depends on how the direction began.
        """
        for number in SUITES13:
            suite = suite_of(number)
            if not traffic or (offered and number not in offered) or self.sides[side].budget < 0:
                continue
            epochs = epochs13(side, suite, traffic)
            for epoch in epochs:
                certain = not self.sides[side].lost and self.client is not None
                span = numbers or (1 if certain else limits.TLS_MIDSTREAM_TRIES)
                for candidate in range(span):
                    if self.sides[side].budget < 0:
                        return False
                    self.sides[side].budget -= len(record.body) + limits.TLS_TRIAL_COST
                    if epoch.opener.open(candidate, record.content_type, record.version, record.body) is not None:
                        self.version, self.suite, self.traffic = TLS13, suite, traffic
                        self.facts.version, self.facts.cipher = version_name(TLS13), suite.name
                        direction = self.sides[side]
                        direction.epochs, direction.at, direction.number = epochs, epochs.index(epoch), candidate
                        return True
        return False

    def _try_sessions(self, side: int, record: TlsRecord) -> bool:
        """Finds keys of a connection whose ClientHello is not in the capture, or is encrypted inside another one. Every session
        of the key log is tried. At first this assumes that the record is the first one under its keys, because trying thousands
        of record numbers of a few sessions would use up the budget.
        """
        offered = tuple(self.server.suites) if self.server is not None else ()
        begun = self.client is not None
        for numbers in (1,) if begun else (1, limits.TLS_MIDSTREAM_TRIES):
            for random, found in islice(self.secrets.sessions(), limits.TLS_HIDDEN_TRIES if begun else None):
                if self.sides[side].budget < 0:
                    return False
                if "CLIENT_RANDOM" not in found and self._try_suites(side, record, found, offered, numbers):
                    self.facts.names(random)
                    return True
        return False

    def _epoch12(self, side: int, suite: Suite, master: bytes, client: Hello, server: Hello) -> Epoch | None:
        """The keys of a master secret; None if the library lacks the cipher."""
        assert suite.cipher is not None
        keys = key_block(self.version, suite, master, client.random, server.random)[side]
        etm = messages.ETM in server.extensions and suite.cipher.kind == "cbc"
        opener = opener_of(self.version, suite.cipher, keys, etm=etm)
        return None if opener is None else Epoch("", opener, master=master)
