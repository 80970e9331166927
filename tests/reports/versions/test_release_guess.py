"""Laws of the guess at a broker's release: what a release offers is found again, what none offers is called so."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.versions.release_guess import METADATA, PRODUCE, always, differences, forwarded, guess, took
from kcap.schema.facts import apis, releases
from kcap.schema.releases import advertised, line
from tests.reports.talking import SHARED, gathered


def offer(release: str, role: str) -> dict[int, tuple[int, int]]:
    """What a broker of a release says on a listener of that kind."""
    return {
        key: found
        for key, api in apis().items()
        if (not api.listeners or role in api.listeners or (role == "zkBroker" and "broker" in api.listeners))
        and (found := advertised(key, release)) is not None
    }


@pytest.mark.parametrize("release", releases())
@pytest.mark.parametrize("role", ["broker", "controller", "zkBroker"])
def test_an_offer_of_a_release_is_found_again(release: str, role: str) -> None:
    ranges = offer(release, role)
    found = guess(ranges)
    assert not found.vendor
    assert found.first is not None
    assert found.last is not None
    assert not differences(ranges, release)
    assert found.why


@pytest.mark.parametrize("release", releases())
def test_a_broker_offer_is_of_that_release(release: str) -> None:
    ranges = offer(release, "zkBroker" if release < "3.3" else "broker")
    known = releases()
    found = guess(ranges)
    assert found.first is not None
    assert found.last is not None
    assert known.index(found.first) <= known.index(release) <= known.index(found.last)


@given(st.sampled_from(releases()), st.data())
def test_a_range_beyond_every_release_is_foreign(release: str, data: st.DataObject) -> None:
    ranges = offer(release, "broker")
    key = data.draw(st.sampled_from(sorted(ranges)))
    found = guess(ranges | {key: (ranges[key][0], 90)})
    assert found.vendor
    assert found.first is None
    assert found.nearest is not None
    assert "no release offers this" in found.why


def test_what_a_mixed_cluster_forwards_may_have_less() -> None:
    ranges = offer("4.0", "broker")
    key = next(key for key in ranges if forwarded(key) and ranges[key][1] > ranges[key][0])
    found = guess(ranges | {key: (ranges[key][0], ranges[key][1] - 1)})
    assert not found.vendor
    assert "4.0" in (found.first, found.last) or found.first == "4.0.0"
    assert "as in a mixed cluster" in found.why


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures are not here")
@pytest.mark.parametrize("folder", ["legacy", "modern"])
def test_real_brokers_are_recognized(folder: str) -> None:
    """Every answer of every captured broker fits the release that the recorder started."""
    known, seen = releases(), 0
    for entry in json.loads((SHARED / folder / "manifest.json").read_text())["captures"]:
        path = SHARED / folder / entry["file"]
        versions = entry.get("broker_versions") or [one.get("version") for one in entry["brokers"]]
        if not path.exists() or path.stat().st_size > 1 << 20:
            continue
        names = {one if one in known else line(one) for one in versions}
        for offers in gathered(path).offers.values():
            for one, _ in offers.values():
                found = guess(one.ranges)
                assert found.first is not None, (entry["file"], found.why)
                assert found.last is not None
                span = known[known.index(found.first) : known.index(found.last) + 1]
                assert names & set(span), (entry["file"], names, span)
                seen += 1
    assert seen > 30


def test_bounds_come_from_what_a_silent_broker_took() -> None:
    found = took([(0, 0), (3, 0)])
    assert found is not None
    assert (found.first, found.last) == (releases()[0], "3.9")
    assert "took Produce v0: at most 3.9" in found.why
    found = took([(1, 12), (0, 2)])
    assert found is not None
    assert (found.first, found.last) == ("2.7", "3.9")
    assert "at least 2.7" in found.why
    assert took([(3, 1)]) is None, "every release takes it"
    assert took([(999, 0)]) is None


def test_a_broker_that_offers_few_apis_is_said_to_lack_the_others() -> None:
    whole = {key: found for key in range(100) if (found := advertised(key, "3.9")) is not None}
    few = {key: whole[key] for key in (0, 1, 3, 18)}
    assert "it lacks" in guess(few).why
    assert "it lacks" not in guess(whole).why


@given(release=st.sampled_from(["0.11.0", "1.1", "2.8", "3.9", "4.4"]), data=st.data())
def test_an_api_that_every_broker_has_and_a_proxy_drops_is_named(release: str, data: st.DataObject) -> None:
    whole = offer(release, "zkBroker" if release < "3.3" else "broker")
    dropped = data.draw(st.sampled_from([key for key in whole if always(key) and key not in (PRODUCE, METADATA)]))
    found = guess({key: one for key, one in whole.items() if key != dropped})
    assert found.vendor
    assert found.nearest is not None
    low, high = whole[dropped]
    assert f"no {apis()[dropped].name} ({low}-{high})" in found.differs


def test_a_fetch_that_is_cut_is_no_mixed_cluster() -> None:
    """Brokers serve it themselves: a proxy cut it."""
    ranges = {key: found for key in range(100) if (found := advertised(key, "3.9")) is not None} | {1: (0, 11)}
    found = guess(ranges)
    assert found.vendor
    assert found.differs == ("Fetch 0-11 (0-17)",)


def test_a_broker_that_is_the_controller_is_a_broker() -> None:
    """With ZooKeeper it takes AllocateProducerIds, which today's controllers alone take, beside clients' requests."""
    found = took([(67, 0), (7, 3), (3, 12)])
    assert found is not None
    assert found.role == "broker"
    alone = took([(67, 0), (62, 1)])
    assert alone is not None
    assert alone.role == "controller"
