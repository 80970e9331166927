"""Rules on leaders, replicas, coordinators and versions."""

from typing import Any

from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, found, many, observed, shown
from tests.reports.findings.test_refusing import refused


def parts_of(rows: list[Row], **more: object) -> list[Row]:
    """A partition row for each exchange; what `more` names as a list goes by exchange."""
    keys = {"Produce": 0, "Fetch": 1}
    return [
        {"connection": row["connection"], "exchange": row["exchange"], "api_key": keys[row["api"]], "topic": "t",
         "partition": 0, "error": "NONE", "records": 1}
        | {name: value[at] if isinstance(value, list) else value for name, value in more.items()}
        for at, row in enumerate(rows)
    ]  # fmt: skip


def test_a_client_that_follows_a_leader_late() -> None:
    rows = [exchange("C1", 1, "Produce", 0), exchange("C1", 2, "Produce", 1), exchange("C2", 1, "Produce", 13)]
    errors = ["NONE", "NOT_LEADER_OR_FOLLOWER", "NONE"]
    (row,) = found("leader-change", observed(rows, parts_of(rows, error=errors)))
    assert row["evidence"]["longest_ns"] == 12 * SECOND - MS
    quick = [*rows[:2], exchange("C2", 1, "Produce", 1.2)]
    assert found("leader-change", observed(quick, parts_of(quick, error=errors))) == []
    (quiet,) = found("leader-change", observed(quick, parts_of(quick, error=errors)), loud=False)
    assert 0 < quiet["evidence"]["longest_ns"] < SECOND


def test_a_partition_without_a_leader_has_none_to_follow() -> None:
    """Two clients are refused and go on 20 s later: until one of them is served, nothing shows that there is a leader."""

    def seen(second: float) -> list[Row]:
        times = (("C1", 1, 1, "a"), ("C2", 1, 1, "b"), ("C1", 2, 21, "a"), ("C2", 2, second, "b"))
        rows = [
            exchange(name, at, "Produce", time, client_id=client, server_ip=f"10.0.0.{at}") for name, at, time, client in times
        ]
        errors = ["NOT_LEADER_OR_FOLLOWER"] * 2 + ["NONE"] * 2
        return found("leader-change", observed(rows, parts_of(rows, error=errors)))

    assert seen(21.5) == []
    (row,) = seen(33)
    assert (row["who"]["client_id"], row["evidence"]["longest_ns"]) == ("b", 12 * SECOND)


def test_a_client_follows_its_leader_from_the_response_on() -> None:
    """A broker that is cut off from its controller refuses a write when it is back; until then the client cannot know."""
    rows = [exchange("C1", 1, "Produce", 0), exchange("C1", 2, "Produce", 1, 10.0), exchange("C2", 1, "Produce", 11.3)]
    errors = ["NONE", "NOT_LEADER_OR_FOLLOWER", "NONE"]
    (row,) = found("leader-change", observed(rows, parts_of(rows, error=errors)), loud=False)
    assert row["severity"] == "info"
    assert row["evidence"]["longest_ns"] == 300 * MS


