"""Bodies on their way to the projection, over the borders of batches."""

import gzip
import struct
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kcap import limits
from kcap.analyzer import Options
from kcap.decode import slots
from kcap.decode.programs import program_index
from kcap.kafka.bodies import (
    REQUEST,
    RESPONSE,
    UNKNOWN,
    BodyCollector,
    BodyValues,
    fed,
    positions,
    resumed,
    values_of,
)
from kcap.kafka.body_topics import NO_TOPICS
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from kcap.session import CapturePass
from tests.fuzz.hostile import CLASSES
from tests.records.batches import message
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


@pytest.mark.parametrize("size", [1, 7, 100, 5_000])
def test_records_in_compressed_messages_are_counted_as_they_pass(size: int) -> None:
    """Law: however the bytes come, the count is that of the whole body, and no more than a message is held."""
    inner = b"".join(message(b"v" * 50, offset=at) for at in range(10))
    one = message(gzip.compress(inner, 0), codec=1, offset=9)
    frame = bytearray(produce(1, 1, one * 20 + message(b"plain") + one[:-1]))
    reader, most = resumed(program_index(0, 2, REQUEST), frame, 17, counted=True, light=False), 0
    assert reader is not None
    assert values_of(reader).values[slots.RECORD_COUNT] == 201
    reader = resumed(program_index(0, 2, REQUEST), bytearray(), 0, counted=True, light=False)
    assert reader is not None
    for at in range(17, len(frame), size):
        fed(reader, frame[at : at + size])
        most = max(most, reader.held)
    values = values_of(reader)
    assert values.values[slots.RECORD_COUNT] == 201
    assert values.mask >> slots.RECORD_COUNT & 1
    assert most < 2 * len(one) + size + 100
    reader = resumed(program_index(0, 2, REQUEST), frame, 17, counted=False, light=False)
    assert reader is not None
    assert values_of(reader).mask >> slots.RECORD_COUNT & 1 == 0


def test_a_reader_that_would_hold_much_is_given_up_at_the_beginning() -> None:
    """Law: names without end are not read to their end to find out that they fill memory; records are no burden."""
    names, index = bytearray(struct.pack(">i", 1 << 30) + b"\0\1t" * 100_000), program_index(3, 1, REQUEST)
    whole = resumed(index, names, 0, counted=True, light=False)
    assert whole is not None
    assert whole.held > len(names)
    with patch("kcap.kafka.bodies.fed", wraps=fed) as seen:
        assert resumed(index, names, 0, counted=True, light=True) is None
    assert sum(len(call.args[1]) for call in seen.call_args_list) <= 4096
    frame = bytearray(produce(1, 1, message(bytes(100_000))))
    assert resumed(program_index(0, 2, REQUEST), frame, 17, counted=True, light=True) is not None
