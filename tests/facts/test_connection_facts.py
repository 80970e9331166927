"""What connections reported is known for as long as they have rows."""

import pickle
import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts.connection_facts import NO_FACTS, ConnectionFacts, FactsOfConnections, NumbersOfUids
from kcap.identities import number_of, uid_of_number

HOUR = limits.CONNECTION_IDLE_NS
UIDS = st.one_of(st.integers(0, 5), st.integers(0, (1 << 64) - 1)).map(uid_of_number)
FACTS = st.builds(ConnectionFacts, principal=st.sampled_from(["a", "b"]), negotiated=st.booleans())


def known(facts: FactsOfConnections, uids: list[str]) -> list[ConnectionFacts]:
    """The facts of some connections, found together."""
    return [facts.different[number] for number in facts.of(np.array(list(map(number_of, uids)), np.uint64)).tolist()]


def test_quiet_connections_are_forgotten() -> None:
    facts, uid, reported = FactsOfConnections(), uid_of_number(1), ConnectionFacts(software=("lib", "1"))
    facts[uid] = reported
    assert not facts.forget_idle(HOUR - 1)
    assert facts.forget_idle(HOUR)
    assert facts[uid] is reported, "it had a row since"
    assert known(facts, [uid]) == [reported]
    assert facts.forget_idle(2 * HOUR)
    assert known(facts, [uid]) == [reported]
    assert facts.forget_idle(3 * HOUR)
    assert facts.forget_idle(4 * HOUR)
    assert facts[uid] is NO_FACTS
    assert known(facts, [uid]) == [NO_FACTS]
    assert facts.different == [NO_FACTS], "and what they alone reported with them"


def test_facts_keep_their_connections_when_others_are_forgotten() -> None:
    facts, uids = FactsOfConnections(), [uid_of_number(number) for number in range(6)]
    reported = [ConnectionFacts(principal=f"user {number}") for number in range(6)]
    for number, (uid, one) in enumerate(zip(uids, reported)):
        facts[uid] = one
        if number in (1, 3):
            facts.forget_idle(number * HOUR)
    assert known(facts, uids) == [NO_FACTS, NO_FACTS, *reported[2:]]
    assert facts.different == [NO_FACTS, *reported[2:]]


@given(st.lists(st.tuples(UIDS, FACTS, st.booleans()), max_size=60))
def test_the_facts_are_those_that_were_given_last(given_: list[tuple[str, ConnectionFacts, bool]]) -> None:
    """Law: given alone or together, also in a copy."""
    facts, plain = FactsOfConnections(), dict[str, ConnectionFacts]()
    for at, (uid, one, alone) in enumerate(given_):
        assert known(facts, [uid]) == [facts[uid]] == [plain.get(uid, NO_FACTS)]
        if alone:
            facts[uid] = one
        else:
            facts.update(np.array([number_of(uid)] * 2, np.uint64), np.array([0, facts.number(one)]))
        plain[uid] = one
        if at == len(given_) // 2:
            facts = pickle.loads(pickle.dumps(facts))
    assert known(facts, list(plain)) == list(plain.values())
    assert [facts[uid] for uid in plain] == list(plain.values())


def test_many_connections_with_the_same_facts_take_little_memory() -> None:
    uids = np.arange(30_000, dtype=np.uint64) << np.uint64(40)
    NumbersOfUids().update(uids, np.arange(30_000) % 7)  # kernels are loaded
    tracemalloc.start()
    try:
        packed = NumbersOfUids()
        packed.update(uids, np.arange(30_000) % 7)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(packed) == 30_000
    assert packed.get(20_000 << 40) == 20_000 % 7
    assert held < 50 * len(packed)