def test_a_client_that_reaches_the_new_leader_has_followed_whatever_that_answers() -> None:
    rows = [exchange("C1", 1, "Produce", 0), exchange("C1", 2, "Produce", 1), exchange("C2", 1, "Produce", 1.5),
            exchange("C2", 2, "Produce", 9)]  # fmt: skip
    errors = ["NONE", "NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "NONE"]
    (row,) = found("leader-change", observed(rows, parts_of(rows, error=errors)), loud=False)
    assert row["evidence"]["longest_ns"] == SECOND // 2 - MS
    assert row["severity"] == "info"


def test_a_partition_that_a_broker_does_not_lead_yet_has_not_moved() -> None:
    """The topic was just created: the broker that refuses its first requests is the one that serves it."""
    errors = ["NOT_LEADER_OR_FOLLOWER"] * 5 + ["NONE"]
    rows = many(6, 2.1, acks=1)
    new = observed(rows, parts_of(rows, error=errors))
    moved = observed(rows, parts_of(rows, error=["NONE", *errors[:-1]]))
    elsewhere = [*rows[:-1], rows[-1] | {"server_ip": "10.0.0.2"}]
    for rule in ("leader-change", "not-leader", "acks-risk"):
        assert found(rule, new, loud=False) == []
    for rule in ("not-leader", "acks-risk"):
        assert len(found(rule, moved)) == 1, "it had been served"
    assert found("not-leader", observed(elsewhere, parts_of(elsewhere, error=errors))) == [], "leader-change names the client"
    for rule in ("leader-change", "acks-risk"):
        assert len(found(rule, observed(elsewhere, parts_of(elsewhere, error=errors)))) == 1, "another broker serves it"


def test_a_partition_that_its_only_broker_has_again_behind_a_restart_has_not_moved() -> None:
    rows = [exchange("C1", at, "Produce", at, acks=1) for at in range(1, 6)]
    rows += [exchange("C2", at, "Produce", 15 + at, acks=1) for at in range(1, 4)]
    parts = parts_of(rows, error=["NONE", "NONE"] + ["NOT_LEADER_OR_FOLLOWER"] * 4 + ["NONE"] * 2)
    links = [CONNECTION | {"connection": name, "server_packets": 9} for name in ("C1", "C2")]
    down = [refused(6.0 + at) for at in range(5)]
    for rule in ("leader-change", "acks-risk"):
        assert len(found(rule, observed(rows, parts, links))) == 1, "nothing shows a restart"
        assert found(rule, observed(rows, parts, [*links, *down]), loud=False) == []


def metadata(at: int, in_sync: list[int]) -> dict[tuple[str, int, str], Row]:
    part = {"partitionIndex": 0, "isrNodes": in_sync, "replicaNodes": [1, 2, 3]}
    return {("C1", at, "response"): {"topics": [{"name": "t", "partitions": [part]}]}}


def test_replicas_that_stay_out_of_sync() -> None:
    rows = many(2, 9.0, "Metadata")
    (row,) = found("isr-shrink", observed(rows, messages=metadata(1, [1]) | metadata(2, [1, 2])))
    assert row["evidence"] == {"partitions": 1, "in_sync": 2, "replicas": 3}
    assert found("isr-shrink", observed(rows, messages=metadata(1, [1]) | metadata(2, [1, 2, 3]))) == [], "they came back"
    used = [exchange("C2", 1, "Produce", 1, client_id="writer"), exchange("C3", 1, "Produce", 1, client_id="elsewhere")]
    named = observed([*rows, *used], parts_of(used, topic=["t", "u"]), messages=metadata(1, [1]) | metadata(2, [1, 2]))
    (row,) = found("isr-shrink", named)
    assert row["who"] == {"topic": "t", "client_ids": ["writer"], "broker_id": 3}, "those who use the topic"
    gone, back = ([exchange("C9", n, "Produce", n, broker_id=3) for n in times] for times in ((-1, 20), (-1, 5, 20)))
    said = metadata(1, [1, 2]) | metadata(2, [1, 2])
    assert found("isr-shrink", observed([*rows, *gone], messages=said)) == [], "a broker that was restarted"
    assert len(found("isr-shrink", observed([*rows, *back], messages=said))) == 1, "it answers meanwhile: a replica that lags"
    links = [
        CONNECTION
        | {"connection": f"C{n}", "exchanges": 2, "first_ns": START + first * SECOND, "last_ns": START + last * SECOND}
        for n, first, last in ((9, -2, 4), (8, 12, 21))
    ]
    again = [row | {"connection": "C8"} if row["request_first_ns"] > START + 10 * SECOND else row for row in back]
    stopping = observed([*rows, *again], messages=said, connections=links)
    assert found("isr-shrink", stopping) == [], "it answers until its process ends, and came back"
    late = [links[0] | {"last_ns": START + 11 * SECOND}, links[1]]
    half = [late[0] | {"closed_by": "server", "closed_ns": START + 4 * SECOND, "last_ns": START + 30 * SECOND}, links[1]]
    closed = observed([*rows, *again], messages=said, connections=half)
    assert found("isr-shrink", closed) == [], "a client closed its side of a connection long after the broker was gone"
    assert len(found("isr-shrink", observed([*rows, *again], messages=said, connections=late))) == 1, "it lagged before"
    turns = metadata(1, [1, 2]) | metadata(2, [1, 3])
    assert found("isr-shrink", observed(rows, messages=turns)) == [], "another one each time: a rolling restart"
    new = observed(rows, messages=metadata(1, [1, 2, 3]) | metadata(2, [1]))
    assert found("isr-shrink", new) == [], "seen once: a topic that was just created looks so"


def test_topics_that_miss_the_same_broker_are_one_finding() -> None:
    part = {"partitionIndex": 0, "isrNodes": [1, 2], "replicaNodes": [1, 2, 3]}
    topics = [{"name": name, "partitions": [part]} for name in ("u", "t")]
    other = {"name": "v", "partitions": [part | {"isrNodes": [2, 3]}]}
    said = {("C1", at, "response"): {"topics": [*topics, other]} for at in (1, 2)}
    one, two = found("isr-shrink", observed(many(2, 9.0, "Metadata"), messages=said))
    assert (one["who"], one["evidence"]["topics"]) == ({"broker_id": 3}, ["t", "u"])
    assert one["sentence"] == "2 partitions of 2 topics (t, u) have 2 of 3 replicas in sync; broker 3 is missing"
    assert two["who"] == {"topic": "v", "broker_id": 1}


def test_one_broker_with_all_the_load() -> None:
    def rows(size: int) -> list[Row]:
        hot = many(20, 0.1, connection="C1", request_bytes=1_000_000, server_ip="10.0.0.1")
        others = [many(20, 0.1, connection=f"C{n}", request_bytes=size, server_ip=f"10.0.0.{n}") for n in (2, 3)]
        return hot + others[0] + others[1]

    (row,) = found("hot-broker", observed(rows(10)))
    assert row["who"]["server"] == "10.0.0.1:9092"
    assert found("hot-broker", observed(rows(500_000))) == []


def test_a_coordinator_that_moves() -> None:
    bad = many(4, 1.0, "Heartbeat", group_id="g", error="NOT_COORDINATOR")
    homes = [exchange(f"C{n}", 1, "JoinGroup", n, group_id="g", server_ip=f"10.0.0.{n}") for n in (2, 3)]
    assert [row["who"]["group_id"] for row in found("coordinator-moves", observed(bad + homes))] == ["g"]
    assert found("coordinator-moves", observed(bad + homes[:1])) == [], "a broker that has just started"
    away = [*homes, exchange("C4", 1, "JoinGroup", 4, group_id="g", server_ip="10.0.0.4")]
    assert found("coordinator-moves", observed(bad + away)) == [], "two errors a move, as in a rolling restart"
    (row,) = found("coordinator-moves", observed(bad[:1]), loud=False)
    assert "got 1 response that" in row["sentence"]


def test_a_coordinator_that_a_group_never_finds() -> None:
    """A broker that FindCoordinator names, and that never takes the group."""
    (row,) = found("coordinator-moves", observed(many(9, 1.0, "JoinGroup", group_id="g", error="NOT_COORDINATOR")))
    assert row["sentence"] == "group g got 9 responses that its coordinator was elsewhere or not ready, and no other for 8.0 s"
    brief = observed(many(9, 0.1, "JoinGroup", group_id="g", error="NOT_COORDINATOR"))
    assert found("coordinator-moves", brief) == [], "a broker that has just started"


def test_records_at_risk_without_replicas() -> None:
    def seen(acks: int) -> list[Row]:
        rows = many(6, 1.0, acks=acks)
        errors = ["NONE", *["NOT_LEADER_OR_FOLLOWER"] * 3, "NONE", "NONE"]
        return found("acks-risk", observed(rows, parts_of(rows, error=errors, records=[5] * 6)))

    (row,) = seen(1)
    assert row["evidence"]["acks"] == 1
    assert row["evidence"]["records"] == 15, "what was refused was not written"
    assert seen(-1) == []


def test_versions_that_a_broker_refuses() -> None:
    refused = many(3, 1.0, "Fetch", error="UNSUPPORTED_VERSION")
    closed = [
        exchange(f"D{n}", 1, "Fetch", n, None, reason="fin", age_ns=MS, version_verdict="above_broker_max") for n in range(3)
    ]
    assert len(found("version-refused", observed(refused))) == 1
    assert len(found("version-refused", observed(closed))) == 1
    tried = many(9, 1.0, "ApiVersions", error="UNSUPPORTED_VERSION", api_version=3, reason=None)
    older = exchange("C1", 10, "ApiVersions", 10, api_version=0, reason=None)
    assert found("version-refused", observed([*tried, older])) == [], "that is how clients find the version out"
    (row,) = found("version-refused", observed(tried))
    assert (row["severity"], row["evidence"]["versions"]) == ("high", ["ApiVersions v3"]), "it tries no older version"
    assert shown(row, [*tried, older]) == tried
    assert found("version-refused", observed(tried[:1])) == [], "the next request may be behind the capture's end"
    served = exchange("C1", 9, "Fetch", 9)
    assert found("version-refused", observed([*refused[:2], served])) == []
    (row,) = found("version-refused", observed(refused[:1]))
    assert row["severity"] == "medium", "the client gets no Fetch through at all"
    admin = many(5, 1.0, "ConsumerGroupDescribe", error="UNSUPPORTED_VERSION")
    assert found("version-refused", observed(admin)) == [], "it falls back to DescribeGroups"


def test_a_java_client_that_has_no_version_in_common_with_a_broker() -> None:
    versions = exchange("C1", 1, "ApiVersions", 0, software_name="apache-kafka-java", software_version="4.4.0")

    def judged(produce: tuple[int, int], fetch: tuple[int, int], **more: object) -> list[Row]:
        ranges = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in enumerate((produce, fetch))]
        said = {("C1", 1, "response"): {"apiKeys": ranges}}
        first = exchange("C1", 2, "ApiVersions", 0, error="UNSUPPORTED_VERSION")
        return found("version-refused", observed([first, versions | more], messages=said))

    (row,) = judged((0, 2), (0, 3))
    assert "Produce (client 3-13, broker 0-2) and Fetch (client 4-18, broker 0-3)" in row["sentence"]
    assert judged((0, 3), (0, 3)) == [], "it can produce"
    assert judged((0, 2), (0, 3), software_version="2.8.0") == [], "that client has Produce 2"
    assert judged((0, 2), (0, 3), software_name="librdkafka") == [], "what it does not have is not known"


