"""Laws of deaths: a connection that the broker closed names the request, and no other connection accuses anybody."""

from pathlib import Path

import pytest

from kcap.reports.versions.deaths import AT_ONCE_NS
from tests.reports.talking import PCAPS, closed_by_server, gathered, of_stories, reported
from tests.support import messages as m
from tests.support.wire import Tap, request

LIST_OFFSETS_0 = bytes.fromhex("ffffffff00000000")
RANGES = {0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 18: (0, 4)}


def dying(number: int, *, key: int = 2, version: int = 0, asks: bool = False) -> Tap:
    """A short connection that the broker closes at a request."""
    story = m.began(40_000 + number, 10**9 + number * 50_000_000)
    if asks:
        story.ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
    story.client(request(key, version, 2, LIST_OFFSETS_0))
    return closed_by_server(story)


def test_sixty_short_connections_are_one_finding(tmp_path: Path) -> None:
    found = reported(of_stories(tmp_path, *(dying(number) for number in range(60))))
    assert list(found) == ["closed_after"]
    row = found["closed_after"]
    assert row["count"] == 60
    assert row["level"] == "error"
    assert "after ListOffsets v0" in str(row["sentence"])
    assert "KIP-896" in str(row["advice"])


def test_one_connection_is_enough_where_a_release_dropped_the_version(tmp_path: Path) -> None:
    assert list(reported(of_stories(tmp_path, dying(0)))) == ["closed_after"]
    assert list(reported(of_stories(tmp_path, dying(0, key=1, version=3)))) == ["closed_after"]


def test_ranges_of_the_connection_and_of_its_server_name_the_cause(tmp_path: Path) -> None:
    own = reported(of_stories(tmp_path, *(dying(number, key=1, version=3, asks=True) for number in range(50))))
    assert list(own) == ["below_broker_min"]
    assert own["below_broker_min"]["count"] == 50
    assert "offered 4-18" in str(own["below_broker_min"]["sentence"])
    healthy = m.began(50_000, 5 * 10**8).ask(m.api_versions(1, client="other"), m.api_versions_answer(1, RANGES)).close()
    borrowed = reported(of_stories(tmp_path, healthy, dying(0, key=1, version=3)))
    assert "offers 4-18" in str(borrowed["below_broker_min"]["sentence"])


def test_a_client_that_closes_accuses_nobody(tmp_path: Path) -> None:
    """A consumer that ends while its Fetch waits for data."""
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES)).ask(m.metadata(2), m.metadata_answer(2, []))
    story.client(m.fetch(3)).close()
    assert reported(of_stories(tmp_path, story)) == {}
    early = m.began(40_001).client(request(2, 0, 2, LIST_OFFSETS_0))
    assert reported(of_stories(tmp_path, early.close())) == {}


@pytest.mark.parametrize("end", ["client", "server"])
def test_a_reset_counts_by_its_sender(tmp_path: Path, end: str) -> None:
    stories = [m.began(40_000 + n, 10**9 + n * 10**8).client(request(2, 0, 2, LIST_OFFSETS_0)) for n in range(3)]
    found = reported(of_stories(tmp_path, *(story.reset(end == "server") for story in stories)))
    assert list(found) == (["closed_after"] if end == "server" else [])


def test_a_broker_that_stops_is_not_blamed_on_requests_that_it_serves(tmp_path: Path) -> None:
    """Fetches that wait for data when the broker goes down, and a version that it answered before."""
    stories = []
    for number in range(4):
        story = m.began(40_000 + number).ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
        story.ask(m.metadata(2), m.metadata_answer(2, [])).client(m.fetch(3) if number % 2 else m.metadata(3))
        story.time_ns = 4 * 10**9
        stories.append(closed_by_server(story))
    assert reported(of_stories(tmp_path, *stories)) == {}


def test_a_late_end_has_other_causes(tmp_path: Path) -> None:
    stories = []
    for number in range(5):
        story = m.began(40_000 + number).ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
        story.ask(m.metadata(2), m.metadata_answer(2, [])).client(m.heartbeat(3, 4))
        story.time_ns += 2 * AT_ONCE_NS
        stories.append(closed_by_server(story))
    assert "closed_after" not in reported(of_stories(tmp_path, *stories))


def test_the_first_request_behind_api_versions_wants_a_login(tmp_path: Path) -> None:
    stories = [
        closed_by_server(
            m.began(40_000 + n, 10**9 + n * 10**8)
            .ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
            .client(m.metadata(2))
        )
        for n in range(3)
    ]
    assert list(reported(of_stories(tmp_path, *stories))) == ["sasl_missing"]


def test_a_listener_that_serves_others_without_a_login_wants_none(tmp_path: Path) -> None:
    answer = m.api_versions_answer(1, RANGES)
    asked = [m.began(40_000 + n, 10**9 + n * 10**8).ask(m.api_versions(1), answer) for n in range(4)]
    stories = [closed_by_server(story.client(m.metadata(2))) for story in asked[:3]]
    served = asked[3].ask(m.fetch(2), m.fetch_answer(2))
    assert list(reported(of_stories(tmp_path, *stories))) == ["sasl_missing"]
    assert list(reported(of_stories(tmp_path, *stories, served.close()))) == ["closed_after"]


@pytest.mark.parametrize(
    "name", ["broker-paused", "java-transactions", "go-franz", "long-polls", "pipelined", "cluster-startup"]
)
def test_healthy_captures_have_none(name: str) -> None:
    assert reported(gathered(PCAPS / f"{name}.pcap")) == {}


def test_join_group_versions_that_one_release_alone_lacks_have_their_own_advice(tmp_path: Path) -> None:
    """KAFKA-19444: Kafka 4.0.0 closes, 4.0.1 takes them again."""
    bodies = {
        version: bytes.fromhex("0001 61 00002710") + b"\0\0\x27\x10" * version + bytes.fromhex("0000 0001 61 00000000")
        for version in (0, 1)
    }
    stories = [m.began(40_000 + number, 10**9 + number).client(request(11, 0, 2, bodies[0])) for number in range(3)]
    bare = reported(of_stories(tmp_path, *map(closed_by_server, stories)))
    assert "Only Kafka 4.0.0 rejects it" in str(bare["closed_after"]["advice"])
    without = RANGES | {11: (2, 9)}
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, without)).client(request(11, 1, 2, bodies[1]))
    found = reported(of_stories(tmp_path, closed_by_server(story)))
    assert "upgrade the broker" in str(found["below_broker_min"]["advice"])
