"""What is known of a TLS connection, and its columns in the table `connections`.

In: the values that `kcap.tls.session` reads. Out: values by column name. Law: they include no key material.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcap import limits

if TYPE_CHECKING:
    from kcap.tls.handshake import Hello
    from kcap.tls.secrets import Secrets
    from kcap.tls.suites import Suite


@dataclass(slots=True)
class TlsFacts:
    """What is known of a TLS connection; None for what was not seen."""

    version: str | None = None
    cipher: str | None = None
    hello: "Hello | None" = field(default=None, repr=False)
    """The first ClientHello that was seen."""
    fingerprinted: bool = True
    """Whether it is the client's first one, rather than the one after a HelloRetryRequest, which has other extensions."""
    randoms: tuple[bytes, ...] = field(default=(), repr=False)
    """The client randoms by which a key log identifies its secrets: more than one if handshakes were repeated."""
    alpn: str | None = None
    """The protocol that the server chose."""
    resumed: bool | None = None
    resumes: bytes | None = None
    """Random of the ClientHello of the connection that its master secret comes from, if no key log has the secret (TLS 1.2)."""
    certificates: tuple[bytes | str | None, bytes | str | None] = (None, None)
    """Certificates of client and server: DER, or the subject."""
    alerts: tuple[str, ...] = ()
    """`client: unknown_ca` and so on, in order."""
    hello_bytes: int = 0
    """Bytes of the client's hellos, with one record header each."""
    hello_ns: int | None = None
    """Time of the ClientHello, ns."""
    ready_ns: int | None = None
    """Time of the first application data, or of the last Finished that was seen, ns."""
    handshake_ns: int | None = None
    """Time from the ClientHello to the last Finished, ns. It is known without keys, from the order of records."""
    decrypted: int = 0
    """Number of records that were opened."""
    undecrypted: int = 0
    """Number of records of application data that could not be opened."""
    why: str | None = None
    """Why records could not be opened."""

    def begin(self, hello: "Hello", time_ns: int, *, first: bool) -> None:
        """Takes the first ClientHello that was seen. `first` says that it is the first one that the client sent."""
        self.hello, self.fingerprinted = hello, first
        self.hello_ns = time_ns if self.fingerprinted else None

    def names(self, random: bytes) -> None:
        """A key log has secrets of this connection for this client random."""
        if random not in self.randoms and len(self.randoms) < limits.TLS_RANDOMS_KEPT:
            self.randoms = (*self.randoms, random)

    def certifies(self, side: int, certificate: bytes | str | None) -> None:
        """Takes the certificate of a side: 0 client, 1 server."""
        of_client, of_server = self.certificates
        self.certificates = (of_client, certificate) if side else (certificate, of_server)

    def subject(self, side: int) -> str | None:
        """The subject of a side's certificate: 0 client, 1 server."""
        found = self.certificates[side]
        if not isinstance(found, bytes):
            return found
        from kcap.tls.handshake import subject_of

        return subject_of(found)


def tls_values(facts: TlsFacts) -> dict[str, object]:
    """The columns of `connections` about TLS, and further values that reports test."""
    from kcap.tls.handshake import alert_text, ja3, ja4

    hello = facts.hello and facts.hello.unpacked()
    printed = hello if facts.fingerprinted else None
    return {
        "tls_version": facts.version, "tls_cipher": facts.cipher, "tls_sni": hello and hello.server_name,
        "tls_alpn": facts.alpn, "tls_alpn_offered": hello and hello.protocols, "tls_ja3": printed and ja3(printed),
        "tls_ja4": printed and ja4(printed),
        "tls_client_subject": facts.subject(0), "tls_server_subject": facts.subject(1), "tls_resumed": facts.resumed,
        "tls_handshake_ns": facts.handshake_ns, "tls_alerts": [alert_text(alert) for alert in facts.alerts],
        "alerts": "; ".join(facts.alerts) or None, "hello_bytes": facts.hello_bytes,
        "randoms": facts.randoms, "resumes": facts.resumes,
    }  # fmt: skip


def lacks_cipher(suite: "Suite") -> str:
    """Why keys do not help: the cipher of the suite is not available."""
    return f"{suite.name} cannot be decrypted, as no library here has its cipher"


def why_unopened(secrets: "Secrets", client: "Hello | None", server: "Hello | None") -> str:
    """Why nothing of a session could be opened."""
    from kcap.tls.handshake import ENCRYPTED_HELLO

    if not secrets:
        return "no keys were given"
    if client is None:
        return "its ClientHello is not in the capture"
    if server is None:
        return "its ServerHello is not in the capture"
    if secrets.keylog.of(client.random):
        return "the secrets of this session in the key log do not open its records"
    if ENCRYPTED_HELLO in client.extensions:
        return "the key log has no secret of this session, whose ClientHello may be the cover of an encrypted one"
    return "the key log has no secret of this session"
