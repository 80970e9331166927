"""Events of groups in real captures."""

import base64

import pytest

from kcap.reports.findings.source import observed
from kcap.reports.groups.events import Event, assigned, classic, events
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
