"""Records of a session in good order, read many at a time: the session is as if it had read them itself."""

import pytest

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
    session = TlsSession(secrets_of(made))
    starts = session.handshake(*flights(made.wire))
    assert starts is not None
    assert session.for_batches
    assert min(starts) > 0
    for side in (CLIENT, SERVER):
        sent = b"".join(data for other, data in made.wire if other == side)[starts[side] :]
        again = session.data(side, starts[side], sent, len(sent), 99, 99, 99)
        assert b"".join(event.data for event in again if isinstance(event, Plaintext)) == bytes(made.plain[side])
    assert session.facts.decrypted == wanted.facts.decrypted
    assert (session.facts.handshake_ns, session.facts.ready_ns) == (wanted.facts.handshake_ns, wanted.facts.ready_ns)


def flights(wire: list[tuple[int, bytes]]) -> tuple[bytes, list[list[int]]]:
    """The records of a conversation, of which each message is a packet."""
    data, found, offsets = bytearray(), [], [0, 0]
    for time_ns, (side, sent) in enumerate(wire):
        at = 0
        while at < len(sent):
            end = at + 5 + int.from_bytes(sent[at + 3 : at + 5], "big")
            found.append([side, sent[at], len(data) + at, len(data) + end, offsets[side] + at, time_ns])
            at = end
        data += sent
        offsets[side] += len(sent)
    return bytes(data), found


@pytest.mark.parametrize(("version", "ciphers"), [("TLSv1_3", None), ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256")])
def test_a_handshake_that_is_not_whole_or_not_simple_is_left(version: str, ciphers: str | None) -> None:
    made = talk(version, ciphers)
    data, records = flights(made.wire)
    read = TlsSession(secrets_of(made)).handshake(data, records)
    assert read is not None
    last = max(number for number, record in enumerate(records) if record[4] == read[record[0]])
    for count in range(last):
        assert TlsSession(secrets_of(made)).handshake(data, records[:count]) is None, "its end is missing"
    for number in range(last):
        if records[number][4] >= read[records[number][0]]:
            continue  # behind the handshake of its side
        side, _, at, *rest = records[number]
        changed = data[:at] + b"\x15" + data[at + 1 :]
        kinds = [*records[:number], [side, 21, at, *rest], *records[number + 1 :]]
        assert TlsSession(secrets_of(made)).handshake(changed, kinds) is None, "an alert is in it"
    assert TlsSession(Secrets()).handshake(data, records) is None, "there are no keys"


def test_what_is_no_handshake_is_not_read() -> None:
    assert TlsSession(Secrets()).handshake(b"GET / HTTP/1.1\r\n", [[CLIENT, -1, 0, 5, 0, 0]]) is None
