"""The law of the fast path over TLS: rows, connections and weirds are those of the reference path alone, however plaintext is
cut into records and records into packets, and whatever happens to the packets.
"""

import random
import ssl
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.analyzer import Options
from kcap.net.tcp import MASK
from kcap.tls.secrets import Secrets
from tests.fastpath.both import agree, agree_in_steps
from tests.laws.test_streams import fields, message_pairs, straight_time
from tests.support.tls import CLIENT, SERVER, Sealer, converse
from tests.support.wire import MS, Segment, Tap, metadata, metadata_answer, produce, produce_answer, shuffled
from tests.tls.test_session import local_suites

KINDS = (("TLSv1_3", None), ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256"), ("TLSv1_2", "ECDHE-RSA-CHACHA20-POLY1305"))
AEADS = ("GCM", "CCM", "CHACHA20")
Pairs = list[tuple[bytes, bytes]]
HANDSHAKE_SEGMENTS = 12


def has_aead(ciphers: str | None) -> bool:
    """Whether a suite, by OpenSSL's name, has an AEAD; None stands for those of TLS 1.3."""
    return ciphers is None or any(name in ciphers for name in AEADS)


@cache
def sealer_of(kind: int) -> Sealer:
    return Sealer(*KINDS[kind])


def options_of(sealer: Sealer) -> Options:
    secrets = Secrets()
    secrets.keylog.add(sealer.keylog)
    return Options(secrets=secrets)


def records(sealer: Sealer, side: int, data: bytes, cut: random.Random, most: int) -> bytes:
    """Plaintext as records of any lengths up to `most`, empty ones among them."""
    out, at = b"", 0
    while at < len(data):
        size = cut.choice((4, 1, most, cut.randint(0, most)))
        out += sealer.record(side, data[at : at + size])
        at += size
    return out


def encrypted(kind: int, messages: Pairs, sizes: int, depth: int, seed: int, most: int = 4000) -> tuple[Tap, Options]:
    """A connection with these messages."""
    sealer, cut = sealer_of(kind).restart(), random.Random(seed)
    tap = Tap(client_isn=seed & MASK, server_isn=(seed * 7 + 5) & MASK).open()
    for side, data in sealer.handshake:
        tap.send(side, data)
    waiting: list[bytes] = []
    for number, (question, answer) in enumerate(messages):
        tap.send(CLIENT, records(sealer, CLIENT, question, cut, most), sizes)
        waiting.append(answer)
        if len(waiting) >= depth or number == len(messages) - 1:
            tap.send(SERVER, records(sealer, SERVER, b"".join(waiting), cut, most), sizes)
            waiting.clear()
    return tap, options_of(sealer)


def steady(kind: int, count: int = 40, sizes: int = 1448) -> tuple[Tap, Options]:
    """A long connection whose messages are a record each."""
    pairs = []
    for number in range(count):
        if number % 3:
            pairs.append((produce(number, 1, bytes(number * 97 % 4000)), produce_answer(number)))
        else:
            pairs.append((metadata(number), metadata_answer(number, number % 150)))
    return encrypted(kind, pairs, sizes, 1, 7, 1 << 14)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_an_encrypted_connection_is_in_the_fast_path(kind: int) -> None:
    """The law would hold for a fast path that takes nothing."""
    tap, options = steady(kind)
    assert agree(tap.close().segments, options=options).fast_rows > 25


@pytest.mark.parametrize(("version", "ciphers", "key"), local_suites())
def test_every_suite_with_an_aead_is_in_the_fast_path(version: str, ciphers: str | None, key: str) -> None:
    """CCM with both lengths of its tag, ARIA and ChaCha20-Poly1305 among them, with every key exchange. Connections of others
    are left to the reference path behind their handshake, whose rows are the same.
    """
    count = 12
    pairs = [((CLIENT, metadata(number)), (SERVER, metadata_answer(number, 3))) for number in range(count)]
    try:
        made, _ = converse([message for pair in pairs for message in pair], version=version, ciphers=ciphers, kind=key)
    except (ssl.SSLError, ValueError) as error:
        pytest.skip(f"OpenSSL here does not have it: {error}")
    tap, secrets = Tap().open(), Secrets()
    secrets.keylog.add(made.keylog)
    for side, data in made.wire:
        tap.send(side, data)
    found = agree(tap.close().segments, 1 << 12, 1 << 12, options=Options(secrets=secrets))
    assert len(found.rows) == count
    assert found.fast_rows == (count if has_aead(ciphers) else 0)


SEEDS = st.integers(0, 1 << 20)
STEPS = st.sampled_from((1, 2, 3, 5, 9, 14, 20, 300))
"""Packets of a walk: a handshake is in several, or in one with what follows."""


@settings(max_examples=25)
@given(st.integers(0, 2), message_pairs(), st.integers(20, 3000), st.integers(1, 5), SEEDS, st.integers(1, 60), STEPS)
def test_conversations(kind: int, messages: Pairs, sizes: int, depth: int, seed: int, size: int, step: int) -> None:
    tap, options = encrypted(kind, messages * 2, sizes, depth, seed)
    agree(tap.close().segments, size, step, options=options)


@settings(max_examples=25)
@given(st.integers(0, 2), message_pairs(), st.integers(60, 3000), st.integers(1, 12), SEEDS, STEPS)
def test_reordering(kind: int, messages: Pairs, sizes: int, reach: int, seed: int, step: int) -> None:
    tap, options = encrypted(kind, messages * 2, sizes, 2, seed)
    agree(shuffled(tap.segments, reach, seed), 30, step, options=options)


@settings(max_examples=25)
@given(st.integers(0, 2), message_pairs(), st.integers(60, 3000), SEEDS, st.integers(1, 60), STEPS)
def test_damage(kind: int, messages: Pairs, sizes: int, seed: int, size: int, step: int) -> None:
    """Segments seen twice, lost, cut by a snapshot length; windows that close; time that goes back."""
    tap, options = encrypted(kind, messages * 3, sizes, 2, seed)
    out, chance = [], random.Random(seed)
    for at, s in enumerate(tap.close().segments):
        fate = chance.randrange(60) if at > HANDSHAKE_SEGMENTS else -1
        if fate == 0:
            continue
        if fate == 1 and s.payload:
            s = replace(s, cut=chance.randint(0, len(s.payload)))
        if fate == 2:
            s = replace(s, window=0)
        out.append(s)
        if fate in (3, 4):
            out.append(chance.choice(out[-6:]))
    times = [Segment(straight_time(out, at), *fields(s)) for at, s in enumerate(out)]
    at, by = chance.randrange(len(times)), chance.choice((0, 0, -5 * MS, 40_000 * MS, 4_000_000 * MS))
    times[at:] = [replace(s, time_ns=s.time_ns + by) for s in times[at:]]
    agree(times, size, step, options=options)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_part_of_a_record_that_the_tap_saw_twice(kind: int) -> None:
    """The SYN/ACK twice leaves the handshake to the reference path: the part is in the walk in which that hands over."""
    pairs = [(produce(number, 1, bytes(4000)), produce_answer(number)) for number in range(4)]
    tap, options = encrypted(kind, pairs, 700, 1, 7, 1 << 14)
    segments = list(tap.close().segments)
    twice = [replace(s, time_ns=s.time_ns + 100) for s in segments]
    for place in range(HANDSHAKE_SEGMENTS, len(segments)):
        if segments[place].payload:
            out = [*segments[:2], twice[1], *segments[2 : place + 1], twice[place], *segments[place + 1 :]]
            agree_in_steps(out, (place + 2, place + 3, 12), 60, options=options)
