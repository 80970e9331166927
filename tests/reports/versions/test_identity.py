"""Laws of identity: one client is one program under one id for one principal, at any number of addresses."""

from dataclasses import replace

import pytest

from kcap.reports.versions import identity
from kcap.reports.versions.identity import ClientKey, identify, united
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.report import report
from tests.reports.talking import PCAPS, gathered, profile, whole

OFFER = {0: (0, 13), 1: (0, 18), 3: (0, 13), 11: (0, 9), 18: (0, 4)}


def named(uid: str, software: tuple[str, str] | None, principal: str | None = None, *, version: int = 13) -> ConnectionProfile:
    """A connection of a program."""
    made = profile([(3, version), (1, version)], probe=3 if software else None, offer=OFFER, uid=uid)
    made.software, made.principal = software, principal
    return made


def keys(made: ConnectionProfiles) -> list[tuple[object, ...]]:
    """Clients, and how many connections each has."""
    return [(key.client_id, key.software, key.principal, len(some)) for key, some in identify(made).connections.items()]


def test_software_and_principal_tell_clients_apart() -> None:
    java, rust = ("apache-kafka-java", "3.9.2"), ("rskafka", "0.5")
    made = whole(named("C1", java), named("C2", java), named("C3", rust), named("C4", java, "alice"))
    assert sorted(keys(made), key=str) == sorted([("app", java, "alice", 3), ("app", rust, None, 1)], key=str), (
        "a connection without a login of the one principal there is its client's"
    )
    made = whole(named("C1", java, "alice"), named("C2", java, "bob"))
    assert keys(made) == [("app", java, "alice", 1), ("app", java, "bob", 1)]


def test_a_program_that_names_nothing_is_not_merged_with_one_that_does() -> None:
    java = ("apache-kafka-java", "3.9.2")
    assert len(keys(whole(named("C1", java), named("C2", None, version=3)))) == 2
    assert len(keys(whole(named("C1", java), named("C2", None, version=13)))) == 1, "it sent what the other sent"


def test_programs_under_one_id_are_told_apart_by_versions_that_exclude_each_other() -> None:
    """Three Java clients of different releases share the id app-saslc in the recording."""
    found = identify(gathered(PCAPS / "sasl-raw-tokens.pcap"))
    mine = [key for key in found.connections if key.client_id == "app-saslc"]
    assert len(mine) >= 2
    for key in mine:
        fetched = {use.version for one in found.connections[key] for use in one.template.uses if use.key == 1}
        assert len(fetched) <= 1


def test_a_program_is_compared_with_the_first_ones_and_else_stands_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that exclude each other are never one, however few are compared."""
    some = [named(f"C{number}", None, version=version) for number, version in enumerate((13, 12, 11, 12, 13))]
    for one, address in zip(some, "12345"):
        one.identity = replace(one.identity, client_ip=f"10.0.1.{address}")
    counts = []
    for compared in (8, 1):
        monkeypatch.setattr(identity, "PROGRAMS_COMPARED", compared)
        found = united(made := whole(*some), [[one] for one in made.profiles.stored()], "app")
        counts.append([len(mine) for mine in found])
        for mine in found:
            assert len({use.version for one in mine for use in one.template.uses if use.key == 1}) == 1
    assert counts == [[2, 2, 1], [2, 1, 1, 1]]


def test_every_connection_is_of_one_client() -> None:
    made = gathered(PCAPS / "raw-frames.pcap")
    found = identify(made)
    assert sum(map(len, found.connections.values())) == sum(len(one.clients) for one in made.profiles.stored())
    assert set(found.keys.values()) == set(found.connections)
    assert found.of("nowhere", "app") is None


def test_addresses_are_counted_and_taken_apart() -> None:
    made = gathered(PCAPS / "raw-frames.pcap")
    rows, apart = report(made, [], "4.4")["clients"], report(made, [], "4.4", by_address=True)["clients"]
    assert max(row["addresses"] for row in rows) > 1
    assert all(row["addresses"] == 1 for row in apart)
    assert sum(row["count"] for row in rows) == sum(row["count"] for row in apart)
    assert all(len(row["client_ips"]) == row["addresses"] for row in rows)


def test_the_order_is_stable() -> None:
    some = [ClientKey(None), ClientKey("b"), ClientKey("a", ("x", "1")), ClientKey("a")]
    assert sorted(some, key=lambda key: key.order) == [some[2], some[3], some[1], some[0]]
