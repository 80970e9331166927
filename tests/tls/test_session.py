"""TLS read from the side: what OpenSSL said is what is read, and never anything else."""

import pickle
import random
import ssl
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap import limits
from kcap.tls.direction import LostPlaintext, Plaintext, epoch13
from kcap.tls.files import read_secrets
from kcap.tls.handshake import TICKET
from kcap.tls.key_schedule import next_secret
from kcap.tls.record_ciphers import OpenedRecord, RecordOpener
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from tests.support.tls import CLIENT, SERVER, Conversation, Sealer, certificate, converse

MESSAGES = [
    (CLIENT, b"first request"),
    (SERVER, b"first response" * 9),
    (CLIENT, bytes(40_000)),
    (SERVER, b"x" * 70_001),
    (CLIENT, b"end"),
]
LEFT_OUT = ("PSK", "SRP", "DSS")
"""Suites that Python's ssl cannot be set up for."""


def local_suites() -> list[tuple[str, str | None, str]]:
    """Every suite that the OpenSSL of this Python has, with the version and the key of a certificate for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    names = [str(suite["name"]) for suite in context.get_ciphers()]
    old = [name for name in names if not name.startswith("TLS_") and not any(word in name for word in LEFT_OUT)]
    found: list[tuple[str, str | None, str]] = [("TLSv1_3", None, "rsa"), ("TLSv1_3", None, "ecdsa")]
    found += [("TLSv1_2", name, "ecdsa" if "ECDSA" in name else "rsa") for name in old]
    return found + [
        (version, name, "rsa") for version in ("TLSv1", "TLSv1_1") for name in ("AES128-SHA", "ECDHE-RSA-AES256-SHA")
    ]


def secrets_of(made: Conversation) -> Secrets:
    secrets = Secrets()
    secrets.keylog.add(made.keylog)
    return secrets


def vector(size: int, data: bytes) -> bytes:
    return len(data).to_bytes(size, "big") + data


def conversation(version: str, ciphers: str | None, kind: str = "rsa") -> Conversation:
    try:
        return converse(MESSAGES, version=version, ciphers=ciphers, kind=kind)[0]
    except (ssl.SSLError, ValueError) as error:
        pytest.skip(f"OpenSSL here does not have it: {error}")


def read(made: Conversation, secrets: Secrets, cut: int = 1 << 20) -> tuple[TlsSession, list[Plaintext | LostPlaintext]]:
    """What a session reads of it, in pieces of at most `cut` bytes."""
    session, events, offsets = TlsSession(secrets), [], [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        for at in range(0, len(data), cut):
            piece = data[at : at + cut]
            events += session.data(side, offsets[side], piece, len(piece), ref, ref, offsets[side])
            offsets[side] += len(piece)
    return session, events + list(session.finish())


def plain(events: list[Plaintext | LostPlaintext], side: int) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Plaintext) and event.side == side)


@pytest.mark.parametrize(("version", "ciphers", "kind"), local_suites())
def test_every_suite_is_read(version: str, ciphers: str | None, kind: str) -> None:
    made = conversation(version, ciphers, kind)
    session, events = read(made, secrets_of(made))
    assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]
    assert not any(isinstance(event, LostPlaintext) for event in events)
    assert (
        session.facts.version
        == {"TLSv1": "TLS 1.0", "TLSv1.1": "TLS 1.1", "TLSv1.2": "TLS 1.2", "TLSv1.3": "TLS 1.3"}[made.version]
    )
    assert session.facts.hello is not None
    assert session.facts.hello.server_name == "broker.test"
    anonymous = (ciphers or "").startswith(("ADH", "AECDH"))
    assert session.facts.subject(1) == (None if anonymous else "CN=broker.test")


@pytest.mark.parametrize("ciphers", ["AES128-GCM-SHA256", "AES256-SHA", "AES128-SHA256"])
def test_a_private_key_alone_reads_an_rsa_key_exchange(ciphers: str) -> None:
    made = conversation("TLSv1_2", ciphers)
    _, events = read(made, Secrets(private_keys=[certificate("rsa")[1]]))
    assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]


def test_a_private_key_does_not_read_a_key_exchange_with_forward_secrecy() -> None:
    made = conversation("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256")
    session, events = read(made, Secrets(private_keys=[certificate("rsa")[1]]))
    assert plain(events, CLIENT) == b""
    assert session.facts.why == "the key log has no secret of this session"


@pytest.mark.parametrize(
    ("version", "number", "name"),
    [("TLSv1_2", 0xC07A, "TLS_RSA_WITH_CAMELLIA_128_GCM_SHA256"), ("TLSv1_3", 0x00C6, "TLS_SM4_GCM_SM3")],
)
def test_a_suite_whose_cipher_is_not_there_is_not_said_to_lack_keys(version: str, number: int, name: str) -> None:
    made = conversation(version, None)
    at, (side, hello) = next((at, sent) for at, sent in enumerate(made.wire) if sent[0] == SERVER)
    suite = 44 + hello[43]
    made.wire[at] = side, hello[:suite] + number.to_bytes(2, "big") + hello[suite + 2 :]
    session, events = read(made, secrets_of(made))
    assert not events
    assert session.facts.cipher == name
    assert session.facts.why == f"{name} cannot be decrypted, as no library here has its cipher"


def test_a_cancelled_handshake_is_an_alert_and_a_close_behind_it_is_none() -> None:
    """Java's clients close each connection of TLS 1.3 with user_canceled and close_notify."""
    cancelled = b"\x15\3\3\0\2\1\x5a"
    made = conversation("TLSv1_3", None)
    session, _ = read(Conversation(wire=[made.wire[0], (CLIENT, cancelled)]), secrets_of(made))
    assert session.facts.alerts == ("client: user_canceled",)
    sealer = Sealer("TLSv1_3")
    closes = b"".join(sealer.record(CLIENT, b"\1" + bytes([which]), 21, padding=16) for which in (90, 0))
    session, _ = read(Conversation(wire=[*sealer.handshake, (CLIENT, closes)]), secrets_of(Conversation(keylog=sealer.keylog)))
    assert session.facts.decrypted
    assert session.facts.alerts == ()


