"""Records of a session in good order, read many at a time: the session is as if it had read them itself."""

import pytest

from kcap.tls.direction import Plaintext
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from tests.support.tls import CLIENT, SERVER
from tests.tls.test_session import conversation, read, secrets_of


def test_whole_records_of_a_packet_are_taken_at_once_and_anything_else_is_left() -> None:
    made = conversation("TLSv1_3", None)
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
    made = conversation(version, ciphers)
    wanted, _ = read(made, secrets_of(made))
    session, starts = TlsSession(secrets_of(made)), [0, 0]
    assert session.handshake(*flights(made.wire), starts)
    assert session.handshaken
    for side, at in enumerate(starts):
        session.sides[side].shaken(at, b"", [])
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
def test_a_handshake_in_parts_goes_on_and_one_that_is_not_simple_is_left(version: str, ciphers: str | None) -> None:
    made = conversation(version, ciphers)
    data, records = flights(made.wire)
    whole, ends = TlsSession(secrets_of(made)), [0, 0]
    assert whole.handshake(data, records, ends)
    for count in range(len(records)):
        session, read = TlsSession(secrets_of(made)), [0, 0]
        assert session.handshake(data, records[:count], read)
        assert session.handshake(data, [record for record in records[count:] if record[4] >= read[record[0]]], read)
        assert (session.handshaken, read, session.facts) == (True, ends, whole.facts)
    for number, (side, _, at, *rest) in enumerate(records):
        if rest[1] >= ends[side]:
            continue  # behind the handshake of its side
        changed = data[:at] + b"\x15" + data[at + 1 :]
        kinds = [*records[:number], [side, 21, at, *rest], *records[number + 1 :]]
        assert not TlsSession(secrets_of(made)).handshake(changed, kinds, [0, 0]), "an alert is in it"
    assert not TlsSession(Secrets()).handshake(data, records, [0, 0]), "there are no keys"


def test_a_request_before_the_server_s_finished_is_left_where_no_more_is_there() -> None:
    """The request would come late, behind what the walk brought of other connections."""
    made = conversation("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256")
    data, records = flights(made.wire)
    finished = next(at for at, record in enumerate(records) if record[0] == SERVER and record[1] == 20)
    request = next(record for record in records if record[0] == CLIENT and record[1] == 23)
    early = [*records[:finished], request]
    assert not TlsSession(secrets_of(made)).handshake(data, early, [0, 0])
    assert TlsSession(secrets_of(made)).handshake(data, [*early, *records[finished:]], [0, 0])


def test_what_is_no_handshake_is_not_read() -> None:
    assert not TlsSession(Secrets()).handshake(b"GET / HTTP/1.1\r\n", [[CLIENT, -1, 0, 5, 0, 0]], [0, 0])
