"""Key logs and private keys from files.

In: paths. Out: `Secrets`. Raises CaptureError, which names the file and never its contents.
"""

import os
import stat
from collections.abc import Callable, Sequence
from typing import BinaryIO

from kcap.errors import CaptureError, said
from kcap.limits import TLS_SESSIONS_MAX
from kcap.tls.keylog import GrowingKeyLog
from kcap.tls.secrets import Secrets


def read_secrets(
    keylogs: Sequence[str] = (), private_keys: Sequence[str] = (), hint: Callable[[str], None] | None = None
) -> Secrets:
    """The secrets of NSS key logs and of RSA private keys (PEM or DER, without a password).

    `hint` is called with a sentence for each file that other users can read. Raises CaptureError for a file that cannot be read
    or that holds nothing of the kind.
    """
    secrets = Secrets()
    for path in keylogs:
        with _opened(path, hint) as file:
            before = secrets.keylog.unread
            taken = secrets.keylog.add_file(file)
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                secrets.growing.append(GrowingKeyLog(os.path.abspath(path), taken))
        if hint is not None and secrets.keylog.dropped:
            hint(f"{path}: secrets of more than {TLS_SESSIONS_MAX:,} sessions; {secrets.keylog.dropped:,} lines are skipped")
        if not secrets.keylog and secrets.keylog.unread > before:
            raise CaptureError(f"{path}: no TLS key log: it has no line of one")
    for path in private_keys:
        with _opened(path, hint) as file:
            secrets.private_keys.append(_private_key(path, file.read()))
    return secrets


def _opened(path: str, hint: Callable[[str], None] | None) -> BinaryIO:
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise CaptureError(f"{path}: {said(error)}") from None
    mode = os.fstat(file.fileno()).st_mode
    if hint is not None and stat.S_ISREG(mode) and mode & 0o077:
        hint(f"{path} holds secrets and others may read it: chmod 600")
    return file


def _private_key(path: str, data: bytes) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    try:
        load = serialization.load_pem_private_key if b"-----BEGIN" in data else serialization.load_der_private_key
        key = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CaptureError(f"{path}: no private key that can be read (PEM or DER, without a password)") from None
    if not isinstance(key, RSAPrivateKey):
        raise CaptureError(
            f"{path}: not an RSA key; only an RSA key can decrypt a passive capture (TLS 1.2 with RSA key exchange)"
        )
    return key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
