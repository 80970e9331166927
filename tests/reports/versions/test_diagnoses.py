"""Laws of diagnoses: each is made where its trouble is, and nowhere on healthy connections."""

import json

import pytest

from kcap.facts.api_versions import Offer
from kcap.filter.parse import parse
from kcap.reports.versions.profile import ApiVersionsRequest, ApiVersionsResponse, ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles, gather
from kcap.reports.versions.report import report
from kcap.session import Capture
from tests.reports.talking import PCAPS, SHARED, of, profile, step, whole

OFFER = {0: (0, 13), 1: (4, 18), 3: (0, 13), 18: (0, 4)}


def kinds(made: ConnectionProfiles, table: str = "diagnoses") -> dict[str, str]:
    """Kind -> level."""
    return {row["kind"]: row["level"] for row in report(made, ["x"], "4.4")[table]}


def refused(*, retried: bool) -> ConnectionProfile:
    """A client that is newer than its broker."""
    made = profile([(3, 1)] if retried else [], probe=4, offer=OFFER if retried else None)
    made.software = "apache-kafka-java", "4.4.0"
    probes = [ApiVersionsRequest(step(1, 18, 4, error=35), ApiVersionsResponse(35, 0, 0))]
    made.probes = (
        [*probes, ApiVersionsRequest(step(2, 18, 0), ApiVersionsResponse(0, 0, 4, {}, made.offer))] if retried else probes * 2
    )
    return made


def test_a_refused_question() -> None:
    healthy = whole(refused(retried=True))
    assert kinds(healthy) == {}, "KIP-511 wants it so"
    assert kinds(healthy, "facts") == {"newer_than_broker": "note"}
    assert kinds(whole(refused(retried=False))) == {"error_35_loop": "error"}
    broken = refused(retried=False)
    broken.probes = [ApiVersionsRequest(step(1, 18, 4, error=35), ApiVersionsResponse(35, 0, 0, legible=False))] * 2
    (row,) = report(whole(broken), ["x"], "4.4")["diagnoses"]
    assert "not in a version 0 body" in row["sentence"]
    assert "broker or a proxy must" in row["advice"], "clients cannot read the refusal"
    cut = refused(retried=True)
    cut.probes[1] = ApiVersionsRequest(cut.probes[1].step, None)
    assert kinds(whole(cut)) == {}, "an older version was tried; packets are cut, and the response does not read"


def test_a_java_client_and_a_broker_without_a_version_in_common() -> None:
    made = profile([(3, 1)], probe=4, offer={0: (0, 2), 1: (0, 3), 3: (0, 2), 18: (0, 0)})
    made.software = "apache-kafka-java", "4.4.0"
    assert kinds(whole(made)) == {"no_common_version": "error"}
    made.software = "apache-kafka-java", "2.8.0"
    assert kinds(whole(made)) == {}


def test_a_broker_that_does_not_know_the_question() -> None:
    made = profile([], probe=3)
    made.probes = [ApiVersionsRequest(step(1, 18, 3, outcome="unanswered"), None)]
    made.line |= {"server_captured": 0, "server_framed": 0, "closed_by": "server"}
    assert kinds(whole(made)) == {"apiversions_unanswered": "error"}


def test_connections_that_begin_with_a_proxy_header_are_closed_for_it() -> None:
    made = profile([], probe=3)
    made.probes = [ApiVersionsRequest(step(1, 18, 3, outcome="unanswered"), None)]
    made.line |= {"server_captured": 0, "server_framed": 0, "closed_by": "server", "detail": "PROXY protocol v2"}
    (row,) = report(whole(made), ["x"], "4.4")["diagnoses"]
    assert row["sentence"].endswith("on 1 connection, behind a PROXY protocol header")
    assert "load balancer" in row["advice"]


def test_a_broker_that_answers_the_question_on_other_connections_has_another_reason_to_close() -> None:
    """Such as max.connections.per.ip: that it is older than ApiVersions would be wrong."""
    made = profile([], probe=3)
    made.probes = [ApiVersionsRequest(step(1, 18, 3, outcome="unanswered"), None)]
    made.line |= {"server_captured": 0, "server_framed": 0, "closed_by": "server"}
    both = whole(made)
    both.tracker.offers.add(made.server, 0, Offer(OFFER))
    (row,) = report(both, ["x"], "4.4")["diagnoses"]
    assert (row["kind"], row["level"]) == ("apiversions_unanswered", "warning")
    assert row["sentence"].endswith("and responds to the request on others")
    assert "max.connections.per.ip" in row["advice"]
    assert "0.10" not in row["advice"]


def test_versions_outside_of_the_offer() -> None:
    found = kinds(whole(profile([(1, 19)], probe=3, offer=OFFER, died=True)))
    assert found["above_broker_max"] == "error"
    found = kinds(whole(profile([(1, 3)], probe=3, offer=OFFER, died=True)))
    assert found["below_broker_min"] == "error"
    found = kinds(whole(profile([(999, 0)], probe=3, offer=OFFER, died=True)))
    assert found["unknown_api"] == "error"
    found = kinds(whole(profile([(0, 2)], probe=0, offer=OFFER, died=True)))
    assert found["advertised_but_removed"] == "error"
    assert "advertised_but_removed" not in kinds(whole(profile([(0, 2)], probe=0, offer=OFFER | {1: (0, 17)}, died=True)))


