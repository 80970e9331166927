"""Steps from one pass to another: what changed, once."""

import pickle
from pathlib import Path
from typing import Any

from kcap.analyzer import Options
from kcap.capture_pass import CapturePass
from kcap.jobs.messages import ReadOrder, Steps, follow
from kcap.jobs.worker import opened
from kcap.kafka.body_batch import BodyBatch


def said(bodies: BodyBatch) -> tuple[Any, ...]:
    """What bodies say; which interpreter projected them, and so whether numbers are in lists or in arrays, is no part of it."""
    return bytes(bodies.arena), [bodies.values(slot) for slot in range(len(bodies.starts))], bodies.carried, bodies.unread()


def test_a_pass_that_takes_every_step_is_where_the_other_one_is(pcaps: Path) -> None:
    path = str(pcaps / "node-platformatic.pcap")
    theirs = opened(ReadOrder([path], Options(), keep_connections=True))
    mine, alone = CapturePass([path], keep_connections=True), CapturePass([path], keep_connections=True)
    theirs.analyzer.take_sightings()
    steps = Steps(theirs)
    for batch, expected in zip(theirs.batches(), alone.batches(), strict=True):
        step = pickle.loads(pickle.dumps(steps.step(batch), pickle.HIGHEST_PROTOCOL))
        follow(mine, step)
        assert step.batch.rows == expected.rows
        assert said(step.batch.bodies) == said(expected.bodies)
        assert [one.values for one in mine.connections] == [one.values for one in alone.connections]
        assert (mine.rows, mine.bytes, mine.phases, mine.weirds) == (alone.rows, alone.bytes, alone.phases, alone.weirds)
        assert mine.capture_files == alone.capture_files
    mine.files.close()
    assert not steps.step(over=True).files, "what was sent and did not change is not sent again"


def test_a_file_is_sent_when_it_changed(pcaps: Path) -> None:
    reading = opened(ReadOrder([str(pcaps / "node-platformatic.pcap")], Options()))
    steps = Steps(reading)
    assert list(steps.step().files) == [0]
    assert not steps.step().files
    reading.capture_files[0].packets += 1
    steps.packets(0)
    assert list(steps.step().files) == [0]
    reading.files.close()
