"""Laws of carried bodies as columns: they say what the batch of each body says of it."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kcap import limits
from kcap.analyzer import RowBatch
from kcap.capture_pass import CapturePass
from kcap.decode import slots
from kcap.kafka import carried_bodies
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.body_topics import BodyTopics
from kcap.kafka.body_values import WORDS, BodyValues
from kcap.kafka.carried_bodies import carried
from kcap.kafka.frames import NO_BODY
from kcap.kafka.waiting_bodies import WaitingBodies
from kcap.net.segment_columns import columns_of
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.support.wire import produce, produce_answer

TEXTS = len(slots.SLOTS)


def said(values: BodyValues | None) -> Any:
    """What a body says, without where its texts are; of no body what fails a comparison."""
    assert values is not None
    topics = values.topics
    ids = topics.ids if any(topics.ids) else b""
    texts = tuple(text for at, text in enumerate(values.texts, TEXTS) if values.mask >> at & 1)
    return values._replace(
        values=values.values[:TEXTS], texts=texts, topics=BodyTopics(topics.names, topics.sizes, ids), data=b""
    )


def taken(path: Path) -> RowBatch:
    """A capture as one batch of the fast path."""
    reading = CapturePass([str(path)])
    reading.analyzer.expect_many()
    for packets in reading.files.batches():
        reading.analyzer.feed(columns_of(reading.parser.parse(packets)))
    return reading.analyzer.take()


def projected(path: Path) -> BodyBatch:
    """Its bodies."""
    return taken(path).bodies


def read_slots(batch: BodyBatch) -> Any:
    return np.flatnonzero(np.asarray(batch.dense) >= 0)


@pytest.mark.parametrize("name", ["java-transactions.pcap", "pipelined.pcap", "fallback-0.9.pcap"])
def test_columns_say_what_the_batch_of_each_body_says(pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Law, over several batches, of which each settles every third body; the slots of others stay."""
    monkeypatch.setattr(carried_bodies, "OVERTAKEN_BODY_BYTES", -1)
    batch, columns = projected(pcaps / name), 0
    bodies, expected, wanted = BodyCollector(), dict[int, Any](), read_slots(batch)
    for _ in range(3):
        numbers = carried(bodies, batch, wanted)
        assert (numbers < NO_BODY).all()
        for slot, number in zip(wanted.tolist(), numbers.tolist()):
            expected[number] = said(batch.values(slot))
        columns += len(wanted) - len(bodies.carried.keys() & {*numbers.tolist()})
        for values in bodies.carried.values():
            rare = values.status in WORDS or len(values.topics) > limits.WAITING_TOPICS_MAX or values.fault is not None
            assert rare or len(batch.projection.wrapped[0])
        bodies = pickle.loads(pickle.dumps(bodies))
        closed = bodies.close()
        assert {number: said(closed.values(number)) for number in expected} == expected
        assert closed.values(NO_BODY - 1 - len(wanted) * 100_000) is None
        gone = [*expected][::3]
        bodies.settle_carried(gone)
        after = bodies.close()
        assert {number: said(after.values(number)) for number in expected} == expected, "rows of this batch took them"
        for number in gone:
            del expected[number]
        assert all(bodies.close().values(number) is None for number in gone)
    assert columns > 100
    assert {number: said(bodies.close().values(number)) for number in expected} == expected
    bodies.settle_carried(expected)
    bodies.close()
    assert (bodies.waiting, bodies.carried) == (None, {})


def test_the_fast_path_carries_large_requests_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many that wait, over several batches, rows are those of the reference path."""
    made = list[int]()
    picked = WaitingBodies.picked

    def counted(self: WaitingBodies, places: Any) -> WaitingBodies:
        made.append(len(places))
        return picked(self, places)

    monkeypatch.setattr(WaitingBodies, "picked", counted)
    heavy, tap = limits.FAST_PATH_MOVED_BODY + 1000, steady(6)
    for at in range(50, 62):
        tap.client(produce(at, 1, bytes(heavy + at)), 900)
    for at in range(50, 62):
        tap.server(produce_answer(at), 9)
    for size in (5, 12):
        assert agree(tap.segments, size, 4).fast_rows > 1
    assert max(made) > 5
