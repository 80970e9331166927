"""Laws of broker ids: what is proven is said, what is reported in two ways is not, and order does not matter."""

import pickle
from itertools import permutations
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.facts import brokers as facts
from kcap.facts.brokers import Broker, Brokers, plain_host
from tests.support.steps import steps

ONE, TWO, OTHER = ("10.0.0.1", 9092), ("10.0.0.2", 9092), ("10.0.0.1", 9093)


def learned(
    *calls: tuple[tuple[str, int], str | None, list[tuple[int, str, int]]], names: dict[str, str] | None = None
) -> Brokers:
    brokers = Brokers()
    for server, cluster, nodes in calls:
        brokers.take(server, cluster, [Broker(*node) for node in nodes])
    brokers.resolve_names(names or {})
    return brokers


def test_how_many_brokers_a_server_has_is_said_by_its_own_lists_alone() -> None:
    brokers = learned((ONE, "C", [(1, *ONE), (2, *TWO)]), (OTHER, "D", [(7, *OTHER), (7, "name", 9094)]))
    assert [brokers.facts(server) for server in (ONE, TWO, OTHER)] == [(1, "C", 2), (2, "C", None), (7, "D", 1)]
    brokers.take(TWO, None, [Broker(3, "10.0.0.3", 9092)], itself=False)
    assert brokers.facts(TWO)[2] is None, "a coordinator that it names is not all of its cluster"


def test_an_address_is_its_own_proof() -> None:
    brokers = learned((ONE, "C", [(1, "10.0.0.1", 9092), (2, "10.0.0.2", 9092)]))
    assert brokers.identify(ONE) == (1, "C")
    assert brokers.identify(TWO) == (2, "C"), "it told nothing itself, but stands on the list"
    assert brokers.identify(OTHER) == (None, None)


def test_addresses_have_many_spellings() -> None:
    brokers = learned(
        (("fd00::1", 9092), "C", [(1, "FD00:0:0::1", 9092)]), (("127.0.0.1", 9092), "D", [(7, "localhost", 9092)])
    )
    assert brokers.identify(("fd00::1", 9092)) == (1, "C")
    assert brokers.identify(("127.0.0.1", 9092)) == (7, "D")
    assert plain_host("Kafka-1.Example.COM.") == ("kafka-1.example.com", False)


def test_a_name_that_the_capture_file_resolves() -> None:
    nodes = [(1, "kafka-1", 9092), (2, "Kafka-2.", 9092)]
    assert learned((ONE, "C", nodes)).identify(ONE) == (None, "C"), "both have that port"
    brokers = learned((ONE, "C", nodes), names={"10.0.0.1": "kafka-2"})
    assert brokers.identify(ONE) == (2, "C")


def test_the_only_broker_of_its_list_with_that_port() -> None:
    nodes = [(1, "kafka-1", 9092), (2, "kafka-2", 9093)]
    assert learned((ONE, "C", nodes)).identify(ONE) == (1, "C")
    both = learned((ONE, "C", nodes), (TWO, "C", nodes))
    assert (both.identify(ONE)[0], both.identify(TWO)[0]) == (None, None), "one of them is a proxy, or hides a broker"
    apart = learned((ONE, "C", nodes), (TWO, "D", nodes))
    assert (apart.identify(ONE)[0], apart.identify(TWO)[0]) == (1, 1)


def test_another_address_is_no_proof_whatever_its_port() -> None:
    assert learned((ONE, "C", [(1, "172.16.0.1", 9092)])).identify(ONE) == (None, "C")
    assert learned((ONE, "C", [(1, "localhost", 9092)])).identify(ONE) == (None, "C")


def test_a_list_on_which_the_server_does_not_stand_proves_no_port() -> None:
    brokers = Brokers()
    brokers.take(ONE, None, [Broker(1, "kafka-1", 9092)], itself=False)
    assert brokers.identify(ONE) == (None, None)


def test_contradictions_are_none() -> None:
    assert learned((ONE, "C", [(1, *ONE)]), (TWO, "C", [(5, *ONE)])).identify(ONE) == (None, "C")
    assert learned((ONE, "C", [(1, *ONE)]), (ONE, "D", [(1, *ONE)])).identify(ONE) == (1, None)


