"""Handshakes of TLS 1.3 as nearly all connections have them, read without the objects of a session, which takes twice the time.

In: the records of a whole handshake in good order. Out: both directions behind it, and what was read, of which a session is
made when something needs one. Law: that session is as if it had read the records itself; what is not simple is left to one.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from kcap import limits
from kcap.tls import handshake as messages
from kcap.tls.batches import CLIENT, Flight
from kcap.tls.direction import EARLY, LABELS, Direction, Epoch, opens13
from kcap.tls.key_schedule import traffic_keys
from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.records import APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, TLS13
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.suites import RecordCipher, Suite, suite_of
from kcap.tls.turns import Hidden

IN_FLIGHTS: Final = frozenset(
    {
        messages.ENCRYPTED_EXTENSIONS, messages.CERTIFICATE, messages.CERTIFICATE_REQUEST, messages.CERTIFICATE_VERIFY,
        messages.COMPRESSED_CERTIFICATE, messages.FINISHED,
    }
)  # fmt: skip
"""Messages behind the hellos (RFC 8446 section 4)."""
FINISHED: Final = bytes([messages.FINISHED])
SECRETS: Final = [(labels[-2], labels[-1]) for labels in LABELS]
"""Of each side: the labels of its secrets for the handshake and for data."""
RANDOM: Final = slice(HEADER + 6, HEADER + 38)
"""Place of the random in the record of a hello."""


Contents = list[Any]
"""The messages of a handshake, four values each: its side, its bytes, those of its record without the header, and the time of
this. One list, since connections come by the ten thousand, and the collector goes through every object in lists of tuples.
"""

OF_HELLOS: Final = 4 * len(messages.HELLOS)
"""Values of the first two messages."""


class SimpleHandshake(NamedTuple):
    """A handshake that was read."""

    secrets: Secrets
    sides: tuple[Direction, Direction]
    read: list[int]
    """Stream offsets of client and server behind its records."""
    opened: int
    """Encrypted records among these."""
    contents: Contents

    @property
    def decrypted(self) -> int:
        """Records that were opened by now."""
        return self.opened + self.sides[0].number + self.sides[1].number

    def session(self) -> TlsSession:
        """The session, with these directions as they are by now."""
        session = replayed(self.contents, self.decrypted, self.secrets)
        session.sides = self.sides
        return session


def replayed(contents: Contents, decrypted: int, secrets: Secrets) -> TlsSession:
    """A session that took these messages; without secrets it knows the same of the connection."""
    session = TlsSession(secrets, whole=True)
    values = iter(contents)
    for side, message, size, time_ns in zip(values, values, values, values):
        session.replay(side, APPLICATION, message, size, time_ns)
    session.facts.decrypted = decrypted
    return session


def simple_handshake(secrets: Secrets, number: int, data: bytes, records: Sequence[Flight]) -> SimpleHandshake | None:
    """Reads the handshake that the first of these records are, from hellos that agreed on the suite of this number (as
    `hello_kernels` has it) up to the Finished of both sides; None where it is not simple: its secrets are not known, it goes on
    behind the records, holds a message of several, or data before its end.
    """
    agreed = _agreed(number)
    if agreed is None:
        return None
    suite, cipher, refused = agreed
    hello = records[CLIENT][2]
    traffic = secrets.traffic(data[hello + RANDOM.start : hello + RANDOM.stop])
    if EARLY in traffic or any(len(traffic.get(label, b"")) != suite.hash_bytes for labels in SECRETS for label in labels):
        return None
    openers = [RecordOpener(TLS13, cipher, traffic_keys(traffic[begin], suite)) for begin, _ in SECRETS]
    contents: Contents = []
    read, numbers, budgets = [0, 0], [0, 0], [limits.TLS_TRIAL_BYTES] * 2
    finished: list[int | None] = [None, None]
    over = [False, False]
    for side, kind, at, end, offset, time_ns in records:
        size = end - at - HEADER
        if over[side]:
            if side == CLIENT:
                return None  # a request may stand here
            continue
        if kind == APPLICATION:
            if finished[side] is None:
                finished[side] = time_ns
                if side == CLIENT and size in refused:
                    return None
            content = openers[side].handshake(numbers[side], data[at:end])
            found = flight_messages(content) if content else ()
            if not found:
                return None
            numbers[side] += 1
            budgets[side] -= size + limits.TLS_TRIAL_COST
            for message in found:
                contents += (side, message, size, time_ns)
            over[side] = found[-1][:1] == FINISHED
        elif kind == HANDSHAKE and len(contents) < OF_HELLOS:
            contents += (side, data[at + HEADER : end], size, time_ns)
        elif kind != CHANGE_CIPHER_SPEC:
            return None
        read[side] = offset + end - at
        if over[0] and over[1]:
            one, other = (
                Direction(
                    sealed=True, epochs=[Epoch(label, None, traffic[label], suite)], over=True, finished_ns=first, budget=budget
                )
                for (_, label), first, budget in zip(SECRETS, finished, budgets)
            )
            return SimpleHandshake(secrets, (one, other), read, sum(numbers), contents)
    return None


@cache
def _agreed(number: int) -> tuple[Suite, RecordCipher, frozenset[int]] | None:
    """A suite, its cipher, and the lengths of alerts in place of the client's Finished; None where it cannot be opened."""
    suite = suite_of(number)
    if suite.cipher is None or not opens13(suite):
        return None
    return suite, suite.cipher, Hidden.of(suite).handshake_alert


def flight_messages(content: bytes) -> list[bytes]:
    """The messages of a record as far as a session has use for them; none where one is not whole, or not of a flight."""
    if content and len(content) == messages.message_size(content):
        return [useful(content)] if content[0] in IN_FLIGHTS else []
    rest = bytearray(content)
    found = [whole for _, _, whole in messages.messages(rest)]
    numbers = [message[0] for message in found]
    if rest or not IN_FLIGHTS.issuperset(numbers) or messages.FINISHED in numbers[:-1]:
        return []
    return [useful(message) for message in found]


def useful(message: bytes) -> bytes:
    """What a session reads of a message; chains of certificates are kilobytes, and those of a server the same each time."""
    number = message[0]
    if number == messages.CERTIFICATE_VERIFY:
        return b""
    return messages.same(message) if number in messages.CERTIFICATES else message
