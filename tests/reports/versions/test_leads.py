"""Law: a filter passes as many exchanges as the figure that it stands for counts."""

import pytest

import kcap
from kcap.reports.versions.leads import at_broker, connections_in, of_version, versioned
from kcap.reports.versions.report import report
from tests.cli.running import PCAPS
from tests.reports.talking import of


def passing(name: str, filter_: str) -> int:
    """How many exchanges of a capture a filter passes."""
    return sum(1 for _ in kcap.open(PCAPS / name).filter(filter_))


@pytest.mark.parametrize("name", ["raw-frames.pcap", "fallback-0.9.pcap"])
def test_clients_and_versions_lead_to_their_requests(name: str) -> None:
    made = report(of(name), [name], "4.0")
    for row in made["clients"]:
        assert passing(name, versioned(row)) == row["count"], versioned(row)
    for row in made["readiness"]:
        assert passing(name, of_version(row)) == row["count"], of_version(row)
    assert all(passing(name, at_broker(row)) for row in made["brokers"])


def test_one_connection_and_several() -> None:
    assert connections_in(["C1"]) == 'connection == "C1"'
    assert connections_in(["C1", "C2"]) == 'connection in {"C1", "C2"}'
