"""Bodies projected by another process are the bodies that this one would have projected."""

import pickle
from typing import Any

import numpy as np
import pytest

from kcap.decode.programs import program_index
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.body_values import REQUEST, RESPONSE, UNKNOWN
from kcap.kafka.deferred_bodies import DeferredBodies
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from tests.support.wire import produce, produce_answer


def sent(batch: Any) -> BodyBatch:
    """The batch at the other end."""
    found: BodyBatch = pickle.loads(pickle.dumps(batch.portable(), pickle.HIGHEST_PROTOCOL)).deferred().projected()
    return found


def test_a_batch_is_projected_at_the_other_end_as_here() -> None:
    both = []
    for deferred in (False, True):
        bodies, exchange, response = BodyCollector(), PendingExchange(1, 0, 2, 1, "app", 0), PendingResponse(1, 0, 0)
        bodies.shared = bytearray if deferred else None
        data, answer = produce(1, -1)[17:], produce_answer(1, throttle=9)[8:]
        bodies.add(b"\xff\xff", 0, 2, program_index(0, 2, REQUEST), exchange)  # its owner has another slot
        exchange.request_slot = bodies.add(data, 0, len(data), program_index(0, 2, REQUEST), exchange)
        response.slot = bodies.add(answer, 0, len(answer), UNKNOWN, response)
        bodies.settle_response(response, 0, 2)
        first = bodies.close()
        assert first.values(exchange.request_slot) == first.values(NO_BODY)
        carried = dict(bodies.carried)
        bodies.settle(exchange)
        last = bodies.close()
        if deferred:
            assert isinstance(first, DeferredBodies)
            assert first.unread() == {}, "the other end reports"
            first, last = sent(first), sent(last)
        found = [[one.values(slot) for slot in range(len(one.starts))] for one in (first, last)]
        both.append((found, bytes(first.arena), carried, first.unread()))
    assert both[0] == both[1]
    assert both[0][2], "values of the request were carried over"
    assert both[0][3] == {0: "out of bytes"}


@pytest.mark.parametrize("compiled", [False, True])
def test_some_bodies_are_projected_where_they_are(compiled: bool) -> None:
    one, two = produce(1, -1)[17:], produce_answer(1, throttle=5)[8:]
    starts, ends = np.array([0, len(one)]), np.array([len(one), len(one) + len(two)])
    programs = np.array([program_index(0, 2, REQUEST), program_index(0, 2, RESPONSE)])
    batch = DeferredBodies(bytearray(one + two), starts, ends, programs, {}, compiled=compiled)
    found = sent(batch)
    assert found.arena == one + two
    assert [found.values(slot) for slot in range(2)] == [batch.values(slot) for slot in range(2)]
    for slots in ([0, 1], [1], [1, 0, 1]) if compiled else ():
        assert batch.some(np.array(slots)).arena is batch.arena
        several = [list(one.several(np.array(slots))) for one in (batch, found)]
        assert several == [[batch.values(slot) for slot in slots]] * 2
    assert None not in [batch.values(slot) for slot in range(2)]


def test_a_body_without_a_program_has_no_values_and_a_token_its_bytes() -> None:
    batch = DeferredBodies(bytearray(b"token"), [0], [5], [UNKNOWN], {})
    assert batch.values(0) is None
    token = batch.token(0)
    assert token is not None
    assert token.data == b"token"
    assert sent(batch).values(0) is None