def test_a_version_that_newer_releases_took_away_and_that_the_broker_closes_at() -> None:
    """Kafka 4 names Produce 0-2 and closes the connection at them, so that what it names says nothing."""
    closed = [exchange(f"D{n}", 1, "Produce", n, None, reason="fin", age_ns=MS, api_version=2) for n in range(3)]
    links = [CONNECTION | {"connection": f"D{n}", "closed_by": "server"} for n in range(3)]
    links.append(CONNECTION | {"connection": "C1"})
    other = exchange("C1", 1, "Metadata", 0, api_version=1)
    (row,) = found("version-refused", observed([other, *closed], connections=links))
    assert row["evidence"]["versions"] == ["Produce v2"]
    others = [one | other for one in closed for other in ({"reason": None}, {"api_version": 3}, {"server_port": 1})]
    assert shown(row, closed + others) == closed
    assert found("version-refused", observed(closed, connections=links)) == [], "it answers nothing: it may be no broker"
    by_client = [link | {"closed_by": "client"} for link in links]
    assert found("version-refused", observed([other, *closed], connections=by_client)) == [], "the client gave up"
    served = exchange("C1", 2, "Produce", 9, 0.01, api_version=2)
    also = observed([other, *closed, served], connections=links)
    assert found("version-refused", also) == [], "the broker takes it"
    today = [row | {"api_version": 9} for row in closed]
    assert found("version-refused", observed([other, *today], connections=links)) == [], "every release takes it"


