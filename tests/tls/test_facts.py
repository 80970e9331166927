"""What is known of a TLS connection becomes columns of `connections`."""

from types import SimpleNamespace
from typing import Any

from kcap import limits
from kcap.columns import CONNECTIONS
from kcap.tls.facts import TlsFacts, lacks_cipher, tls_values, why_unopened
from kcap.tls.handshake import ENCRYPTED_HELLO
from kcap.tls.secrets import Secrets
from kcap.tls.suites import suite_of


def test_every_column_about_tls_has_its_value() -> None:
    columns = {column.name for column in CONNECTIONS if column.name.startswith("tls_")}
    assert columns == {name for name in tls_values(TlsFacts()) if name.startswith("tls_")}


def test_alerts_are_said_with_their_meaning_and_for_reports_without() -> None:
    values = tls_values(TlsFacts(alerts=["client: unknown_ca", "server: alert 200"]))
    assert values["alerts"] == "client: unknown_ca; server: alert 200"
    assert values["tls_alerts"] == [
        "client: unknown_ca (the issuer of the peer's certificate is not known or not trusted)", "server: alert 200",
    ]  # fmt: skip
    assert (tls_values(TlsFacts())["alerts"], tls_values(TlsFacts())["tls_alerts"]) == (None, [])


def test_names_under_which_secrets_are_known_are_bounded_and_there_once() -> None:
    facts = TlsFacts()
    for at in (1, 2, 1):
        facts.names(bytes([at]) * 32)
    assert facts.randoms == (b"\1" * 32, b"\2" * 32)
    for at in range(limits.TLS_RANDOMS_KEPT + 5):
        facts.names(bytes([at + 9]) * 32)
    assert len(facts.randoms) == limits.TLS_RANDOMS_KEPT


def test_each_side_has_its_certificate() -> None:
    facts = TlsFacts()
    facts.certifies(1, "CN=broker")
    facts.certifies(0, "CN=client")
    assert (facts.subject(0), facts.subject(1)) == ("CN=client", "CN=broker")
    facts.certifies(1, b"no certificate")
    assert facts.subject(1) is None
    assert facts.subject(0) == "CN=client"


def test_why_nothing_was_opened() -> None:
    """The first of these that holds."""
    secrets, hello = Secrets(), SimpleNamespace(random=b"r" * 32, extensions=())
    other = SimpleNamespace(random=b"s" * 32, extensions=(ENCRYPTED_HELLO,))
    why: Any = why_unopened
    assert why(secrets, hello, hello) == "no keys were given"
    secrets.keylog.add(f"CLIENT_RANDOM {'72' * 32} {'00' * 48}\n".encode())
    assert why(secrets, None, None) == "its ClientHello is not in the capture"
    assert why(secrets, hello, None) == "its ServerHello is not in the capture"
    assert "do not open its records" in why(secrets, hello, hello)
    assert "the cover of an encrypted one" in why(secrets, other, hello)
    other.extensions = ()
    assert why(secrets, other, hello) == "the key log has no secret of this session"
    assert lacks_cipher(suite_of(0x0005)).startswith("TLS_RSA_WITH_RC4_128_SHA cannot be decrypted")
