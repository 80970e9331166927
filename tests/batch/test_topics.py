"""Laws of topics: each once, in wire order (response, then request), halves joined."""

from base64 import urlsafe_b64encode
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.batch.bodies import Messages, SideColumns
from kcap.batch.topics import RowTopics, TopicColumns, whole
from kcap.capture_pass import CapturePass
from kcap.kafka.body_topics import ID_BYTES, NO_ID, BodyTopics
from kcap.model import ROW
from tests.support.steps import steps

REQUEST, RESPONSE = ROW.index("request_slot"), ROW.index("response_slot")
Topic = tuple[bytes | None, bytes | None]


def pairs_of(topics: BodyTopics) -> list[Topic]:
    """Topics of one body, one by one."""
    names, ids = BytesIO(topics.names), BytesIO(topics.ids)
    return [(None if size < 0 else names.read(size), ids.read(ID_BYTES) or None) for size in topics.sizes]


def slowly(topics: list[Topic]) -> list[Topic]:
    """The law, a topic at a time."""
    found: list[Topic] = []
    for name, uuid in topics:
        uuid = None if uuid == NO_ID else uuid
        if name is None and uuid is None:
            continue
        for at, (known_name, known_uuid) in enumerate(found):
            named = name is not None and name == known_name and (uuid == known_uuid or None in (uuid, known_uuid))
            same = uuid is not None and uuid == known_uuid and (name == known_name or None in (name, known_name))
            if named or same:
                found[at] = known_name or name, known_uuid or uuid
                break
        else:
            found.append((name, uuid))
    return found


@pytest.mark.parametrize("name", ["java-transactions.pcap", "librdkafka-zstd.pcap", "pipelined.pcap", "cluster-startup.pcap"])
def test_topics_are_those_of_both_bodies(pcaps: Path, name: str) -> None:
    seen = 0
    for batch in CapturePass([str(pcaps / name)]).batches():
        slots = [np.array([row[at] for row in batch.rows], np.int64) for at in (REQUEST, RESPONSE)]
        messages = Messages(batch.bodies, slots)
        made = TopicColumns(messages, SideColumns(messages, slots[0]), SideColumns(messages, slots[1]), len(batch.rows))
        names, ids = made.names().to_pylist(), made.ids().to_pylist()
        for at, row in enumerate(batch.rows):
            bodies = [batch.bodies.values(int(row[side])) for side in (RESPONSE, REQUEST)]
            want = slowly([topic for body in bodies if body is not None for topic in pairs_of(body.topics)])
            assert (names[at] or []) == [None if n is None else n.decode() for n, _ in want]
            assert (ids[at] or []) == [None if u is None else urlsafe_b64encode(u)[:22].decode() for _, u in want]
            seen += len(want)
        for topic in {(name, uuid) for row in zip(names, ids) for name, uuid in zip(row[0] or [], row[1] or [])}:
            name, uuid = topic[0] or "nobody's", topic[1] or "nobody's"
            want_rows = [name in (row or []) or uuid in (other or []) for row, other in zip(names, ids)]
            assert made.mentions(name, uuid).tolist() == want_rows
    assert seen


def test_halves_of_a_topic_become_one() -> None:
    found = RowTopics()
    for pair in [(1, -1), (2, 5), (1, 4), (-1, 5), (-1, 6), (1, 7)]:
        found.join(*pair)
    assert found.pairs == [(1, 4), (2, 5), (-1, 6), (1, 7)]
    assert whole([0, 0, 3], [1, 1, -1], [-1, 4, 2]).tolist() == [[0, 3], [1, -1], [4, 2]]


HALF = st.sampled_from([-1, 0, 1, 2])


@given(st.lists(st.tuples(HALF, HALF), max_size=12))
def test_any_halves(topics: list[tuple[int, int]]) -> None:
    """Law: as a topic at a time, each beside all before it."""
    words = (b"a", b"b", b"c", None)
    named = [pair for pair in topics if pair != (-1, -1)]
    found = RowTopics()
    for pair in named:
        found.join(*pair)
    assert [(words[name], words[uuid]) for name, uuid in found.pairs] == slowly([(words[n], words[u]) for n, u in named])


def test_work_grows_with_the_topics() -> None:
    """Names and ids that have nothing to do with each other are not compared each with each."""

    def work(topics: int) -> int:
        names, ids = [*range(topics), *[-1] * topics], [*[-1] * topics, *range(topics)]
        return steps(lambda: whole([0] * 2 * topics, names, ids))

    assert work(400) <= 4.1 * work(100)
