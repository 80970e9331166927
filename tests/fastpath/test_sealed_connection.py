"""Connections with TLS that were never more than numbers and a session: their ends, and their objects where they need these."""

import pickle
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer, Options
from kcap.tls.secrets import Secrets
from tests.fastpath.both import agree, cut, result_of
from tests.fastpath.test_closed_rows import closed_of, columns_agree
from tests.fastpath.test_sealed import KINDS, sealer_of
from tests.support.tls import CLIENT, SERVER, Sealer
from tests.support.wire import ACK, FIN, MS, Segment, Tap, metadata, metadata_answer, shuffled

LINGER = limits.CONNECTION_LINGER_NS
Sent = Callable[[Tap, Sealer], object]


def asked(tap: Tap, sealer: Sealer, cut: int = 0) -> Tap:
    """A request, all but the last bytes of it."""
    return tap.client(sealer.record(CLIENT, metadata(99)[: -cut or None]))


def answered(tap: Tap, sealer: Sealer) -> Tap:
    """Its response."""
    return tap.server(sealer.record(SERVER, metadata_answer(99, 3)))


def left(tap: Tap) -> Tap:
    """The client's FIN."""
    tap.add(0, FIN | ACK)
    return tap


def again(tap: Tap, first: int, last: int | None = None, **changed: int) -> None:
    """Some of the last packets come again."""
    tap.segments += [replace(segment, time_ns=tap.time_ns + MS, **changed) for segment in tap.segments[first:last]]


def late(tap: Tap, sealer: Sealer) -> None:
    """A response when both sides have ended."""
    tap.close().time_ns += LINGER // 2
    answered(tap, sealer)


ENDS: dict[str, Sent] = {
    "open": lambda tap, sealer: None,
    "fin": lambda tap, sealer: tap.close(),
    "alert": lambda tap, sealer: tap.client(sealer.record(CLIENT, b"\1\0", 21)).close(),
    "padded alert": lambda tap, sealer: tap.client(sealer.record(CLIENT, b"\1\0", 21, padding=16)).close(),
    "unanswered": lambda tap, sealer: asked(tap, sealer).close(),
    "another alert": lambda tap, sealer: tap.client(sealer.record(CLIENT, b"\1\x5a", 21)).close(),
    "reset by client": lambda tap, sealer: tap.reset(0),
    "reset by server": lambda tap, sealer: tap.reset(1),
    "reset behind FIN": lambda tap, sealer: left(tap).reset(1),
    "half": lambda tap, sealer: left(tap),
    "answer behind FIN": lambda tap, sealer: answered(left(asked(tap, sealer)), sealer).add(1, FIN | ACK),
    "alert behind FIN": lambda tap, sealer: left(tap).server(sealer.record(SERVER, b"\1\0", 21)).add(1, FIN | ACK),
    "as Java ends": lambda tap, sealer: (
        left(tap.client(sealer.record(CLIENT, b"\1\0", 21, padding=16))).server(sealer.record(SERVER, b"\1\0", 21)).reset(0)
    ),
    "late": late,
    "partial record": lambda tap, sealer: tap.client(sealer.record(CLIENT, metadata(99))[:-3]).close(),
    "partial frame": lambda tap, sealer: asked(tap, sealer, 3).close(),
    "partial header": lambda tap, sealer: asked(tap, sealer, len(metadata(99)) - 3).close(),
    "packets again": lambda tap, sealer: again(answered(asked(tap, sealer), sealer).close(), -6, -3),
    "FIN again": lambda tap, sealer: again(tap.close(), -1, flags=FIN | ACK),
}
"""How a connection ends."""
NUMBERS = ("fin", "alert", "padded alert", "unanswered", "alert behind FIN", "as Java ends")
"""Ends that need no objects."""


def options() -> Options:
    """The secrets of every kind."""
    secrets = Secrets()
    for kind in range(len(KINDS)):
        secrets.keylog.add(sealer_of(kind).keylog)
    return Options(secrets=secrets)


