"""The facts file and its records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.schema.facts import FACTS, VERSION_MAX, apis, meet, message, message_names, parse_versions, show_versions, within

ranges = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair)))


@given(ranges)
def test_versions_round_trip(versions: tuple[int, int]) -> None:
    """Law: parse(show(x)) = x."""
    assert parse_versions(show_versions(versions)) == versions
    assert parse_versions(show_versions((versions[0], VERSION_MAX))) == (versions[0], VERSION_MAX)


@given(ranges, ranges, st.integers(0, 41))
def test_meeting_ranges(a: tuple[int, int], b: tuple[int, int], version: int) -> None:
    """Law: a version is in the meeting exactly when it is in both."""
    assert within(meet(a, b), version) == (within(a, version) and within(b, version))


def test_no_versions() -> None:
    """`none` is no range, nonsense is an error."""
    assert parse_versions("none") is None
    assert parse_versions(None) is None
    with pytest.raises(ValueError, match="invalid literal"):
        parse_versions("x-y")


def test_one_message_a_line() -> None:
    """The file stays reviewable: sorted by name, one line each, small."""
    lines = FACTS.read_text().splitlines()
    assert message_names() == sorted(message_names())
    assert len(lines) == len(message_names()) + 1
    assert FACTS.stat().st_size < 200_000


def test_versions_have_no_holes() -> None:
    """Every version between a message's first and last has one description."""
    for name in message_names():
        found = message(name)
        assert found is not None
        first, last = found.versions
        for version in range(first, last + 1):
            assert sum(within(v.versions, version) for v in found.variants) == 1, (name, version)


def test_apis_have_both_sides() -> None:
    """Each API's request and response know the same versions."""
    assert len(apis()) == 95
    for api in apis().values():
        request, response = (message(api.name + side) for side in ("Request", "Response"))
        assert request is not None
        assert response is not None
        assert request.versions == response.versions == api.versions
        assert request.key == response.key == api.key
        assert api.changes


def test_newest_names_hold() -> None:
    """Where Kafka 4.4 names a message otherwise than 3.9, its name is used for both."""
    assert apis()[74].name == "ListConfigResources"
    assert message("ListClientMetricsResourcesRequest") is None
    assert message("NoSuchThing") is None
