"""Laws of the topics of bodies that wait: they are those on the wire, wherever batches end, and their memory is bounded."""

from pathlib import Path

import pytest

from kcap import limits
from kcap.analyzer import Options
from kcap.batch.columns import BatchColumns
from kcap.capture_pass import CapturePass
from kcap.kafka.body_topics import NO_ID, NO_TOPICS, topics_of
from kcap.session import Capture
from tests.fuzz.hostile import CLASSES


def test_topics_have_a_name_or_an_id_or_both() -> None:
    data = b"..one" + b"1" * 16 + b"two"
    found = topics_of(bytearray(data), [2, -1, 21, 2], [5, -1, 24, 2], [-1, 5, 5, -1])
    assert (found.names, found.sizes.tolist()) == (b"onetwo", [3, -1, 3, 0])
    assert found.ids == NO_ID + b"1" * 16 + b"1" * 16 + NO_ID
    assert (len(found), found.bytes_held) == (4, 6 + 4 * 4 + 4 * 16)
    assert topics_of(data, [2], [5], [-1]).ids == b""
    assert topics_of(data, [], [], []) is NO_TOPICS


@pytest.mark.parametrize("fast_path", [False, True])
def test_topics_of_requests_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast_path: bool) -> None:
    """Law: whatever is outstanding, its topics take so much memory; requests with more have none in their rows, which is a
    weird, and those that were answered make room for others.
    """
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    monkeypatch.setattr(limits, "BODIES_BYTES", 20_000)
    monkeypatch.setattr(limits, "TOPICS_CARRIED_BYTES", 250_000)
    monkeypatch.setattr("kcap.kafka.bodies.TOPICS_CARRIED_BYTES", 250_000)
    path = tmp_path / "waiting.pcap"
    path.write_bytes(CLASSES["waiting_names"][0](300_000))
    reading, found, most = CapturePass([str(path)], Options(fast_path=fast_path)), list[tuple[bool, bool]](), 0
    for batch in reading.batches():
        bodies = reading.analyzer.bodies
        most = max(most, bodies.topic_bytes)
        assert sum(values.topics.bytes_held for values in bodies.carried.values()) == bodies.topic_bytes
        topics = BatchColumns(batch).topics
        left_out = {*topics.left_out.tolist()}
        listed = topics.names()
        found += [(at in left_out, listed[at].is_valid) for at in range(len(batch))]
    assert 0 < most <= 250_000
    assert reading.analyzer.bodies.topic_bytes == 0
    assert (True, True) not in found
    assert found.count((True, False)) > 5
    said = list[str]()
    monkeypatch.setattr("kcap.batch.failures.report_row", lambda _report, _batch, _at, kind, *_: said.append(kind))
    rows = Capture([str(path)], Options(fast_path=fast_path)).table("exchanges", ["topics"]).to_arrow()
    assert rows["topics"].null_count - 2 == len(said) == found.count((True, False)), "two requests have no topics"
    assert {*said} == {"topics_limit"}


@pytest.mark.parametrize(("name", "topics"), [("waiting_names", 500_000), ("waiting_halves", 60_000)])
def test_topics_of_requests_that_wait_do_not_depend_on_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, topics: int
) -> None:
    """Law: up to TOPICS_CARRIED_BYTES each row lists the same topics on either path, wherever batches end."""
    path = tmp_path / "waiting.pcap"
    path.write_bytes(CLASSES[name][0](topics))
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    found = []
    for size in (limits.BODIES_BYTES, 1 << 18, 1 << 12):
        monkeypatch.setattr(limits, "BODIES_BYTES", size)
        for fast_path in (False, True):
            capture = Capture([str(path)], Options(fast_path=fast_path))
            found.append(capture.table("exchanges", ["exchange", "topics", "topic_ids"]).to_arrow().sort_by("exchange"))
            assert not capture.table("weirds", ["kind"]).to_arrow().num_rows
    assert all(other == found[0] for other in found)
    assert found[0]["topics"].null_count == 2, "of two requests without topics"