def test_compression_that_is_off_for_want_of_produce_0() -> None:
    def sent(first: int, codecs: int) -> set[str]:
        made = profile([(0, 10)], probe=3, offer=OFFER | {0: (first, 13)})
        made.software = "librdkafka", "2.6.0"
        for use in made.uses.values():
            use.codecs = codecs
        return set(kinds(whole(made)))

    assert "compression_off" in sent(3, 1)
    assert "compression_off" not in sent(0, 1)
    assert "compression_off" not in sent(3, 2)


def test_silence() -> None:
    """Names and requests that a client does not send are facts of it, and no trouble."""
    silent, nameless = whole(profile([(3, 1), (0, 3)])), whole(profile([(3, 1)], probe=0, offer=OFFER))
    assert kinds(silent) == kinds(nameless) == {}
    assert kinds(silent, "facts") == {"no_apiversions": "note"}
    assert kinds(nameless, "facts") == {"nameless": "note"}
    late = profile([(3, 1), (0, 3)])
    late.midstream, late.line["began"] = True, "midstream"
    assert kinds(whole(late)) == {}


def test_a_client_may_use_again_what_another_of_its_connections_learned() -> None:
    """That the versions are fixed in it would be wrong; so would be that it breaks where a release takes no such version."""
    old = OFFER | {1: (0, 3)}
    learned, uses = profile([(3, 1)], probe=3, offer=old, uid="C1"), profile([(3, 1), (1, 3)], uid="C2")
    learned.software = "kafka-python", "2.3.3"
    made = whole(learned, uses)
    assert kinds(made, "facts") == {"apiversions_reused": "note"}
    rows = {row["software_name"]: row["works_with_target"] for row in report(made, ["made"], "4.4")["clients"]}
    assert rows == {"kafka-python": "unknown", None: "unknown"}
    (alone,) = report(whole(uses), ["made"], "4.4")["clients"]
    assert alone["works_with_target"] == "no"


def test_a_recorded_client_that_requests_versions_on_its_first_connection_alone() -> None:
    assert kinds(of("platformatic-transactions.pcap"), "facts") == {"apiversions_reused": "note"}


def test_malformed_requests() -> None:
    made = whole(profile([(3, 1)], died=True))
    made.malformed["C1"] = "request of key 3 version 1: out of bytes"
    assert kinds(made)["malformed_request"] == "error"


def test_foreign_ranges() -> None:
    assert kinds(whole(profile([(3, 1)], probe=3, offer=OFFER | {3: (0, 99)})))["foreign_ranges"] == "warning"


HEALTHY = ("aiokafka", "go-franz", "java-transactions", "librdkafka-zstd", "long-polls", "node-platformatic", "pipelined")


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_captures_are_not_accused(name: str) -> None:
    assert kinds(of(f"{name}.pcap")) == {}


def test_a_filter_makes_no_trouble() -> None:
    """Questions that the filter does not pass were asked all the same."""
    for name in HEALTHY:
        reading = Capture([str(PCAPS / f"{name}.pcap")]).read(keep_connections=True)
        found = kinds(gather(reading, parse('api == "Metadata" or api == "Produce"')))
        assert found == {}, name


def test_hand_made_frames() -> None:
    assert kinds(of("raw-frames.pcap")).keys() >= {
        "unknown_api", "advertised_but_removed", "below_broker_min", "above_broker_max", "malformed_request", "bad_framing",
        "http_on_kafka",
    }  # fmt: skip


def test_a_client_that_does_not_ask() -> None:
    assert kinds(of("fallback-0.9.pcap")) == {}
    assert kinds(of("fallback-0.9.pcap"), "facts") == {"no_apiversions": "note"}


def test_one_direction_accuses_nobody() -> None:
    """A capture of requests alone, as a broken tap makes it."""
    path = SHARED / "modern" / "taps.requests-only.pcap"
    if not path.exists():
        pytest.skip("the captures are not here")
    assert kinds(gather(Capture([str(path)]).read(keep_connections=True))) == {}


TROUBLED = {
    "tls-misconfigured.pcap": {"tls_on_plaintext", "plaintext_on_tls", "tls_refused", "certificate_refused"},
    "old-java-0.10.2.2-vs-4.4.0.pcap": {"advertised_but_removed"},
    "broker-killed.pcap": {"unreachable"},
    "java44-vs-3.9.2.pcap": {"unsupported_version"},
    "quota-request-percentage.pcap": {"unsupported_version"},
    "old-kafka-python-2.0.2-vs-4.4.0.pcap": {"below_broker_min"},
    "sasl-plain.pcap": {"sasl_failed", "sasl_missing"},
    "sasl-scram-sha-256.pcap": {"sasl_failed"},
    "sasl-scram-sha-512.pcap": {"sasl_failed"},
}
RAW = {"raw-frames.pcap"}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures are not here")
def test_errors_of_the_recordings_are_those_that_were_made() -> None:
    """No error is found where the recorder made none."""
    for entry in json.loads((SHARED / "modern" / "manifest.json").read_text())["captures"]:
        path = SHARED / "modern" / entry["file"]
        if not path.exists() or path.stat().st_size > 1 << 20 or path.name in RAW:
            continue
        found = {
            kind for kind, level in kinds(gather(Capture([str(path)]).read(keep_connections=True))).items() if level == "error"
        }
        assert found == TROUBLED.get(path.name, set()), path.name
