"""What came of errors: tries that were repeated, leaders that were found."""

from kcap.reports.definition import Row
from kcap.reports.retries import retries, stories
from tests.reports.made import MS, engine, exchange, partition, tables

LOST = "NOT_LEADER_OR_FOLLOWER"


def produced(number: int, at_ms: int, error: str | None, sequence: int = 0) -> tuple[Row, Row]:
    return (
        exchange(exchange=number, at_ms=at_ms, took_ms=1, api="Produce", api_key=0),
        partition(exchange=number, topic="t", error=error, producer_id=7, producer_epoch=0, base_sequence=sequence),
    )


def test_a_leader_that_moved() -> None:
    """NOT_LEADER, Metadata, one more failure, success: one story."""
    pairs = [produced(1, 0, LOST), produced(3, 20, LOST), produced(4, 50, "NONE"), produced(5, 60, "NONE", 1)]
    rows = [pair[0] for pair in pairs] + [exchange(exchange=2, at_ms=10, took_ms=1)]
    made = tables(rows, [pair[1] for pair in pairs])
    (story,) = engine().rows(stories(made))
    assert (story["exchange"], story["error"], story["topic"], story["partition"]) == (1, LOST, "t", 0)
    assert (story["metadata_after_ns"], story["good_after_ns"], story["tries"]) == (10 * MS, 50 * MS, 2)
    assert engine().rows(retries(made)) == [
        {"client_ip": "10.0.0.1", "client_id": "app", "api": "Produce", "topic": "t", "partition": 0, "retries": 2}
    ]


def test_a_story_without_an_end() -> None:
    pairs = [produced(1, 0, LOST)]
    (story,) = engine().rows(stories(tables([pairs[0][0]], [pairs[0][1]])))
    assert (story["metadata_after_ns"], story["good_after_ns"], story["tries"]) == (None, None, None)


def test_what_a_proxy_sends_on_is_no_retry() -> None:
    """Both sides of a proxy are in the capture; the second of two batches is sent again, when it was answered."""
    rows, parts = [], []
    for number, (at_ms, sequence, took_ms) in enumerate([(0, 0, 9), (20, 1, 9), (40, 1, 9)], 1):
        for connection, more in (("F", {"server_ip": "10.0.0.7"}), ("B", {"server_ip": "10.0.0.8"})):
            behind = connection == "B"
            rows.append(exchange(connection=connection, exchange=number, at_ms=at_ms + behind, took_ms=took_ms - 3 * behind,
                                 api="Produce", api_key=0, **more))  # fmt: skip
            parts.append(partition(connection=connection, exchange=number, topic="t", error="NONE", producer_id=7,
                                   producer_epoch=0, base_sequence=sequence))  # fmt: skip
    assert [row["retries"] for row in engine().rows(retries(tables(rows, parts)))] == [1]
    late = [row | {"response_first_ns": None} if row["connection"] == "F" else row for row in rows]
    assert [row["retries"] for row in engine().rows(retries(tables(late, parts)))] == [4], "it may have been given up"


def test_the_same_fetch_after_an_error() -> None:
    rows, parts = [], []
    for number, (offset, error) in enumerate([(5, LOST), (5, "NONE"), (9, "NONE"), (9, "NONE")], 1):
        rows.append(exchange(exchange=number, at_ms=number, took_ms=1, api="Fetch", api_key=1, client_id=None))
        parts.append(partition(exchange=number, api_key=1, topic="t", error=error, fetch_offset=offset))
    made = tables(rows, parts)
    assert [row["retries"] for row in engine().rows(retries(made))] == [1]
    assert [row["tries"] for row in engine().rows(stories(made))] == [1]


