"""What a capture cannot say."""

from kcap.reports.findings.judged import NEEDS
from kcap.reports.findings.model import RULES, headline
from kcap.reports.findings.report import check
from tests.reports.findings.tables import CONNECTION, SECOND, START, exchange, many, observed


def test_every_need_of_a_rule_is_known() -> None:
    assert {need for rule in RULES.values() for need in rule.needs} <= NEEDS.keys()


def test_a_whole_capture_of_two_brokers_is_judged_by_every_rule() -> None:
    rows = many(10, 1.0) + many(10, 1.0, connection="C2", server_ip="10.0.0.2")
    assert check(observed(rows, messages={}))["not_judged"] == {}


def test_what_is_missing_is_named_with_its_reason() -> None:
    one_sided = [row | {"outcome": "unanswered", "flags": ["one_sided"], "reason": "capture_end"} for row in many(10, 1.0)]
    found = check(observed(one_sided))["not_judged"]
    assert "100% of the requests have no response" in found["authorization-denied"]
    assert "tiny-batches" not in found, "requests alone show it"
    cut = check(observed([row | {"flags": ["snaplen"]} for row in many(10, 1.0)]))["not_judged"]
    assert "snapshot length" in cut["skewed-partitions"]
    assert "commit-storm" not in cut
    alone = check(observed(many(10, 1.0)))["not_judged"]
    assert alone == {name: why for name, why in alone.items() if "one broker" in why}
    assert {"slow-broker", "hot-broker"} <= alone.keys()
    apart = [row | {"cluster_id": name} for name in "AB" for row in many(9, 1.0, connection=name, server_ip=f"10.0.0.{name}")]
    said = "one broker serves all Produce and Fetch of each cluster: there is none to compare it with"
    assert check(observed(apart, messages={}))["not_judged"] == {"slow-broker": said, "hot-broker": said}
    tool = check(observed(many(10, 1.0, "Metadata")))["not_judged"]
    assert tool["slow-broker"] == "the capture has no Produce and no Fetch"
    late = check(observed(many(10, 1.0), connections=[CONNECTION | {"connection": "C1", "began": "midstream"}]))["not_judged"]
    assert "began after" in late["connection-churn"]


def test_a_rule_that_found_something_was_judged() -> None:
    rows = [exchange("C1", at + 1, "OffsetCommit", at * 0.01, group_id="g", flags=["snaplen"]) for at in range(99)]
    result = check(observed(rows))
    assert {row["id"] for row in result["rows"]} == {"commit-storm"}
    assert "commit-storm" not in result["not_judged"]


def test_without_kafka_only_what_tls_shows_is_judged() -> None:
    readable = {rule.id for rule in RULES.values() if rule.encrypted}
    assert "tls-certificate-refused" in readable
    result = check(observed([], connections=[CONNECTION | {"connection": "C1", "phase": "tls"}]))
    assert result["not_judged"].keys() == RULES.keys() - readable
    assert "encrypted" in result["not_judged"]["slow-broker"]
    assert result["judged"] == len(readable)
    assert headline(result["rows"], result).startswith("no problem was found in what TLS shows without keys; nothing else")
    late = check(observed([], connections=[CONNECTION | {"connection": "C1", "phase": "tls", "began": "midstream"}]))
    assert "began after" in late["not_judged"]["tls-certificate-refused"]
    other = check(observed([], connections=[CONNECTION | {"connection": "C1", "phase": "opaque"}]))
    assert other["not_judged"].keys() == RULES.keys()
    assert headline(other["rows"], other).startswith("nothing could be judged: the capture holds no Kafka exchange")


def test_of_brokers_among_each_other_only_the_path_between_them_is_judged() -> None:
    own = {"client_id": "broker-2-fetcher-0", "client_ip": "10.0.0.2"}
    whole = CONNECTION | own | {"connection": "C1", "client_missing": 0, "server_missing": 0}
    result = check(observed(many(9, 1.0, "Fetch", **own), connections=[whole]))
    assert result["not_judged"].keys() == {rule.id for rule in RULES.values() if not rule.between_brokers}
    assert headline(result["rows"], result).startswith("no problem was found in what connections of brokers show; nothing else")
    assert headline(result["rows"], result).endswith(
        "the capture holds exchanges of brokers and controllers alone, not of clients"
    )
    cut = whole | {"retransmitted": 4, "server_resent_ns": 8 * SECOND, "server_resent_at_ns": START + 9 * SECOND}
    (row,) = check(observed(many(9, 1.0, "Fetch", **own), connections=[cut]))["rows"]
    assert row["id"] == "path-interrupted"
    assert row["who"]["client_ids"] == ["broker-2-fetcher-0"]


def test_a_reason_has_its_figures() -> None:
    """From a fifth of the exchanges on something that they lack is a reason; so is a capture of less than 5 s."""

    def reasons(lost: int, lasts: float, rule: str = "records-read-again") -> str:
        rows = many(10, 0.1)
        orphans = [row | {"outcome": "orphan"} if at < lost else row for at, row in enumerate(rows)]
        link = CONNECTION | {"connection": "C1", "last_ns": CONNECTION["first_ns"] + round(lasts * SECOND)}
        return str(check(observed(orphans, connections=[link]))["not_judged"].get(rule))

    assert reasons(2, 9) == "20% of the responses have no request in the capture"
    assert reasons(1, 9) == "None"
    assert reasons(0, 4.9, "idle-disconnect") == "the capture lasts 4.9 s, and the rule needs 5"
    assert reasons(0, 5, "idle-disconnect") == "None"
    only = observed([exchange("C1", 1, "Fetch", 0) | {"outcome": "orphan"}])
    assert check(only)["not_judged"]["records-read-again"].startswith("100% of the responses have no request")


def test_brokers_are_compared_within_a_capture_of_one_cluster() -> None:
    one = check(observed(many(10, 1.0)))["not_judged"]["hot-broker"]
    assert one == "one broker serves all Produce and Fetch in the capture: there is none to compare it with"
