"""What was changed is what is named, and nothing is named where nothing was changed."""

from typing import Any

import pytest

from kcap.reports.diff.compare import ALPHA, ORDER, median, presence
from kcap.reports.diff.summaries import SCOPES, Side
from tests.reports.diff.pairs import capture, diff, found, produce


@pytest.mark.parametrize("seed", range(2))
def test_two_captures_of_one_system_do_not_differ(seed: int) -> None:
    rows = diff(capture(seed), capture(seed + 100))["rows"]
    assert {row["what"] for row in rows} >= {"latency", "size", "count"}
    assert [row["sentence"] for row in rows if row["significant"]] == []
    assert all(row["sentence"].startswith("no difference: ") for row in rows)


def test_slower_requests_are_named_in_each_scope_with_the_part_that_grew() -> None:
    rows = found(capture(1), capture(2, slower_ms=20))
    assert [row["scope"] for row in rows] == list(SCOPES)
    first = rows[0]
    assert (first["what"], first["who"]) == ("latency", {"client_id": "app", "api": "Produce"})
    assert first["after"]["p50_ns"] - first["before"]["p50_ns"] > 15_000_000
    assert first["effect"] > 0.9
    assert first["p_adjusted"] < ALPHA
    assert "Produce of client app is slower" in first["sentence"]
    assert first["sentence"].endswith("most of the change is time at the broker")


def test_what_a_fetch_waits_for_is_not_only_the_brokers_time() -> None:
    """A Fetch that returns records may have waited for the first of them."""
    fetches = [capture(seed, slower_ms=20 * at, api="Fetch") for at, seed in enumerate((1, 2))]
    latency = [row["sentence"] for row in found(*fetches) if row["what"] == "latency"]
    assert len(latency) == len(SCOPES)
    assert all("time at the broker, where a Fetch waits for records" in text for text in latency)


def test_times_of_other_clients_are_said_to_be_those_of_others() -> None:
    rows = found(capture(1), capture(2, slower_ms=20, client_id="other"))
    latency = [row for row in rows if row["what"] == "latency"]
    assert [row["scope"] for row in latency] == ["broker", "topic", "api"], "no client is in both"
    assert all(row["sentence"].endswith("its clients are not the same as before") for row in latency)
    both = [*capture(2, slower_ms=20, client_id="other"), *capture(3, slower_ms=20)]
    assert not any("are others" in row["sentence"] for row in found(capture(1), both))


def test_a_shift_that_nobody_notices_is_no_difference() -> None:
    """Significant in numbers, too small to matter: half a millisecond."""
    assert found(capture(1, 2000), capture(2, 2000, slower_ms=0.5)) == []


@pytest.mark.parametrize(
    ("what", "values", "before", "after"),
    [
        ("codec", {"codecs": ["zstd"]}, "lz4", "zstd"), ("acks", {"acks": 1}, "-1", "1"),
        ("client-software", {"software_version": "4.0"}, "java 3.9", "java 4.0"),
        ("versions", {"api_version": 12}, {"Produce": "9"}, {"Produce": "12"}),
    ],
)  # fmt: skip
def test_a_changed_setting_is_a_fact(what: str, values: dict[str, Any], before: object, after: object) -> None:
    (row,) = found(capture(1), capture(2, **values))
    assert (row["what"], row["before"], row["after"], row["p_value"]) == (what, before, after, None)
    assert row["who"] == {"client_id": "app"}


def test_a_rare_value_of_a_setting_is_no_change() -> None:
    assert found(capture(1), [*capture(2), produce(130, 3, codecs=["none"])]) == []


@pytest.mark.parametrize(
    ("kind", "values", "who"),
    [
        ("client", {"client_id": "late"}, {"client_id": "late"}), ("topic", {"topics": ["returns"]}, {"topic": "returns"}),
        ("broker", {"server_ip": "10.0.0.3"}, {"server_ip": "10.0.0.3", "server_port": 9092}),
    ],
)  # fmt: skip
def test_what_appears_and_vanishes_is_named(kind: str, values: dict[str, Any], who: dict[str, Any]) -> None:
    more = [*capture(2), produce(130, 3, **values)]
    (row,) = found(capture(1), more)
    assert (row["what"], row["who"]) == (f"new-{kind}", who)
    (row,) = found(more, capture(1))
    assert (row["what"], row["who"]) == (f"gone-{kind}", who)


def test_errors_are_named_with_their_topic_where_chance_does_not_explain_them() -> None:
    wrong = capture(3, 20, error="MESSAGE_TOO_LARGE", error_code=10)
    (row,) = found(capture(1), [*capture(2)[:100], *wrong])
    assert row["what"] == "new-error"
    assert row["who"] == {"client_id": "app", "api": "Produce", "error": "MESSAGE_TOO_LARGE", "topic": "orders"}
    assert row["after"] == {"count": 20, "exchanges": 120}
    assert found(capture(1), [*capture(2)[:119], wrong[0]]) == []


