"""Laws of fingerprints: a guess is the library or none, and the recorded clients are who they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.versions import fingerprints, identity
from kcap.reports.versions.fingerprints import BROKER, family_of, hint_of, who
from kcap.reports.versions.identity import identify
from kcap.reports.versions.libraries import PROFILES
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


FAMILY_OF = {
    "kafka-clients": "apache-kafka-java", "java": "apache-kafka-java", "kafka": "apache-kafka-java",
    "confluent-kafka": "librdkafka",
    "@platformatic/kafka": "platformatic", "segmentio/kafka-go": "kafka-go",
}  # fmt: skip
"""As the recordings' manifests write it."""


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures are not here")
@pytest.mark.parametrize("ids", ["with client ids", "without client ids"])
@pytest.mark.parametrize("folder", ["legacy", "modern"])
def test_no_recorded_client_is_taken_for_another(folder: str, ids: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every library that is named or guessed took part in the recording, whatever client id a user may have chosen."""
    if ids == "without client ids":
        for module in (fingerprints, identity):
            monkeypatch.setattr(module, "hint_of", lambda client_id: (hint_of(client_id)[0], None))
    guesses = 0
    for entry in json.loads((SHARED / folder / "manifest.json").read_text())["captures"]:
        path = SHARED / folder / entry["file"]
        if not path.exists() or path.stat().st_size > 1 << 20 or any("(sockets)" in text for text in entry["clients"]):
            continue
        there = {FAMILY_OF.get(text.split()[0], text.split()[0]) for text in entry["clients"]} | {
            "apache-kafka-java",
            BROKER,
            None,
        }
        there |= {"franz-go"} if "franz-go" in there else set()
        whole_ = gathered(path)
        for key, found in identify(whole_).software.items():
            assert found.family in there, (entry["file"], key, found)
            guesses += found.guessed and not found.is_broker
    assert guesses > 3
