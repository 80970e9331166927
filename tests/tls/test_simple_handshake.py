"""Handshakes of TLS 1.3 that are read without a session: the one that is made of them is as if it had read the records."""

import pickle
import struct

import numpy as np
import pytest

from kcap.tls import handshake as messages
from kcap.tls.direction import Direction
from kcap.tls.hello_kernels import hellos
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.simple_handshake import SimpleHandshake, flight_messages, simple_handshake
from tests.support.tls import CLIENT, SERVER, Conversation, converse
from tests.tls.test_batches import flights
from tests.tls.test_session import TALK, secrets_of, talk, vector


def simple(secrets: Secrets, data: bytes, records: list[list[int]]) -> SimpleHandshake | None:
    """As the fast path reads it: none where its hellos are not simple."""
    suites, table = np.empty(1, np.int64), np.zeros((len(records), 7), np.int64)
    table[:, 1:] = np.array(records, np.int64).reshape(-1, 6)
    hellos(np.frombuffer(data, np.uint8), table[:, 1:], np.array([0, len(records)]), suites)
    return simple_handshake(secrets, int(suites[0]), data, records) if suites[0] >= 0 else None


def resumed() -> Conversation:
    """A conversation whose session is taken up from another one, so that no certificate is sent."""
    _, session = converse(TALK)
    return converse(TALK, session=session)[0]


def state(session: TlsSession) -> dict[str, object]:
    """All that a session holds, in a form that can be compared."""
    values = dict(vars(session))
    values["sides"] = [values_of(side) for side in values.pop("sides")]
    values["secrets"] = None
    return values


def values_of(side: Direction) -> dict[str, object]:
    values = {name: getattr(side, name) for name in Direction.__slots__ if name not in ("reader", "epochs")}
    return values | {"epochs": [(epoch.label, epoch.secret, epoch.suite) for epoch in side.epochs]}


@pytest.mark.parametrize("kind", ["rsa", "ec", "resumed"])
def test_the_session_of_a_handshake_is_as_if_it_had_read_the_records(kind: str) -> None:
    made = resumed() if kind == "resumed" else talk("TLSv1_3", None, kind)
    data, records = flights(made.wire)
    wanted, ends = TlsSession(secrets_of(made), whole=True), [0, 0]
    assert wanted.handshake(data, records, ends)
    assert wanted.handshaken
    found = simple(secrets_of(made), data, records)
    assert found is not None
    assert found.read == ends
    assert state(found.session()) == state(wanted)
    assert (wanted.facts.resumed, wanted.facts.subject(SERVER)) == (
        (True, None) if kind == "resumed" else (False, "CN=broker.test")
    )
    found.sides[SERVER].passed(3, 100)
    wanted.passed(SERVER, 3, 100)
    assert state(found.session()) == state(wanted), "records that were opened since count"


def test_what_is_not_a_simple_handshake_is_left_to_a_session() -> None:
    made = talk("TLSv1_3", None)
    data, records = flights(made.wire)
    secrets = secrets_of(made)
    whole = simple(secrets, data, records)
    assert whole is not None
    behind = next(at for at, (side, _, _, _, offset, _) in enumerate(records) if offset >= whole.read[side])
    assert simple(secrets, data, records[:behind]) is not None
    for count in range(behind):
        assert simple(secrets, data, records[:count]) is None, "it goes on behind these"
    for number, (side, kind, at, *rest) in enumerate(records[:behind]):
        if kind == 20:
            continue  # a ChangeCipherSpec says nothing in TLS 1.3
        other = [*records[:number], [side, 21, at, *rest], *records[number + 1 :]]
        assert simple(secrets, data, other) is None, "an alert is in it"
        changed = data[: at + 5] + bytes([data[at + 5] ^ 1]) + data[at + 6 :]
        assert simple(secrets, changed, records) is None, "a record does not authenticate, or is no hello"
    assert simple(Secrets(), data, records) is None, "there are no keys"
    early = Secrets()
    early.keylog.add(made.keylog.replace(b"EXPORTER_SECRET", b"CLIENT_EARLY_TRAFFIC_SECRET"))
    assert simple(early, data, records) is None, "early data may stand in it"
    older = talk("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256")
    assert simple(secrets_of(older), *flights(older.wire)) is None
    request = [CLIENT, 23, *records[-1][2:]]
    assert simple(secrets, data, [*records[: behind - 1], request]) is None, "its last record is another one"


def test_messages_of_a_record_are_whole_and_of_a_flight() -> None:
    """Law: of the messages that a session reads nothing is left out; a Finished ends its flight."""

    def message(number: int, body: bytes = b"x") -> bytes:
        return struct.pack(">I", number << 24 | len(body)) + body

    extensions, chain, proof = message(messages.ENCRYPTED_EXTENSIONS), message(messages.CERTIFICATE), message(15, b"signature")
    finished = message(messages.FINISHED)
    assert flight_messages(extensions + chain + proof + finished) == [extensions, chain, b"", finished]
    assert [flight_messages(one) for one in (chain, proof, finished)] == [[chain], [b""], [finished]]
    for other in (finished + chain, chain[:-1], chain + b"\0", message(messages.KEY_UPDATE), chain + message(4), b"", b"\0\0"):
        assert flight_messages(other) == []
    again = [flight_messages(bytes(bytearray(chain)))[0] for _ in range(2)]
    assert again[0] is again[1], "equal ones are held once"


def test_a_connection_that_closed_goes_to_another_process_without_its_keys() -> None:
    from kcap.fastpath.sealed_connection import ClosedTls, SealedConnection

    made = talk("TLSv1_3", None)
    found = simple(secrets_of(made), *flights(made.wire))
    assert found is not None
    closed = ClosedTls(SealedConnection(found, CLIENT))
    sent = pickle.dumps(closed)
    for secret in secrets_of(made).traffic(found.session().facts.randoms[0]).values():
        assert secret not in sent
    assert pickle.loads(pickle.dumps(pickle.loads(sent))).facts == closed.facts == found.session().facts
    assert pickle.loads(pickle.dumps(closed)).facts == closed.facts, "also once they were made"


def test_a_delegated_credential_beside_a_certificate_changes_nothing() -> None:
    """RFC 9345 section 4: an extension of the certificate's entry, whose key signs the handshake in place of that one's."""
    made = talk("TLSv1_3", None)
    found = simple(secrets_of(made), *flights(made.wire))
    assert found is not None
    at, chain = next(each for each in enumerate(found.contents) if isinstance(each[1], bytes) and each[1][:1] == b"\x0b")
    end = 11 + int.from_bytes(chain[8:11], "big")
    entry = chain[8:end] + vector(
        2, b"\0\x22" + vector(2, bytes(4) + b"\x04\x03" + vector(3, b"key") + vector(2, b"signature"))
    )
    changed = b"\x0b" + vector(3, b"\0" + vector(3, entry))
    assert changed != chain
    contents = [*found.contents[:at], changed, *found.contents[at + 1 :]]
    assert flight_messages(changed) == [changed]
    assert found._replace(contents=contents).session().facts == found.session().facts
    assert found.session().facts.subject(SERVER) == "CN=broker.test"
