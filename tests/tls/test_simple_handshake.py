"""Handshakes of TLS 1.3 that are read without a session: the one that is made of them is as if it had read the records."""

import pickle
from itertools import accumulate

import numpy as np
import pytest

from kcap.tls import many_records, simple_handshake
from kcap.tls.direction import Direction
from kcap.tls.hello_kernels import hellos
from kcap.tls.key_schedule import traffic_keys
from kcap.tls.libcrypto import functions
from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.simple_handshake import SimpleHandshake, simple_handshakes
from kcap.tls.suites import suite_of
from tests.support.tls import CLIENT, SERVER, Conversation, converse
from tests.tls.test_batches import flights
from tests.tls.test_session import MESSAGES, conversation, secrets_of, vector

Records = list[list[int]]


def simple(secrets: Secrets, data: bytes, records: Records) -> SimpleHandshake | None:
    """As the fast path reads it: none where its hellos are not simple."""
    return together(secrets, data, [records])[0]


def together(secrets: Secrets, data: bytes, handshakes: list[Records]) -> list[SimpleHandshake | None]:
    """The handshakes of several connections, whose records stand in `data`."""
    cuts = np.array([0, *accumulate(map(len, handshakes))])
    suites, table = np.empty(len(handshakes), np.int64), np.zeros((cuts[-1], 7), np.int64)
    table[:, 1:] = np.array([record for records in handshakes for record in records], np.int64).reshape(-1, 6)
    hellos(np.frombuffer(data, np.uint8), table[:, 1:], cuts, suites)
    return simple_handshakes(secrets, suites, data, table[:, 1:], cuts)


def resumed() -> Conversation:
    """A conversation whose session is taken up from another one, so that no certificate is sent."""
    _, session = converse(MESSAGES)
    return converse(MESSAGES, session=session)[0]


def state(session: TlsSession) -> dict[str, object]:
    """All that a session holds, in a form that can be compared."""
    values = dict(vars(session))
    values["sides"] = [values_of(side) for side in values.pop("sides")]
    values["secrets"] = None
    return values


def values_of(side: Direction) -> dict[str, object]:
    values = {name: getattr(side, name) for name in Direction.__slots__ if name not in ("reader", "epochs")}
    return values | {"epochs": [(epoch.label, epoch.secret, epoch.suite) for epoch in side.epochs], "held": side.held}


@pytest.mark.parametrize("kind", ["rsa", "ec", "resumed"])
def test_the_session_of_a_handshake_is_as_if_it_had_read_the_records(kind: str) -> None:
    made = resumed() if kind == "resumed" else conversation("TLSv1_3", None, kind)
    data, records = flights(made.wire)
    wanted, ends = TlsSession(secrets_of(made), whole=True), [0, 0]
    assert wanted.handshake(data, records, ends)
    assert wanted.handshaken
    for side, end in zip(wanted.sides, ends):
        side.shaken(end, b"", [])
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
    made = conversation("TLSv1_3", None)
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
    older = conversation("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256")
    assert simple(secrets_of(older), *flights(older.wire)) is None
    request = [CLIENT, 23, *records[-1][2:]]
    assert simple(secrets, data, [*records[: behind - 1], request]) is None, "its last record is another one"


def test_handshakes_read_together_are_those_that_are_read_alone() -> None:
    """Also beside those that are not simple, and of other suites."""
    made = [conversation("TLSv1_3", None), conversation("TLSv1_3", None, "ec"), resumed(), conversation("TLSv1_3", None)]
    secrets, data, handshakes = Secrets(), b"", []
    for one in made:
        secrets.keylog.add(one.keylog)
        wire, records = flights(one.wire)
        handshakes.append([[side, kind, at + len(data), end + len(data), *rest] for side, kind, at, end, *rest in records])
        data += wire
    last = handshakes[2][-1][2] + 5  # a record of the last but one, and one in the midst of the flight of another
    handshakes[1][4][1] = 21
    data = data[:last] + bytes([data[last] ^ 1]) + data[last + 1 :]
    found = together(secrets, data, [*handshakes, []])
    assert [one is not None for one in found] == [True, False, True, True, False]
    for beside, records in zip(found, handshakes):
        alone = simple(secrets, data, records)
        assert (beside is None) == (alone is None)
        if beside is not None and alone is not None:
            assert state(beside.session()) == state(alone.session())
            assert (beside.read, beside.decrypted) == (alone.read, alone.decrypted)


@pytest.mark.skipif(functions() is None, reason="needs OpenSSL's libcrypto")
def test_no_opener_is_made_of_a_simple_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a session is made of it; its keys are those of the openers that the session has."""
    made = conversation("TLSv1_3", None)
    with monkeypatch.context() as patch:
        patch.setattr(simple_handshake, "RecordOpener", None)
        patch.setattr(many_records, "RecordOpener", None)
        found = simple(secrets_of(made), *flights(made.wire))
    assert found is not None
    for side, direction in zip(found.sides, found.session().sides):
        assert side.packed == side.opener.packed == direction.packed


def test_handshakes_of_several_suites_have_their_own_keys() -> None:
    """Each in its place among the others."""
    numbers = [0x1302, 0x1301, 0x1303, 0x1301]
    given = [bytes([k, which]) * (suite_of(number).hash_bytes // 2) for k, number in enumerate(numbers) for which in range(4)]
    keys, suites = simple_handshake._keys({0x1302: [0], 0x1301: [1, 3], 0x1303: [2]}, given)
    assert suites == list(map(suite_of, numbers))
    for k, suite in enumerate(suites):
        wanted = [traffic_keys(secret, suite) for secret in given[4 * k : 4 * k + 4]]
        assert [RecordOpener.unpacked(row.tobytes(), suite).keys for row in keys[k]] == wanted


def test_chains_of_certificates_are_held_once() -> None:
    made = conversation("TLSv1_3", None)
    found = [simple(secrets_of(made), *flights(made.wire)) for _ in range(2)]
    chains = [one.contents.chains[0] for one in found if one is not None]
    assert chains[0] is chains[1]
    assert chains[0][:1] == b"\x0b"


def test_a_connection_that_closed_goes_to_another_process_without_its_keys() -> None:
    from kcap.fastpath.sealed_connection import ClosedTls, SealedConnection

    made = conversation("TLSv1_3", None)
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
    made = conversation("TLSv1_3", None)
    found = simple(secrets_of(made), *flights(made.wire))
    assert found is not None
    (chain,) = found.contents.chains
    end = 11 + int.from_bytes(chain[8:11], "big")
    entry = chain[8:end] + vector(
        2, b"\0\x22" + vector(2, bytes(4) + b"\x04\x03" + vector(3, b"key") + vector(2, b"signature"))
    )
    changed = b"\x0b" + vector(3, b"\0" + vector(3, entry))
    assert changed != chain
    contents = found.contents._replace(chains=(changed,))
    assert found._replace(contents=contents).session().facts == found.session().facts
    assert found.session().facts.subject(SERVER) == "CN=broker.test"
