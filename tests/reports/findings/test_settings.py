"""Settings in the words of the client's library."""

import pytest

from kcap.reports.findings.model import SETTING
from kcap.reports.findings.report import rules
from kcap.reports.findings.settings import LACKING, NAMES, for_clients, in_library, libraries_of
from kcap.reports.versions.libraries import FAMILIES
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, observed

TIMEOUT = "request.timeout.ms says how long the client waits."


def of(*calls: tuple[str, int], **more: object) -> list[Row]:
    """Exchanges of one client: API and version."""
    return [exchange("C1", at + 1, api, at, api_version=version, **more) for at, (api, version) in enumerate(calls)]


def advised(rows: list[Row], who: Row | None = None, text: str = TIMEOUT, rule: str = "request-timeout") -> str:
    """What is added to advice for these clients."""
    return for_clients(text, rule, {"client_id": "app"} if who is None else who, observed(rows)).removeprefix(text)


@pytest.mark.parametrize(
    ("software", "added"),
    [
        (("sarama", "v1.61.1"), " In sarama request.timeout.ms is Net.ReadTimeout."),
        (("confluent-kafka-go", "2.11.1"), " In librdkafka request.timeout.ms is socket.timeout.ms."),
        (("apache-kafka-java", "4.4.0"), ""),
        (("some-library", "1"), ""),
    ],
)
def test_a_library_that_names_itself(software: tuple[str, str], added: str) -> None:
    rows = of(("Produce", 9), software_name=software[0], software_version=software[1])
    assert advised(rows) == added


def test_a_refused_version_may_be_one_that_the_client_is_configured_for() -> None:
    rows = of(("Fetch", 3), software_name="sarama", software_version="v1.60.1")
    added = advised(rows, text="Upgrade the older side.", rule="version-refused")
    assert added.startswith(" In sarama Version of its Config (")
    rows = of(("Fetch", 3), software_name="apache-kafka-java", software_version="2.8.0")
    assert advised(rows, text="Upgrade the older side.", rule="version-refused") == "", "it has no such setting"


KAFKAJS = (("ApiVersions", 2), ("Metadata", 6), ("Produce", 7))


def test_a_library_that_the_versions_of_requests_show_is_called_a_guess() -> None:
    guess = " In KafkaJS, as the versions of its requests suggest, request.timeout.ms is requestTimeout."
    assert advised(of(*KAFKAJS)) == guess
    assert advised(of(*KAFKAJS[:2])) == "", "one API fits too many"
    assert advised(of(*KAFKAJS[1:])) == "", "nothing says which versions it requests first"
    assert advised(of(*KAFKAJS, ("Fetch", 13))) == "", "a version that the library does not have"
    assert libraries_of(observed(of(("ApiVersions", 0), ("Metadata", 1), ("Produce", 7))).calls) == {}, "several fit"


def test_findings_of_several_clients_and_of_groups() -> None:
    go = of(("Fetch", 11), software_name="sarama", software_version="v1.61.1", client_id="go", group_id="g")
    both = [*of(*KAFKAJS), *(row | {"connection": "C2"} for row in go)]
    text = advised(both, {"client_ids": ["app", "go"]})
    assert text == (
        " In KafkaJS, as the versions of its requests suggest, request.timeout.ms is requestTimeout; in sarama "
        "request.timeout.ms is Net.ReadTimeout."
    )
    assert "Net.ReadTimeout" in advised(both, {"group_id": "g"})
    assert advised(both, {"topic": "t"}) == ""


def test_settings_that_a_library_does_not_have() -> None:
    assert in_library("kafkajs", ["batch.size", "linger.ms"]).startswith(
        "there is no batch.size and no linger.ms (what one send"
    )
    assert in_library("librdkafka", ["linger.ms"]) == "", "it is called the same"
    assert in_library("franz-go", ["batch.size", "max.request.size"]) == (
        "batch.size and max.request.size are ProducerBatchMaxBytes"
    )
    assert in_library("platformatic", ["fetch.max.wait.ms", "max.request.size"]) == (
        "fetch.max.wait.ms is maxWaitTime, there is no max.request.size (it sends a message of any size)"
    )
    assert in_library("librdkafka", ["max.poll.records"]).startswith("there is no max.poll.records (poll() gives")
    assert in_library("sarama", ["max.poll.records"]).endswith("returns when the Context of its session is done)")
    assert in_library("aiokafka", ["batch.size", "linger.ms"]) == "batch.size is max_batch_size, linger.ms is linger_ms"


def test_settings_of_topics_are_left_as_they_are() -> None:
    rows = of(("Produce", 9), software_name="sarama", software_version="v1.61.1")
    assert "Producer.Compression" in advised(rows, text="Set compression.type of this producer.", rule="compression-off")
    assert advised(rows, text="Set compression.type of the topic to producer.", rule="recompression") == ""


def test_a_finding_has_the_names() -> None:
    used = {"software_name": "kgo", "software_version": "v1.22.3"}
    rows = [exchange(f"C{at}", 1, "Produce", at * 10, **used) for at in range(5)]
    links = [
        CONNECTION
        | {"connection": f"C{at}", "closed_by": "server", "first_ns": START + at * 10 * SECOND,
           "closed_ns": START + (at * 10 + 5) * SECOND, "last_ns": START + (at * 10 + 5) * SECOND}
        for at in range(5)
    ]  # fmt: skip
    (row,) = found("idle-disconnect", observed(rows, connections=links))
    assert row["advice"].endswith("In franz-go connections.max.idle.ms is ConnIdleTimeout.")


def test_every_library_of_the_tables_is_known_and_every_setting_is_advised() -> None:
    assert NAMES.keys() | LACKING.keys() <= set(FAMILIES.values())
    advice = " ".join(rule.advice for rule in rules().values())
    told = set(SETTING.findall(advice)) | {"connections.max.idle.ms", "session.timeout.ms"}
    for table in (*NAMES.values(), *LACKING.values()):
        assert set(table) <= told, set(table) - told
