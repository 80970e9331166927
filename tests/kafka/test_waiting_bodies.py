"""Laws of carried bodies as columns: they say what the batch of each body says of it."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kcap import limits
from kcap.analyzer import RowBatch
from kcap.decode import slots
from kcap.kafka import waiting_bodies
from kcap.kafka.bodies import WORDS, BodyBatch, BodyCollector, BodyValues
from kcap.kafka.body_topics import BodyTopics
from kcap.kafka.deferred_bodies import DeferredBodies
from kcap.kafka.frames import NO_BODY
from kcap.kafka.waiting_bodies import WaitingBodies, carried
from kcap.net.segment_columns import columns_of
from kcap.session import CapturePass
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


@pytest.fixture
def batch(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> BodyBatch:
    """None of its bodies is too small."""
    monkeypatch.setattr(waiting_bodies, "OVERTAKEN_BODY_BYTES", -1)
    return projected(pcaps / "java-transactions.pcap")


def read_slots(batch: BodyBatch) -> Any:
    return np.flatnonzero(np.asarray(batch.dense) >= 0)


@pytest.mark.parametrize("name", ["java-transactions.pcap", "pipelined.pcap", "fallback-0.9.pcap"])
def test_columns_say_what_the_batch_of_each_body_says(pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Law, over several batches, of which each settles every third body; the slots of others stay."""
    monkeypatch.setattr(waiting_bodies, "OVERTAKEN_BODY_BYTES", -1)
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


def test_what_is_rare_is_held_one_by_one(batch: BodyBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that retain their bytes, those with many topics, and those beyond the bound."""
    wanted = read_slots(batch)
    for name, value, most in (("WAITING_BODIES_MAX", len(wanted) - 1, 0), ("WAITING_TOPICS_MAX", 0, len(wanted) - 1)):
        with monkeypatch.context() as patched:
            patched.setattr(waiting_bodies, name, value)
            bodies = BodyCollector()
            carried(bodies, batch, wanted)
            held = 0 if bodies.waiting is None else len(bodies.waiting)
            assert held <= most
            assert held + len(bodies.carried) == len(wanted)
            assert bodies.waiting is None or not len(bodies.waiting.topics[0])
    bodies = BodyCollector()
    bodies.keep = True
    kept = bodies.close(batch)
    numbers = carried(bodies, kept, wanted)
    assert bodies.waiting is None
    assert all(bodies.bytes_of(number) for number in numbers.tolist())


def test_a_batch_that_another_process_projects_is_carried_alike(batch: BodyBatch) -> None:
    wanted = read_slots(batch)[:50]
    programs = np.full(len(batch.starts), -1)
    table = BodyCollector(), BodyCollector()
    numbers = carried(table[0], batch, wanted)
    deferred = DeferredBodies(bytearray(batch.arena), batch.starts, batch.ends, programs, {}, compiled=True)
    assert (carried(table[1], deferred, wanted) == -1).all(), "no program reads them"
    assert table[1].waiting is None
    waiting = table[0].waiting
    assert waiting is not None
    assert not len(waiting.of({0}))  # the first body of a batch, which the row of the reference path names
    sent = waiting.of({*numbers[10:20].tolist(), -1_000_000, NO_BODY, 0, 1})
    assert {*sent.slots.tolist()} == {*numbers[10:20].tolist()}
    assert [said(sent.values(number)) for number in sent.slots.tolist()] == [
        said(batch.values(slot)) for number in sent.slots.tolist() for slot in wanted[numbers == number].tolist()
    ]
    assert sent.topic_counts(numbers)[:10].tolist() == [0] * 10
    assert sent.topic_counts(numbers).sum() == len(sent.topics[0])


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
