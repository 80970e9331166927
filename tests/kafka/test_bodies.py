"""Bodies on their way to the projection, over the borders of batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kcap import limits
from kcap.analyzer import Options
from kcap.batch.columns import BatchColumns
from kcap.decode import slots
from kcap.decode.projection import program_index
from kcap.kafka.bodies import REQUEST, RESPONSE, UNKNOWN, BodyCollector, BodyValues, positions
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from kcap.session import Capture, CapturePass
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


def test_positions_of_some_values() -> None:
    """The same of a list as of an array."""
    column = [0, 2, 1, 2, -1]
    for values in (column, np.array(column)):
        assert positions(values, {2, -1}) == [1, 3, 4]
        assert positions(values, {}) == []


def test_an_answer_that_nobody_waits_for_does_not_move_on() -> None:
    """Law: a body that no row has leaves with its batch, and so do the values of a large one."""
    bodies, small, large = BodyCollector(), PendingResponse(1, 0, 0), PendingResponse(2, 0, 0)
    small.slot = bodies.add(b"abc", 0, 3, UNKNOWN, small)
    large.slot = bodies.carry(BodyValues(0, 0, (), (), ()))
    bodies.close()
    for response in (small, large):
        bodies.forget_response(response)
        assert response.slot == NO_BODY
    bodies.close()
    last = bodies.close()
    assert (len(last.arena), last.carried) == (0, {})


def test_orphans_are_collected_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: each body is put in a batch once, and once more for each batch whose end it waits for; an orphan waits for none."""
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


@pytest.mark.parametrize("fast_path", [False, True])
def test_topics_of_requests_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast_path: bool) -> None:
    """Law: whatever is outstanding, so many topics wait with it; requests with more have none in their rows, which is a weird,
    and those that were answered make room for others.
    """
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    monkeypatch.setattr(limits, "BODIES_BYTES", 20_000)
    monkeypatch.setattr(limits, "TOPICS_CARRIED", 50_000)
    monkeypatch.setattr("kcap.kafka.bodies.TOPICS_CARRIED", 50_000)
    path = tmp_path / "waiting.pcap"
    path.write_bytes(CLASSES["waiting_names"][0](300_000))
    reading, found, most = CapturePass([str(path)], Options(fast_path=fast_path)), list[tuple[bool, bool]](), 0
    for batch in reading.batches():
        most = max(most, reading.analyzer.bodies.topics)
        assert sum(len(values.topics) for values in reading.analyzer.bodies.carried.values()) == reading.analyzer.bodies.topics
        topics = BatchColumns(batch).topics
        left_out = {*topics.left_out.tolist()}
        listed = topics.names()
        found += [(at in left_out, listed[at].is_valid) for at in range(len(batch))]
    assert 0 < most <= 50_000
    assert reading.analyzer.bodies.topics == 0
    assert (True, True) not in found
    assert found.count((True, False)) > 5
    said = list[str]()
    monkeypatch.setattr("kcap.batch.failures.report_row", lambda _report, _batch, _at, kind, *_: said.append(kind))
    rows = Capture([str(path)], Options(fast_path=fast_path)).table("exchanges", ["topics"]).to_arrow()
    assert rows["topics"].null_count - 2 == len(said) == found.count((True, False)), "two requests have no topics"
    assert {*said} == {"topics_limit"}
