"""Cipher suites by number: name, key exchange, cipher and hash, derived from the names of the IANA registry.

In: the number of a suite in a ServerHello. Out: a `Suite`, whose `cipher` is None if its records cannot be opened here. Source:
IANA "TLS Cipher Suites" registry; RFC 5246 section 6.3 and RFC 8446 section 5.3 for the lengths.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class RecordCipher:
    """How records of a suite are protected. Lengths are in bytes."""

    kind: str
    """`gcm`, `ccm`, `ccm8`, `chacha`, `cbc` or `null`."""
    algorithm: str
    """`AES`, `ARIA`, `CAMELLIA`, `CHACHA20`, `3DES`, `SEED` or empty."""
    key_bytes: int
    mac: str = ""
    """Hash of the HMAC for `cbc` and `null`: `md5`, `sha1`, `sha256`, `sha384`."""
    block_bytes: int = 16


@dataclass(frozen=True, slots=True)
class Suite:
    number: int
    name: str
    key_exchange: str
    """As in the name (`ECDHE_RSA`); empty for the suites of TLS 1.3, which do not determine it."""
    hash: str
    """Hash of the PRF or HKDF."""
    cipher: RecordCipher | None

    @property
    def hash_bytes(self) -> int:
        """Bytes of that hash."""
        return 48 if self.hash == "sha384" else 32


CIPHERS: Final[dict[str, RecordCipher]] = {
    **{f"AES_{bits}_GCM": RecordCipher("gcm", "AES", bits // 8) for bits in (128, 256)},
    **{f"ARIA_{bits}_GCM": RecordCipher("gcm", "ARIA", bits // 8) for bits in (128, 256)},
    **{f"AES_{bits}_CCM": RecordCipher("ccm", "AES", bits // 8) for bits in (128, 256)},
    **{f"AES_{bits}_CCM_8": RecordCipher("ccm8", "AES", bits // 8) for bits in (128, 256)},
    "CHACHA20_POLY1305": RecordCipher("chacha", "CHACHA20", 32),
}
BLOCK_CIPHERS: Final = {
    "AES_128_CBC": ("AES", 16, 16), "AES_256_CBC": ("AES", 32, 16),
    "CAMELLIA_128_CBC": ("CAMELLIA", 16, 16), "CAMELLIA_256_CBC": ("CAMELLIA", 32, 16),
    "3DES_EDE_CBC": ("3DES", 24, 8), "SEED_CBC": ("SEED", 16, 16),
}  # fmt: skip
"""Block cipher -> algorithm, bytes of its key, bytes of its block."""
HASHES: Final = {"MD5": "md5", "SHA": "sha1", "SHA256": "sha256", "SHA384": "sha384"}


@cache
def names() -> dict[int, str]:
    """Every registered suite by number, with its IANA name."""
    from importlib.resources import files  # importing it takes longer than reading this table

    text = files("kcap.tls").joinpath("suites.txt").read_text(encoding="ascii")
    return {int(number, 16): f"TLS_{name}" for number, name in (line.split() for line in text.splitlines())}


@cache
def suite_of(number: int) -> Suite:
    """The suite with a number; one without a cipher if the number is unknown or its cipher is not available."""
    name = names().get(number, f"0x{number:04X}")
    exchange, separator, rest = name.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        exchange, rest = "", exchange
    cipher_name, _, hash_name = rest.rpartition("_")
    if hash_name not in HASHES:  # CCM suites name no hash: TLS 1.2's default applies (RFC 6655 section 3)
        cipher_name, hash_name = rest, "SHA256"
    known = HASHES[hash_name]
    prf = known if known == "sha384" else "sha256"
    if cipher_name in CIPHERS:
        return Suite(number, name, exchange, prf, CIPHERS[cipher_name])
    if cipher_name in BLOCK_CIPHERS:
        algorithm, key, block = BLOCK_CIPHERS[cipher_name]
        return Suite(number, name, exchange, prf, RecordCipher("cbc", algorithm, key, known, block))
    if cipher_name == "NULL":
        return Suite(number, name, exchange, prf, RecordCipher("null", "", 0, known, 0))
    return Suite(number, name, exchange, prf, None)


def version_name(number: int) -> str:
    """A protocol version as text: 0x0303 is `TLS 1.2`."""
    return VERSIONS.get(number) or f"0x{number:04X}"


VERSIONS: Final = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3"}
