"""Laws of deduplication: what is opened is what was stored, and rules cannot tell apart what shares a template."""

import pickle
import pickletools
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts.api_versions import Offer
from kcap.identities import Identity
from kcap.reports.versions import profile_store
from kcap.reports.versions.diagnosis import answered, whole_line
from kcap.reports.versions.profile import (
    AUTHENTICATE,
    HANDSHAKE,
    LINE,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConnectionProfile,
    ProfiledCall,
    Use,
    is_proven,
)
from kcap.reports.versions.profile_store import ProfileStore
from kcap.reports.versions.profile_templates import sign
from tests.reports.talking import SERVER, UIDS, of, profile, stored, used

OFFERS = [Offer({3: (0, 12)}), Offer({1: (4, 17), 3: (0, 13)}), None]
ANSWERS = [ApiVersionsResponse(0, 3, 2, {"finalizedFeatures": []}, OFFERS[0]), ApiVersionsResponse(35, 0, 0), None]
small, times = st.integers(0, 20), st.none() | st.integers(0, 1 << 62)
ports = st.integers(0, 65535)
NUMBERS = {"packets", "client_packets", "server_packets", "client_captured", "server_captured", "server_framed",
           "client_missing", "server_missing", "exchanges", "first_ns", "last_ns"}  # fmt: skip


@st.composite
def steps(draw: st.DrawFn, number: int) -> ProfiledCall:
    reason = st.sampled_from([None, "fin", "rst"])
    outcome, error = st.sampled_from(["answered", "unanswered", "one_way"]), st.none() | st.integers(-1, 90)
    return ProfiledCall(
        number, draw(st.integers(-1, 30)), draw(small), draw(outcome), draw(reason), draw(error), draw(times), draw(times)
    )


def lines(identity: Identity) -> st.SearchStrategy[dict[str, Any]]:
    """Rows of `connections`, as far as they are kept."""
    value = {name: st.none() | st.integers(0, 9) if name in NUMBERS else st.sampled_from([None, "fin", "syn"]) for name in LINE}
    own = {"connection": identity.uid, "client_ip": identity.client_ip, "client_port": identity.client_port,
           "server_ip": identity.server_ip, "server_port": identity.server_port}  # fmt: skip
    return st.just({}) | st.fixed_dictionaries(value | {name: st.just(value) for name, value in own.items()})


@st.composite
def profiles(draw: st.DrawFn, uid: str = "C1") -> ConnectionProfile:
    """Whatever a connection may have said."""
    identity = Identity(uid, draw(st.sampled_from(["10.0.0.1", "::1"])), draw(ports), *SERVER, draw(st.integers(1, 9)))
    made = ConnectionProfile(
        identity, draw(st.sampled_from([None, ("a", "1"), ("b", "2")])), draw(st.sampled_from([None, "alice"]))
    )
    made.offer = draw(st.sampled_from(OFFERS))
    made.midstream, made.probe_count = draw(st.booleans()), draw(small)
    made.opening = [draw(steps(number)) for number in draw(st.lists(small, unique=True, max_size=4))]
    made.probes = [
        ApiVersionsRequest(draw(st.sampled_from([*made.opening, draw(steps(99))])), draw(st.sampled_from(ANSWERS)))
        for _ in range(draw(st.integers(0, 2)))
    ]
    keys = st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 4), st.integers(0, 3))
    for key in draw(st.lists(keys, unique=True, max_size=4)):
        verdicts = draw(st.dictionaries(st.integers(-1, 4), st.integers(1, 9), max_size=3))
        made.uses[key] = Use(
            *(draw(small) for _ in range(7)), draw(st.none() | small), draw(small), Counter(verdicts),
        )  # fmt: skip
    for error in draw(st.lists(st.tuples(st.sampled_from([17, 36]), st.integers(1, 60)), unique=True, max_size=2)):
        made.errors[error], made.error_example[error] = draw(st.integers(1, 9)), draw(small)
    made.mechanism, made.mechanisms = draw(st.sampled_from([None, "PLAIN"])), draw(st.sampled_from([(), ("PLAIN", "GSSAPI")]))
    made.line = draw(lines(identity))
    return made


