"""Laws of feature levels: named where the table has them, numbers elsewhere."""

import pytest

from kcap.reports.versions.features import METADATA_VERSIONS, described, level_name


@pytest.mark.parametrize(
    ("level", "name"), [(1, "3.0-IV1"), (7, "3.3-IV3"), (21, "3.9-IV0"), (25, "4.0-IV3"), (0, None), (99, None)]
)
def test_levels_of_metadata_version(level: int, name: str | None) -> None:
    assert level_name("metadata.version", level) == name


def test_levels_rise_with_releases() -> None:
    order = [tuple(int(part) for part in name.replace("-IV", ".").split(".")) for name in METADATA_VERSIONS]
    assert order == sorted(order)
    assert len(set(order)) == len(order)


def test_a_response_in_words() -> None:
    features = {
        "finalizedFeatures": [
            {"name": "metadata.version", "maxVersionLevel": 21},
            {"name": "acme.version", "maxVersionLevel": 3},
        ],
        "zkMigrationReady": True,
    }
    assert described(features) == ["metadata.version 21 = 3.9-IV0", "acme.version 3", "ready for the migration from ZooKeeper"]
    assert described({}) == []
