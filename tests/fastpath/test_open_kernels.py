"""How connections begin: whatever the first packets are, the fast path makes of them what the reference path do."""

import struct
from dataclasses import replace
from operator import itemgetter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Options
from kcap.fastpath import layout as at
from kcap.fastpath.open_kernels import first_request, lower_source
from kcap.fastpath.state import FastPathState
from kcap.kafka.recognition import from_first_request
from kcap.net.connections import _endpoint, reverse_flow
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN
from kcap.weird import WeirdKind
from tests.fastpath.both import agree, cut, result_of
from tests.fastpath.test_engine import steady
from tests.support.wire import MS, Segment, Tap, metadata, metadata_answer, produce, produce_answer, request, response

ECN = 0xC0
FIRST = {
    "versions": request(18, 3, 1, b"\0\2a\2b\0"),
    "metadata": metadata(1),
    "long name": metadata(1, client_id="n" * at.ID_BYTES),
    "longer name": metadata(1, client_id="n" * (at.ID_BYTES + 1)),
    "umlaut": metadata(1, client_id="zähler"),
    "unprintable": metadata(1, client_id="a\tb"),
    "nameless": metadata(1, client_id=None),
    "empty name": metadata(1, client_id=""),
    "one way": produce(1, 0, b"x"),
    "handshake": request(17, 0, 1, b"\0\5PLAIN"),
    "handshake 1": request(17, 1, 1, b"\0\5PLAIN"),
    "unknown": request(999, 1, 1, b"abcd"),
    "large": produce(1, 1, bytes(30_000)),
    "two": metadata(1) + metadata(2, client_id="other"),
    "then noise": metadata(1) + b"\xff" * 20,
    "tls": b"\x16\x03\x01\2\0\1\0\1\xfc\3\3" + bytes(40),
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "short": b"\0\0\0",
    "zeros": bytes(40),
}


def conversation(first: bytes, size: int, server_first: bool) -> Tap:
    """A connection with these first bytes, and then some of a usual one."""
    tap = Tap().open()
    if server_first:
        tap.server(b"hello")
    tap.client(first, size).server(metadata_answer(1))
    for number in range(10, 14):
        tap.client(metadata(number)).server(metadata_answer(number))
    return tap.close()


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("size", [5, 1448])
def test_first_bytes(name: str, size: int) -> None:
    """In one piece and in many, with a greeting of the server's or without."""
    for server_first in (False, True):
        tap = conversation(FIRST[name], size, server_first)
        found = agree(tap.segments, 9, 4)
        if name in ("versions", "metadata") and size > 5 and not server_first:
            assert found.own == 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 7),
            st.sampled_from(("drop", "twice", "later", "shut", "ecn", "number", "ack", "payload", "flags", "back", "idle")),
            st.integers(0, 63),
        ),
        max_size=3,
    ),
    st.integers(1, 12),
    st.integers(1, 9),
    st.frozensets(st.integers(0, 20), max_size=3),
)
def test_handshakes(twists: list[tuple[int, str, int]], size: int, step: int, slow: frozenset[int]) -> None:
    """Lost, repeated, displaced and odd packets at the beginning; some of them read the slow way."""
    segments = steady(6, 2).segments
    for place, twist, value in twists:
        s = segments[place]
        match twist:
            case "drop":
                del segments[place]
            case "twice":
                segments.insert(place + 1 + value % 3, replace(s, time_ns=s.time_ns + 1))
            case "later":
                segments[place], segments[place + 1] = segments[place + 1], s
            case "shut":
                segments[place] = replace(s, window=0)
            case "ecn":
                segments[place] = replace(s, flags=s.flags | ECN)
            case "number":
                segments[place] = replace(s, seq=(s.seq + value - 30) & MASK)
            case "ack":
                segments[place] = replace(s, ack=(s.ack + value - 30) & MASK)
            case "payload":
                segments[place] = replace(s, payload=bytes(value) + s.payload)
            case "flags":
                segments[place] = replace(s, flags=value)
            case "back":
                segments[place] = replace(s, time_ns=s.time_ns - 5 * MS)
            case _:
                by = limits.CONNECTION_IDLE_NS - MS * (value % 2)
                segments[place:] = [replace(x, time_ns=x.time_ns + by) for x in segments[place:]]
    agree(segments, size, step, slow)


def test_data_behind_a_fin_in_the_handshake() -> None:
    """A FIN in place of the last packet of the handshake: what comes behind it is data after FIN on either path."""
    segments = steady(6, 2).segments
    segments[2] = replace(segments[2], flags=FIN)
    found = agree(segments, 1, 1)
    assert WeirdKind.DATA_AFTER_FIN in {weird.kind for weird, _ in found.weirds}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=60), st.integers(1, 30), st.integers(1, 9))
def test_calls_side_by_side(turns: list[tuple[int, int]], size: int, step: int) -> None:
    """Connections of the fast path and of the reference path open in turns, and have their numbers by their first packets."""
    segments: list[Segment] = []
    taps: dict[int, Tap] = {}
    time_ns, port = 1_000_000_000, 1000
    for which, what in turns:
        time_ns += MS
        if which not in taps or what == 3:
            port += 1
            taps[which] = Tap(port=port, time_ns=time_ns)
            if what == 0:
                taps[which].client(metadata(1))  # its SYN was not captured
            else:
                taps[which].open().client(metadata(1)).server(metadata_answer(1))
        else:
            tap = taps[which]
            tap.time_ns = time_ns
            tap.client(metadata(what + 2)).server(metadata_answer(what + 2))
        new = taps[which].segments
        segments += [replace(s, time_ns=time_ns) for s in new]
        new.clear()
    agree(segments, size, step)


