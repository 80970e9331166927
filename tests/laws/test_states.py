"""The state tables of stream, framer and pairing: every transition that is seen has a row, every row is seen."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from random import Random
from struct import pack
from typing import Any
from unittest.mock import patch

import pytest

from kcap import limits
from kcap.kafka import framing, pairing
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.framing import Framer
from kcap.kafka.pairing import Pairing
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import ResponseFramer
from kcap.model import Transition
from kcap.net import tcp
from kcap.net.tcp import Connection, Stream
from tests.support.wire import Segment, Tap, analyze, metadata, metadata_answer, produce, produce_answer, shuffled

SEEDS = 800
Seen = set[Transition]


@contextmanager
def watched(owner: type, method: str, event: str, states: Callable[[Any], dict[Any, str]], seen: Seen) -> Iterator[None]:
    """Records how calls of a method change states; calls within other watched calls count as part of these."""
    original = getattr(owner, method)

    def call(self: Any, *given: Any, **named: Any) -> Any:
        if owner in inside:
            return original(self, *given, **named)
        before = states(self)
        inside.add(owner)
        try:
            return original(self, *given, **named)
        finally:
            inside.discard(owner)
            after = states(self)
            if after != before:
                seen.update(
                    Transition(before.get(key, pairing.NEW), event, state)
                    for key, state in after.items()
                    if before.get(key, pairing.NEW) != state
                )

    with patch.object(owner, method, call):
        yield


inside: set[type] = set()
decided: dict[int, dict[int, str]] = {}


def of_stream(stream: Stream) -> dict[Any, str]:
    return {0: stream.state}


def of_connection(connection: Connection) -> dict[Any, str]:
    return {stream: one.state for stream, one in enumerate(connection.streams)}


def of_framer(framer: Framer) -> dict[Any, str]:
    return {0: framer.state}


def of_pairing(pairs: Pairing) -> dict[Any, str]:
    """The state of each exchange by its number."""
    states = dict.fromkeys(range(1, pairs.exchanges + 1), pairing.PAIRED)
    states |= {one.number: pairing.OUTSTANDING if one.skipped_ns is None else pairing.OVERTAKEN for one in pairs.outstanding}
    states |= {one.number: pairing.ACKS0 for one in pairs.one_way}
    states |= {one.number: pairing.EARLY for one in pairs.early}
    return states | decided.get(id(pairs), {})


@contextmanager
def outcomes() -> Iterator[None]:
    """Records what each pairing emits."""
    original = Pairing.__init__

    def start(self: Pairing, connection: Connection, outlet: Any, bodies: BodyCollector) -> None:
        original(self, connection, outlet, bodies)
        mine = decided[id(self)] = {}
        emit = outlet.emit

        def emitted(exchange: Any, response: Any, outcome: str, *rest: Any) -> None:
            mine[exchange.number] = outcome
            emit(exchange, response, outcome, *rest)

        self.outlet = Outlet(emitted, outlet.passed_over)

    with patch.object(Pairing, "__init__", start):
        yield


class Outlet:
    def __init__(self, emit: Any, passed_over: Any) -> None:
        self.emit, self.passed_over = emit, passed_over


def capture(seed: int, size: int) -> list[Segment]:
    """A short conversation in segments of `size` bytes, with losses, displaced packets, and perhaps without its beginning."""
    random = Random(seed)
    tap, waiting = Tap(), list[bytes]()
    if random.random() < 0.8:
        tap.open()
    for number in range(1, random.randint(4, 9)):
        if random.random() < 0.25:
            tap.send(0, produce(number, random.choice([0, 0, 1])), size)
            if random.random() < 0.4:
                waiting.append(produce_answer(number))
        else:
            tap.send(0, metadata(number, "t" * random.randint(1, 12)), size)
            waiting.append(metadata_answer(number, random.randint(0, 1)) if random.random() < 0.9 else pack(">ii", 4, number))
        if random.random() < 0.1:
            tap.send(0, b"\xff" * random.randint(1, 30), size)
        if random.random() < 0.3:
            random.shuffle(waiting)
        while waiting and random.random() < 0.7:
            tap.send(1, waiting.pop(0), size)
    if random.random() < 0.5:
        tap.close()
    segments = tap.segments
    if random.random() < 0.6 and len(segments) > 12:
        low = random.randrange(3, len(segments) - 2)
        del segments[low : low + random.randint(1, 40)]
    if random.random() < 0.1:  # the handshake comes behind data of which the first byte was lost
        segments = [segments[2], *segments[4:9], *segments[:2], *segments[9:]]
    return shuffled(segments, random.randint(2, 30), seed) if random.random() < 0.5 else segments


def logins() -> list[Segment]:
    """Two logins with the same id; the request of the first was lost."""
    tap = Tap().open()
    for number in (1, 2147483640, 2, 3, 2147483640, 4):
        tap.client(metadata(number)).server(metadata_answer(number))
    del tap.segments[5]
    return tap.segments


@cache
def observed() -> dict[str, Seen]:
    """Every change of state in some hundred captures."""
    seen: dict[str, Seen] = {"stream": set(), "framer": set(), "pairing": set()}
    decided.clear()
    with ExitStack() as stack:
        for name, value in (("REORDER_SEGMENTS", 6), ("EARLY_SEGMENTS", 8), ("ONE_WAY_KEPT", 2), ("OUTSTANDING_MAX", 3)):
            stack.enter_context(patch.object(limits, name, value))
        stack.enter_context(outcomes())
        for method, event in (("take", "segment"), ("decide", "decide"), ("finish", "finish")):
            stack.enter_context(watched(Stream, method, event, of_stream, seen["stream"]))
        stack.enter_context(watched(Connection, "_syn", "syn", of_connection, seen["stream"]))
        for method in ("request", "request_done", "response", "response_done", "complete", "settle", "finish"):
            stack.enter_context(watched(Pairing, method, method, of_pairing, seen["pairing"]))
        for seed in range(SEEDS):
            analyze(capture(seed, 1 + 1447 * (seed % 2)))
        analyze(logins())
        for framer in (RequestFramer, ResponseFramer):
            for method in ("data", "gap", "start_midstream", "finish"):
                stack.enter_context(watched(framer, method, method, of_framer, seen["framer"]))
        for seed in range(SEEDS):
            analyze(capture(seed, 1))
    return seen


@pytest.mark.parametrize(
    ("name", "table"),
    [("stream", tcp.TRANSITIONS), ("framer", framing.TRANSITIONS), ("pairing", pairing.TRANSITIONS)],
)
def test_the_state_table_holds_every_transition_and_no_other(name: str, table: tuple[Transition, ...]) -> None:
    assert len(set(table)) == len(table)
    assert sorted(observed()[name] - set(table)) == []
    assert sorted(set(table) - observed()[name]) == []