def in_order(made: ConnectionProfile) -> ConnectionProfile:
    """As reports see it."""
    made.opening.sort(key=lambda step: step.exchange)
    made.probes.sort(key=lambda probe: probe.step.exchange)
    return made


@given(profiles())
def test_what_is_opened_is_what_was_folded(made: ConnectionProfile) -> None:
    before = in_order(deepcopy(made))
    opened = stored(made).open()
    before.offer, before.probes = (
        opened.offer,
        [ApiVersionsRequest(probe.step, answer.answer) for probe, answer in zip(before.probes, opened.probes)],
    )
    assert opened == before
    assert opened.offer is made.offer
    assert list(opened.uses) == list(made.uses), "the first client id is the connection's own"
    assert [probe.answer for probe in opened.probes] == [probe.answer for probe in in_order(made).probes]


@given(profiles())
def test_a_connection_of_several_clients_opens_for_one_of_them(made: ConnectionProfile) -> None:
    """All but the uses is the same; the uses are those of the client."""
    kept = stored(made)
    whole = kept.open()
    for number, client in enumerate(kept.clients):
        assert kept.number_of(client) == number
        one = kept.open_for(client)
        assert one.uses == {at: use for at, use in whole.uses.items() if at[0] == client}
        one.uses = whole.uses
        assert one == whole


