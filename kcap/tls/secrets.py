"""The secrets for decryption: key logs, private keys, and what earlier handshakes of the capture left for resumption.

In: key logs, RSA private keys, finished handshakes. Out: master and traffic secrets of a session. Law: secrets are never
printed (no field with secrets is in a `repr`), and leave this object only to make record keys.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kcap import limits
from kcap.tls.keylog import GrowingKeyLog, KeyLog

if TYPE_CHECKING:
    from kcap.tls.handshake import Hello


@dataclass(slots=True)
class Secrets:
    """The secrets of one capture."""

    keylog: KeyLog = field(default_factory=KeyLog, repr=False)
    private_keys: list[bytes] = field(default_factory=list, repr=False)
    """RSA private keys, DER (PKCS #8, not encrypted)."""
    growing: list[GrowingKeyLog] = field(default_factory=list, repr=False)
    """Key logs that programs may still write to; `follow` takes their new lines."""
    _masters: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)
    """Session id or ticket -> master secret of a session of TLS 1.2 or earlier, random of the ClientHello that created it."""
    _loaded: list[Any] | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return bool(self.keylog) or bool(self.private_keys) or bool(self.growing)

    def copy(self) -> "Secrets":
        """The keys that were given, without what handshakes of another pass left."""
        return Secrets(self.keylog.copy(), list(self.private_keys), [file.copy() for file in self.growing])

    def follow(self) -> None:
        """Takes the lines that were written to the key logs since they were last read."""
        for file in self.growing:
            self.keylog.add_lines(file.new_lines())

    def __getstate__(self) -> tuple[Any, ...]:
        return self.keylog, self.private_keys, self._masters

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.keylog, self.private_keys, self._masters = state
        self.growing = []
        self._loaded = None

    @property
    def resumable(self) -> bool:
        """Whether it has secrets of TLS before 1.3, where a session may take its master secret from another connection."""
        return bool(self.private_keys) or self.keylog.has_masters

    def traffic(self, client_random: bytes) -> dict[str, bytes]:
        """The traffic secrets of a session of TLS 1.3 by label; empty if the key log has none."""
        return self.keylog.of(client_random)

    def variants(self, client_random: bytes) -> Sequence[dict[str, bytes]]:
        """Sets of secrets of a session that differ from `traffic` and `master`, if key logs have several for a label."""
        return self.keylog.variants(client_random)

    def master(self, client: "Hello", server: "Hello | None") -> bytes | None:
        """The master secret of a session of TLS 1.2 or earlier, from the key log or from the session that it resumes."""
        return self._found(client, server)[0]

    def origin(self, client: "Hello", server: "Hello | None") -> bytes | None:
        """The random (32 bytes) of the ClientHello of the connection whose handshake created this session's master secret; None
        if the key log has the secret, if this handshake created it, or if it is not known."""
        random = self._found(client, server)[1]
        return random if random != client.random else None

    def _found(self, client: "Hello", server: "Hello | None") -> tuple[bytes | None, bytes | None]:
        from kcap.tls.handshake import TICKET

        known = self.keylog.of(client.random)
        if "CLIENT_RANDOM" in known:
            return known["CLIENT_RANDOM"], None
        for name in (server.session_id if server is not None else b"", client.session_id):
            if name and name in self.keylog.by_session:
                return self.keylog.by_session[name], None
            if name and name in self._masters and (server is None or server.session_id == name):
                return self._masters[name]
        ticket = client.extensions.get(TICKET, b"")
        return self._masters.get(ticket, (None, None)) if ticket else (None, None)

    def remember(self, name: bytes, master: bytes, random: bytes) -> None:
        """Stores the master secret of a session that may be resumed by session id or ticket, and its ClientHello's random."""
        held = self._masters.get(name)
        if held is not None and held[0] == master:
            return  # a resumed session, which has the origin of the first one
        if name and len(self._masters) < limits.TLS_SESSIONS_MAX:
            self._masters[name] = master, random

    def sessions(self) -> Iterator[tuple[bytes, dict[str, bytes]]]:
        """As `KeyLog.sessions`, for a connection whose ClientHello is not in the capture."""
        return self.keylog.sessions()

    def premaster(self, encrypted: bytes, version: int) -> bytes | None:
        """The premaster secret of an RSA key exchange (RFC 5246 section 7.4.7.1); `version` is that of the ClientHello."""
        known = self.keylog.by_premaster.get(encrypted[:8])
        if known is not None:
            return known
        from cryptography.hazmat.primitives.asymmetric import padding

        for key in self._keys():
            if key.key_size != 8 * len(encrypted):
                continue
            try:
                found: bytes = key.decrypt(encrypted, padding.PKCS1v15())
            except ValueError:
                continue
            if len(found) == 48 and int.from_bytes(found[:2], "big") == version:  # a wrong key gives random bytes
                return found
        return None

    def _keys(self) -> list[Any]:
        if self._loaded is None:
            from cryptography.hazmat.primitives.serialization import load_der_private_key

            self._loaded = [load_der_private_key(key, None) for key in self.private_keys]
        return self._loaded
