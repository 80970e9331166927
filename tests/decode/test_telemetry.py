"""Pushed metrics: protobuf as nodes."""

import random
from struct import pack
from typing import Any

import pytest
import zstandard

import kcap
from kcap.decode import telemetry
from kcap.decode.message import Message
from tests.decode.trees import check, undecoded, walk
from tests.records.batches import uvarint


def metrics() -> bytes:
    """A gauge, as the Java client pushes one."""
    pb2: Any = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    data = pb2.MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name = "org.apache.kafka.consumer.poll.idle.ratio.avg"
    point = metric.gauge.data_points.add()
    point.as_double, point.time_unix_nano = 0.25, 1_795_246_942_135_000_000
    made: bytes = data.SerializeToString()
    return made


def push(data: bytes, codec: int) -> Message:
    """PushTelemetry v0."""
    frame = (
        pack(">hhih", 72, 0, 1, -1) + b"\0" + bytes(16) + pack(">i?b", 7, False, codec) + uvarint(len(data) + 1) + data + b"\0"
    )
    return kcap.decode_request(frame)


@pytest.mark.parametrize("codec", [0, 4])
def test_metrics_have_their_names(codec: int) -> None:
    data = metrics()
    root = push(zstandard.compress(data) if codec else data, codec).tree()
    check(root)
    values = {node.name: node.value for node in walk(root)}
    assert values["name"] == "org.apache.kafka.consumer.poll.idle.ratio.avg"
    assert values["as_double"] == 0.25
    assert values["time_unix_nano"] == 1_795_246_942_135_000_000
    assert not undecoded(root)


def test_a_push_that_inflates_without_end_has_no_more_fields_than_its_bound_has_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(telemetry, "METRICS_BYTES_MAX", 1_000)
    nodes = list(walk(push(zstandard.compress(b"\x0a\0" * 10_000), 4).tree()))
    assert "more than 1000 bytes" in next(node.words for node in nodes if node.name == "metrics")
    assert len(nodes) < 1_100


def test_without_the_extra_fields_have_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = metrics()
    monkeypatch.setattr(telemetry, "metrics_data", lambda: None)
    root = push(data, 0).tree()
    check(root)
    found = next(node for node in walk(root) if node.name == "MetricsData")
    assert found.words.endswith(telemetry.MISSING)
    assert found.children[0].name == "field 1"


def test_damage_tiles() -> None:
    """Whatever was pushed, the nodes tile it and nothing raises."""
    chance, data = random.Random(3), metrics()
    for size in range(len(data)):
        check(push(data[:size], 0).tree())
    for _ in range(300):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        check(push(bytes(damaged), 0).tree())
        check(push(zstandard.compress(bytes(damaged))[: chance.randrange(40)] or b"x", 4).tree())
