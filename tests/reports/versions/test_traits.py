"""Laws of traits: numbering excludes, settings only weigh, and a body that does not read shows nothing."""

import struct
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.versions.fingerprints import guessed
from kcap.reports.versions.libraries import PROFILES
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.traits import DEFAULTS, FIXED, JAVA, NUMBERING, excluded, numbered, of_join, weight
from kcap.schema.registry import api_key, version_range
from tests.reports.talking import profile, whole

WIDE = {key: found for key in range(90) if (found := version_range(key)) is not None}


def begun(*ids: int | None, key: int = 3) -> list[ConnectionProfile]:
    """Connections that begin with these correlation ids, each with a request of an API."""
    made = []
    for number, first in enumerate(ids):
        one = profile([(key, 0)], uid=f"C{number}")
        one.ids_from = first
        made.append(one)
    return made


def subscription(version: int, data: bytes | None) -> str:
    """What a member says of its subscription to one topic."""
    size = -1 if data is None else len(data)
    return b64encode(struct.pack(">hih2si", version, 1, 2, b"aa", size) + (data or b"")).decode()


def test_ids_exclude_libraries_that_number_otherwise() -> None:
    assert {one for one in NUMBERING if excluded(one, begun(0, 2, 2))} == {
        one for one in NUMBERING if one not in (JAVA, "kafka-node", "sarama")
    }
    assert numbered("sarama", begun(0, 2, 2)) is None, "it numbers on where a connection is opened again"
    assert excluded("sarama", begun(1, 2, 2))
    assert {one for one in NUMBERING if not excluded(one, begun(1, 1, 1))} == {
        "librdkafka", "kafka-python", "aiokafka", "kafka-go", "platformatic",
    }  # fmt: skip
    assert {one for one in NUMBERING if excluded(one, begun(0, 0, key=0))} >= {JAVA, "librdkafka"}
    assert not any(excluded(one, begun(0, 0, key=0)) for one in ("sarama", "kafka-node"))


def test_one_connection_excludes_no_java_client() -> None:
    """A capture may begin between two connections of one client, or hold one broker of many."""
    assert not any(excluded(JAVA, begun(first)) for first in (0, 1, 2))


def test_beginnings_that_were_not_captured_exclude_nothing() -> None:
    late = begun(2, 2, 2)
    for one in late:
        one.midstream = True
    assert not any(excluded(one, late) or excluded(one, begun(None)) or numbered(one, late) for one in NUMBERING)


@given(st.sampled_from(sorted(DEFAULTS)), st.data())
def test_a_librarys_own_defaults_speak_for_it(family: str, data: st.DataObject) -> None:
    shown = {(kind, data.draw(st.sampled_from(values))) for kind, values in DEFAULTS[family].items() if values}
    best, fitting = weight(family, shown)
    assert best == max(weight(other, shown)[0] for other in DEFAULTS)
    assert len(fitting) == len(shown) - 1, "each but the protocol type, which most have"


def test_a_setting_that_differs_speaks_against() -> None:
    assert weight("kafka-go", {(FIXED[0], "sticky")})[0] < 0 == weight("kafka-go", set())[0]


@pytest.mark.parametrize(("data", "named"), [(None, "null"), (b"", "empty"), (b"x", "some")])
def test_a_join_shows_assignors_timeouts_and_user_data(data: bytes | None, named: str) -> None:
    body = {
        "sessionTimeoutMs": 30000, "rebalanceTimeoutMs": 30000, "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": subscription(1, data)}, {"name": "roundrobin", "metadata": ""}],
    }  # fmt: skip
    assert of_join(body) == {
        ("protocol type", "consumer"), ("assignors", "range,roundrobin"), ("subscription version", "1"), ("user data", named),
        ("session timeout ms", "30000"), ("rebalance timeout ms", "that of the session"),
    }  # fmt: skip


@given(st.text(max_size=20) | st.binary(max_size=60).map(lambda data: b64encode(data).decode()) | st.none())
def test_damaged_metadata_shows_nothing_and_raises_nothing(metadata: str | None) -> None:
    body = {"sessionTimeoutMs": 1, "protocolType": "consumer", "protocols": [{"name": "range", "metadata": metadata}]}
    assert ("assignors", "range") in of_join(body)
    assert of_join({}) == set()


def test_old_pinned_clients_are_told_apart_by_their_join() -> None:
    """Version 0.9 of three libraries: the ids exclude Java, and the subscription tells librdkafka from kafka-python."""
    calls = [
        (key, 0) for name in ("Metadata", "FindCoordinator", "JoinGroup", "SyncGroup") if (key := api_key(name)) is not None
    ]
    shown = {("assignors", "range,roundrobin"), ("user data", "empty")}

    def found(first: int, version: str | None) -> str | None:
        made = [profile(calls, uid=f"C{number}") for number in range(3)]
        for one in made:
            one.ids_from = first
            one.traits = shown | ({("subscription version", version)} if version else set())
        return guessed(made, "app", whole(*made)).family

    assert found(1, "3") == "librdkafka"
    assert found(1, None) is None, "both libraries have it"
    assert any(one.family == "librdkafka" and one.seldom for one in PROFILES)


def test_an_assignor_of_one_library_shows_it() -> None:
    made = profile([(3, 9), (11, 6)], probe=2, offer=WIDE)
    made.traits = {("assignors", "RoundRobinAssigner")}
    found = guessed([made], "app", whole(made))
    assert (found.family, found.version, found.guessed, found.confidence) == ("kafkajs", None, True, 0.6)
    assert found.evidence == ("assignors RoundRobinAssigner",)
