"""Scenes of partitions that members give up late."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.groups import member
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, observed


def late_release() -> Observed:
    """Two members give up partitions 6 s and 8 s after a response took these away: one partition and two."""
    rows: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}
    sizes = [(90, 40), (60, 40), (60, 80), (90, 40)]
    for name, has, rest, released in (("a", [0, 1], [0], 8.1), ("b", [2, 3, 4], [2], 10.1), ("c", [5, 6], [5], 6.0)):
        for at, (time, (sent, got)) in enumerate(zip((0.0, 1.0, 2.0, released), sizes, strict=True)):
            rows.append(member(name, at, "ConsumerGroupHeartbeat", time, 0.1, member_id=name, generation=1,
                               request_bytes=sent, response_bytes=got))  # fmt: skip
        said[name, 0, "request"] = {"topicPartitions": [{"topicId": "T", "partitions": has}]}
        said[name, 2, "response"] = {"assignment": {"topicPartitions": [{"topicId": "T", "partitions": rest}]}}
        said[name, 3, "request"] = {"topicPartitions": [{"topicId": "T", "partitions": rest}]}
    return observed(rows, messages=said)


SCENES = [
    Scene("release-slow", late_release, """
        medium 0.85: a, b of group g went on for up to 8.0 s with 3 partitions that the coordinator had taken away. Seen 2 times
        from 2.1 s to 10.1 s, 14 s lost. Who: group_id g, client_ids ['a', 'b']. Filter: group_id == "g" and api in
        {ConsumerGroupHeartbeat, StreamsGroupHeartbeat}. Evidence: releases 2, partitions 3, longest_ns 8000000000.
        """, least={"seconds": 6.0}),
]  # fmt: skip