def test_a_silent_broker_refuses_versions_as_the_one_beside_it_that_responds() -> None:
    closed = [
        exchange(f"D{n}", 1, "Produce", n, None, reason="fin", age_ns=MS, api_version=1, server_ip=f"10.0.0.{1 + n % 2}",
                 request_first_packet=n + 1)
        for n in range(6)
    ]  # fmt: skip
    links = [
        CONNECTION | {"connection": row["connection"], "server_ip": row["server_ip"], "closed_by": "server",
                      "server_captured": 0, "first_ns": row["request_first_ns"], "last_ns": row["request_first_ns"]}
        for row in closed
    ]  # fmt: skip
    links.append(CONNECTION | {"connection": "C1"})
    bootstrap = exchange("C1", 1, "Metadata", 0, api_version=0)
    brokers = [{"host": "10.0.0.2", "port": 9092, "broker_id": 2}]

    def servers(rule: str, rows: list[Row], **more: Any) -> list[str]:
        return [row["who"]["server"] for row in found(rule, observed(rows, connections=links, **more))]

    rows = [bootstrap, *closed]
    assert servers("version-refused", rows, brokers=brokers) == ["10.0.0.1:9092", "10.0.0.2:9092"]
    assert servers("answers-nothing", rows, brokers=brokers) == []
    assert servers("version-refused", rows) == ["10.0.0.1:9092"], "nothing says that the other is a broker"
    assert servers("answers-nothing", rows) == ["10.0.0.2:9092"]
    alone = [bootstrap, *(row for row in closed if row["server_ip"] == "10.0.0.2")]
    assert servers("version-refused", alone, brokers=brokers) == [], "it may close for any reason"
    assert servers("answers-nothing", alone, brokers=brokers) == ["10.0.0.2:9092"]
