"""Reads the name of a login from the first token of a SASL mechanism; never a password, a proof or a token.

Law: a name is read only where the mechanism has it in clear text; in all other cases, including damage, it is None.
"""

import json
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from typing import Final

from kcap.limits import PRINCIPAL_BYTES_MAX

SCRAM: Final = "SCRAM-"
BEARER: Final = b"auth=Bearer "


def _text(name: bytes) -> str | None:
    if not name or len(name) > PRINCIPAL_BYTES_MAX:
        return None
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


def _plain(token: bytes) -> str | None:
    """RFC 4616: authorization identity, authentication identity, password, with a zero byte between."""
    parts = token.split(b"\0")
    return _text(parts[1]) if len(parts) == 3 else None


def _gs2(token: bytes) -> tuple[bytes, bytes] | None:
    """RFC 5801: the authorization identity of a header `n,a=NAME,`, and what follows the header."""
    parts = token.split(b",", 2)
    if len(parts) < 3 or parts[0][:1] not in (b"n", b"y", b"p"):
        return None
    return parts[1].removeprefix(b"a="), parts[2]


def _scram(token: bytes) -> str | None:
    """RFC 5802, client-first-message. With a delegation token (KIP-48) the name is the token's id, not its owner's: None."""
    found = _gs2(token)
    if found is None:
        return None
    attributes = found[1].split(b",")
    if not attributes[0].startswith(b"n=") or b"tokenauth=true" in attributes:
        return None
    return _text(attributes[0][2:].replace(b"=2C", b",").replace(b"=3D", b"="))


def _bearer(token: bytes) -> str | None:
    """RFC 7628: the header's identity, else the subject of a JSON web token (sasl.oauthbearer.sub.claim.name is `sub`)."""
    found = _gs2(token)
    if found is None:
        return None
    if found[0]:
        return _text(found[0])
    secret = next((part for part in found[1].split(b"\x01") if part.startswith(BEARER)), b"")
    parts = secret.removeprefix(BEARER).split(b".")
    if len(parts) != 3:
        return None
    claims = parts[1].replace(b"-", b"+").replace(b"_", b"/")
    try:
        body = json.loads(a2b_base64(claims + b"=" * (-len(claims) % 4)))
    except (Base64Error, ValueError, RecursionError):
        return None
    subject = body.get("sub") if isinstance(body, dict) else None
    return _text(subject.encode(errors="replace")) if isinstance(subject, str) else None


MECHANISMS: Final[dict[str, Callable[[bytes], str | None]]] = {"PLAIN": _plain, "OAUTHBEARER": _bearer}
"""Mechanism -> function that reads the name from its first token. A Kerberos ticket (GSSAPI) is encrypted and not listed."""


def principal_of_token(mechanism: str | None, token: bytes) -> str | None:
    """The name in a client's token; None for tokens without one, such as those in response to a challenge."""
    if mechanism is None:
        return None
    reader = _scram if mechanism.startswith(SCRAM) else MECHANISMS.get(mechanism)
    return None if reader is None else reader(token)
