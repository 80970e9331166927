"""Bodies on their way to the projection, over the borders of batches."""

import numpy as np

from kcap.decode import slots
from kcap.decode.projection import program_index
from kcap.kafka.bodies import REQUEST, RESPONSE, UNKNOWN, BodyCollector, positions
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from tests.support.wire import produce, produce_answer


def body(frame: bytes, fixed: int) -> bytes:
    return frame[fixed:]


def test_a_version_no_release_has_is_not_read() -> None:
    assert program_index(0, 999, REQUEST) == UNKNOWN
    assert program_index(3, 1, RESPONSE) != UNKNOWN


def test_a_request_decided_later_leaves_its_values_behind() -> None:
    bodies, exchange = BodyCollector(), PendingExchange(1, 0, 2, 1, "app", 0)
    data = body(produce(1, -1), 17)
    exchange.request_slot = bodies.add(data, 0, len(data), program_index(0, 2, REQUEST), exchange)
    first = bodies.close()
    values = first.values(0)
    assert values is not None
    assert values.values[slots.SLOT["acks"]] == -1
    assert exchange.request_slot < NO_BODY
    bodies.close()
    slot = bodies.settle(exchange)
    last = bodies.close()
    assert last.values(slot) == values
    assert bodies.close().carried == {}, "and is forgotten once its row is out"


def test_an_answer_that_waits_moves_on() -> None:
    bodies, response = BodyCollector(), PendingResponse(1, 0, 0)
    data = body(produce_answer(1, throttle=9), 8)
    response.slot = bodies.add(data, 0, len(data), UNKNOWN, response)
    assert bodies.close().values(0) is None
    slot = bodies.settle_response(response, 0, 2)
    values = bodies.close().values(slot)
    assert values is not None
    assert values.values[slots.SLOT["throttle_time_ms"]] == 9
    assert response.slot == NO_BODY


def test_an_api_versions_refusal_is_read_as_version_0() -> None:
    """KIP-511: error 35 comes in the form of version 0, whatever the request's version."""
    bodies, response = BodyCollector(), PendingResponse(1, 0, 0)
    data = b"\0\x23\0\0\0\1\0\x12\0\0\0\4"
    response.slot = bodies.add(data, 0, len(data), UNKNOWN, response)
    values = (slot := bodies.settle_response(response, 18, 99), bodies.close().values(slot))[1]
    assert values is not None
    assert (values.status, values.values[slots.SLOT["error_code"]]) == (0, 35)


def test_positions_of_some_values() -> None:
    """The same of a list as of an array."""
    column = [0, 2, 1, 2, -1]
    for values in (column, np.array(column)):
        assert positions(values, {2, -1}) == [1, 3, 4]
        assert positions(values, {}) == []