def test_each_client_of_a_connection_is_looked_at_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection with many client ids costs a time for each, not for each pair of them."""
    made, read = profile([]), []
    for number in range(50):
        made.uses[f"client-{number}", 3, 1] = Use(1, 1, 1, number, 0, 1, 0, None, 0, Counter({0: 1}))
    kept = stored(made)
    monkeypatch.setattr(profile_store, "Use", lambda *figures: read.append(figures) or Use(*figures))
    for number in range(50):
        assert len(kept.open_for(f"client-{number}").uses) == 1
    assert len(read) == 50


@given(st.lists(profiles(), min_size=2, max_size=2))
def test_rules_cannot_tell_apart_what_shares_a_template(pair: list[ConnectionProfile]) -> None:
    """Numbers that differ where no rule asks do not make another template; those that a rule reads do."""
    one, other = pair
    other.line = {name: one.line.get(name) if name not in NUMBERS else value for name, value in other.line.items()}
    made = deepcopy(one)
    made.line = {
        name: value if name not in NUMBERS or not one.line else other.line.get(name) for name, value in one.line.items()
    }
    made.offer, made.probes = one.offer, one.probes
    shelf = ProfileStore()
    first, second = stored(one, shelf), stored(made, shelf)
    if first.template is second.template:
        assert (whole_line(one), answered(one)) == (whole_line(made), answered(made))
        for name in ("server_captured", "server_framed", "client_captured"):
            assert sign(one.line.get(name) or 0) == sign(made.line.get(name) or 0)


def test_figures_take_no_more_room_than_their_numbers() -> None:
    kept = stored(profile([(3, 1), (1, 4)], probe=3))
    assert len(kept.figures) == 8 * len(kept.numbers()) < 600
    assert kept.template.first_use == 1 + 2 * 3


@pytest.mark.parametrize("name", ["raw-frames.pcap", "java-transactions.pcap", "sasl-raw-tokens.pcap"])
def test_a_shelf_travels_whole(name: str) -> None:
    shelf = of(name).profiles
    again = pickle.loads(pickle.dumps(shelf))
    assert list(again) == list(shelf)
    for uid, made in again.items():
        before = shelf[uid]
        assert (made.identity, made.opening, made.uses, made.line) == (
            before.identity,
            before.opening,
            before.uses,
            before.line,
        )
        assert (made.offer and made.offer.ranges) == (before.offer and before.offer.ranges)
    assert len({one.template for one in again.stored()}) == len({one.template for one in shelf.stored()})


def test_a_store_is_hardly_more_values_for_pickle_with_more_connections() -> None:
    """Pickle remembers each value up to its end, which would take more than the profiles."""

    def values(count: int) -> int:
        shelf = ProfileStore()
        for number in range(count):
            shelf[f"C{number}"] = profile([(3, 1)], uid=f"C{number}")
        return len(list(pickletools.genops(pickle.dumps(shelf))))

    assert values(40) - values(2) < 40  # blocks of figures
    assert list(pickle.loads(pickle.dumps(ProfileStore()))) == []


def test_a_connection_that_goes_on_is_opened_again_in_its_place() -> None:
    shelf = ProfileStore()
    for uid in UIDS[1:4]:
        shelf[uid] = profile([(3, 1)], uid=uid)
    shelf.store(UIDS[2])
    used(shelf, UIDS[2])
    assert (None, 1, 4) in shelf[UIDS[2]].uses
    assert list(shelf) == UIDS[1:4]
    shelf.store(UIDS[2])
    assert (None, 1, 4) in shelf[UIDS[2]].uses
    assert [one.uid for one in shelf.stored()] == UIDS[1:4]
    assert list(shelf.only({UIDS[3], "C9"})) == [UIDS[3]]
    del shelf[UIDS[1]]
    assert UIDS[1] not in shelf
    assert len(shelf) == 2


def test_profiles_that_are_opened_again_and_again_take_their_room_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROFILES_OPEN", 2)
    monkeypatch.setattr(limits, "PROFILE_BLOCK_BYTES", 1)  # figures of all but the last one are deflated
    shelf = ProfileStore()
    for uid in UIDS[1:5]:
        shelf[uid] = profile([(3, 1)], uid=uid)
    shelf.close()
    for _ in range(1, 30):
        for uid in tuple(shelf):
            used(shelf, uid)
        shelf.settle()
    assert len(shelf._columns) <= 3 * len(shelf)
    again = pickle.loads(pickle.dumps(shelf))
    assert [(one.uid, one.open().uses[None, 1, 4].count) for one in again.stored()] == [(uid, 29) for uid in shelf]


@given(profiles(), st.data())
def test_a_profile_that_was_stored_before_its_end_is_as_one_that_was_not(made: ConnectionProfile, data: st.DataObject) -> None:
    """Law: the line is added to a stored profile without opening it, and gives the profile that opening it would give."""
    line, midstream, made.line = data.draw(lines(made.identity)), data.draw(st.booleans()), {}
    shelf = ProfileStore()
    assert not shelf.end(made.uid, line, midstream=midstream)
    shelf[made.uid] = made
    shelf.store(made.uid)
    assert shelf.end(made.uid, line, midstream=midstream)
    (late,) = shelf.stored()
    del shelf[made.uid]
    shelf[made.uid] = made
    assert shelf.end(made.uid, line, midstream=midstream)
    (early,) = shelf.stored()
    assert late.template is early.template
    assert (late.identity, late.clients, late.figures) == (early.identity, early.clients, early.figures)
    assert late.open() == early.open()
    assert late.open().line == line
    assert late.open().midstream == midstream


def test_an_end_comes_to_profiles_of_another_store_too() -> None:
    shelf = ProfileStore()
    uid = "C1"
    shelf[uid] = profile([(3, 1)], uid=uid)
    again = pickle.loads(pickle.dumps(shelf))
    assert again.end(uid, {"began": "syn", "packets": 7}, midstream=False)
    assert again[uid].line == {"began": "syn", "packets": 7}


def test_a_name_whose_proof_was_refused_is_no_principal() -> None:
    refused = [(AUTHENTICATE, 58)]
    assert is_proven([], [(3, False)])
    assert is_proven([(HANDSHAKE, 33)], [])
    assert not is_proven(refused, [(AUTHENTICATE, True), (18, True), (3, False)])
    assert is_proven(refused, [(3, False), (3, True)])


def test_ends_come_in_any_order_and_take_no_second_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of a connection and of its end are in blocks of their own, of which few stay inflated."""
    monkeypatch.setattr(limits, "PROFILE_BLOCK_BYTES", 1)
    shelf, uids = ProfileStore(), [f"C{number}" for number in range(40)]
    for uid in uids:
        one = profile([(3, 1)], uid=uid)
        one.line = {}
        shelf[uid] = one
    shelf.close()
    for number, uid in enumerate(sorted(uids)):
        assert shelf.end(uid, {"began": "syn", "packets": number}, midstream=False)
    assert len(shelf._columns) == len(uids)
    for found in (shelf, pickle.loads(pickle.dumps(shelf))):
        assert [one.open().line["packets"] for one in found.stored()] == [sorted(uids).index(uid) for uid in uids]