def test_the_same_batch_counts_from_its_second_try_on() -> None:
    """A batch is named by producer id, epoch, first sequence and partition; without a producer id nothing names it."""
    kinds: list[Row] = [
        {"producer_id": 0}, {"producer_id": 0}, {"producer_id": 0, "topic": "other"}, {"producer_id": 0, "producer_epoch": 1},
        {"producer_id": -1}, {"producer_id": -1}, {"producer_id": 5, "base_sequence": -1},
        {"producer_id": 5, "base_sequence": -1},
    ]  # fmt: skip
    rows = [exchange(exchange=number, at_ms=number, api="Produce", api_key=0) for number in range(len(kinds))]
    parts = [partition(exchange=number, topic="t", error="NONE", producer_epoch=0, base_sequence=0) | kind
             for number, kind in enumerate(kinds)]  # fmt: skip
    assert [(row["topic"], row["retries"]) for row in engine().rows(retries(tables(rows, parts)))] == [("t", 1)]


def test_what_two_clusters_name_alike_is_no_retry() -> None:
    """A mirror writes to both clusters with one client id, to topics of one name, and both begin to give producer ids at 0."""
    clusters: list[str | None] = ["east", "west", "east", None]
    rows = [exchange(exchange=number, at_ms=number, api="Produce", api_key=0, cluster_id=one)
            for number, one in enumerate(clusters)]  # fmt: skip
    parts = [partition(exchange=number, topic="t", error="NONE", producer_id=0, producer_epoch=0, base_sequence=0)
             for number in range(4)]  # fmt: skip
    counts = [[row["retries"] for row in engine().rows(retries(tables(rows[:some], parts[:some])))] for some in (2, 3, 4)]
    assert counts == [[], [1], [2]]
    fetched = [exchange(exchange=number, at_ms=number, took_ms=1, api="Fetch", api_key=1, cluster_id=one)
               for number, one in enumerate(["east", "west", "east"])]  # fmt: skip
    failed = [partition(exchange=number, api_key=1, topic="t", error=error, fetch_offset=5)
              for number, error in enumerate([LOST, "NONE", "NONE"])]  # fmt: skip
    assert engine().rows(retries(tables(fetched[:2], failed[:2]))) == []
    assert [row["retries"] for row in engine().rows(retries(tables(fetched, failed)))] == [1]


def test_partitions_of_two_clusters_have_stories_of_their_own() -> None:
    """East loses its leader; west has a partition of the same name, which goes on, and gives Metadata in between."""

    def told(*clusters: str | None) -> list[Row]:
        rows = [exchange(exchange=number, at_ms=number, took_ms=1, api="Fetch", api_key=1, cluster_id=one)
                for number, one in enumerate(clusters)]  # fmt: skip
        rows[1] |= {"api": "Metadata", "api_key": 3}
        parts = [partition(exchange=number, api_key=1, topic="t", error=LOST if number == 0 else "NONE", fetch_offset=5)
                 for number in (0, 2, 3)]  # fmt: skip
        return [{name: row[name] for name in ("cluster_id", "metadata_after_ns", "good_after_ns", "tries")}
                for row in engine().rows(stories(tables(rows, parts)))]  # fmt: skip

    one = {"cluster_id": None, "metadata_after_ns": MS, "good_after_ns": 2 * MS, "tries": 1}
    assert told("east", "east", "east", "east") == told("east", None, None, "east") == [one]
    assert told("east", "west", "west", "east") == [
        {"cluster_id": "east", "metadata_after_ns": None, "good_after_ns": 3 * MS, "tries": 1}
    ]


def test_a_fetch_is_a_retry_only_after_an_error_and_at_the_same_offset() -> None:
    steps = [(5, "NONE"), (5, "NONE"), (5, LOST), (6, "NONE"), (7, LOST), (7, "NONE"), (7, "NONE")]
    rows = [exchange(exchange=number, at_ms=number, api="Fetch", api_key=1) for number in range(len(steps))]
    parts = [partition(exchange=number, api_key=1, topic="t", error=error, fetch_offset=offset)
             for number, (offset, error) in enumerate(steps)]  # fmt: skip
    assert [row["retries"] for row in engine().rows(retries(tables(rows, parts)))] == [1]
