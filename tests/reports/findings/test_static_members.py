"""Static members: where the rule speaks, how loudly, and where it is silent."""

from kcap.reports.findings.static_members import ONCE
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, many, observed

RULE = "static-member-fenced"


def fence(connection: str, at: float, member: str, number: int = 1) -> Row:
    """A Heartbeat of a member that another took the instance from."""
    more = {"group_id": "g", "error": "FENCED_INSTANCE_ID", "member_id": member, "client_id": connection}
    return exchange(connection, number, "Heartbeat", at, **more)


def joins(names: str) -> tuple[list[Row], dict[tuple[str, int, str], Row]]:
    """JoinGroup requests of one instance from these connections, each behind a request of a member that is unknown."""
    rows, said = [], {}
    for at, name in enumerate(names):
        who = {"group_id": "g", "client_id": name}
        rows.append(exchange(name, 2 * at, "OffsetCommit", 2 * at, error="UNKNOWN_MEMBER_ID", member_id=f"m{at}", **who))
        rows.append(exchange(name, 2 * at + 1, "JoinGroup", 2 * at + 1, api_version=5, generation=1, **who))
        said[name, 2 * at + 1, "request"] = {"groupInstanceId": "i-1"}
    return rows, said


def test_a_fenced_instance_is_named() -> None:
    rows = many(3, 1.0, "Heartbeat", group_id="g", error="FENCED_INSTANCE_ID")
    (row,) = found(RULE, observed(rows, messages={("C1", 1, "request"): {"groupInstanceId": "slot-1"}}))
    assert row["who"] == {"group_id": "g", "instance_id": "slot-1", "client_ids": ["app"]}
    assert row["sentence"].endswith("fenced 3 times: another member took that group.instance.id from app")
    second = observed([rows[0] | {"api": "ConsumerGroupHeartbeat", "error": "UNRELEASED_INSTANCE_ID"}],
                      messages={("C1", 1, "request"): {"instanceId": "slot-1"}})  # fmt: skip
    (row,) = found(RULE, second)
    assert row["sentence"] == "group g refused app 1 time: another member has group.instance.id slot-1"
    assert (row["severity"], row["confidence"]) == ("medium", 0.6), "its predecessor may have crashed"
    often = many(3, 30.0, "ConsumerGroupHeartbeat", group_id="g", error="UNRELEASED_INSTANCE_ID")
    (row,) = found(RULE, observed(often))
    assert row["severity"] == "high", "no session lasts that long"
    assert found(RULE, observed(many(3, 1.0, "Heartbeat", group_id="g"))) == []


def test_instances_that_are_fenced_once_each_may_be_a_restart() -> None:
    rows = [fence(f"C{at}", 3.0 * at, f"m{at}") for at in range(3)]
    said = {(f"C{at}", 1, "request"): {"groupInstanceId": f"i-{at}"} for at in range(3)}
    links = [CONNECTION | {"connection": f"C{at}", "last_ns": START + 60 * SECOND} for at in range(3)]
    (row,) = found(RULE, observed(rows, messages=said, connections=links))
    assert (row["severity"], row["advice"]) == ("medium", ONCE), "the processes go on"
    assert row["sentence"].startswith("3 instances of group g were fenced 3 times")
    over = [link | {"last_ns": START + (3 * at + 2) * SECOND} for at, link in enumerate(links)]
    assert found(RULE, observed(rows, messages=said, connections=over)) == []
    (row,) = found(RULE, observed(rows, messages=said, connections=over), loud=False)
    assert row["severity"] == "info"
    (row,) = found(RULE, observed(rows[:1], messages=said, connections=over[:1]))
    assert (row["severity"], row["confidence"]) == ("low", 0.6), "it may have ended since another took its instance"


def test_an_instance_that_is_fenced_again_is_that_of_two_processes() -> None:
    rows = [fence("C1", 0, "m1"), fence("C2", 3, "m2")]
    same = {(name, 1, "request"): {"groupInstanceId": "i-1"} for name in ("C1", "C2")}
    (row,) = found(RULE, observed(rows, messages=same))
    assert (row["severity"], row["who"]["instance_id"]) == ("high", "i-1")
    tries = [fence("C1", 6.0 * at, "m1", at + 1) for at in range(2)]
    (row,) = found(RULE, observed(tries, messages=same))
    assert row["severity"] == "high", "a process that tries again knows of no successor"


def test_two_clients_whose_requests_do_not_carry_the_instance_take_turns() -> None:
    rows, said = joins("abab")
    (row,) = found(RULE, observed(rows, messages=said))
    assert (row["severity"], row["count"]) == ("high", 4)
    assert row["who"] == {"group_id": "g", "instance_id": "i-1", "client_ids": ["a", "b"]}
    for others in ("aaaa", "aabb", "abcd"):
        rows, said = joins(others)
        assert found(RULE, observed(rows, messages=said)) == [], "one process behind the other"
    rows, _ = joins("abab")
    assert found(RULE, observed(rows)) == [], "members without an instance"
