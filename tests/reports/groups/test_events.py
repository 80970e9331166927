"""Events of groups in real captures."""

import base64

import pytest

from kcap.reports.findings.source import observed
from kcap.reports.groups.events import Event, Workers, assigned, classic, events
from kcap.reports.source import ReportInput
from tests.cli.running import PCAPS


def of(name: str) -> dict[str, list[Event]]:
    with observed(ReportInput([str(PCAPS / "problems" / f"{name}.pcap")])) as seen:
        return events(seen)


def test_a_group_that_works_has_few_events() -> None:
    (mine,) = of("static-member-fenced").values()
    assert [event.api for event in mine].count("Heartbeat") == 3
    assert {event.error for event in mine if event.api == "Heartbeat"} == {"FENCED_INSTANCE_ID"}
    assert [event.instance_id for event in mine if event.api == "JoinGroup"] == ["ledger-slot-1"] * 4
    assert all(event.assignment == {"shop.ledger": [0, 1]} for event in mine if event.api == "SyncGroup")


def test_topic_ids_of_assignments_have_names() -> None:
    (mine,) = of("rebalance-loop-848").values()
    assert mine[0].assignment == {"shop.lanes": [0, 1, 2, 3]}
    assert [event.sent_epoch for event in mine].count(-1) == 7


@pytest.mark.parametrize("value", ["!", base64.b64encode(b"\x00").decode()])
def test_an_assignment_of_another_protocol_is_none(value: str) -> None:
    assert not classic(value)


def test_an_assignment_that_is_cut_is_none() -> None:
    whole = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\1" + b"\0\0\0\5" + b"\xff\xff\xff\xff"
    assert classic(base64.b64encode(whole).decode()) == {"t": [5]}
    assert not any(classic(base64.b64encode(whole[:size]).decode()) for size in range(13))


def test_tasks_of_streams_are_an_assignment_by_subtopology() -> None:
    answer = {"activeTasks": [{"subtopologyId": "0", "partitions": [2, 1]}]}
    assert assigned("StreamsGroupHeartbeat", answer, {}) == {"0": [1, 2]}
    assert assigned("StreamsGroupHeartbeat", {"activeTasks": None}, {}) is None
    assert assigned("ShareGroupHeartbeat", {"assignment": None}, {}) is None


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def work(**connectors: list[int]) -> bytes:
    """Connectors with their tasks, as an assignment has them."""
    some = [
        text(name) + len(tasks).to_bytes(4, "big") + b"".join(task.to_bytes(4, "big", signed=True) for task in tasks)
        for name, tasks in connectors.items()
    ]
    return len(some).to_bytes(4, "big") + b"".join(some)


def assignment(version: int, given: bytes, revoked: bytes = b"") -> bytes:
    head = version.to_bytes(2, "big") + b"\0\0" + text("w-1") + text("http://w:8083/") + bytes(8)
    return head + given + (revoked + bytes(4) if version else b"")


def metadata(version: int, has: bytes = b"") -> dict[str, list[dict[str, str]]]:
    whole = version.to_bytes(2, "big") + text("http://w:8083/") + bytes(8) + len(has).to_bytes(4, "big") + has
    return {"protocols": [{"name": "sessioned", "metadata": base64.b64encode(whole).decode()}]}


def test_a_worker_of_connect_has_what_it_had_and_got_and_did_not_give_up() -> None:
    """Since KIP-415 an assignment names what is new, and what is revoked."""
    workers = Workers()
    had = assignment(2, work(sink=[-1, 0], copy=[1]), work())
    workers.joined("w-1", metadata(2, had))
    new = assignment(2, work(copy=[-1, 2]), work(sink=[0]))
    assert workers.synced("w-1", base64.b64encode(new).decode()) == {"sink": [-1], "copy": [-1, 1, 2]}
    workers.joined("w-1", metadata(0))
    assert workers.synced("w-1", base64.b64encode(assignment(0, work(sink=[3]))).decode()) == {"sink": [3]}
    assert workers.synced("w-2", base64.b64encode(new).decode()) is None, "the capture has no JoinGroup of it"


def test_a_worker_s_assignment_that_is_cut_is_none() -> None:
    whole = assignment(2, work(sink=[-1, 0]), work(copy=[1]))[:-4]
    for size in range(1, len(whole)):
        workers = Workers()
        workers.joined("w-1", metadata(2))
        assert workers.synced("w-1", base64.b64encode(whole[:size]).decode()) is None, size
    for damaged in ({}, {"protocols": None}, {"protocols": [{"metadata": "!"}]}, {"protocols": [{"metadata": "AAI="}]}):
        workers.joined("w-1", damaged)
        assert workers.synced("w-1", base64.b64encode(whole).decode()) is None


def test_workers_have_the_connectors_that_they_start() -> None:
    with observed(ReportInput([str(PCAPS / "connect-starts.pcap")])) as seen:
        (mine,) = events(seen).values()
    given = [event.assignment for event in mine if event.api == "SyncGroup"]
    assert {event.protocol_type for event in mine} == {"connect"}
    assert (given[0], len(given)) == ({}, 5)
    assert given[-1] == {f"Mirror{name}Connector": [-1, 0] for name in ("Source", "Heartbeat", "Checkpoint")}