def brief(kind: int, count: int, end: str, port: int, time_ns: int, sizes: int = 1448) -> Tap:
    """A handshake, some requests with their responses, an end."""
    sealer = sealer_of(kind).restart()
    tap = Tap(client_isn=port, server_isn=9 * port, port=port, time_ns=time_ns).open()
    for side, data in sealer.handshake:
        tap.send(side, data, sizes)
    for number in range(count):
        tap.send(CLIENT, sealer.record(CLIENT, metadata(number)), sizes)
        tap.send(SERVER, sealer.record(SERVER, metadata_answer(number, 3)), sizes)
    ENDS[end](tap, sealer)
    return tap


@st.composite
def crowds(draw: st.DrawFn) -> list[Segment]:
    """Connections on few ports, whose packets alternate, some lost or displaced; time goes on in leaps."""
    segments: list[Segment] = []
    time_ns = 1_000_000_000
    for _ in range(draw(st.integers(1, 7))):
        time_ns += draw(st.sampled_from((MS, 50 * MS, LINGER)))
        kind, port = draw(st.integers(0, len(KINDS) - 1)), 40_000 + draw(st.integers(0, 5))
        sizes = draw(st.sampled_from((40, 500, 1448)))
        segments += brief(kind, draw(st.integers(0, 4)), draw(st.sampled_from(sorted(ENDS))), port, time_ns, sizes).segments
    segments.sort(key=lambda s: s.time_ns)
    seed, lost, reach = draw(st.integers(0, 1 << 20)), draw(st.sampled_from((0, 0.01))), draw(st.sampled_from((0, 3)))
    chance = random.Random(seed)
    kept = [segment for segment in segments if chance.random() >= lost]
    return shuffled(kept, reach, seed) if reach else kept


@settings(deadline=None)
@given(crowds(), st.integers(1, 700), st.sampled_from((9, 30, 100, 4096)))
def test_crowds(segments: list[Segment], size: int, step: int) -> None:
    agree(segments, size, step, options=options())


@settings(deadline=None, max_examples=20)
@given(crowds(), st.integers(1, 200))
def test_crowds_restored(segments: list[Segment], size: int) -> None:
    """Pickle and restore after any batch."""
    batches = cut(segments, size)
    result_of(batches, fast_path=True, pickled=True, step=100, options=options()).same(
        result_of(batches, fast_path=False, options=options())
    )


def every_end() -> list[Segment]:
    """Two connections of each end, one after the other."""
    segments: list[Segment] = []
    for number, end in enumerate((*ENDS, *ENDS)):
        segments += brief(number % len(KINDS), 3, end, 1000 + number, (number + 1) * 1000 * MS).segments
    return segments


@pytest.mark.parametrize("step", [1, 2, 3, 1 << 12])
@pytest.mark.parametrize("end", NUMBERS)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_an_end_between_two_frames_needs_no_objects(kind: int, end: str, step: int) -> None:
    """Whether the client says close_notify before its FIN, as most do, or does not; and wherever a walk ends."""
    found = agree(brief(kind, 3, end, 1000, 10**9).segments, 1 << 12, step, options=options())
    assert found.own == 1
    assert found.fast_rows == len(found.rows)


def test_ends_of_every_kind() -> None:
    """Two connections of each, one after the other."""
    found = agree(every_end(), limits.FEED_PACKETS, 1 << 12, options=options())
    assert found.own >= 14
    assert {row["ended"] for row in found.connections} == {"fin", "rst", "open"}


def test_columns_agree_with_rows() -> None:
    """Also beside connections without TLS, and those of the reference path."""
    plain = Tap(port=7).open().client(metadata(1)).server(metadata_answer(1)).close()
    taken, own = closed_of(Analyzer(options()), [*plain.segments, *every_end()], 1 << 12)
    assert 14 < len(own) < len(taken)
    assert {one.values["tls"] for one in own} == {True, False}
    columns_agree(taken, taken[::-1], own, pickle.loads(pickle.dumps(own)))
