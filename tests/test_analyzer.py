"""The composition of tables, conversations and batches."""

from pathlib import Path

import pytest

from kcap import limits
from kcap.analyzer import Analyzer, Options, community_id
from kcap.capture_pass import CapturePass
from kcap.model import ROW
from kcap.net.connections import reverse_flow
from kcap.net.segment_columns import columns_of
from tests.fuzz.hostile import CLASSES
from tests.support.wire import Tap, analyze, batch, metadata, metadata_answer, produce, produce_answer


def conversation(port: int = 40_000) -> Tap:
    return Tap(port=port).open().client(metadata(1)).server(metadata_answer(1)).close()


def test_a_connection_is_named_after_its_first_packet_and_number() -> None:
    """Re-runs give the same uid, another initial sequence number gives another."""
    one, again = analyze(conversation().segments), analyze(conversation().segments, sizes=2)
    other = analyze(Tap(client_isn=77).open().client(metadata(1)).segments)
    assert one.connections[0]["connection"] == again.connections[0]["connection"]
    assert one.connections[0]["connection"] != other.connections[0]["connection"]


def test_ports_used_again_are_another_connection() -> None:
    first = conversation()
    second = Tap(client_isn=5_000_000, server_isn=7_000_000, time_ns=first.time_ns).open()
    second.client(metadata(1)).server(metadata_answer(1)).close()
    seen = analyze(first.segments + second.segments)
    assert len(seen.connections) == 2
    assert seen.brief("outcome", "exchange") == [("answered", 1)] * 2


def test_the_user_may_say_what_a_port_is() -> None:
    segments = conversation().segments
    assert analyze(segments, Options(not_kafka_ports=frozenset({9092}))).rows == []
    odd = Tap().open().client(b"\0\0\0\x0e\x7f\0\0\0\0\0\0\1\0\4good").server(metadata_answer(1))
    assert analyze(odd.segments).rows == []


def test_bytes_that_are_no_kafka_are_counted_and_named() -> None:
    seen = analyze(Tap().open().client(b"GET / HTTP/1.1\r\n\r\n").server(b"HTTP/1.1 200 OK\r\n\r\n").segments)
    (connection,) = seen.connections
    assert (connection["phase"], connection["client_opaque"], connection["server_opaque"]) == ("http", 18, 19)
    assert seen.weirds == {"not_kafka": 1}


def test_a_large_capture_has_the_lane_from_its_first_columns_on() -> None:
    """It changes no row; a capture that nobody announced waits."""
    segments = batch(conversation().segments)
    announced, other = Analyzer(), Analyzer()
    announced.expect_many()
    for analyzer in (announced, other):
        analyzer.feed(columns_of(segments))
        analyzer.finish()
    assert announced.fast_path is not None
    assert other.fast_path is None
    assert [row[1:12] for row in announced.take().rows] == [row[1:12] for row in other.take().rows]


def test_community_id_is_that_of_its_specification() -> None:
    """The TCP example of the Community ID repository: 128.232.110.120:34855 to 66.35.250.204:80."""
    example = bytes([128, 232, 110, 120, 66, 35, 250, 204]) + (34855).to_bytes(2, "big") + (80).to_bytes(2, "big")
    assert community_id(example) == "1:LQU9qZlK+B5F3KDmev6m5PMibrg="
    assert community_id(reverse_flow(example)) == community_id(example)


def test_oddities_of_many_connections_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of connections with an oddity each makes a bounded number of rows, and none is lost."""
    monkeypatch.setattr(limits, "WEIRDS_MAX", 3)
    segments = [s for port in range(1, 11) for s in Tap(port=port).open().send(0, b"no Kafka at all\r\n").segments]
    analyzer = Analyzer()
    analyzer.feed(batch(segments))
    analyzer.finish()
    assert [(weird.connection is None, count) for weird, count in analyzer.sightings()] == [(False, 1)] * 3 + [(True, 7)]


@pytest.mark.parametrize("fast_path", [False, True])
def test_large_records_that_are_read_again_end_a_batch(monkeypatch: pytest.MonkeyPatch, fast_path: bool) -> None:
    """Law: the large messages of a batch whose records are needed fit in memory together, but for the last of them."""
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    monkeypatch.setattr(limits, "LARGE_BODIES_ROOM", 3 << 20)
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    size = limits.FRAME_GATHERED_MAX + 100
    for number in range(2, 22):
        tap.client(produce(number, 1, bytes(size))).server(produce_answer(number))
    for records in (False, True):
        analyzer = Analyzer(Options(fast_path=fast_path))
        analyzer.bodies.retain(records=records)
        found = []
        for at in range(0, len(tap.segments), 100):
            segments = batch(tap.segments[at : at + 100], at + 1)
            analyzer.feed(columns_of(segments) if fast_path else segments)
            if analyzer.full:
                found.append(sum(row[ROW.index("request_bytes")] > size for row in analyzer.take().rows))
        assert found == ([3] * 6 if records else [])


def test_large_messages_with_many_topics_end_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the topics of a batch's large messages are at most so many, and those of one message."""
    path = tmp_path / "named.pcap"
    path.write_bytes(CLASSES["named_ids"][0](200_000))
    monkeypatch.setattr(limits, "TOPICS_OF_MESSAGE", 60_000)
    found = [
        sum(len(values.topics) for values in batch.bodies.carried.values()) for batch in CapturePass([str(path)]).batches()
    ]
    assert sum(found) == 200_000
    assert max(found) == 100_000
