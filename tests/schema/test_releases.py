"""What releases take: the facts against what real brokers say, and the laws of what follows from them."""

import json
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.schema import registry
from kcap.schema.facts import releases
from kcap.schema.releases import absent_from, accepts, advertised, deprecated_in, first_release, line, removed_in, taken

PCAPS = Path(__file__).resolve().parents[2] / "pcaps"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "captures"
API_VERSIONS = 18
FULL = 15
"""Fewer APIs are a controller's or a test's answer."""


@pytest.mark.parametrize("key", registry.api_keys())
def test_every_version_has_its_releases(key: int) -> None:
    """A version is gone from `removed_in` on and not before; what is accepted is taken; ranges come from somewhere."""
    known = releases()
    versions = registry.version_range(key)
    assert versions
    for version in range(versions[0], versions[1] + 1):
        first, gone, since = first_release(key, version), removed_in(key, version), deprecated_in(key, version)
        assert first is not None
        having = [name for name in known if (found := taken(key, name)) and found.versions[0] <= version <= found.versions[1]]
        assert having[0] == first
        after = known[known.index(having[-1]) + 1 :]
        assert gone == (line(after[0]) if after else None)
        assert {name for name in known if accepts(key, version, name)} <= set(having)
        assert since is None or since in having


def test_the_removals_of_kip_896() -> None:
    """Spot checks against the KIP's table and the reports of its victims."""
    assert [removed_in(0, version) for version in range(4)] == ["4.0", "4.0", "4.0", None]
    assert removed_in(4, 7) == removed_in(1, 3) == removed_in(8, 1) == "4.0"
    assert removed_in(3, 0) is None
    assert deprecated_in(1, 3) == "3.7"
    assert deprecated_in(0, 5) is None, "3.7 called Produce 3 to 6 deprecated, 3.9 took that back"
    assert removed_in(999, 0) is deprecated_in(0, 99) is first_release(0, -1) is advertised(0, "5.0") is None


def test_produce_is_offered_where_it_is_refused() -> None:
    """KAFKA-18659: brokers from 4.0 on name Produce 0 so that librdkafka goes on compressing."""
    assert advertised(0, "4.4") == (0, 13)
    assert not accepts(0, 2, "4.4")
    assert advertised(0, "3.9") == (0, 11)
    assert accepts(0, 2, "3.9")


def test_trials_are_not_offered() -> None:
    """An unstable last version is refused unless the broker is told otherwise."""
    assert advertised(8, "3.6") == (0, 8)
    assert advertised(76, "4.0") is None
    assert not accepts(8, 9, "3.6")
    assert accepts(8, 9, "3.7")


def offers(paths: list[Path]) -> list[dict[int, tuple[int, int]]]:
    """What brokers offered in each whole ApiVersions answer of a capture."""
    found = []
    for exchange in kcap.open(*paths):
        if exchange.row["api_key"] != API_VERSIONS or exchange.row["outcome"] != "answered":
            continue
        said: Any = exchange.response.to_json() if exchange.response is not None else None
        entries = (said or {}).get("apiKeys") or []
        ranges = {api["apiKey"]: (api["minVersion"], api["maxVersion"]) for api in entries if "maxVersion" in api}
        if len(ranges) >= FULL and exchange.response.undecoded is None:
            found.append(ranges)
    return found


def assert_as_offered(ranges: dict[int, tuple[int, int]], release: str) -> None:
    for key, offered in ranges.items():
        assert advertised(key, release) == offered, (release, registry.api_name(key))


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("aiokafka", "4.0.0"),
        ("quota-0.10", "0.10.2"),
        ("quota-3.9", "3.9"),
        ("java-transactions", "4.4"),
        ("pipelined", "4.0.0"),
    ],
)
def test_what_a_broker_offered(name: str, release: str) -> None:
    """Law: every range that a real broker named is the range that the facts give its release."""
    found = offers([PCAPS / f"{name}.pcap"])
    assert found
    for ranges in found:
        assert_as_offered(ranges, release)


@pytest.mark.skipif(not SHARED.exists(), reason="the recorded captures are not beside the checkout")
@pytest.mark.parametrize(
    "name", [f"legacy/{name}-cluster" for name in ("0.10.2.2", "1.1.1", "2.0.1", "2.4.1", "2.8.2", "3.3.2", "3.9.2")]
)
def test_what_recorded_brokers_offered(name: str) -> None:
    """The same for recorded clusters, whose manifests tell the brokers' releases."""
    folder, _, stem = name.partition("/")
    entries = json.loads((SHARED / folder / "manifest.json").read_text())["captures"]
    entry = next(entry for entry in entries if entry.get("file") == f"{stem}.pcap")
    (version,) = entry["broker_versions"]
    found = offers([SHARED / folder / f"{stem}.pcap"])
    assert found
    for ranges in found:
        assert_as_offered(ranges, line(version))


def test_one_release_lacks_two_versions_that_its_neighbors_have() -> None:
    found = {(key, version) for key in range(100) for version in range(20) if absent_from(key, version) is not None}
    assert found == {(11, 0), (11, 1)}
    assert absent_from(11, 0) == ("4.0.0", "4.0")
