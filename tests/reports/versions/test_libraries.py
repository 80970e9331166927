"""Laws of the tables of libraries."""

import pytest

from kcap.reports.versions.libraries import BASELINES, FAMILIES, INTERNAL, PROFILES, Profile, keyed
from kcap.schema.registry import api_key, version_range


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: f"{p.family}-{p.releases}")
def test_profiles_name_versions_that_exist(profile: Profile) -> None:
    for key, versions in profile.versions.items():
        first, last = version_range(key) or pytest.fail(f"API {key}")
        assert all(first <= version <= last for version in versions)
        assert list(versions) == sorted(set(versions))
    assert len(profile.versions) > 5


def test_families_are_known_by_one_name() -> None:
    assert {profile.family for profile in PROFILES} <= set(FAMILIES.values())
    assert BASELINES.keys() <= set(FAMILIES.values())


def test_brokers_apis_are_no_clients() -> None:
    assert not any(key in profile.versions for key in INTERNAL for profile in PROFILES)
    assert api_key("WriteTxnMarkers") not in INTERNAL, "an administrator aborts transactions with it"


def test_the_short_form_reads() -> None:
    assert keyed("Metadata 6 8, Produce 7") == {3: (6, 8), 0: (7,)}
