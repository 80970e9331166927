"""Laws of throttles: every API that could be throttled before KIP-219 has its first muting version, later ones always mute."""

import pytest

from kcap.schema import registry
from kcap.schema.quotas import FIRST_MUTING, mutes
from kcap.schema.releases import first_release


@pytest.mark.parametrize(("name", "version", "mute"), [
    ("Produce", 5, False), ("Produce", 6, True), ("Fetch", 7, False), ("Fetch", 8, True), ("Heartbeat", 1, False),
    ("DeleteGroups", 0, False), ("ConsumerGroupHeartbeat", 0, True), ("DescribeCluster", 0, True),
])  # fmt: skip
def test_by_name(name: str, version: int, mute: bool) -> None:
    key = registry.api_key(name)
    assert key is not None
    assert mutes(key, version) is mute


def test_every_name_of_the_table_is_an_api() -> None:
    assert len(FIRST_MUTING) == 35


def test_first_muting_versions_came_with_kafka_2() -> None:
    """The release whose brokers answer before the throttle."""
    for key, version in FIRST_MUTING.items():
        release = first_release(key, version)
        assert release is not None
        assert release.startswith("2.0"), registry.api_name(key)
        before = first_release(key, version - 1)
        assert before is not None
        assert int(before.split(".")[0]) < 2, registry.api_name(key)