def test_a_call_to_oneself() -> None:
    """Both endpoints are the same: such flows have one key."""
    tap = conversation(FIRST["metadata"], 1448, False)
    same = bytes([10, 0, 0, 1]) * 2 + struct.pack(">HH", 5, 5)
    agree([replace(s, flow=same) for s in tap.segments])


def test_both_sides_may_be_the_lower_endpoint() -> None:
    for swap in (False, True):
        tap = conversation(FIRST["metadata"], 1448, False)
        segments = [replace(s, flow=reverse_flow(s.flow)) for s in tap.segments] if swap else tap.segments
        assert agree(segments).own == 1


def test_the_user_says_what_is_kafka() -> None:
    """Where ports decide, the reference path look at every connection's beginning."""
    batches = cut(conversation(FIRST["metadata"], 1448, False).segments, 9)
    for options in (Options(frozenset({9092})), Options(frozenset(), frozenset({9092}))):
        fast = result_of(batches, fast_path=True, options=options)
        fast.same(result_of(batches, fast_path=False, options=options))
        assert fast.own == 0


def test_more_connections_than_slots() -> None:
    """Room grows up to the limit; beyond it they are the reference path'."""
    segments: list[Segment] = []
    for port in range(300):
        tap = Tap(port=port, time_ns=(port + 1) * MS).open().client(metadata(1, client_id="n" * at.ID_BYTES))
        segments += tap.server(metadata_answer(1)).segments
    assert agree(segments, 100, 64).own > 200
    with patch.object(limits, "FAST_PATH_CONNECTIONS", 128):
        assert 0 < agree(segments, 100, 64).own <= 128


def test_the_oldest_of_many_without_a_byte_are_closed() -> None:
    """A flood of SYNs leaves room in the fast path, and each of its connections has its row; those that speak lose nothing."""
    segments: list[Segment] = []
    for port in range(600):
        tap = Tap(port=port, time_ns=(port + 1) * MS)
        tap.add(0, SYN, seq=tap.client_isn)
        segments += tap.segments
    tap = Tap(port=600, time_ns=601 * MS).open().client(metadata(1)).server(metadata_answer(1))
    batches = cut([*segments, *tap.segments], 32)
    with patch.object(limits, "FAST_PATH_CONNECTIONS", 128):
        found = result_of(batches, fast_path=True, step=16)
    plain = result_of(batches, fast_path=False)
    assert found.own == len(found.connections) == 601
    assert sorted(found.connections, key=itemgetter("number")) == plain.connections
    assert found.rows == plain.rows
    ((weird, count),) = found.weirds
    assert (weird.kind, weird.detail) == ("connection_limit", "more than 64 connections without a byte")
    assert count > 1


def test_connections_without_a_byte_of_which_something_is_left_to_decide_are_not_closed() -> None:
    """A flood of handshakes, after which bytes are acknowledged that no packet brought: each may be lost in the capture."""
    segments: list[Segment] = []
    for port in range(300):
        tap = Tap(port=port, time_ns=(port + 1) * 10 * MS).open()
        tap.next[0] += 5
        tap.add(1, ACK)
        segments += tap.segments
    with patch.object(limits, "FAST_PATH_CONNECTIONS", 128):
        assert {weird.kind for weird, _ in agree(segments, 32, 16).weirds} == {"gap"}


@given(st.binary(min_size=14, max_size=40) | st.sampled_from(list(FIRST.values())), st.integers(0, 3), st.integers(0, 255))
def test_what_is_recognised_would_be(data: bytes, place: int, value: int) -> None:
    """The kernel's yes is a yes of the reference path at once."""
    state = FastPathState()
    changed = bytearray(data)
    if place:
        changed[(place * 5) % len(changed)] = value
    found = first_request(np.frombuffer(bytes(changed), np.uint8), 0, len(changed), 0, state.arrays(np.zeros(0, np.int64)))
    assert not found or from_first_request(changed, False) is True


@given(st.sampled_from((4, 16)), st.binary(min_size=34, max_size=34), st.booleans(), st.booleans())
def test_which_endpoint_is_lower(size: int, blob: bytes, same_address: bool, same_port: bool) -> None:
    source, target = blob[:size], blob[:size] if same_address else blob[16 : 16 + size]
    ports = blob[32:34] + (blob[32:34] if same_port else b"\x10\x10")
    flow = source + target + ports
    mine, theirs = _endpoint(flow), _endpoint(reverse_flow(flow))
    assert lower_source(np.frombuffer(b"x" + flow, np.uint8), 1, len(flow)) == (mine > theirs) - (mine < theirs)


def test_flags_are_those_of_tcp() -> None:
    assert sorted((FIN, SYN, RST, PSH, ACK)) == [1, 2, 4, 8, 16]
    assert response(1) == b"\0\0\0\4\0\0\0\1"
    assert produce_answer(1)[4:8] == b"\0\0\0\1"