def altered(keylog: bytes, last: bytes) -> bytes:
    """The lines of a key log with other secrets, which end in this digit or in a `1`."""
    return b"".join(line[:-1] + (last if line[-1:] != last else b"1") + b"\n" for line in keylog.splitlines())


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_wrong_secret_is_not_said_to_be_missing(version: str) -> None:
    made = conversation(version, None)
    session, events = read(made, secrets_of(Conversation(keylog=altered(made.keylog, b"0"))))
    assert not events
    assert session.facts.why == "the secrets of this session in the key log do not open its records"


@pytest.mark.parametrize("tickets", [True, False], ids=["ticket", "session id"])
@pytest.mark.parametrize("ciphers", ["AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"])
def test_a_resumed_session_without_a_line_of_its_own_takes_the_secret_of_the_first(ciphers: str, tickets: bool) -> None:
    first, known = converse(MESSAGES, version="TLSv1_2", ciphers=ciphers, tickets=tickets)
    second, _ = converse(MESSAGES, version="TLSv1_2", ciphers=ciphers, session=known, keylog=False, tickets=tickets)
    secrets = secrets_of(first)
    begun, _ = read(first, secrets)
    session, events = read(second, secrets)
    assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in second.plain]
    assert session.facts.subject(1) is None, "a resumed handshake shows no certificate"
    assert (begun.facts.resumed, session.facts.resumed) == (False, True)
    assert session.client is not None
    assert session.server is not None
    assert begun.server is not None
    assert (TICKET in begun.server.extensions) is tickets
    named = session.client.session_id == begun.server.session_id != b""
    assert named is not tickets, "the server's first id names the session where it gave no ticket"


