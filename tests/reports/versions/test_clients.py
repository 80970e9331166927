"""Laws of what clients used: the same as asked of every connection in turn, plainly."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.facts.api_versions import Offer
from kcap.facts.version_verdicts import NOT_HIGHEST, OK
from kcap.reports.versions.clients import ClientUsage, Usage, calls_of
from kcap.reports.versions.fingerprints import who
from kcap.reports.versions.identity import ClientKey, identify
from kcap.reports.versions.profile import ApiVersionsRequest, ApiVersionsResponse, ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import of as assessed
from kcap.reports.versions.readiness import range_in
from kcap.schema.registry import api_name
from tests.reports.talking import PCAPS, gathered, profile, whole

OFFERS = [Offer({1: (0, 17), 3: (0, 13), 18: (0, 4)}), Offer({1: (4, 18), 3: (0, 13), 18: (0, 4)}), None]
ANSWERS = {(probe, offer): ApiVersionsResponse(0, probe, 3, {}, offer) for probe in (0, 3) for offer in OFFERS}
CALLS = [[(3, 1)], [(3, 1), (1, 4)], [(3, 1), (1, 3)], [(1, 18)], [(999, 0)], [(0, 2), (0, 7)], [(4, 1), (3, 1)]]
CLIENTS = ["a", None, "rdkafka", "broker-2-fetcher-0"]


Kind = tuple[list[tuple[int, int]], int | None, Offer | None, bool, tuple[str, str] | None, bool]
KINDS = st.tuples(
    st.sampled_from(CALLS), st.sampled_from([None, 0, 3]), st.sampled_from(OFFERS), st.booleans(),
    st.sampled_from([None, None, ("librdkafka", "2.6.0"), ("kgo", "1")]), st.booleans(),
)  # fmt: skip


@st.composite
def captures(draw: st.DrawFn) -> ConnectionProfiles:
    """Connections that say one of two things, with figures of their own."""
    made, kinds = [], draw(st.lists(KINDS, min_size=1, max_size=2))
    for number in range(draw(st.integers(2, 8))):
        calls, probe, offer, died, software, midstream = draw(st.sampled_from(kinds))
        one = profile(calls, probe=probe, offer=offer.ranges if offer is not None else None, uid=f"C{number}",
                   client=draw(st.sampled_from(CLIENTS)), died=died)  # fmt: skip
        one.offer, one.software, one.midstream = offer, software, midstream
        one.probes = [ApiVersionsRequest(one.opening[0], ANSWERS[probe, offer])] if probe is not None else []
        one.line["server_captured"], one.line["server_packets"] = draw(st.sampled_from([(0, 4), (7, 4), (90, 4), (90, 0)]))
        one.line["server_framed"] = draw(st.sampled_from([0, 90]))
        codecs, lower = draw(st.sampled_from([0, 1])), draw(st.booleans())
        for use in one.uses.values():
            use.first_ns = draw(st.integers(0, 5))
            use.last_ns = use.first_ns + draw(st.integers(0, 5))
            use.codecs = codecs
            more = draw(st.integers(0, 2))
            use.count += more
            use.verdicts[NOT_HIGHEST if lower else OK] += more
        made.append(one)
    return whole(*made)


def plain(
    profiles: list[ConnectionProfile], client_id: str | None, made: ConnectionProfiles
) -> dict[tuple[int, int], dict[str, Any]]:
    """(key, version) -> what a client did with it, in the plainest way."""
    out: dict[tuple[int, int], dict[str, Any]] = {}
    for one in profiles:
        for (client, key, version), use in one.uses.items():
            if client == client_id and api_name(key) is not None:
                row = out.setdefault((key, version), {"uses": [], "ranges": [], "verdicts": Counter()})
                row["uses"].append((use.first_ns, use.last_ns, use.count))
                row["ranges"] += [found] if (found := range_in(made.offer(one), key)) is not None else []
                row["verdicts"] += made.verdicts(one, key, version, use)
    return out


@given(captures())
def test_sums_are_those_of_every_connection(made: ConnectionProfiles) -> None:
    callers = ClientUsage(made, "4.4")
    for key, some in identify(made).connections.items():
        client_id = key.client_id
        profiles, usage = [one.open() for one in some], callers.usage(some, client_id)
        want = plain(profiles, client_id, made)
        assert usage.sums.keys() == want.keys()
        assert list(usage.sums) == sorted(want)
        for at, one in usage.sums.items():
            uses = want[at]["uses"]
            assert (one.count, one.first_ns, one.last_ns) == (
                sum(count for _, _, count in uses), min(first for first, _, _ in uses), max(last for _, last, _ in uses)
            )  # fmt: skip
            assert Counter(one.verdicts) == want[at]["verdicts"]
            assert one.offered == (max(want[at]["ranges"], key=lambda found: found[1]) if want[at]["ranges"] else None)
        rows = callers.apis(usage)
        assert sum(row["count"] for row in rows) == usage.count == sum(one.count for one in usage.sums.values())
        assert [row["api_key"] for row in rows] == sorted({key for key, _ in want})
        for row in rows:
            assert row["versions"] == {str(v): one.count for (key, v), one in usage.sums.items() if key == row["api_key"]}
            offers = {found for (key, _), one in want.items() if key == row["api_key"] for found in one["ranges"]}
            assert row["offers"] == sorted(map(list, offers)), "brokers of several releases offer several ranges"


@given(captures())
def test_what_is_remembered_is_what_each_is_asked(made: ConnectionProfiles) -> None:
    """Libraries and verdicts are worked out once for clients that are alike; each would get the same by itself."""
    callers, known = ClientUsage(made, "4.4"), identify(made)
    for key, some in known.connections.items():
        library = known.software[key]
        assert library == who(some, key.client_id, made)
        usage = callers.usage(some, key.client_id)
        findings, verdict, why = callers.assessed(usage, library)
        assert (findings, verdict, why) == assessed(calls_of(usage), library, "4.4", usage.login)


@pytest.mark.parametrize("name", ["old-java-new-broker.pcap", "fallback-0.9.pcap", "raw-frames.pcap"])
def test_examples_are_the_first(name: str) -> None:
    made = gathered(PCAPS / name)
    for client_id, some in ((key.client_id, some) for key, some in identify(made).connections.items()):
        for (key, version), one in ClientUsage(made, "4.4").usage(some, client_id).sums.items():
            firsts = {profile.uid: profile.uses[client_id, key, version] for stored in some if (client_id, key, version) in
                      (profile := stored.open()).uses}  # fmt: skip
            assert firsts[one.example[0]].example == one.example[1]
            assert firsts[one.example[0]].first_ns == min(use.first_ns for use in firsts.values()) == one.first_ns


def test_clients_that_did_the_same_share_their_rows() -> None:
    made = whole(*(profile([(3, 1), (1, 4)], probe=3, uid=f"C{number}", client=f"app-{number}") for number in range(5)))
    callers = ClientUsage(made, "4.4")
    rows = [callers.apis(callers.usage(some, key.client_id)) for key, some in identify(made).connections.items()]
    assert all(one is rows[0] for one in rows)
    assert callers.named((("b", 2), ("a", 1))) == ["a:1", "b:2"]


def pair(
    change: Callable[[ConnectionProfile], None], *, ids: tuple[str, str] = ("a", "b")
) -> tuple[ClientUsage, list[Usage], ConnectionProfiles]:
    """Two clients that said the same, but for a change to the second."""
    profiles = [profile([(3, 1), (1, 3)], uid=f"C{number}", client=client) for number, client in enumerate(ids)]
    change(profiles[1])
    made = whole(*profiles)
    callers = ClientUsage(made, "4.4")
    return callers, [callers.usage(some, key.client_id) for key, some in identify(made).connections.items()], made


def test_an_id_tells_apart_what_said_the_same() -> None:
    _, _, made = pair(lambda _one: None, ids=("a", "broker-2-fetcher-0"))
    assert len({one.template for one in made.profiles.stored()}) == 1
    assert [known.is_broker for known in identify(made).software.values()] == [False, True]


def test_counts_tell_apart_rows() -> None:
    def more(one: ConnectionProfile) -> None:
        one.uses["b", 1, 3].count = 5

    callers, usages, _ = pair(more)
    assert [callers.apis(usage)[0]["count"] for usage in usages] == [1, 5]


def test_a_beginning_that_was_not_captured_accuses_nobody() -> None:
    """Who never asks for versions would go on with them; who may have asked before the capture, nobody knows."""

    def late(one: ConnectionProfile) -> None:
        one.midstream = True

    callers, usages, made = pair(late)
    known = identify(made).software[ClientKey("a")]
    assert [callers.assessed(usage, known)[1] for usage in usages] == ["no", "unknown"]
