"""Laws of siblings: what is proven to be the same broker goes before the same cluster, and no other cluster is one."""

import pytest

from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Broker, Brokers, Server
from kcap.reports.versions import siblings
from kcap.reports.versions.siblings import Siblings

SILENT: Server = ("10.0.0.1", 9092)
Listing = tuple[Server, str | None, list[tuple[int, str, int]]]


def found(offers: list[Server], *lists: Listing, ranges: dict[int, tuple[int, int]] | None = None) -> Server | None:
    """The sibling of a server without an offer."""
    brokers = Brokers()
    for server, cluster, nodes in lists:
        brokers.take(server, cluster, [Broker(*node) for node in nodes])
    some = Siblings(brokers, {server: Offer(ranges or {0: (0, 9)}) for server in offers})
    assert some.of(SILENT) == some.of(SILENT)
    one = some.of(SILENT)
    return None if one is None else one[0]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        pytest.param([], None, id="strangers"),
        pytest.param([(SILENT, "C", []), (("10.0.0.2", 9092), "C", []), (("10.0.0.3", 9092), "C", [])], 2, id="one cluster"),
        pytest.param(
            [(SILENT, "C", []), (("10.0.0.2", 9092), "D", []), (("10.0.0.3", 9092), "C", [])], 3, id="another cluster"
        ),
        pytest.param([(SILENT, None, [(7, "10.0.0.3", 9092)])], 3, id="on its list"),
        pytest.param([(("10.0.0.3", 9092), None, [(7, "10.0.0.1", 9092)])], 3, id="on whose list it is"),
        pytest.param(
            [(SILENT, "C", [(1, "10.0.0.1", 9092), (1, "10.0.0.3", 9092), (2, "10.0.0.2", 9092)])], 3, id="one broker"
        ),
    ],
)
def test_what_a_server_without_an_offer_has_in_common(lists: list[Listing], expected: int | None) -> None:
    one = found([("10.0.0.2", 9092), ("10.0.0.3", 9092)], *lists)
    assert one == (None if expected is None else (f"10.0.0.{expected}", 9092))


def test_another_listener_of_the_host_goes_first_unless_it_is_of_another_cluster() -> None:
    offers = [("10.0.0.2", 9092), ("10.0.0.1", 9093), ("10.0.0.1", 9094)]
    cluster: Listing = (("10.0.0.2", 9092), "C", [])
    assert found(offers, (SILENT, "C", []), cluster) == ("10.0.0.1", 9093)
    apart: Listing = (("10.0.0.1", 9093), "D", [])
    assert found(offers, (SILENT, "C", []), cluster, apart) == ("10.0.0.1", 9094)


def test_controllers_are_none() -> None:
    assert found([("10.0.0.1", 9093)], ranges={1: (0, 9)}) is None


def test_only_the_first_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "SIBLINGS_COMPARED", 1)
    apart: Listing = (("10.0.0.1", 9093), "D", [])
    assert found([("10.0.0.1", 9093), ("10.0.0.1", 9094)], (SILENT, "C", []), apart) is None
