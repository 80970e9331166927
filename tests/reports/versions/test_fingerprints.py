"""Laws of fingerprints: a guess is the library or none, and the recorded clients are who they are."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.versions import fingerprints
from kcap.reports.versions.fingerprints import BROKER, Software, family_of, hint_of, stated, who
from kcap.reports.versions.identity import identify
from kcap.reports.versions.libraries import JAVA, PROFILES, Profile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import partners
from kcap.reports.versions.simulator import library_of
from kcap.schema.registry import api_key, version_range
from tests.reports.talking import SHARED, gathered, of, profile, whole

WIDE = {key: found for key in range(90) if (found := version_range(key)) is not None}


@given(st.sampled_from(PROFILES), st.data())
def test_a_guess_is_the_library_or_none(library: object, data: st.DataObject) -> None:
    """Whatever a library shows of itself, it is never taken for another."""
    assert isinstance(library, type(PROFILES[0]))
    keys = data.draw(st.lists(st.sampled_from(sorted(library.versions)), unique=True, max_size=8))
    calls = [(key, data.draw(st.sampled_from(library.versions[key]))) for key in keys]
    opening = [(api_key(name.rstrip("0123456789")), int(name[-1])) for name in library.opening if "ApiVersions" not in name]
    made = profile([(key, version) for key, version in opening if key is not None] + calls, probe=library.probes, offer=WIDE)
    found = who([made], "app", whole(made))
    assert found.family in (library.family, None)
    assert found.why
    assert found.guessed == (found.family is not None)


@given(st.sampled_from(PROFILES), st.none() | st.just("1.2"), st.integers(0, 100))
def test_an_unsure_guess_is_no_statement(library: Profile, version: str | None, percent: int) -> None:
    """Nothing can rest on it: what is left is the unknown library, with a reason that says which one is nearest."""
    guess = Software(library.family, version, library.family, True, "guessed by its versions", False, percent / 100, ("them",))
    found = stated(guess)
    if percent >= 75:
        assert found is guess
        return
    near = f"{library.family} {version}" if version else library.family
    assert found == Software(
        None,
        None,
        None,
        False,
        f"most like {near} (confidence {percent / 100:.2f}): not sure enough to name it (by its versions)",
    )
    assert library_of(found) is None
    assert partners(found)[:2] == (None, None)


def test_a_client_id_alone_names_no_library() -> None:
    """Anyone may choose it."""
    made = profile([(3, 5)], probe=0, offer=WIDE, client="kafka-python-2.0.2")
    found = who([made], "kafka-python-2.0.2", whole(made))
    assert (found.name, found.guessed) == (None, False)
    assert "most like kafka-python 2.0.2 (confidence 0.40): not sure enough" in found.why


def test_one_request_is_too_little() -> None:
    made = profile([(3, 5)], probe=0, offer=WIDE)
    assert who([made], "app", whole(made)).family is None


def test_what_is_said_is_no_guess() -> None:
    made = profile([(3, 5)], probe=3, offer=WIDE)
    made.software = "librdkafka", "2.6.0"
    found = who([made], "app", whole(made))
    assert (found.name, found.version, found.guessed) == ("librdkafka", "2.6.0", False)
    assert family_of("confluent-kafka-python", "2.16.1-rdkafka-2.16.0") == "librdkafka"
    assert family_of("acme-client") == "acme-client"


def test_late_beginnings_tell_nothing() -> None:
    made = profile([(3, 6), (0, 7), (1, 11)], probe=2, offer=WIDE)
    made.midstream = True
    assert who([made], "app", whole(made)).family is None


def test_brokers_are_known_by_what_they_send() -> None:
    made = profile([(api_key("BrokerHeartbeat") or 0, 1)], client="1")
    assert who([made], "1", whole(made)).is_broker
    made = profile([(1, 17)], client="broker-2-fetcher-0")
    assert who([made], "broker-2-fetcher-0", whole(made)).name == BROKER
    made = profile([(4, 0)], died=True)
    assert not who([made], "app", whole(made)).is_broker, "anybody can send a request that costs the connection"


def test_a_library_may_send_the_version_of_an_api_that_kafkas_own_clients_leave_to_brokers() -> None:
    added = api_key("AddPartitionsToTxn") or 0
    alone = profile([(added, 5)], client="app")
    assert who([alone], "app", whole(alone)).is_broker
    writes = profile([(added, 5), (0, 11), (26, 4)], client="app")
    assert not who([writes], "app", whole(writes)).is_broker, "no broker writes records in a transaction of its own"
    alone.software = "platformatic-kafka", "1.35.0"
    assert not who([alone], "app", whole(alone)).is_broker, "brokers are Java clients"
    alone.software = JAVA, "4.4.0"
    assert who([alone], "app", whole(alone)).is_broker


def test_a_client_id_like_a_brokers_own_makes_no_broker_of_another_library() -> None:
    made = profile([(3, 12), (0, 9)], probe=3, offer=WIDE, client="OrderManager-client-1")
    made.software = "librdkafka", "2.6.0"
    assert not who([made], "OrderManager-client-1", whole(made)).is_broker


def test_a_recorded_client_that_adds_partitions_to_a_transaction_as_brokers_do_is_no_broker() -> None:
    known = identify(of("platformatic-transactions.pcap")).software.values()
    assert {(one.family, one.is_broker) for one in known} == {("platformatic", False), (None, False)}


def test_a_library_that_knows_the_first_versions_alone_is_not_named() -> None:
    """So does librdkafka with broker.version.fallback=0.8."""
    (known,) = identify(of("kafka-rust.pcap")).software.values()
    assert known.name is None
    assert "kafka-rust 0.8-0.10, librdkafka with broker.version.fallback 0.8" in known.why


def test_small_captures() -> None:
    names = {
        "aiokafka.pcap": "aiokafka", "go-franz.pcap": "franz-go", "librdkafka-zstd.pcap": "librdkafka",
        "node-platformatic.pcap": "platformatic", "java-transactions.pcap": "apache-kafka-java",
    }  # fmt: skip
    for name, family in names.items():
        all_ = of(name)
        found = {known.family for known in identify(all_).software.values()}
        assert family in found, name
        assert found <= {family, BROKER, None, "apache-kafka-java"}, name


def test_a_library_that_says_its_name_on_its_first_connection_alone_is_known_by_what_it_sends_on_others() -> None:
    known = identify(of("problems/rebalance-unfinished.pcap")).software.values()
    assert {(one.family, one.version, one.guessed) for one in known} == {("kafka-python", "2.2", True)}
    few = identify(of("problems/broker-stall-members.pcap")).software
    (why,) = [one.why for key, one in few.items() if key.client_id == "kp2-prod"]
    assert why.startswith("most like kafka-python 2.3 (confidence 0.74)"), "two APIs are too few to name it"


FAMILY_OF = {
    "kafka-clients": "apache-kafka-java", "java": "apache-kafka-java", "kafka": "apache-kafka-java",
    "confluent-kafka": "librdkafka",
    "@platformatic/kafka": "platformatic", "segmentio/kafka-go": "kafka-go",
}  # fmt: skip
"""As the recordings' manifests write it."""


