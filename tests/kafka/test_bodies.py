"""Bodies on their way to the projection, over the borders of batches."""

from pathlib import Path
from typing import Any

import pytest

from kcap import limits
from kcap.analyzer import Options
from kcap.capture_pass import CapturePass
from kcap.decode import slots
from kcap.decode.programs import program_index
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_topics import NO_TOPICS
from kcap.kafka.body_values import REQUEST, RESPONSE, UNKNOWN, BodyValues
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from tests.fuzz.hostile import CLASSES
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


def test_an_answer_that_nobody_waits_for_does_not_move_on() -> None:
    """Law: a body that no row has leaves with its batch, and so do the values of a large one."""
    bodies, small, large = BodyCollector(), PendingResponse(1, 0, 0), PendingResponse(2, 0, 0)
    small.slot = bodies.add(b"abc", 0, 3, UNKNOWN, small)
    large.slot = bodies.carry(BodyValues(0, 0, (), (), NO_TOPICS))
    bodies.close()
    for response in (small, large):
        bodies.forget_response(response)
        assert response.slot == NO_BODY
    bodies.close()
    last = bodies.close()
    assert (len(last.arena), last.carried) == (0, {})


def test_a_response_that_waits_is_in_no_batch_until_it_is_known() -> None:
    """Law: batches that close meanwhile do not have its body; the one in which its request is found has it."""
    bodies, response = BodyCollector(), PendingResponse(1, 0, 0)
    data = b"\0\x23\0\0\0\1\0\x12\0\0\0\4"
    response.slot = bodies.add(data, 0, len(data), UNKNOWN, response)
    bodies.close()
    assert [len(bodies.close().arena) for _ in range(3)] == [0, 0, 0]
    values = (slot := bodies.settle_response(response, 18, 99), bodies.close().values(slot))[1]
    assert values is not None
    assert values.values[slots.SLOT["error_code"]] == 35
    assert not bodies.close().arena


def test_orphans_are_collected_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: each body is put in a batch once, and once more where its request is found in a later one."""
    path = tmp_path / "orphans.pcap"
    path.write_bytes(CLASSES["one_id"][0](3000))
    added: list[int] = []
    add = BodyCollector.add

    def counted(self: BodyCollector, *arguments: Any) -> int:
        added.append(0)
        return add(self, *arguments)

    monkeypatch.setattr(BodyCollector, "add", counted)
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 20)
    monkeypatch.setattr(limits, "OUTSTANDING_MAX", 10)
    monkeypatch.setattr(limits, "EARLY_RESPONSES_MAX", 10)
    monkeypatch.setattr(limits, "FEED_PACKETS", 1)
    batches = [len(batch) for batch in CapturePass([str(path)], Options(fast_path=False)).batches()]
    assert sum(batches) > 5000
    assert len(added) <= 6004 + 20 * len(batches)
