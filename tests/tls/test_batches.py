"""Records of a session in good order, read many at a time: the session is as if it had read them itself."""

import pytest

from kcap.tls.batches import FAULT
from kcap.tls.direction import Plaintext
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from tests.support.tls import CLIENT, SERVER
from tests.tls.test_session import read, secrets_of, talk


def test_whole_records_of_a_packet_are_taken_at_once_and_anything_else_is_left() -> None:
    made = talk("TLSv1_3", None)
    session, offsets, taken = TlsSession(secrets_of(made)), [0, 0], [bytearray(), bytearray()]
    for ref, (side, data) in enumerate(made.wire):
        stop, records = session.whole_records(side, data, 0, len(data), ref)
        for record in records:
            taken[side] += record.buffer[: record.size]
        for event in (
            session.data(side, offsets[side] + stop, data[stop:], len(data) - stop, ref, ref, 0) if stop < len(data) else ()
        ):
            assert isinstance(event, Plaintext)
            taken[side] += event.data
        offsets[side] += len(data)
        assert session.whole_records(side, data, 0, len(data), ref) == (0, []), "no record opens twice"
    assert taken == [bytearray(text) for text in made.plain]


@pytest.mark.parametrize(("version", "ciphers"), [("TLSv1_3", None), ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256")])
def test_a_handshake_is_read_up_to_the_first_data_which_is_not_taken(version: str, ciphers: str | None) -> None:
    """What is read from there on is what a session reads that took everything."""
    made = talk(version, ciphers)
    wanted, _ = read(made, secrets_of(made))
    session, offsets, starts = TlsSession(secrets_of(made)), [0, 0], [-1, -1]
    for ref, (side, data) in enumerate(made.wire):
        if starts[side] < 0 and session.feed(side, offsets[side], data, len(data), ref, ref, offsets[side]):
            found = session.to_data(side)
            assert found != FAULT
            starts[side] = -1 if found is None else found
        offsets[side] += len(data)
    assert session.for_batches
    assert min(starts) > 0
    for side in (CLIENT, SERVER):
        sent = b"".join(data for other, data in made.wire if other == side)[starts[side] :]
        again = session.data(side, starts[side], sent, len(sent), 99, 99, 99)
        assert b"".join(event.data for event in again if isinstance(event, Plaintext)) == bytes(made.plain[side])
    assert session.facts.decrypted == wanted.facts.decrypted
    assert (session.facts.handshake_ns, session.facts.ready_ns) == (wanted.facts.handshake_ns, wanted.facts.ready_ns)


def test_what_is_no_handshake_is_not_read_up_to_data() -> None:
    session = TlsSession(Secrets())
    session.feed(CLIENT, 0, b"GET / HTTP/1.1\r\n" + b"\x16\x03\x03\0\4" * 2, 26, 0, 0, 0)
    assert session.to_data(CLIENT) == FAULT