@pytest.mark.parametrize("ahead", [CLIENT, SERVER], ids=["client ahead", "server ahead"])
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_direction_that_stands_ahead_of_the_other_in_the_capture_is_read(version: str, ahead: int) -> None:
    """Taps put the directions in order separately, and packets of one arrive in any order."""
    messages = [(CLIENT, b"first request"), (SERVER, b"first response"), (CLIENT, b"second"), (SERVER, b"x" * 9_000)]
    first, known = converse(messages, version=version)
    second, _ = converse(messages, version=version, session=known)
    for made, resumed in ((first, False), (second, True)):
        session, events, offsets = TlsSession(secrets_of(made), whole=True), [], [0, 0]
        wire = sorted(made.wire, key=lambda piece: piece[0] != ahead)
        for ref, (side, data) in enumerate(wire):
            events += session.data(side, offsets[side], data, len(data), ref, len(wire) - ref, offsets[side])
            offsets[side] += len(data)
        events += session.finish()
        assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]
        assert not any(isinstance(event, LostPlaintext) for event in events)
        assert session.facts.resumed is resumed


def test_a_server_whose_client_says_nothing_waits_within_its_bound() -> None:
    made = conversation("TLSv1_3", None)
    session, offset = TlsSession(secrets_of(made), whole=True), 0
    for side, data in made.wire:
        if side == SERVER:
            session.data(SERVER, offset, data, len(data), 0, 0, offset)
            offset += len(data)
    assert offset > limits.TLS_HELLO_BYTES
    assert session.facts.version == "TLS 1.3", "the ServerHello was read"
    assert session.sides[SERVER].reader.held_bytes <= limits.TLS_HELLO_BYTES


def test_without_keys_nothing_is_read_and_the_reason_is_named() -> None:
    made = conversation("TLSv1_3", None)
    session, events = read(made, Secrets())
    assert plain(events, CLIENT) == plain(events, SERVER) == b""
    assert session.facts.why == "no keys were given"
    assert session.facts.hello is not None
    assert session.facts.hello.server_name == "broker.test"


@pytest.mark.parametrize(("version", "ciphers"), [("TLSv1_3", None), ("TLSv1_2", "AES128-SHA"), ("TLSv1", "AES128-SHA")])
@pytest.mark.parametrize("cut", [1, 7, 1448])
def test_the_cut_of_segments_changes_nothing(version: str, ciphers: str | None, cut: int) -> None:
    made = conversation(version, ciphers)
    _, events = read(made, secrets_of(made), cut)
    assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]
    for event in events:
        assert isinstance(event, Plaintext)
        assert [span.start for span in event.spans] == [0, *(span.end for span in event.spans[:-1])]
        assert event.spans[-1].end == len(event.data), "spans tile the plaintext"


