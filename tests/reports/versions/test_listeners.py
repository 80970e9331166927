"""Laws of the diagnoses of listeners."""

import pytest

from kcap.facts.brokers import Broker
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.report import report
from tests.reports.talking import SERVER, line, profile, whole

HANDSHAKE, AUTHENTICATE = 17, 36


def kinds(made: ConnectionProfiles) -> list[str]:
    """What is found."""
    return [row["kind"] for row in report(made, ["x"], "4.4")["diagnoses"] if row["level"] != "note"]


def others(*lines: dict[str, object], profiles: tuple[ConnectionProfile, ...] = ()) -> ConnectionProfiles:
    """A capture of connections without exchanges."""
    made = whole(*profiles)
    made.others = list(lines)
    return made


def test_tls_on_plaintext() -> None:
    assert kinds(others(line("tls"))) == ["tls_on_plaintext"]
    assert kinds(others(line("tls", server_captured=7))) == ["tls_refused"]
    assert kinds(others(line("tls", server_captured=1300))) == []
    assert kinds(others(line("tls", began="midstream"))) == []
    assert kinds(others(line("tls", server_packets=0))) == []
    assert kinds(others(line("tls", ended="open"))) == []


def test_plaintext_on_tls() -> None:
    made = profile([], probe=3, died=True)
    made.line |= {"server_captured": 7, "server_framed": 0}
    assert "plaintext_on_tls" in kinds(whole(made))


def test_other_protocols() -> None:
    assert kinds(others(line("http"))) == ["http_on_kafka"]
    kafka = profile([(3, 13)], probe=3, offer={3: (0, 13)}, uid="C2")
    assert "bad_framing" in kinds(others(line("opaque", detail="a frame length of -1"), profiles=(kafka,)))
    assert kinds(others(line("opaque", detail="a frame length of -1"))) == [], "nobody speaks Kafka there"


@pytest.mark.parametrize(
    ("key", "code", "kind"),
    [(HANDSHAKE, 33, "sasl_mechanism"), (HANDSHAKE, 34, "sasl_on_plain"), (AUTHENTICATE, 58, "sasl_failed")],
)
def test_logins(key: int, code: int, kind: str) -> None:
    made = profile([(3, 13)], probe=3, offer={3: (0, 13)})
    made.errors[key, code] += 1
    made.error_example[key, code] = 2
    made.mechanism, made.mechanisms = "PLAIN", ("SCRAM-SHA-512",)
    assert kind in kinds(whole(made))


def test_a_login_that_is_not_there() -> None:
    good = profile([(17, 1), (36, 2), (3, 13)], probe=3, uid="C1")
    good.mechanism = "PLAIN"
    bad = profile([(3, 13)], probe=3, uid="C2", client="other", died=True)
    assert "sasl_missing" in kinds(whole(good, bad))
    assert "sasl_missing" not in kinds(whole(bad))


def test_addresses_that_do_not_answer() -> None:
    tried = line("empty", client_captured=0, server_packets=0, packets=3)
    refused = line("empty", client_captured=0, server_packets=1, packets=2)
    assert kinds(others(tried)) == [], "nobody said that Kafka is there"
    for one, kind in ((tried, "wrong_listener"), (refused, "unreachable")):
        made = others(one)
        made.tracker.brokers.take(("10.0.0.9", 9092), "c", [Broker(1, *SERVER)])
        assert kinds(made) == [kind]
        reached = others(one, line("opaque", server_captured=5))
        reached.tracker.brokers.take(("10.0.0.9", 9092), "c", [Broker(1, *SERVER)])
        assert kinds(reached) == []
