"""Scenes of static members: instances that are fenced, refused, or that take turns."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.groups import member
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import observed


def unreleased() -> Observed:
    """A group refuses a second member for 50 s."""
    rows = [member("b", at + 1, "ConsumerGroupHeartbeat", 10 * at, error="UNRELEASED_INSTANCE_ID") for at in range(6)]
    return observed(rows, messages={("b", 1, "request"): {"instanceId": "i-1"}})


def fenced() -> Observed:
    """An instance is fenced, and its member tries again for 6 s; two others are fenced once."""
    rows = [member("a", at + 1, "Heartbeat", at, error="FENCED_INSTANCE_ID", member_id="m") for at in range(7)]
    rows += [member(f"o{at}", 1, "Heartbeat", at, error="FENCED_INSTANCE_ID", member_id=f"o{at}", group_id="other")
             for at in range(2)]  # fmt: skip
    said = {(name, 1, "request"): {"groupInstanceId": f"i-{name}"} for name in ("a", "o0", "o1")}
    return observed(rows, messages=said)


def turns() -> Observed:
    """Two clients join with one instance, each twice; their heartbeats do not carry it."""
    rows, said = [], {}
    for at in range(4):
        name = "ab"[at % 2]
        beat = member(name, 2 * at + 1, "Heartbeat", 2 * at, error="UNKNOWN_MEMBER_ID", member_id=f"m{at}")
        rows += [beat, member(name, 2 * at + 2, "JoinGroup", 2 * at + 1, generation=1, api_version=5)]
        said[name, 2 * at + 2, "request"] = {"groupInstanceId": "i-1"}
    return observed(rows, messages=said)


SCENES = [
    Scene("static-member-fenced", unreleased, """
        high 0.95: group g refused b 6 times: another member has group.instance.id i-1. Seen 6 times from 0 s to 50.1 s, 0 s
        lost. Who: group_id g, instance_id i-1, client_ids ['b']. Filter: group_id == "g" and error == UNRELEASED_INSTANCE_ID.
        Evidence: fenced 6, clients 1.
        """, kind="refused", least={"session": 50.1}),
    Scene("static-member-fenced", fenced, """
        high 0.95: instance i-a of group g was fenced 7 times: another member took that group.instance.id from a. Seen 7
        times from 0 s to 6.1 s, 0 s lost. Who: group_id g, instance_id i-a, client_ids ['a']. Filter: group_id == "g"
        and error == FENCED_INSTANCE_ID. Evidence: fenced 7, clients 1.
        medium 0.6: 2 instances of group other were fenced 2 times: another member took that group.instance.id from o0,
        o1. Seen 2 times from 0 s to 1.1 s, 0 s lost. Who: group_id other, client_ids ['o0', 'o1']. Filter: group_id ==
        "other" and error == FENCED_INSTANCE_ID. Evidence: fenced 2, clients 2.
        """, kind="fenced", least={"seconds": 6.1}),
    Scene("static-member-fenced", turns, """
        high 0.9: instance i-1 of group g joined from 2 connections in turns, 4 times (a, b): each takes that
        group.instance.id from the other. Seen 4 times from 1 s to 7.1 s, 0 s lost. Who: group_id g, instance_id i-1,
        client_ids ['a', 'b']. Filter: group_id == "g" and api == JoinGroup and error == NONE. Evidence: joins 4,
        clients 2.
        """, kind="in turns", least={"turns": 4}),
]  # fmt: skip
