"""Handshakes of TLS 1.3 as nearly all connections have them, read without the objects of a session, which takes twice the time.

In: the records of a whole handshake in good order. Out: both directions behind it, and what was read, of which a session is
made when something needs one. Law: that session is as if it had read the records itself; what is not simple is left to one.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kcap import limits
from kcap.tls import handshake as messages
from kcap.tls.batches import APPLICATION, CHANGE_CIPHER_SPEC, CLIENT, HANDSHAKE, Flight
from kcap.tls.direction import EARLY, LABELS, TLS13, Direction, Epoch, opens13
from kcap.tls.key_schedule import traffic_keys
from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.records import HEADER
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.suites import Suite, suite_of
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


Content = tuple[int, bytes, int, int]
"""A message of a handshake: its side, its bytes, those of its record without the header, and the time of this."""


class SimpleHandshake(NamedTuple):
    """A handshake that was read."""

    secrets: Secrets
    sides: tuple[Direction, Direction]
    read: list[int]
    """Stream offsets of client and server behind its records."""
    opened: int
    """Encrypted records among these."""
    contents: list[Content]

    @property
    def decrypted(self) -> int:
        """Records that were opened by now."""
        return self.opened + self.sides[0].number + self.sides[1].number

    def session(self) -> TlsSession:
        """The session, with these directions as they are by now."""
        session = replayed(self.contents, self.decrypted, self.secrets)
        session.sides = self.sides
        return session


def replayed(contents: list[Content], decrypted: int, secrets: Secrets) -> TlsSession:
    """A session that took these messages; without secrets it knows the same of the connection."""
    session = TlsSession(secrets, whole=True)
    for side, message, size, time_ns in contents:
        session.replay(side, APPLICATION, message, size, time_ns)
    session.facts.decrypted = decrypted
    return session


def simple_handshake(secrets: Secrets, data: bytes, records: Sequence[Flight]) -> SimpleHandshake | None:
    """Reads the handshake that the first of these records are, up to the Finished of both sides; None where it is not simple:
    it goes on behind them, is of another version, holds a message of several records, or data before its end.
    """
    contents = hellos_in(data, records)
    suite, traffic = secrets_of(secrets, contents) if contents else (None, {})
    if suite is None or suite.cipher is None:
        return None
    openers = [RecordOpener(TLS13, suite.cipher, traffic_keys(traffic[begin], suite)) for begin, _ in SECRETS]
    refused = Hidden.of(suite).handshake_alert
    sides = Direction(sealed=True), Direction(sealed=True)
    opened, read = 0, [offset + end - at for _, _, at, end, offset, _ in records[:2]]
    for side, kind, at, end, offset, time_ns in records[2:]:
        direction, size = sides[side], end - at - HEADER
        if direction.over:
            if side == CLIENT:
                return None  # a request may stand here
            continue
        if kind == APPLICATION:
            if direction.finished_ns is None:
                direction.finished_ns = time_ns
                if side == CLIENT and size in refused:
                    return None
            content = openers[side].handshake(direction.number, data[at:end])
            found = flight_messages(content) if content else ()
            if not found:
                return None
            opened += 1
            direction.number += 1
            direction.budget -= size + limits.TLS_TRIAL_COST
            contents += [(side, message, size, time_ns) for message in found]
            if found[-1][:1] == FINISHED:
                label = SECRETS[side][1]
                direction.epochs, direction.number, direction.over = [Epoch(label, None, traffic[label], suite)], 0, True
        elif kind != CHANGE_CIPHER_SPEC:
            return None
        read[side] = offset + end - at
        if direction.over and sides[1 - side].over:
            return SimpleHandshake(secrets, sides, read, opened, contents)
    return None


def hellos_in(data: bytes, records: Sequence[Flight]) -> list[Content]:
    """The hellos of client and server, which the first records are; none where these are anything else."""
    found = []
    for expected, (side, kind, at, end, _, time_ns) in enumerate(records[:2]):
        whole = data[at + HEADER : end]
        if side != expected or kind != HANDSHAKE or not len(whole) == messages.message_size(whole) > 0:
            return []
        if whole[0] != messages.HELLOS[side]:
            return []
        found.append((side, whole, len(whole), time_ns))
    return found if len(found) == len(messages.HELLOS) else []


def secrets_of(secrets: Secrets, hellos: list[Content]) -> tuple[Suite | None, dict[str, bytes]]:
    """The suite that was agreed on in hellos without early data, and the secrets by label; no suite where one is not known."""
    client = messages.read_client_hello(hellos[CLIENT][1][4:])
    server = messages.read_server_hello(hellos[1][1][4:])
    if client is None or server is None or server.version != TLS13 or server.is_retry:
        return None, {}
    if messages.EARLY_DATA in client.extensions or messages.COOKIE in client.extensions:
        return None, {}
    suite, traffic = suite_of(server.suites[0]), secrets.traffic(client.random)
    for begin, data in SECRETS:
        if len(traffic.get(begin, b"")) != suite.hash_bytes or len(traffic.get(data, b"")) != suite.hash_bytes:
            return None, {}
    return (suite if EARLY not in traffic and opens13(suite) else None), traffic


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