def test_a_session_is_a_value_that_can_be_pickled_between_any_two_pieces() -> None:
    made = conversation("TLSv1_3", None)
    session, events, offsets = TlsSession(secrets_of(made)), [], [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        session = pickle.loads(pickle.dumps(session))
        events += session.data(side, offsets[side], data, len(data), ref, ref, 0)
        offsets[side] += len(data)
    assert plain(events, SERVER) == bytes(made.plain[SERVER])


RESTING = [("TLSv1_3", None), ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256"), ("TLSv1_2", "AES128-SHA"), ("TLSv1", "AES128-SHA")]


@pytest.mark.parametrize(("version", "ciphers"), RESTING)
def test_bytes_that_come_to_a_session_at_rest_are_read_like_any(version: str, ciphers: str | None) -> None:
    """Whenever it was told that no more would come: before a hello, between handshake records, or among data."""
    made = conversation(version, ciphers)
    for until in range(len(made.wire)):
        session, events, offsets = TlsSession(secrets_of(made)), [], [0, 0]
        for ref, (side, data) in enumerate(made.wire):
            for piece in (data[:700], data[700:]):
                if ref <= until:
                    session.rest()
                events += session.data(side, offsets[side], piece, len(piece), ref, ref, offsets[side])
                offsets[side] += len(piece)
        session.rest()
        events += session.finish()
        assert not any(isinstance(event, LostPlaintext) for event in events)
        assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]


@pytest.mark.parametrize("lines", [4, 2, 1])
def test_a_session_at_rest_whose_keys_opened_nothing_holds_none(lines: int) -> None:
    made, other = conversation("TLSv1_3", None), conversation("TLSv1_3", None)
    secrets = Secrets()
    log = [line for line in other.keylog.splitlines(keepends=True) if b"TRAFFIC" in line][:lines]
    random = next(line.split()[1] for line in made.keylog.splitlines() if b"TRAFFIC" in line)
    secrets.keylog.add(b"".join(line.replace(line.split()[1], random) for line in log))
    session, offsets = TlsSession(secrets), [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        session.data(side, offsets[side], data, len(data), ref, ref, offsets[side])
        offsets[side] += len(data)
    assert any(side.epochs for side in session.sides)
    session.rest()
    assert not session.traffic
    assert not any(side.epochs for side in session.sides)
    assert not session.finish()
    assert session.facts.undecrypted


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_behind_its_handshake_a_session_holds_no_transcript_and_at_rest_no_cipher(version: str) -> None:
    made = conversation(version, None)
    session, _ = read(made, secrets_of(made))
    assert not session.transcript
    session.rest()
    for side in session.sides:
        assert [epoch for epoch in side.epochs if epoch.made is not None and epoch.made._made is not None] == []


@pytest.mark.parametrize(("version", "ciphers"), [("TLSv1_3", None), ("TLSv1_2", None), ("TLSv1_2", "AES128-SHA")])
@pytest.mark.parametrize("lines_at_once", [1, 9])
@pytest.mark.parametrize("rests", [False, True])
def test_keys_that_come_late_lose_nothing(
    version: str, ciphers: str | None, rests: bool, lines_at_once: int, tmp_path: Path
) -> None:
    """Whenever the lines of a key log come, from the first packet to the end, the plaintext and its order are the same."""
    made = conversation(version, ciphers)
    path = tmp_path / "keys"
    lines = [line for line in made.keylog.splitlines(keepends=True) if not line.startswith(b"#")]
    for late in range(len(made.wire) + 1):
        path.write_bytes(b"")
        secrets = read_secrets([str(path)])
        session, events, offsets, left = TlsSession(secrets), [], [0, 0], list(lines)
        for ref, (side, data) in enumerate(made.wire):
            if ref >= late and left:
                path.write_bytes(path.read_bytes() + b"".join(left[:lines_at_once]))
                del left[:lines_at_once]
            secrets.follow()
            events += session.data(side, offsets[side], data, len(data), ref, ref, offsets[side])
            offsets[side] += len(data)
            if rests:
                session.rest()
        path.write_bytes(path.read_bytes() + b"".join(left))
        secrets.follow()
        events += session.finish()
        assert not any(isinstance(event, LostPlaintext) for event in events)
        assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]
        sides = [event.side for event in events]
        assert [side for at, side in enumerate(sides) if at == 0 or sides[at - 1] != side] == [side for side, _ in MESSAGES], (
            late
        )


LOSSY: list[tuple[str, str | None]] = [("TLSv1_3", None), ("TLSv1_2", "AES128-GCM-SHA256"), ("TLSv1_2", "AES256-SHA")]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(LOSSY))
def test_holes_cost_records_and_never_invent_any(seed: int, which: tuple[str, str | None]) -> None:
    """Of each side the records that are read stand in order in what was said; behind the last hole all are read again."""
    chosen = random.Random(seed)
    words = [(chosen.choice((CLIENT, SERVER)), bytes([65 + n % 26]) * chosen.randint(1, 3000)) for n in range(30)]
    made, _ = converse(words, version=which[0], ciphers=which[1])
    handshake = len(made.wire) - len(words)
    session, events, offsets = TlsSession(secrets_of(made)), [], [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        pieces = [data[at : at + 700] for at in range(0, len(data), 700)]
        for piece in pieces:
            lost = ref >= handshake + 2 and chosen.random() < 0.05 and ref < len(made.wire) - 6
            if lost:
                events += session.gap(side, offsets[side], len(piece))
            else:
                events += session.data(side, offsets[side], piece, len(piece), ref, ref, 0)
            offsets[side] += len(piece)
    events += session.finish()
    for side in (CLIENT, SERVER):
        said, at = bytes(made.plain[side]), 0
        for event in events:
            if isinstance(event, Plaintext) and event.side == side:
                found = said.find(event.data, at)
                assert found >= 0, "what is read was said, and in this order"
                at = found + len(event.data)
        last = [data for who, data in words[-3:] if who == side]
        assert plain(events, side).endswith(b"".join(last)), "reading goes on behind a hole"


def cut_records(data: bytes) -> Iterator[bytes]:
    """The records that stand in these bytes."""
    while data:
        size = 5 + int.from_bytes(data[3:5], "big")
        yield data[:size]
        data = data[size:]


class Damage:
    """Changes a bit of some records, never more in a row on one side than are tried with other keys."""

    def __init__(self, seed: int) -> None:
        self.chosen, self.rows, self.updates = random.Random(seed), [0, 0], [0, 0]
        self.share = self.chosen.choice((0.1, 0.5, 0.8))

    def of(self, side: int, record: bytes, *, update: bool = False) -> bytes:
        """The record, damaged or not; of messages that change the keys two in a row at most are."""
        if self.chosen.random() > self.share or self.rows[side] == limits.TLS_UNOPENED_RECORDS or self.updates[side] > 1:
            self.rows[side] = self.updates[side] = 0
            return record
        self.rows[side] += 1
        self.updates[side] += update
        return record[:-1] + bytes([record[-1] ^ 1])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(LOSSY))
