"""Laws of body columns: they say what `BodyBatch.values` says of each body."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.batch.bodies import Messages, Pool, SideColumns, encoded, encoded_ids
from kcap.batch.topics import TopicColumns
from kcap.capture_pass import CapturePass
from kcap.decode import slots
from kcap.kafka import carried_bodies
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.frames import NO_BODY
from kcap.model import ROW
from tests.kafka.test_waiting_bodies import projected

REQUEST, RESPONSE = ROW.index("request_slot"), ROW.index("response_slot")


@pytest.mark.parametrize("name", ["java-transactions.pcap", "pipelined.pcap", "fallback-0.9.pcap"])
def test_columns_say_what_each_body_says(pcaps: Path, name: str) -> None:
    """Wrapped messages add their records to `record_count`; everything else is the projection's."""
    carried = 0
    for batch in CapturePass([str(pcaps / name)]).batches():
        wanted = [np.array([row[at] for row in batch.rows], np.int64) for at in (REQUEST, RESPONSE)]
        messages = Messages(batch.bodies, wanted)
        carried += len(messages.carried)
        for numbers in wanted:
            side = SideColumns(messages, numbers)
            bodies = [batch.bodies.values(int(number)) for number in numbers]
            for at, slot in enumerate(slots.SLOTS):
                want = [None if body is None or not body.mask >> at & 1 else body.values[at] for body in bodies]
                found = side.slot(slot)
                got = [value if here else None for value, here in zip(found.values.tolist(), found.mask().tolist())]
                if slot != "record_count" or not len(batch.bodies.projection.wrapped[0]):
                    assert got == want, slot
            for at, text in enumerate(slots.TEXTS):
                rows, starts, ends = side.texts(text)
                some, known = encoded(messages.pool, starts, ends)
                code = np.full(len(numbers), -1, np.int64)
                code[rows] = some
                want_texts = [None if body is None else body.texts[at] for body in bodies]
                here = [body is not None and bool(body.mask >> (len(slots.SLOTS) + at) & 1) for body in bodies]
                assert [known[c] if c >= 0 else None for c in code] == [t if h else None for t, h in zip(want_texts, here)]
    assert carried or name != "pipelined.pcap", "requests that wait over a batch are what this capture is for"


@given(st.binary(min_size=20, max_size=60), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12))
def test_spans_are_told_apart_by_their_bytes(data: bytes, places: list[tuple[int, int]]) -> None:
    spans = [(min(p), max(p)) if sum(p) % 5 else (-1, -1) for p in places]
    starts, ends = (np.array([span[i] for span in spans], np.int64) for i in (0, 1))
    numbers, known = encoded(Pool(np.frombuffer(data, np.uint8)), starts, ends)
    assert [known[n] if n >= 0 else None for n in numbers] == [None if low < 0 else data[low:high] for low, high in spans]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=5)), max_size=12), st.binary(min_size=4, max_size=9))
def test_texts_behind_the_bodies_are_found_like_those_in_them(texts: list[bytes | None], data: bytes) -> None:
    pool = Pool(np.frombuffer(data, np.uint8))
    spans = [(1, 3) if at % 3 == 0 else pool.lay(text) for at, text in enumerate(texts)]
    starts, ends = (np.array([span[i] for span in spans], np.int64) for i in (0, 1))
    numbers, known = encoded(pool, starts, ends)
    want = [data[1:3] if at % 3 == 0 else text for at, text in enumerate(texts)]
    assert [known[n] if n >= 0 else None for n in numbers] == want


def test_ids_are_told_apart_by_their_bytes() -> None:
    data = Pool(np.frombuffer(bytes(range(16)) + bytes(16) + bytes(range(16)), np.uint8))
    numbers, known = encoded_ids(data, np.array([32, -1, 16, 0], np.int64))
    assert [known[n] if n >= 0 else None for n in numbers] == [bytes(range(16)), None, None, bytes(range(16))]
    assert encoded_ids(Pool(np.zeros(0, np.uint8)), np.zeros(0, np.int64))[1] == []


def test_columns_of_carried_messages_are_those_of_their_batch(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: every second body of a batch may be carried, as a column or as a value, and all columns are the same."""
    monkeypatch.setattr(carried_bodies, "OVERTAKEN_BODY_BYTES", 40)
    batch = projected(pcaps / "java-transactions.pcap")
    here = np.flatnonzero(np.asarray(batch.dense) >= 0)
    bodies, mixed = BodyCollector(), here.copy()
    numbers = carried_bodies.carried(bodies, batch, here)
    mixed[::2] = numbers[::2]
    assert bodies.waiting is not None
    assert bodies.carried
    carried = replace(batch, carried=bodies.carried, waiting=bodies.waiting)
    found = []
    for whole, places in ((batch, here), (carried, mixed)):
        messages = Messages(whole, [places])
        side = SideColumns(messages, places)
        columns: list[object] = [side.slot(name).to_arrow(pa.int64()) for name in slots.SLOTS]
        for name in slots.TEXTS:
            rows, starts, ends = side.texts(name)
            coded, known = encoded(messages.pool, starts, ends)
            columns.append((rows.tolist(), [known[at] if at >= 0 else None for at in coded]))
        topics = TopicColumns(messages, side, SideColumns(messages, np.full(len(here), NO_BODY)), len(here))
        found.append([*columns, topics.names(), topics.ids()])
    assert found[0] == found[1]