def recorded(folder: str) -> Iterator[tuple[str, ConnectionProfiles, set[str | None]]]:
    """The small captures of a folder, with the libraries that took part in them."""
    for entry in json.loads((SHARED / folder / "manifest.json").read_text())["captures"]:
        path = SHARED / folder / entry["file"]
        if not path.exists() or path.stat().st_size > 1 << 20 or any("(sockets)" in text for text in entry["clients"]):
            continue
        there = {FAMILY_OF.get(text.split()[0], text.split()[0]) for text in entry["clients"]}
        yield entry["file"], gathered(path), there | {"apache-kafka-java", BROKER, None}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures are not here")
@pytest.mark.parametrize("ids", ["with client ids", "without client ids"])
@pytest.mark.parametrize("folder", ["legacy", "modern"])
def test_no_recorded_client_is_taken_for_another(folder: str, ids: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every library that is named or guessed took part in the recording, whatever client id a user may have chosen."""
    if ids == "without client ids":
        monkeypatch.setattr(fingerprints, "hint_of", lambda client_id: (hint_of(client_id)[0], None))
    guesses = 0
    for name, made, there in recorded(folder):
        for key, found in identify(made).software.items():
            assert found.family in there, (name, key, found)
            guesses += found.guessed and not found.is_broker
    assert guesses > 3


def test_a_small_capture_of_a_library_that_the_tables_lack_gets_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "PROFILES", [one for one in PROFILES if one.family != "kafka-rust"])
    (known,) = identify(of("kafka-rust.pcap")).software.values()
    assert known.name is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures are not here")
@pytest.mark.parametrize("folder", ["legacy", "modern"])
def test_a_library_that_the_tables_lack_gets_no_other_name(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each library in turn is left out of the tables: its recorded clients are unknown then."""
    monkeypatch.setattr(fingerprints, "hint_of", lambda client_id: (hint_of(client_id)[0], None))
    tried = 0
    for name, made, _ in recorded(folder):
        clients = identify(made)
        for key, known in clients.software.items():
            if not known.guessed or known.is_broker:
                continue
            with monkeypatch.context() as without:
                without.setattr(fingerprints, "PROFILES", [one for one in PROFILES if one.family != known.family])
                if known.family == JAVA:
                    without.setattr(fingerprints, "java_releases", lambda *_: [])
                    without.setattr(fingerprints, "java_login", lambda *_: None)
                found = who(clients.connections[key], key.client_id, made)
            assert found.name is None, (name, key, found)
            tried += 1
    assert tried > 3