def test_a_damaged_record_costs_itself_alone(seed: int, which: tuple[str, str | None]) -> None:
    """In the handshake and behind it, however many there are: their headers say how many records they are."""
    damage = Damage(seed)
    words = [(damage.chosen.choice((CLIENT, SERVER)), b"%d-" % at * damage.chosen.randint(1, 300)) for at in range(40)]
    made, _ = converse(words, version=which[0], ciphers=which[1])
    sealed, left, handshake = [False, False], [b"", b""], len(made.wire) - len(words)
    for at, (side, data) in enumerate(made.wire):
        records = list(cut_records(data))
        for place, record in enumerate(records):
            if sealed[side] and record[0] != 20:
                records[place] = damage.of(side, record)
            sealed[side] = sealed[side] or record[0] == 20
        made.wire[at] = side, b"".join(records)
        if at >= handshake and made.wire[at] == (side, data):
            left[side] += words[at - handshake][1]
    _, events = read(made, secrets_of(made))
    assert [plain(events, side) for side in (CLIENT, SERVER)] == left


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_key_updates_among_damaged_records_are_followed(seed: int) -> None:
    damage, sealer, left = Damage(seed), Sealer("TLSv1_3"), [b"", b""]
    made = Conversation(list(sealer.handshake), keylog=sealer.keylog)
    epochs = [side.epochs[-1] for side in read(made, secrets_of(made))[0].sides]
    openers = list(sealer.openers)
    for at in range(60):
        side, update = damage.chosen.choice((CLIENT, SERVER)), damage.chosen.random() < 0.3
        sealer.openers = openers[0], openers[1]
        record = sealer.record(side, b"\x18\0\0\1\0" if update else b"%d-" % at, 22 if update else 23)
        made.wire.append((side, damage.of(side, record, update=update)))
        if update:
            suite = epochs[side].suite
            assert suite is not None
            after = epoch13("TRAFFIC_SECRET_0", next_secret(epochs[side].secret, suite), suite)
            assert after is not None
            epochs[side], openers[side], sealer.numbers[side] = after, after.opener, 0
        elif made.wire[-1][1] == record:
            left[side] += b"%d-" % at
    _, events = read(made, secrets_of(made))
    assert [plain(events, side) for side in (CLIENT, SERVER)] == left


