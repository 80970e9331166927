"""Derives record keys from secrets: the PRF of TLS 1.0 to 1.2, HKDF of TLS 1.3.

In: master or traffic secrets. Out: write keys, MAC keys and IVs. Source: RFC 2246 and RFC 5246 section 5 and 6.3, RFC 7627 for
the extended master secret, RFC 8446 section 7.
"""

import hmac
from collections.abc import Callable
from functools import cache
from hashlib import new as new_hash
from typing import Any, NamedTuple

from kcap.tls.suites import RecordCipher, Suite

TLS12 = 0x0303


def expand(secret: bytes, seed: bytes, size: int, hash_name: str) -> bytes:
    """P_hash of RFC 5246 section 5: `size` bytes."""
    out, a = b"", seed
    while len(out) < size:
        a = hmac.digest(secret, a, hash_name)
        out += hmac.digest(secret, a + seed, hash_name)
    return out[:size]


def prf(version: int, hash_name: str, secret: bytes, label: bytes, seed: bytes, size: int) -> bytes:
    """The pseudorandom function of a version before TLS 1.3: `size` bytes."""
    if version >= TLS12:
        return expand(secret, label + seed, size, hash_name)
    half = (len(secret) + 1) // 2
    by_md5 = expand(secret[:half], label + seed, size, "md5")
    by_sha1 = expand(secret[-half:], label + seed, size, "sha1")
    return bytes(x ^ y for x, y in zip(by_md5, by_sha1))


def master_secret(version: int, hash_name: str, premaster: bytes, randoms: bytes, transcript: bytes | None) -> bytes:
    """The master secret, 48 bytes.

    `randoms` are client random and server random. With the extended master secret (RFC 7627), `transcript`, the handshake
    messages up to ClientKeyExchange, takes their place.
    """
    if transcript is None:
        return prf(version, hash_name, premaster, b"master secret", randoms, 48)
    if version >= TLS12:
        session_hash = new_hash(hash_name, transcript).digest()
    else:
        session_hash = new_hash("md5", transcript, usedforsecurity=False).digest()
        session_hash += new_hash("sha1", transcript, usedforsecurity=False).digest()
    return prf(version, hash_name, premaster, b"extended master secret", session_hash, 48)


class WriteKeys(NamedTuple):
    """The keys with which one side protects its records."""

    key: bytes
    iv: bytes
    mac_key: bytes = b""

    def __repr__(self) -> str:
        return "WriteKeys()"


def key_block(
    version: int, suite: Suite, master: bytes, client_random: bytes, server_random: bytes
) -> tuple[WriteKeys, WriteKeys]:
    """The keys of client and server for TLS 1.0 to 1.2 (RFC 5246 section 6.3)."""
    cipher = suite.cipher
    assert cipher is not None
    mac_bytes = new_hash(cipher.mac, usedforsecurity=False).digest_size if cipher.mac else 0
    iv_bytes = fixed_iv_bytes(version, cipher)
    need = 2 * (mac_bytes + cipher.key_bytes + iv_bytes)
    block = prf(version, suite.hash, master, b"key expansion", server_random + client_random, need)
    cuts, at = [], 0
    for size in (mac_bytes, mac_bytes, cipher.key_bytes, cipher.key_bytes, iv_bytes, iv_bytes):
        cuts.append(block[at : at + size])
        at += size
    return WriteKeys(cuts[2], cuts[4], cuts[0]), WriteKeys(cuts[3], cuts[5], cuts[1])


def fixed_iv_bytes(version: int, cipher: RecordCipher) -> int:
    """Bytes of the IV that come from the key block: the salt of AEADs, or the first IV of TLS 1.0."""
    if cipher.kind == "chacha":
        return 12
    if cipher.kind in ("gcm", "ccm", "ccm8"):
        return 4
    return cipher.block_bytes if version < 0x0302 else 0


def expand_label(secret: bytes, label: bytes, size: int, hash_name: str) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446 section 7.1): `size` bytes, no more than the hash has."""
    return hmac.digest(secret, info_of(label, size), hash_name)[:size]


@cache
def info_of(label: bytes, size: int) -> bytes:
    """The HkdfLabel of RFC 8446 section 7.1, with the counter of the first block of HKDF-Expand. No further block is needed."""
    full = b"tls13 " + label
    return size.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0\1"


def traffic_keys(secret: bytes, suite: Suite) -> WriteKeys:
    """Key and IV of a traffic secret of TLS 1.3 (RFC 8446 section 7.3).

    Both share the HMAC state of the secret, because short connections derive four sets of keys each.
    """
    assert suite.cipher is not None
    size = suite.cipher.key_bytes
    make, algorithm, key_info, iv_info = _hmac_of(suite.hash, size)
    of_key = make(secret, algorithm)
    of_iv = of_key.copy()
    of_key.update(key_info)
    of_iv.update(iv_info)
    return WriteKeys(of_key.finalize()[:size], of_iv.finalize()[:12])


@cache
def _hmac_of(name: str, size: int) -> tuple[Callable[[bytes, Any], Any], Any, bytes, bytes]:
    """The library's HMAC, whose copies cost less than Python's, and its hash of this name; and the HKDF labels for a key of
    this size and for an IV.
    """
    from cryptography.hazmat.primitives import hashes, hmac

    return hmac.HMAC, getattr(hashes, name.upper())(), info_of(b"key", size), info_of(b"iv", 12)


def next_secret(secret: bytes, suite: Suite) -> bytes:
    """The traffic secret after a KeyUpdate (RFC 8446 section 7.2)."""
    return expand_label(secret, b"traffic upd", len(secret), suite.hash)
