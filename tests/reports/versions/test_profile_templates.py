"""Laws of templates: what rules test of a connection is the same for all that share one, and nothing else tells them apart."""

from collections.abc import Callable

import pytest

from kcap.reports.versions.profile import ApiVersionsRequest, ApiVersionsResponse, ConnectionProfile
from kcap.reports.versions.profile_store import ProfileStore
from kcap.reports.versions.profile_templates import CHECKED
from tests.reports.talking import profile, stored

ANSWER = ApiVersionsResponse(0, 3, 2, {"finalizedFeatures": []})


def test_connections_that_said_the_same_share_a_template() -> None:
    shelf = ProfileStore()
    made = [profile([(3, 1), (1, 4)], probe=3, uid=f"C{at}", client=f"app-{at}") for at in range(50)]
    for number, one in enumerate(made):
        one.probes = [ApiVersionsRequest(one.opening[0], ANSWER)]
        one.line |= {"packets": number, "first_ns": 7 * number}
        one.uses[f"app-{number}", 1, 4].first_ns = number
    alike = [stored(one, shelf) for one in made]
    assert len({one.template for one in alike}) == 1
    assert [one.open().uses.keys() for one in alike[:2]] == [
        {(f"app-{number}", 18, 3), (f"app-{number}", 3, 1), (f"app-{number}", 1, 4)} for number in range(2)
    ]
    assert stored(profile([(3, 1), (1, 5)], probe=3), shelf).template is not alike[0].template
    assert stored(profile([(3, 1), (1, 4)], probe=3, died=True), shelf).template is not alike[0].template


def alike(change: Callable[[ConnectionProfile], None]) -> bool:
    """Whether a connection shares its template with one that differs in this."""
    one, other, shelf = profile([(3, 1), (1, 4)], died=True), profile([(3, 1), (1, 4)], died=True), ProfileStore()
    change(other)
    return stored(one, shelf).template is stored(other, shelf).template


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_a_number_that_rules_ask_about_makes_another_tale(name: str) -> None:
    was = profile([]).line[name]
    assert not any(
        alike(lambda one, value=value: one.line.update({name: value})) for value in {0, 7, 55} - {was, 55 * bool(was)}
    )
    assert alike(lambda one: one.line.update({name: was and was + 1}))


def test_other_numbers_make_none() -> None:
    assert alike(lambda one: one.line.update(packets=9000, first_ns=77))

    def more(one: ConnectionProfile) -> None:
        one.uses["app", 1, 4].last_ns = 500

    assert alike(more)


def test_whether_any_was_served_makes_another_tale() -> None:
    """A request that costs the connection is no proof of who sent it; two of which one did not are."""

    def more(one: ConnectionProfile) -> None:
        one.uses["app", 1, 4].count = 2

    assert not alike(more)
