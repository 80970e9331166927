"""Laws of the rows of diagnoses."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from kcap.reports.versions.diagnosis import ERROR, SHOWN, Diagnosis, DiagnosisContext, call, once, place, whole_line
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.identity import ClientKey, Clients
from kcap.reports.versions.profile import ApiVersionsRequest, ApiVersionsResponse, ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.report import report
from tests.reports.talking import profile, whole
from tests.reports.versions.test_clients import captures


def trouble() -> Diagnosis:
    """One."""
    return Diagnosis("kind", ERROR, "it has {curly} names, on {n}", "advice", {"client_id": "{n}x"})


def test_a_connection_counts_once_and_the_first_is_the_example() -> None:
    case = DiagnosisContext(whole(), Clients(), [])
    for number in range(SHOWN + 10):
        for _ in range(2):
            case.add(("key",), f"C{number}", f"C{number}.1", trouble())
    (row,) = [found.row() for found in case.troubles.values()]
    assert row["count"] == SHOWN + 10
    assert len(row["connections"]) == SHOWN
    assert row["example"] == "C0.1"
    assert row["sentence"] == "it has {curly} names, on 110 connections"


def test_facts_are_counted_once() -> None:
    """Thousands of clients that do the same are one row."""
    profiles = [
        profile([(3, 1)], probe=0, offer={3: (0, 13), 18: (0, 4)}, uid=f"C{n}", client=f"kafkajs-{n}") for n in range(5)
    ]
    rows = [row for row in report(whole(*profiles), [], "4.4")["facts"] if row["kind"] == "nameless"]
    assert [(row["clients"], row["count"]) for row in rows] == [(5, 5)]
    assert "clients 'kafkajs-0', 'kafkajs-1', 'kafkajs-2', 'kafkajs-3', 'kafkajs-4' of 10.0.0.1" in rows[0]["sentence"]


def test_a_library_is_said_of_those_that_have_it() -> None:
    """A row of several clients does not give the unknown ones the library of the others."""
    clients = {("10.0.0.1", "a"): "probably sarama 1", ("10.0.0.1", "b"): "probably sarama 1"}
    made = Diagnosis("kind", ERROR, "{who}", "advice", {}, clients=dict(clients))
    assert made.text() == "clients 'a', 'b' of 10.0.0.1 (probably sarama 1)"
    made.clients["10.0.0.1", "c"] = ""
    assert made.text() == "clients 'a', 'b', 'c' of 10.0.0.1 (probably sarama 1; others unknown)"


@given(captures())
def test_those_that_are_passed_over_would_tell_nothing(made: ConnectionProfiles) -> None:
    """A rule sees one connection of those that are alike and looks at the others only where it gave a trouble."""

    def every(case: DiagnosisContext, _wanted: object = None) -> Iterator[tuple[ConnectionProfile, str | None]]:
        for stored, client, _ in case.clients:
            yield stored.open(), client

    found = report(made, [], "4.4")["diagnoses"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DiagnosisContext, "profiles", every)
        patched.setattr(DiagnosisContext, "worth", every)
        assert report(made, [], "4.4")["diagnoses"] == found


def test_a_silent_one_is_not_opened_again() -> None:
    """Of a thousand connections without a trouble a rule sees one."""
    answer = ApiVersionsResponse(0, 3, 2)
    profiles = [profile([(3, 1)], probe=3, uid=f"C{number}", client=f"app-{number}") for number in range(1000)]
    for one in profiles:
        one.probes = [ApiVersionsRequest(one.opening[0], answer)]
    case = DiagnosisContext(whole(*profiles), Clients(), [])
    assert [one.uid for one, _ in case.profiles()] == ["C0"]
    loud = []
    for one, _ in case.profiles():
        case.add(("key",), one.uid, one.uid, trouble())
        loud.append(one.uid)
    assert len(loud) == 1000


def test_libraries_tell_apart_what_said_the_same() -> None:
    profiles = [profile([(3, 1)], uid=f"C{number}", client=client) for number, client in enumerate("aba")]
    key = ClientKey("b")
    known = Clients({}, {key: Software("librdkafka", "2.6.0", "librdkafka", False, "said")}, {("C1", "b"): key})
    assert [kind for _, _, kind in DiagnosisContext(whole(*profiles), known, []).clients] == [0, 1, 0]


def test_a_question_is_asked_once_a_tale() -> None:
    made, asked = whole(*(profile([(3, 1)], uid=f"C{number}") for number in range(9))), []
    answer = once(lambda profile: asked.append(profile.uid) or len(profile.uses))
    assert [answer(stored) for stored in made.profiles.stored()] == [1] * 9
    assert asked == ["C0"]


def test_names() -> None:
    assert call(1, 12) == "Fetch v12"
    assert call(999, 0) == "API key 999 v0"
    assert place(("::1", 9092)) == "[::1]:9092"


def test_only_whole_connections_accuse() -> None:
    made = profile([(3, 1)])
    assert whole_line(made)
    for name, value in (("began", "midstream"), ("server_packets", 0), ("client_packets", 0), ("server_missing", 5)):
        other = profile([(3, 1)])
        other.line[name] = value
        assert not whole_line(other), name
