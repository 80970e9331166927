"""Laws of addresses: what a broker gave to a client that cannot use it, and nothing else."""

from pathlib import Path

import pytest

from kcap.reports.versions.addresses import is_loopback, why_unroutable
from kcap.reports.versions.report import report
from tests.reports.talking import closed_by_server, line, of_stories, reported
from tests.support import messages as m

RANGES = {0: (0, 13), 1: (4, 18), 3: (0, 13), 18: (0, 4)}
CONTROLLER = {1: (4, 18), 18: (0, 4), 52: (0, 2), 62: (0, 4), 63: (0, 1)}


@pytest.mark.parametrize(
    ("host", "kind"),
    [("localhost", "advertised_localhost"), ("127.0.0.1", "advertised_localhost"), ("::1", "advertised_localhost"),
     ("0.0.0.0", "advertised_unroutable"), ("169.254.1.1", "advertised_unroutable"), ("10.0.0.2", None), ("kafka-1", None)],
)  # fmt: skip
def test_what_a_remote_client_is_given(tmp_path: Path, host: str, kind: str | None) -> None:
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
    story.ask(m.metadata(2), m.metadata_answer(2, [(1, host, 9092)])).close()
    found = reported(of_stories(tmp_path, story))
    assert list(found) == ([kind] if kind else [])
    if kind:
        assert f"{host}:9092" in str(found[kind]["sentence"])


def test_only_the_first_wrong_addresses_of_a_list_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcap.reports.versions.addresses.ADVERTISED_JUDGED", 2)
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
    story.ask(m.metadata(2), m.metadata_answer(2, [(node, "127.0.0.1", 9092 + node) for node in range(5)])).close()
    rows = report(of_stories(tmp_path, story), [], "4.4")["diagnoses"]
    assert [row["kind"] for row in rows] == ["advertised_localhost"] * 2


@pytest.mark.parametrize(("refused_ms", "kind"), [(5, "wrong_listener"), (900, "unreachable")])
def test_a_port_that_refuses_beside_one_that_serves(tmp_path: Path, refused_ms: int, kind: str) -> None:
    """While the machine serves Kafka, the address is wrong; before and behind it, the broker may have been away."""
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
    story.ask(m.metadata(2), m.metadata_answer(2, [(1, "10.0.0.2", 9093), (2, "10.0.0.2", 9092)])).close()
    found = of_stories(tmp_path, story)
    begun = next(iter(found.profiles.stored())).open().line["first_ns"]
    found.others.append(
        line("empty", server_port=9093, first_ns=begun + refused_ms * 10**6, server_packets=1, packets=2, client_captured=0)
    )
    assert kind in reported(found)


def test_a_client_that_asks_again_and_again_and_tries_none(tmp_path: Path) -> None:
    def asking(times: int, host: str) -> object:
        story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
        for number in range(times):
            story.ask(m.metadata(2 + number), m.metadata_answer(2 + number, [(1, host, 9093)]))
        return reported(of_stories(tmp_path, story.close()))

    assert list(asking(6, "kafka-1")) == ["advertised_unused"]  # type: ignore[call-overload]
    assert asking(2, "kafka-1") == {}, "a tool that lists topics"


def test_a_controllers_listener(tmp_path: Path) -> None:
    asked = m.began().ask(m.api_versions(1), m.api_versions_answer(1, CONTROLLER))
    assert list(reported(of_stories(tmp_path, asked.close()))) == ["controller_listener"]


@pytest.mark.parametrize("negotiates", [True, False])
def test_what_a_controller_closes_at_is_no_other_trouble(tmp_path: Path, negotiates: bool) -> None:
    """It does not serve Metadata in any version: no client's release is the reason."""
    first = m.began(40_001, 2_000_000_000).ask(m.api_versions(1), m.api_versions_answer(1, CONTROLLER))
    stories = [closed_by_server(first.client(m.metadata(2)))] if negotiates else [first.close()]
    stories += [closed_by_server(m.began(41_000 + n, (3 + n) * 10**9).client(m.metadata(1))) for n in range(3)]
    assert list(reported(of_stories(tmp_path, *stories))) == ["controller_listener"]


def test_hosts() -> None:
    assert is_loopback("127.3.4.5")
    assert not is_loopback("10.0.0.1")
    assert why_unroutable("10.0.0.1") is None
    assert why_unroutable("kafka-1") is None
