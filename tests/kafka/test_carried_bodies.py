"""Bodies are carried as columns where they are alike, one by one where they are not."""

from pathlib import Path

import numpy as np
import pytest

from kcap.kafka import carried_bodies
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.carried_bodies import carried
from kcap.kafka.deferred_bodies import DeferredBodies
from kcap.kafka.frames import NO_BODY
from tests.kafka.test_waiting_bodies import projected, read_slots, said


@pytest.fixture
def batch(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> BodyBatch:
    """None of its bodies is too small."""
    monkeypatch.setattr(carried_bodies, "OVERTAKEN_BODY_BYTES", -1)
    return projected(pcaps / "java-transactions.pcap")


def test_what_is_rare_is_held_one_by_one(batch: BodyBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that retain their bytes, those with many topics, and those beyond the bound."""
    wanted = read_slots(batch)
    for name, value, most in (("WAITING_BODIES_MAX", len(wanted) - 1, 0), ("WAITING_TOPICS_MAX", 0, len(wanted) - 1)):
        with monkeypatch.context() as patched:
            patched.setattr(carried_bodies, name, value)
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
