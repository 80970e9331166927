"""Laws of a connection's story: its steps are those of the wire, in order."""

import pytest

from kcap.errors import UsageError
from kcap.reports.versions.identity import identify
from kcap.reports.versions.report import report
from kcap.reports.versions.story import found, of
from tests.reports.talking import of as capture


def reported(name: str, connection: str) -> dict[str, object]:
    """A story."""
    whole = capture(name)
    return of(whole, connection, identify(whole), report(whole, [], "4.4")["diagnoses"])


def uid_of(name: str, key: int, version: int) -> str:
    """The connection that used this."""
    return next(t.uid for t in capture(name).profiles.values() if any((k, v) == (key, version) for _, k, v in t.uses))


def test_a_refused_question_and_its_retry() -> None:
    story = reported("raw-frames.pcap", uid_of("raw-frames.pcap", 18, 99))
    texts = [step["text"] for step in story["steps"]]  # type: ignore[attr-defined]
    assert texts[0] == "the client requests the versions with ApiVersions v99"
    assert texts[1].startswith("the broker refuses, as KIP-511 specifies: UNSUPPORTED_VERSION (35) in a version 0 body")
    assert texts[2] == "the client tries again with ApiVersions v0"
    assert int(str(story["lost_ns"])) > 0


def test_times_rise() -> None:
    for profile in capture("java-transactions.pcap").profiles.values():
        story = reported("java-transactions.pcap", profile.uid)
        times = [step["at_ns"] for step in story["steps"] if step["at_ns"] is not None]  # type: ignore[attr-defined]
        assert times == sorted(times) or len(profile.probes) != 1
        assert {row["api_key"] for row in story["apis"]} == {key for _, key, _ in profile.uses}  # type: ignore[attr-defined]


def test_a_beginning_of_a_uid_is_enough_and_others_are_told() -> None:
    whole = capture("raw-frames.pcap")
    uid = uid_of("raw-frames.pcap", 18, 99)
    profile = found(whole, uid[:12])
    assert profile is not None
    assert profile.uid == uid
    with pytest.raises(UsageError, match="no connection"):
        found(whole, "Cxyz")
    with pytest.raises(UsageError, match="several"):
        found(whole, "C")


def test_a_connection_without_kafka_has_its_reason() -> None:
    whole = capture("raw-frames.pcap")
    line = next(line for line in whole.others if line["phase"] == "http")
    story = reported("raw-frames.pcap", str(line["connection"]))
    assert "http" in story["steps"][0]["text"]  # type: ignore[index]
    assert [row["kind"] for row in story["diagnoses"]] == ["http_on_kafka"]  # type: ignore[attr-defined]


def test_the_side_that_closed_is_named() -> None:
    whole = capture("left-behind-a-poll.pcap")
    for profile in whole.profiles.values():
        texts = [step["text"] for step in reported("left-behind-a-poll.pcap", profile.uid)["steps"]]  # type: ignore[attr-defined]
        assert profile.line["closed_by"] == "client"
        assert texts[-1].endswith("gets no response: the client closes the connection"), "a reset ended it, of the client"
