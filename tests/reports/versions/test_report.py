"""Laws of the report: its figures are the rows', its verdicts follow from them."""

import json
from collections import Counter, defaultdict

import pytest

from kcap.reports.versions.identity import identify
from kcap.reports.versions.report import fails, report, tally
from kcap.session import Capture
from tests.reports.talking import PCAPS, of, profile, whole

NAMES = [
    "raw-frames.pcap", "java-transactions.pcap", "fallback-0.9.pcap", "old-java-new-broker.pcap", "kafka-0.8-clients.pcap",
    "sasl-raw-tokens.pcap", "cluster-startup.pcap",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_apis_are_counted_as_plain_python_counts_rows(name: str) -> None:
    columns = ["client_id", "api_key", "api", "api_version", "removed_in", "version_verdict"]
    want: dict[tuple[str | None, int], list[int]] = defaultdict(list)
    for row in Capture([str(PCAPS / name)]).exchanges(columns).to_arrow().to_pylist():
        if row["api"] is not None and row["api_key"] is not None:
            want[row["client_id"], row["api_key"]].append(row["api_version"])
    made = report(of(name), [name], "4.4")
    got: dict[tuple[str | None, int], Counter[int]] = defaultdict(Counter)
    for client in made["clients"]:
        for api in client["apis"]:
            got[client["client_id"], api["api_key"]] += Counter({int(v): n for v, n in api["versions"].items()})
    assert got == {key: Counter(versions) for key, versions in want.items()}
    assert made["rows"] is made["clients"]
    assert json.loads(json.dumps(made)) == json.loads(json.dumps(made | {}))


@pytest.mark.parametrize("name", NAMES)
def test_the_contract(name: str) -> None:
    made = report(of(name), [name], "4.0")
    assert made["report"] == "versions"
    for row in made["clients"]:
        assert row.keys() >= {
            "client_ip", "client_id", "software_name", "software_version", "guessed", "why", "connections", "apis", "first_ns",
            "last_ns", "works_with_target", "client_ips", "addresses", "principal", "confidence",
        }  # fmt: skip
        assert row["works_with_target"] in ("yes", "no", "unknown")
        for api in row["apis"]:
            assert api.keys() >= {"api", "api_key", "min", "max", "count", "verdicts", "removed_in", "deprecated_in"}
    for row in made["brokers"]:
        assert row.keys() >= {"server_ip", "server_port", "broker_id", "apis", "release_min", "release_max", "why"}
        assert all(api.keys() >= {"api_key", "min", "max"} for api in row["apis"])
    for row in made["diagnoses"]:
        assert row.keys() >= {"kind", "sentence", "advice", "connections", "example"}
    assert sum(tally(made).values()) == sum(not row["is_broker"] for row in made["clients"])


def test_failing_is_for_what_would_go_on() -> None:
    assert fails(report(of("fallback-0.9.pcap"), [], "4.0"), "removed")
    assert not fails(report(of("fallback-0.9.pcap"), [], "3.9"), "removed")
    assert fails(report(of("fallback-0.9.pcap"), [], "3.9"), "deprecated")
    assert fails(report(of("old-java-new-broker.pcap"), [], "4.4"), "removed")
    assert not fails(report(of("java-transactions.pcap"), [], "4.4"), "removed")
    bounded = profile([(1, 3)], probe=4, offer={1: (0, 3), 18: (0, 0)})
    bounded.software = "apache-kafka-java", "3.9.2"
    made = report(whole(bounded), [], "4.0")
    assert [row["would_change"] for row in made["readiness"]] == [True]
    assert not fails(made, "removed"), "its library is known to have later ones"


def test_what_breaks_stands_first() -> None:
    order = ["no", "unknown", "yes"]
    for name in NAMES:
        rows = report(of(name), [], "4.4")["rows"]
        places = [
            (row["is_broker"], order.index(row["works_with_target"]), row["client_id"] is None, row["client_id"] or "")
            for row in rows
        ]
        assert places == sorted(places)


def test_brokers_of_one_cluster_and_their_changes() -> None:
    first = profile([(3, 1)], probe=0, offer={3: (0, 12), 18: (0, 3)}, uid="C1")
    second = profile([(3, 1)], probe=0, offer={3: (0, 13), 18: (0, 4)}, uid="C2")
    row = report(whole(first, second), [], "4.4")["brokers"][0]
    assert row["answers"] == 2
    assert len(row["changed"]) == 2


def test_every_client_has_a_library_or_a_reason() -> None:
    for name in NAMES:
        found = identify(of(name))
        assert found.software.keys() == found.connections.keys()
        assert all(one.why for one in found.software.values())
