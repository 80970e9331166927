"""Laws of a batch's columns: those of some rows are entries of those of all, and a batch is freed with its columns."""

import gc
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kcap.analyzer import Options
from kcap.batch.columns import KEYS, VERSIONS, BatchColumns
from kcap.capture_pass import CapturePass
from kcap.kafka.frames import NO_BODY
from tests.table.handmade import batch, row, unanswered


@pytest.mark.parametrize("name", ["java-transactions.pcap", "quota-3.9.pcap"])
def test_columns_of_some_rows_are_entries_of_those_of_all(pcaps: Path, name: str) -> None:
    for made in CapturePass([str(pcaps / name)]).batches():
        every, places = BatchColumns(made), np.arange(0, len(made), 3)
        some = every.select(places)
        assert some.size == len(places)
        for column in ("latency", "rtt", "queue", "service", "error_code", "throttle"):
            wanted, found = getattr(every, column).take(places), getattr(some, column)
            assert np.array_equal(wanted.mask(), found.mask()), column
            assert np.array_equal(wanted.filled(), found.filled()), column
        assert np.array_equal(every.is_outcome("answered")[places], some.is_outcome("answered"))


def test_calls_number_each_api_and_version() -> None:
    columns = BatchColumns(
        batch(row(), row(api_key=1, api_version=2), row(), row(api_key=999, api_version=99), row(api_key=None))
    )
    number, codes = columns.calls
    assert codes == [1 * VERSIONS + 2, 3 * VERSIONS + 12, KEYS * VERSIONS - 1]
    assert number.tolist() == [1, 0, 1, 2, 3]


def test_a_body_of_no_slot_is_empty() -> None:
    columns = BatchColumns(batch(row(), unanswered()))
    (low, _), (high, _) = columns.spans(np.array([-1, -5]))
    assert columns.body(low, high) == b""


def test_spans_of_bodies_are_laid_out_once(pcaps: Path) -> None:
    """Law: what asks for one body after the other does not go through those of the batch each time."""
    made = next(CapturePass([str(pcaps / "java-transactions.pcap")], Options(fast_path=False)).batches())
    columns = BatchColumns(made)
    slots = columns.number("response_slot").filled(NO_BODY)
    every = np.array(columns.spans(slots)).T.tolist()
    made.bodies = replace(made.bodies, starts=(), ends=())
    assert [[int(part[0]) for part in columns.spans(slots[at : at + 1])] for at in range(len(slots))] == every
    assert len(every) > 10


def test_bodies_are_freed_with_the_last_reference(pcaps: Path) -> None:
    """Without Python's collector, which runs seldom: a batch's bodies are megabytes."""
    made = next(b for b in CapturePass([str(pcaps / "java-transactions.pcap")]).batches() if len(b))
    arena, alone = made.bodies.arena, bytearray()
    gc.disable()
    try:
        columns = BatchColumns(made)
        assert columns.topics.pairs()
        assert len(columns.service) == len(made)
        del made, columns
        assert sys.getrefcount(arena) == sys.getrefcount(alone)
    finally:
        gc.enable()