@pytest.mark.parametrize("secrets", [4, 2, 1])
def test_records_that_open_under_no_keys_are_not_tried_with_more_and_more(
    secrets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [(at % 2, b"x" * 100) for at in range(300)]
    made, other = converse(words)[0], conversation("TLSv1_3", None)
    random = next(line.split()[1] for line in made.keylog.splitlines() if b"TRAFFIC" in line)
    log = [line for line in other.keylog.splitlines(keepends=True) if b"TRAFFIC" in line][:secrets]
    known, tries, opening = Secrets(), [0], RecordOpener.open
    known.keylog.add(b"".join(line.replace(line.split()[1], random) for line in log))

    def counted(opener: RecordOpener, *record: Any) -> OpenedRecord | None:
        tries[0] += 1
        return opening(opener, *record)

    monkeypatch.setattr(RecordOpener, "open", counted)
    assert not read(made, known)[1]
    assert tries[0] < 3 * sum(data.count(b"\x17\3\3") for _, data in made.wire)


@pytest.mark.parametrize(("version", "kept"), [("TLSv1_3", 60), ("TLSv1_2", 60), ("TLSv1_3", 0)])
def test_a_client_hello_that_is_cut_or_lost_costs_nothing_but_itself(version: str, kept: int) -> None:
    """Snaplen cuts it behind its random, which finds the keys; without any of it those of TLS 1.3 are tried."""
    made = conversation(version, None)
    secrets = Secrets()
    secrets.keylog.add("".join(
        f"{who}_{what} {number:064x} {number:096x}\n" for number in range(300) for who in ("CLIENT", "SERVER")
        for what in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")
    ).encode())  # fmt: skip
    secrets.keylog.add(made.keylog)
    session, events, offsets = TlsSession(secrets), [], [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        if ref:
            events += session.data(side, offsets[side], data, len(data), ref, ref, 0)
        else:
            events += session.data(side, 0, data[:kept], len(data), 0, 0, 0) if kept else session.gap(side, 0, len(data))
        offsets[side] += len(data)
    events += session.finish()
    assert [plain(events, side) for side in (CLIENT, SERVER)] == [bytes(text) for text in made.plain]
    assert session.facts.hello is None, "what is cut has no fingerprint"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_taken(data: bytes, framed: bool) -> None:
    session = TlsSession(Secrets())
    text = b"\x16\x03\x03" + len(data).to_bytes(2, "big") + data if framed else data
    list(session.data(CLIENT, 0, text, len(text) + 3, 0, 0, 0))
    list(session.gap(SERVER, 0, 100_000))
    list(session.finish())


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_the_time_of_the_handshake_is_known_without_keys(version: str) -> None:
    """The time of a packet is its number here: the handshake ends with the last flight before application data."""
    made = conversation(version, None)
    with_keys, without = read(made, secrets_of(made))[0].facts, read(made, Secrets())[0].facts
    first_data = next(at for at, (side, data) in enumerate(made.wire) if data[:1] == b"\x17" and at > 1 and side == CLIENT)
    assert with_keys.handshake_ns == without.handshake_ns is not None
    assert 1 < with_keys.handshake_ns <= first_data
    assert with_keys.handshake_ns == {"TLSv1_2": 3, "TLSv1_3": 2}[version]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_time_of_a_handshake_with_missing_packets_is_unknown(lost: int) -> None:
    made = conversation("TLSv1_3", None)
    session, offsets = TlsSession(Secrets()), [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        found = session.gap(side, offsets[side], len(data)) if ref == lost else session.data(
            side, offsets[side], data, len(data), ref, ref, offsets[side]
        )  # fmt: skip
        assert not list(found)
        offsets[side] += len(data)
    assert session.facts.handshake_ns is None


def one_record(kind: int, length: int) -> bytes:
    """A record of a content type with bytes that mean nothing."""
    return bytes([kind, 3, 3]) + length.to_bytes(2, "big") + b"\2\x30" * (length // 2) + b"\1" * (length % 2)


def refused(record: bytes, secrets: Secrets | None = None) -> TlsSession:
    """A session of TLS 1.3 of which the client sends this in place of its last flight."""
    made = conversation("TLSv1_3", None)
    session, offsets = TlsSession(secrets or Secrets()), [0, 0]
    for ref, (side, data) in enumerate([*made.wire[:2], (CLIENT, record)]):
        assert not list(session.data(side, offsets[side], data, len(data), ref, ref, offsets[side]))
        offsets[side] += len(data)
    list(session.finish())
    return session


def test_an_alert_in_the_open_within_a_handshake_of_tls_1_3_is_read() -> None:
    """OpenSSL refuses a certificate before it has keys to write with."""
    assert refused(one_record(21, 2)).facts.alerts == ("client: unknown_ca",)


@pytest.mark.parametrize(("length", "alerts"), [(19, ["client: encrypted_alert"]), (35, ["client: encrypted_alert"]), (69, [])])
def test_an_encrypted_alert_in_place_of_a_finished_is_known_by_its_length(length: int, alerts: list[str]) -> None:
    session = refused(one_record(23, length))
    assert list(session.facts.alerts) == alerts
    assert (session.facts.handshake_ns is None) == bool(alerts)


@pytest.mark.parametrize(
    "behind", [(21, b"\1\0"), (22, b"\4\0\0\5lives"), (23, b"three"), None], ids=["close", "ticket", "data", "end"]
)
@pytest.mark.parametrize("hole", [True, False], ids=["hole", "damage"])
def test_lost_data_is_a_gap_whatever_record_follows(behind: tuple[int, bytes] | None, hole: bool) -> None:
    """Bytes on both sides of a loss are never joined, and a response that was lost is no response that was not sent."""
    sealer, offsets = Sealer("TLSv1_3"), [0, 0]
    session, events = TlsSession(secrets_of(Conversation(keylog=sealer.keylog))), list[Plaintext | LostPlaintext]()
    for side, data in [*sealer.handshake, (SERVER, sealer.record(SERVER, b"one"))]:
        events += session.data(side, offsets[side], data, len(data), 0, 0, 0)
        offsets[side] += len(data)
    lost, at = sealer.record(SERVER, b"two"), offsets[SERVER]
    events += (
        session.gap(SERVER, at, len(lost))
        if hole
        else session.data(SERVER, at, lost[:-1] + bytes([lost[-1] ^ 1]), len(lost), 0, 0, 0)
    )
    if behind is not None:
        record = sealer.record(SERVER, behind[1], behind[0])
        events += session.data(SERVER, at + len(lost), record, len(record), 0, 0, 0)
    events += session.finish()
    assert [type(event) for event in events][:2] == [Plaintext, LostPlaintext]
    assert plain(events, SERVER) == (b"onethree" if behind == (23, b"three") else b"one")
    assert [event.length >= 3 for event in events if isinstance(event, LostPlaintext)] == [True]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_client_certificate_that_is_asked_for_behind_the_handshake_is_read(compressed: bool) -> None:
    """RFC 8446 section 4.6.2, with and without compression (RFC 8879); the keys stay what they are."""
    sealer, offsets = Sealer("TLSv1_3"), [0, 0]
    session, events = TlsSession(secrets_of(Conversation(keylog=sealer.keylog))), list[Plaintext | LostPlaintext]()
    der = x509.load_pem_x509_certificate(Path(certificate("ec")[0]).read_bytes()).public_bytes(Encoding.DER)
    body = b"\0" + vector(3, vector(3, der) + b"\0\0")
    if compressed:
        body = b"\0\1" + len(body).to_bytes(3, "big") + vector(3, zlib.compress(body))
    asked, sent = b"\x0d" + vector(3, b"\1x" + vector(2, b"")), bytes([25 if compressed else 11]) + vector(3, body)
    for side, data in [
        *sealer.handshake,
        (SERVER, sealer.record(SERVER, asked, 22)),
        (CLIENT, sealer.record(CLIENT, sent, 22)),
        (CLIENT, sealer.record(CLIENT, b"\x14" + vector(3, bytes(48)), 22)),
        (CLIENT, sealer.record(CLIENT, b"data")),
    ]:
        events += session.data(side, offsets[side], data, len(data), 0, 0, 0)
        offsets[side] += len(data)
    assert session.facts.subject(CLIENT) == "CN=broker.test"
    assert plain(events + session.finish(), CLIENT) == b"data"
