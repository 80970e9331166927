"""The rule on partitions that members give up late."""

from tests.reports.findings.tables import MS, SECOND, Row, exchange, found, observed


def test_partitions_that_a_member_gives_up_late_are_told() -> None:
    """KIP-848: the coordinator gives a partition to another when the heartbeats of its owner no longer have it."""

    def seen(released: float, *, then: tuple[int, ...] = (0,), again: tuple[int, ...] = (0,), epoch: int = 1) -> list[Row]:
        def lists(*numbers: int) -> list[Row]:
            return [{"topicId": "T", "partitions": list(numbers)}]

        times = [0.0, 1.0, 2.0, 3.0, released, released + 1]
        sizes = [(90, 40), (60, 40), (60, 80), (60, 80), (90, 40), (60, 40)]
        epochs = [1, 1, 1, 1, epoch, 2]
        rows = [
            exchange("C1", at, "ConsumerGroupHeartbeat", time, group_id="g", member_id="m", generation=number,
                     request_bytes=sent, response_bytes=got)
            for at, (time, (sent, got), number) in enumerate(zip(times, sizes, epochs, strict=True))
        ]  # fmt: skip
        said = {
            ("C1", 0, "request"): {"topicPartitions": lists(0, 1)}, ("C1", 2, "request"): {"topicPartitions": None},
            ("C1", 2, "response"): {"assignment": {"topicPartitions": lists(0)}},
            ("C1", 3, "response"): {"assignment": {"topicPartitions": lists(*again)}},
            ("C1", 4, "request"): {"topicPartitions": lists(*then)},
        }  # fmt: skip
        return found("release-slow", observed(rows, messages=said))

    (row,) = seen(10)
    assert row["sentence"] == "app of group g went on for up to 8.0 s with 1 partition that the coordinator had taken away"
    assert row["evidence"] == {"releases": 1, "partitions": 1, "longest_ns": 8 * SECOND - MS}
    assert seen(6) == []
    assert seen(10, then=(0, 1)) == [], "it still has it"
    assert seen(10, again=(0, 1)) == [], "the coordinator gave it back"
    assert seen(10, epoch=0) == [], "it had left"