def test_requests_whose_connection_is_closed_without_a_response_are_a_difference() -> None:
    """As those of a version that the broker's next release does not take: nothing of them is an error."""
    cut = [produce(at, 3) | {"outcome": "unanswered", "reason": "rst", "error": None, "latency_ns": None} for at in range(60)]
    (row,) = [row for row in found(capture(1, 60), cut) if row["what"] != "latency"]
    assert (row["what"], row["before"]["count"], row["after"]) == ("unanswered", 0, {"count": 60, "exchanges": 60})
    assert row["sentence"].endswith("the connection was closed: 0 of 60 requests before, 60 of 60 requests after")
    assert found(capture(1, 60), [*capture(2, 60)[:59], cut[0]]) == [], "one is a client that ended"
    ended = [row | {"reason": "capture_end"} for row in cut]
    assert found(capture(1, 60), ended) == [], "the capture's end says nothing of the broker"


def test_errors_of_a_new_class_need_no_test() -> None:
    wrong = [produce(130 + at, 3, api="InitProducerId", error="CLUSTER_AUTHORIZATION_FAILED", error_code=31) for at in range(4)]
    (row,) = found(capture(1), [*capture(2), *wrong])
    assert (row["what"], row["p_value"], row["after"]["count"]) == ("new-error", None, 4)


def test_rates_and_sizes_that_double_are_differences() -> None:
    rows = found(capture(1, 300), [row for at, row in enumerate(capture(2, 300)) if at % 3 == 0 or at == 299])
    assert {row["what"] for row in rows} == {"count"}
    assert "less often" in rows[0]["sentence"]
    (row,) = found(capture(1), capture(2, records_bytes=5000))
    assert row["what"] == "size"
    assert row["after"]["p50_bytes"] == pytest.approx(5000, rel=0.02)


def test_every_row_has_the_keys_of_the_contract() -> None:
    rows = diff(capture(1), capture(2, slower_ms=9, client_id="other"))["rows"]
    keys = {"what", "who", "before", "after", "effect", "p_value", "significant", "sentence"}
    assert all(keys <= row.keys() and row["what"] in ORDER for row in rows)


def test_the_median_of_classes_is_the_median() -> None:
    assert median([{"step": 0, "n": 1}, {"step": 349, "n": 3}]) == pytest.approx(1000, rel=0.02)
    assert median([{"step": -1, "n": 1}]) == 0
    assert median([]) == 0


class Looked(dict):
    """A dictionary that counts how often all of it is looked at."""

    looks = 0

    def items(self):
        self.looks += 1
        return super().items()


@pytest.mark.parametrize("turned", [False, True])
def test_classes_are_looked_at_as_often_however_many_clients_are_new(turned):
    looks = set()
    for clients in (3, 300):
        classes = Looked({("client", (f"c{at}", "Fetch")): {"count": at} for at in range(clients)})
        sides = [Side([], 1, {}, {}, {}, {}, {}), Side([], 1, classes, {}, {}, {}, {})]
        rows = list(presence(*(reversed(sides) if turned else sides)))
        assert [row["before" if turned else "after"]["count"] for row in rows] == [
            int(row["who"]["client_id"][1:]) for row in rows
        ]
        assert len(rows) == clients
        looks.add(classes.looks)
    assert looks == {3}


ORDERS = "p4PYGqV8QNq4BeiYIeXf-Q"


def test_a_topic_that_one_capture_has_by_its_id_alone_is_no_other_topic() -> None:
    """Requests have ids in place of names from Produce 13 and Fetch 13 on (KIP-516)."""
    named, nameless = capture(1, topic_ids=[ORDERS]), capture(2, topics=[None], topic_ids=[ORDERS])
    assert found(named, nameless) == []
    assert found(nameless, named) == []
    scopes = [row["who"] for row in diff(named, nameless)["classes"] if row["scope"] == "topic"]
    assert scopes == [{"topic": "orders", "api": "Produce"}], "figures of both captures stand side by side"


def test_whether_a_topic_is_new_is_not_said_where_an_id_and_a_name_may_be_one_topic() -> None:
    nameless = capture(2, topics=[None], topic_ids=[ORDERS])
    assert found(capture(1), nameless) == [], "the first has no id of its topic"
    assert found(nameless, capture(1)) == []
    other = capture(1, topic_ids=["E9lrRsgOR4OX8XH7OsMjUA"])
    assert [row["what"] for row in found(other, nameless)] == ["new-topic", "gone-topic"]
    assert [row["who"] for row in found(other, nameless)] == [{"topic": ORDERS}, {"topic": "orders"}]


def test_a_capture_with_an_id_and_its_name_apart_has_figures_of_both() -> None:
    """The classes of one topic are not added up, and neither is said to be new."""
    both = [*capture(1), *capture(2, topics=[None], topic_ids=[ORDERS])]
    named = capture(1, topic_ids=[ORDERS])
    assert not [row for row in found(both, named) if row["scope"] == "topic" and "topic" in row["what"]]
