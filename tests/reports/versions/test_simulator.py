"""Laws of the simulator: what it predicts is what recorded clients sent."""

from pathlib import Path

import pytest

from kcap.errors import UsageError
from kcap.reports.versions.identity import identify
from kcap.reports.versions.libraries import JAVA, PROFILES, keyed
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import range_in
from kcap.reports.versions.simulator import Library, broker_of, explain, java, library_named, library_of, missing, sequence
from kcap.schema.facts import Versions, releases
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import api_key
from tests.reports.talking import PCAPS, SHARED, gathered

RECORDED = ["modern/java44-vs-3.9.2", "modern/mixed-cluster", "modern/old-java-2.8.2-vs-4.4.0",
"legacy/2.8.2-librdkafka-2.x-auto", "modern/librdkafka-zstd", "modern/go-franz-zstd", "modern/go-sarama-none",
"legacy/2.4.1-newclient", "legacy/3.9.2-client-0.8.2", "modern/go-segmentio-none", "legacy/3.9.2-aiokafka-0.8.1"]  # fmt: skip


CHOSEN = {
    JAVA: keyed(
        "Produce 11, EndTxn 4, TxnOffsetCommit 4, AddOffsetsToTxn 4, AddPartitionsToTxn 3, Fetch 12, OffsetCommit 9, "
        "OffsetFetch 9"
    ),
    "librdkafka": keyed("Metadata 10, DescribeGroups 0, ListGroups 0"),
    "sarama": keyed(
        "Produce 3 5 6 7 8 9, Fetch 5 6 8 10 11, ListOffsets 2 3 4 5, Metadata 4 5 6 7 9, OffsetCommit 3 4 6, "
        "OffsetFetch 3 4 5 6 7, FindCoordinator 1 2, JoinGroup 2 3 6 7, Heartbeat 1 2, LeaveGroup 1 2 4, SyncGroup 1 2 4"
    ),
}
"""Family -> API -> versions that it chooses below its highest, by what it does: Java clients without transactions of version 2
(KIP-890) or topic ids (KIP-516); librdkafka where it needs no later field; sarama by Config.Version, 0.11 to 4.0, which is 2.8
where an application leaves it (recorded with 1.61.1)."""
OF_PROFILE = "recordings of this library"


def predicted(library: Library, key: int, offered: Versions | None) -> set[int]:
    """The versions that the library may use: the highest that both have, or one that it chooses below that."""
    found = library.settles(key, offered)
    if found is None:
        return set()
    family = next((name for name in CHOSEN if library.name.startswith(name)), "")
    profiles = PROFILES if library.source == OF_PROFILE else ()
    choices = next((one.versions for one in profiles if f"{one.family} {one.releases}" == library.name), {})
    chosen = {*CHOSEN.get(family, {}).get(key, ()), *choices.get(key, ())}
    return {found} | {version for version in chosen if version <= found and (offered is None or version >= offered[0])}


def held(made: ConnectionProfiles) -> tuple[int, list[object]]:
    """How many versions are as predicted, whether clients name their library or not; and those that are not."""
    good, bad = 0, []
    clients = identify(made)
    for key, some in clients.connections.items():
        known = clients.software[key]
        library = None if known.is_broker else library_of(known)
        for stored in some if library is not None else ():
            for use in stored.template.uses:
                offer = made.offer_for(stored)
                if offer is None or use.key == API_VERSIONS or not use.served:
                    continue
                assert library is not None
                offered = range_in(offer, use.key)
                if use.version in predicted(library, use.key, offered):
                    good += 1
                elif use.key in library.versions:
                    bad.append((library.name, use.key, use.version, offered))
    return good, bad


@pytest.mark.parametrize("name", sorted(path.name for path in PCAPS.glob("*.pcap*") if path.stat().st_size < 1 << 20))
def test_small_captures_are_as_predicted(name: str) -> None:
    assert held(gathered(PCAPS / name))[1] == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures are not here")
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_clients_are_as_predicted(name: str) -> None:
    path: Path = SHARED / f"{name}.pcap"
    good, bad = held(gathered(path))
    assert bad == []
    assert good > 1


@pytest.mark.parametrize(("client", "target", "api", "version"), [
    ("java 2.8", "4.0", "Fetch", 12), ("java 2.8", "2.1", "Fetch", 10), ("java 0.10.2", "4.0", "Fetch", None),
    ("java 4.4", "2.1", "Fetch", 10), ("java 4.4", "2.0", "CreateTopics", 3), ("java 0.10.2", "4.4", "Produce", None),
    ("librdkafka 2.16.0", "3.3", "Fetch", 13), ("librdkafka 2.16.0", "4.4", "Produce", 10),
])  # fmt: skip
def test_versions_that_are_settled_on(client: str, target: str, api: str, version: int | None) -> None:
    key = api_key(api)
    assert key is not None
    assert library_named(client).settles(key, broker_of(target).offers(key)) == version


def test_java_settles_within_both_ranges_for_every_pair() -> None:
    for client in releases()[::4]:
        library = java(client)
        for target in releases()[::3]:
            broker = broker_of(target)
            for key, own in library.versions.items():
                found, offered = library.settles(key, broker.offers(key)), broker.offers(key)
                if found is not None:
                    assert offered is not None
                    assert offered[0] <= found <= offered[1]
                    assert found in own


def test_what_is_lost_is_gained_on_the_way_back() -> None:
    keys = [key for name in ("Produce", "Fetch", "JoinGroup", "ConsumerGroupHeartbeat") if (key := api_key(name)) is not None]
    down = explain(java("4.4"), [broker_of("4.4"), broker_of("2.1")], keys, {})
    up = explain(java("4.4"), [broker_of("2.1"), broker_of("4.4")], keys, {})
    for one, other in zip(down["rows"], up["rows"], strict=True):
        assert one["versions"] == other["versions"][::-1]
        assert one["lost"] == other["gained"] or not one["works"]
    assert any("zstd" not in text for row in down["rows"] for text in row["lost"])
    assert [len(step["columns"]) for step in down["steps"]] == [1, 2, 1]
    assert missing(1, 9) == missing(1, 9)
    assert "no zstd (KIP-110)" in missing(1, 9)
    assert "no zstd (KIP-110)" not in missing(1, 10)


def test_names() -> None:
    assert sequence("3.9, 4.0") == ["3.9", "4.0"]
    for text in ("acme 1.0", "java", "java 99"):
        with pytest.raises(UsageError, match="no library whose versions are known"):
            library_named(text)
