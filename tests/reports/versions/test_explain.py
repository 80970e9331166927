"""Laws of explanations: a client of the capture begins where it was seen; a library needs no capture."""

import pytest

from kcap.errors import UsageError
from kcap.reports.versions.explain import explanation_of
from tests.reports.talking import of, profile, whole

OFFER = {0: (0, 9), 1: (0, 12), 3: (0, 11), 18: (0, 3)}


def test_a_client_of_the_capture() -> None:
    made = profile([(3, 11), (1, 12), (0, 9)], probe=3, offer=OFFER)
    made.software = "apache-kafka-java", "3.9.2"
    (row,) = explanation_of("app", ["4.4", "2.1"], whole(made))["rows"]
    assert row["brokers"] == ["as captured", "Kafka 4.4", "Kafka 2.1"]
    assert {one["api"]: one["versions"] for one in row["rows"]} == {
        "Produce": [9, 11, 7],
        "Fetch": [12, 17, 10],
        "Metadata": [11, 12, 7],
    }
    assert row["broken"] == []


def test_a_client_of_no_known_library_has_what_it_sent() -> None:
    (row,) = explanation_of("app", ["4.0"], whole(profile([(1, 3), (3, 1)])))["rows"]
    assert row["broken"] == ["Fetch"]
    assert "the versions that the capture shows" in row["source"]


def test_what_the_capture_lacks_to_show_that_a_client_works_is_there() -> None:
    works, begins = profile([(3, 11), (1, 12)], probe=3, offer=OFFER), profile([(3, 11)], probe=3, offer=OFFER)
    rows = [explanation_of("app", ["4.0"], whole(made))["rows"][0] for made in (works, begins)]
    assert [row["unproven"] for row in rows] == [
        None, "only Metadata, ApiVersions were seen, no work, so what else it needs is not known",
    ]  # fmt: skip
    assert [row["broken"] for row in rows] == [[], []]


def test_a_library_without_a_capture() -> None:
    (row,) = explanation_of("java 2.0", ["4.0"], None)["rows"]
    assert {one["api"]: one["works"] for one in row["rows"]}["Produce"]
    with pytest.raises(UsageError):
        explanation_of("nobody", ["4.0"], of("go-franz.pcap"))
