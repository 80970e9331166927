"""Rules on topics that are not there."""

from typing import Any

from tests.reports.findings.tables import Row, exchange, found, many, observed


def life(api: str, times: range, error: str = "NONE", topic_id: str | None = None, **more: Any) -> list[tuple[Row, Row]]:
    """Requests for topic `t`, one each second."""
    keys = {"Produce": 0, "Fetch": 1, "ListOffsets": 2}
    return [
        (exchange("C1", at + 1, api, at, error=error, **more),
         {"connection": "C1", "exchange": at + 1, "api_key": keys[api], "topic": "t", "topic_id": topic_id, "partition": 0,
          "error": error})
        for at in times
    ]  # fmt: skip


def seen(*lives: list[tuple[Row, Row]]) -> Any:
    pairs = [pair for one in lives for pair in one]
    return observed([row for row, _ in pairs], [part for _, part in pairs])


def test_a_topic_that_comes_back_under_another_id_was_created_again() -> None:
    old, refused = life("Fetch", range(3), topic_id="A"), life("Fetch", range(3, 5), "UNKNOWN_TOPIC_ID", "A")
    (row,) = found("topic-recreated", seen(old, refused, life("Fetch", range(6, 9), topic_id="B")))
    assert (row["who"], row["evidence"]) == ({"topic": "t"}, {"clients": 1, "errors": 2, "topic_id": "A"})
    assert row["lost_ns"] == 4_000_000_000, "from the last that succeeded to the first"
    assert len(found("topic-recreated", seen(old, refused, life("Produce", range(6, 9))))) == 1, "by name alone"
    assert found("topic-recreated", seen(old, refused)) == [], "it may be gone for good"
    new = life("Fetch", range(2), "UNKNOWN_TOPIC_ID", "A"), life("Fetch", range(2, 6), topic_id="A")
    assert found("topic-recreated", seen(*new)) == [], "a broker that had not heard of a new topic yet"
    other = life("Fetch", range(6, 9), topic_id="B", server_ip="10.9.9.9")
    assert found("topic-recreated", seen(old, refused, other)) == [], "perhaps another cluster"


def test_a_client_that_keeps_the_old_id_is_named() -> None:
    old, new = life("Fetch", range(3), topic_id="A"), life("Fetch", range(6, 9), topic_id="B", client_id="other")
    rows = found("topic-recreated", seen(old, new, life("Fetch", range(9, 20), "UNKNOWN_TOPIC_ID", "A"),
                                         life("Produce", range(20, 22), client_id="other")))  # fmt: skip
    assert {row["who"].get("client_id"): row["severity"] for row in rows} == {"app": "high", None: "medium"}


def test_what_a_new_topic_explains_is_not_told_of_clients() -> None:
    errors = life("Fetch", range(3, 9), "UNKNOWN_TOPIC_ID", "A", topics=["t"])
    lost = life("Fetch", range(11, 14), "OFFSET_OUT_OF_RANGE", "B")
    lives = life("Fetch", range(3), topic_id="A"), errors, life("Fetch", range(10, 11), topic_id="B"), lost
    for rule in ("unknown-topic-loop", "offset-out-of-range"):
        assert found(rule, seen(*lives)) == [], rule
        assert found(rule, seen(errors, lost)) != [], rule


def test_a_topic_that_is_not_there_is_named() -> None:
    rows = many(6, 1.0, "Metadata", error="UNKNOWN_TOPIC_OR_PARTITION")
    said = {("C1", 1, "response"): {"topics": [{"name": "ordres", "errorCode": 3}, {"name": "fine", "errorCode": 0}]}}
    (row,) = found("unknown-topic-loop", observed(rows, messages=said))
    assert row["who"]["topic"] == "ordres"
    assert found("unknown-topic-loop", observed(rows[:3])) == []
    (row,) = found("unknown-topic-loop", observed(rows[:3], messages=said))
    assert row["severity"] == "low"
    used = {"connection": "C1", "exchange": 9, "api_key": 0, "topic": "ordres", "partition": 0, "error": "NONE"}
    made = observed([*rows[:3], exchange("C1", 9, "Produce", 9)], [used], messages=said)
    assert found("unknown-topic-loop", made) == [], "it was being created"