def test_what_is_no_broker_is_passed_over() -> None:
    brokers = learned((ONE, None, [(-1, "", -1), (1, "", 9092), (2, "10.0.0.1", 0)]))
    assert brokers.listings == {}
    assert brokers.identify(ONE) == (None, None)


HOSTS = st.sampled_from(["10.0.0.1", "10.0.0.2", "kafka-1", "kafka-2"])
NODES = st.lists(st.tuples(st.integers(0, 3), HOSTS, st.sampled_from([9092, 9093])), max_size=3)
LISTS = st.lists(st.tuples(st.sampled_from([ONE, TWO, OTHER]), st.sampled_from(["C", "D", None]), NODES), max_size=3)


@given(LISTS)
def test_the_order_of_telling_does_not_matter(
    calls: list[tuple[tuple[str, int], str | None, list[tuple[int, str, int]]]],
) -> None:
    found = {tuple(learned(*order).identify(server) for server in (ONE, TWO, OTHER)) for order in permutations(calls)}
    assert len(found) == 1


NAMES = st.dictionaries(st.sampled_from(["10.0.0.1", "10.0.0.2"]), st.sampled_from(["kafka-1", "kafka-2"]))


@given(LISTS, NAMES)
def test_the_state_is_a_value(
    calls: list[tuple[tuple[str, int], str | None, list[tuple[int, str, int]]]], names: dict[str, str]
) -> None:
    """A copy, whose claims are made at once, knows what the original does, and so does one that knew the names first."""
    brokers, other = learned(*calls, names=names), Brokers()
    other.resolve_names(names)
    for server, cluster, nodes in calls:
        other.take(server, cluster, [Broker(*node) for node in nodes])
    copy = pickle.loads(pickle.dumps(brokers))
    each = [[one.identify(server) for server in (ONE, TWO, OTHER)] for one in (brokers, copy, other)]
    assert each[0] == each[1] == each[2]


def test_work_grows_with_the_servers() -> None:
    """What one server tells costs the same however many others there are, and so does a name."""

    def work(servers: int) -> int:
        brokers = Brokers()

        def tell() -> None:
            for i in range(servers):
                brokers.take((f"10.0.{i >> 8}.{i & 255}", 9092), "C", [Broker(i, f"kafka-{i}", 9092)])
                brokers.resolve_names({f"10.1.{i >> 8}.{i & 255}": f"kafka-{i // 2}"})
                brokers.identify(("10.0.0.1", 9092))

        return steps(tell)

    assert work(400) <= 4.5 * work(100)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of a server and names of addresses end somewhere too."""
    monkeypatch.setattr(facts, "BROKERS_KEPT", 4)
    monkeypatch.setattr(facts, "HOST_NAMES_KEPT", 4)
    brokers = Brokers()
    reported = []
    for i in range(9):
        brokers.take(ONE, f"C{i}", [])
        reported.append(brokers.resolve_names({f"10.0.0.{i}": "kafka-1"}))
    assert len(brokers.clusters[ONE]) == len(brokers.names) == 4
    assert reported == [True] * 3 + [False] * 6


def test_which_server_is_which_endpoint() -> None:
    brokers = learned((ONE, "C", [(1, "kafka-1", 9092), (2, "10.0.0.2", 9093), (3, "kafka-3", 9094)]))
    two = ("10.0.0.2", 9093)
    assert brokers.seen([ONE, two]) == {ONE: ONE, two: two, ("kafka-1", 9092): ONE}


def test_rivals_of_other_clusters_are_looked_for_in_the_clusters_that_a_server_names() -> None:
    """Each of many servers is the broker of that name in a cluster of its own: none is compared with all others."""
    servers = [(f"10.0.{i >> 8}.{i & 255}", 9092) for i in range(600)]
    brokers = learned(*((server, f"C{i}", [(1, "kafka", 9092)]) for i, server in enumerate(servers)))
    with patch.object(Brokers, "apart", side_effect=AssertionError("servers are compared")):
        assert {brokers.identify(server)[0] for server in servers} == {1}
    brokers.take(("10.1.0.1", 9092), None, [Broker(1, "kafka", 9092)])
    assert {brokers.identify(server)[0] for server in servers} == {None}, "the last one may be of any cluster"
    assert brokers.identify(("10.1.0.1", 9092))[0] is None
