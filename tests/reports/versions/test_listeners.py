"""Laws of the diagnoses of listeners."""

from pathlib import Path

import pytest

from kcap.facts.brokers import Broker
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.report import report
from tests.reports.talking import SERVER, closed_by_server, line, of_stories, profile, reported, whole
from tests.support import messages as m

HANDSHAKE, AUTHENTICATE = 17, 36


def kinds(made: ConnectionProfiles) -> list[str]:
    """What is found."""
    return [row["kind"] for row in report(made, ["x"], "4.4")["diagnoses"] if row["level"] != "note"]


def others(*lines: dict[str, object], profiles: tuple[ConnectionProfile, ...] = ()) -> ConnectionProfiles:
    """A capture of connections without exchanges."""
    made = whole(*profiles)
    made.others = list(lines)
    return made


def test_a_server_that_uses_tls_elsewhere_is_not_plaintext() -> None:
    shaken = line("tls", connection="C8", server_captured=1300, tls_version="TLS 1.3")
    assert kinds(others(line("tls"), shaken)) == [], "a handshake that was not decrypted"
    decrypted = profile([(3, 13)], probe=3, offer={3: (0, 13)}, uid="C2")
    decrypted.line["tls_version"] = "TLS 1.3"
    assert kinds(others(line("tls"), profiles=(decrypted,))) == []


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
    holed = line("opaque", detail="no request in sight", client_missing=200)
    assert "bad_framing" not in kinds(others(holed, profiles=(kafka,))), "the request is what the capture lacks"


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
    elsewhere = line("opaque", server_captured=5, server_ip="10.0.0.9")
    assert kinds(others(tried, elsewhere)) == [], "nobody said that Kafka is there"
    one_way = others(tried)
    one_way.tracker.brokers.take(("10.0.0.9", 9092), "c", [Broker(1, *SERVER)])
    assert kinds(one_way) == [], "no server's packet was captured"
    for one, kind in ((tried, "wrong_listener"), (refused, "unreachable")):
        made = others(one, elsewhere)
        made.tracker.brokers.take(("10.0.0.9", 9092), "c", [Broker(1, *SERVER)])
        assert kinds(made) == [kind]
        reached = others(one, line("opaque", server_captured=5))
        reached.tracker.brokers.take(("10.0.0.9", 9092), "c", [Broker(1, *SERVER)])
        assert kinds(reached) == []


HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"


@pytest.mark.parametrize("answer", [HTTP, b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_another_protocol_that_responds(tmp_path: Path, answer: bytes) -> None:
    stories = [closed_by_server(m.began(40_000 + n).client(m.api_versions(1)).server(answer)) for n in range(2)]
    found = reported(of_stories(tmp_path, *stories))
    assert list(found) == ["other_protocol"]
    assert found["other_protocol"]["count"] == 2


def test_connections_that_the_server_closes_before_a_byte(tmp_path: Path) -> None:
    def empty(count: int, *, by_server: bool) -> list[str]:
        stories = [m.began(40_000 + n, 10**9 + n * 10**8) for n in range(count)]
        return list(reported(of_stories(tmp_path, *(closed_by_server(s) if by_server else s.close() for s in stories))))

    assert empty(5, by_server=True) == ["closed_at_once"]
    assert empty(1, by_server=True) == []
    assert empty(5, by_server=False) == [], "a health check"


@pytest.mark.parametrize(
    ("more", "kinds_"),
    [
        ({"alerts": "client: unknown_ca", "hello_bytes": 200, "client_captured": 207}, ["certificate_refused"]),
        ({"hello_bytes": 440, "client_captured": 486, "tls_version": "TLS 1.3"}, ["certificate_refused"]),
        ({"hello_bytes": 440, "client_captured": 440, "closed_by": "client"}, ["certificate_refused"]),
        (
            {
                "hello_bytes": 440,
                "client_captured": 440,
                "closed_by": "client",
                "server_captured": 400,
                "tls_server_subject": "CN=b",
            },
            ["certificate_refused"],
        ),
        ({"hello_bytes": 440, "client_captured": 440, "closed_by": "client", "server_captured": 400}, []),
        ({"hello_bytes": 440, "client_captured": 440}, []),
        ({"hello_bytes": 440, "client_captured": 520}, []),
        ({"alerts": "client: close_notify", "hello_bytes": 440, "client_captured": 486}, []),
    ],
)
def test_a_certificate_that_the_client_refuses(more: dict[str, object], kinds_: list[str]) -> None:
    assert kinds(others(line("tls", **({"server_captured": 1300} | more)))) == kinds_  # type: ignore[arg-type]


def test_a_token_without_a_response_is_a_login_that_failed(tmp_path: Path) -> None:
    """Brokers before SaslAuthenticate close without an error."""

    def login(end: str) -> list[str]:
        story = m.began().ask(m.handshake(1, "PLAIN", 0), m.handshake_answer(1)).client(m.raw(b"\0bob\0wrong"))
        return list(reported(of_stories(tmp_path, closed_by_server(story) if end == "server" else story.close())))

    assert login("server") == ["sasl_failed"]
    assert login("client") == []


def test_a_token_of_kerberos_without_a_response_is_a_login_that_failed(tmp_path: Path) -> None:
    """Brokers of 0.9 have no SaslHandshake: a connection begins with the token."""
    token = m.raw(b"\x60\x82\x02\x54\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00\x6e" + bytes(582))

    def login(*, answered: bool) -> list[str]:
        story = m.began().client(token)
        return list(reported(of_stories(tmp_path, closed_by_server(story.server(m.raw(bytes(100))) if answered else story))))

    assert login(answered=False) == ["sasl_failed"]
    assert login(answered=True) == []
