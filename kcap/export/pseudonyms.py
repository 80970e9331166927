"""Pseudonyms: a key and a name in, another name of the same length out; likewise for addresses.

Law: the same key and name always give the same pseudonym, and without the key none can be reversed. Text keeps its length in
bytes and its punctuation. Addresses that share their first n bits have pseudonyms that share their first n bits (Xu, Fan,
Ammar, Moon: prefix-preserving IP address anonymization, with a keyed BLAKE2 in place of AES).
"""

import re
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final

ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz234567"
"""Letters of pseudonyms: 32 of them, so that all are equally likely."""
KEPT: Final = re.compile(rb"[^A-Za-z0-9\x80-\xff]")
"""Bytes that remain: punctuation, so that pseudonyms of topics, addresses and paths are valid."""
WELL_KNOWN: Final = frozenset((b"__consumer_offsets", b"__transaction_state", b"__share_group_state", b"__cluster_metadata"))
"""Kafka's own topics, which exist everywhere."""
KEY_BYTES_MAX: Final = 64
"""Maximum key size of BLAKE2b; a longer key is hashed first."""


class Pseudonyms:
    """The pseudonyms of one key."""

    def __init__(self, key: str) -> None:
        secret = key.encode()
        self._key = secret if len(secret) <= KEY_BYTES_MAX else blake2b(secret).digest()
        self.text = lru_cache(100_000)(self._text)
        self.address = lru_cache(100_000)(self._address)

    def _drawn(self, what: bytes, size: int) -> bytes:
        """Bytes that depend only on the key and `what`."""
        out = b""
        while len(out) < size:
            out += blake2b(what + b"|%d" % len(out), key=self._key).digest()
        return out[:size]

    def _text(self, text: bytes) -> bytes:
        """A pseudonym of the same length for a text."""
        if text in WELL_KNOWN:
            return text
        as_address = self._written(text)
        if as_address is not None:
            return as_address
        drawn = self._drawn(b"text|" + text, len(text))
        made = bytearray(ALPHABET[byte & 31] for byte in drawn)
        for match in KEPT.finditer(text):
            made[match.start()] = text[match.start()]
        return bytes(made)

    def _written(self, text: bytes) -> bytes | None:
        """The pseudonym of an address in text form, if it has the same length."""
        try:
            address = ip_address(text.decode("ascii"))
        except ValueError:
            return None
        made = str(ip_address(self.address(address.packed))).encode()
        return made if len(made) == len(text) else None

    def _address(self, packed: bytes) -> bytes:
        """The pseudonym of an address: whether bit i is inverted depends on the key and the bits before it."""
        bits = 8 * len(packed)
        value = int.from_bytes(packed, "big")
        made = 0
        for at in range(bits):
            before = value >> (bits - at)
            turned = self._drawn(b"address|%d|%d|%d" % (bits, at, before), 1)[0] & 1
            made = made << 1 | ((value >> (bits - 1 - at) & 1) ^ turned)
        return made.to_bytes(len(packed), "big")

    def hardware(self, address: bytes) -> bytes:
        """The pseudonym of a link-layer address, from the locally administered range."""
        if not any(address) or address[0] & 1:
            return address  # no host, or all hosts
        made = self._drawn(b"hardware|" + address, len(address))
        return bytes([made[0] & 0xFC | 2]) + made[1:]