def test_a_client_that_waited_for_its_topic_is_worth_knowing_and_no_more() -> None:
    rows = many(6, 1.0, "Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", topics=["orders"])
    got = {"connection": "C1", "exchange": 9, "api_key": 1, "topic": "orders", "partition": 0, "error": "NONE", "records": 5}
    for name, more, severity in (
        ("orders", {}, "info"), ("others", {}, "medium"), ("orders", {"client_id": "other"}, "medium"),
    ):  # fmt: skip
        fetch = exchange("C1", 9, "Fetch", 9, **more)
        (row,) = found("unknown-topic-loop", observed([*rows, fetch], [got | {"topic": name}]), loud=False)
        assert (row["severity"], row["sentence"].endswith("later it was there")) == (severity, severity == "info"), more


def test_several_clients_of_a_topic_that_is_not_there_are_one_finding() -> None:
    absent: Row = {"error": "UNKNOWN_TOPIC_OR_PARTITION", "topics": ["orders"]}
    loops = [row for name in "abc" for row in many(6, 1.0, "Metadata", connection=name, client_id=name, **absent)]
    (row,) = found("unknown-topic-loop", observed(loops))
    assert row["sentence"] == "3 clients (a, b, c) got 18 responses that topic orders does not exist"
    assert (row["who"], row["count"]) == ({"topic": "orders", "client_ids": ["a", "b", "c"]}, 18)
    used = {"connection": "a", "exchange": 99, "api_key": 0, "topic": "orders", "partition": 0, "error": "NONE", "records": 5}
    before = exchange("a", 99, "Produce", -1.0, client_id="a")
    (row,) = found("unknown-topic-loop", observed([*loops, before], [used]))
    assert row["sentence"].endswith("; it was there before"), "it was deleted under them"
    other = [row | {"topics": ["others"]} if row["client_id"] == "c" else row for row in loops]
    whose = [row["who"] for row in found("unknown-topic-loop", observed(other))]
    assert {"client_id": "c", "topic": "others"} in whose
    assert {"topic": "orders", "client_ids": ["a", "b"]} in whose


def test_topics_that_are_created_one_by_one_are_no_loop() -> None:
    rows = many(12, 1.0, "Metadata", error="UNKNOWN_TOPIC_OR_PARTITION")
    each = [row | {"topics": [f"t{at // 2}"]} for at, row in enumerate(rows)]
    assert found("unknown-topic-loop", observed(each)) == [], "two errors of each"
    loops = [row | {"topics": [f"t{at % 2}"]} for at, row in enumerate(rows)]
    assert len(found("unknown-topic-loop", observed(loops))) == 2


def test_metadata_all_the_time() -> None:
    (row,) = found("metadata-storm", observed(many(100, 0.05, "Metadata")))
    assert (row["evidence"]["errors"], "cannot find" in row["advice"]) == (0, False), "it finds what it asks for"
    (row,) = found("metadata-storm", observed(many(100, 0.05, "Metadata", error="UNKNOWN_TOPIC_OR_PARTITION")))
    assert (row["evidence"]["errors"], "cannot find" in row["advice"]) == (100, True)
    assert row["severity"] == "low", "the topic that is not there is why"
    (row,) = found("metadata-storm", observed(many(100, 0.05, "Metadata", error="LEADER_NOT_AVAILABLE")))
    assert row["severity"] == "medium"
    assert found("metadata-storm", observed(many(100, 10.0, "Metadata"))) == []


def test_metadata_without_responses_has_another_cause() -> None:
    cut_off = {"outcome": "unanswered", "reason": "fin", "response_first_ns": None, "response_last_ns": None}
    assert found("metadata-storm", observed(many(100, 0.05, "Metadata", **cut_off))) == []
    some = [*many(100, 0.05, "Metadata", **cut_off), *many(60, 0.05, "Metadata", connection="C2")]
    assert len(found("metadata-storm", observed(some))) == 1, "a third of them has one"
    lost = cut_off | {"reason": "lost_in_capture"}
    assert len(found("metadata-storm", observed(many(100, 0.05, "Metadata", **lost)))) == 1, "the capture lost them"


def test_metadata_that_openings_need_is_no_storm() -> None:
    short = [exchange(f"C{at // 2}", at % 2 + 1, "Metadata", at * 0.05) for at in range(100)]
    assert found("metadata-storm", observed(short)) == [], "two for each connection"
    joined = many(100, 0.05, "Metadata") + [exchange("C1", 200 + at, "ApiVersions", at * 0.1) for at in range(50)]
    assert found("metadata-storm", observed(joined)) == [], "connections of one port whose ends the capture lost"
    lone = many(100, 0.05, "Metadata") + [exchange(f"C{at + 2}", 1, "ListOffsets", at, None, reason="fin") for at in range(60)]
    assert len(found("metadata-storm", observed(lone))) == 1, "what its other connections do is no excuse"
