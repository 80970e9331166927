"""What connections reported is known for as long as they have rows."""

import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts.connection_facts import NO_FACTS, ConnectionFacts, FactsOfConnections, PackedFacts
from kcap.identities import uid_of_number

HOUR = limits.CONNECTION_IDLE_NS
UIDS = st.one_of(st.integers(0, 5), st.integers(0, (1 << 64) - 1)).map(uid_of_number)
FACTS = st.builds(ConnectionFacts, principal=st.sampled_from(["a", "b"]), negotiated=st.booleans())


def test_quiet_connections_are_forgotten() -> None:
    facts, uid, reported = FactsOfConnections(), uid_of_number(1), ConnectionFacts(software=("lib", "1"))
    facts.update([(uid, reported)])
    assert not facts.forget_idle(HOUR - 1)
    assert facts.forget_idle(HOUR)
    assert facts[uid] is reported, "it had a row since"
    assert facts.forget_idle(2 * HOUR)
    assert facts.of([uid]) == [reported]
    assert facts.forget_idle(3 * HOUR)
    assert facts.forget_idle(4 * HOUR)
    assert facts[uid] is NO_FACTS
    assert facts.of([uid]) == [NO_FACTS]


@given(st.lists(st.tuples(UIDS, FACTS), max_size=60), st.integers(0, 9))
def test_the_facts_are_those_that_were_given_last(given_: list[tuple[str, ConnectionFacts]], recent: int) -> None:
    """Law: however many of them are packed, and also in a copy."""
    facts, plain = FactsOfConnections(), dict[str, ConnectionFacts]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "FACTS_RECENT", recent)
        for at, (uid, known) in enumerate(given_):
            assert facts.of([uid]) == [plain.get(uid, NO_FACTS)]
            facts.update([(uid, known)])
            plain[uid] = known
            if at == len(given_) // 2:
                facts = pickle.loads(pickle.dumps(facts))
        assert facts.of(list(plain)) == list(plain.values())
        assert [facts[uid] for uid in plain] == list(plain.values())


def test_many_connections_with_the_same_facts_take_little_memory() -> None:
    tracemalloc.start()
    try:
        packed = PackedFacts()
        packed.update((uid_of_number(at << 40), ConnectionFacts(principal=f"user {at % 7}")) for at in range(30_000))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(packed) == 30_000
    assert packed.get(uid_of_number(20_000 << 40)).principal == f"user {20_000 % 7}"
    assert held < 50 * len(packed)
