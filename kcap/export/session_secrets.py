"""The lines of key logs that decrypt some TLS sessions and no others.

In: bodies of Decryption Secrets Blocks (little-endian), the client randoms of the sessions. Out: bodies with the lines of these
sessions. Law: what decrypts a session of another client random is left out; NSS's RSA lines, which name a session id or an
encrypted premaster secret, stay only where a session has no line of its own.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kcap.capture.pcapng_blocks import read_secrets, secrets_body
from kcap.tls.keylog import LINE, PREMASTER, SESSION


@dataclass(frozen=True, slots=True)
class SessionSecrets:
    """Takes such lines out of a block's body; a `SecretsFilter`."""

    randoms: frozenset[str]
    """Client randoms, as hexadecimal digits."""
    by_key_exchange: bool
    """RSA lines stay."""

    def __call__(self, body: bytes) -> bytes:
        text = read_secrets(body, "<")
        lines = [] if text is None else [line for line in text.splitlines(keepends=True) if self._wants(line.strip())]
        return secrets_body(b"".join(lines)) if lines else b""

    def _wants(self, line: bytes) -> bool:
        named = random_of(line)
        if named is not None:
            return named in self.randoms
        return self.by_key_exchange and bool(SESSION.fullmatch(line) or PREMASTER.fullmatch(line))


def random_of(line: bytes) -> str | None:
    """The client random of a line, as lower-case hexadecimal digits; None for other lines."""
    found = LINE.fullmatch(line)
    return None if found is None else found[2].decode().lower()


def session_secrets(bodies: Iterable[bytes], randoms: Collection[bytes]) -> SessionSecrets:
    """What these blocks have for the sessions of these client randoms (32 bytes each)."""
    wanted = frozenset(random.hex() for random in randoms)
    texts = (read_secrets(body, "<") or b"" for body in bodies)
    known = {random_of(line.strip()) for text in texts for line in text.splitlines()}
    return SessionSecrets(wanted, not wanted <= known)
