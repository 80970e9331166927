"""Other names for names: a key and a name in, another name of the same length out; addresses likewise.

Law: the same key gives the same name for the same name, and without the key none can be undone. Text keeps its length
in bytes and its punctuation; addresses that share their first n bits share the first n bits of what they become (Xu, Fan,
Ammar, Moon: prefix-preserving IP address anonymization, with a keyed BLAKE2 in place of AES).
"""

import re
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final

ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz234567"
"""Letters of names that are made up: 32 of them, none better than another."""
KEPT: Final = re.compile(rb"[^A-Za-z0-9\x80-\xff]")
"""Bytes that stay: punctuation, so that what is legal as a topic, an address or a path still is."""
WELL_KNOWN: Final = frozenset((b"__consumer_offsets", b"__transaction_state", b"__share_group_state", b"__cluster_metadata"))
"""Kafka's own topics, which everybody has."""
KEY_BYTES_MAX: Final = 64
"""BLAKE2b takes no longer key; one that is longer is hashed first."""


class Pseudonyms:
    """The names of one key."""

    def __init__(self, key: str) -> None:
        secret = key.encode()
        self._key = secret if len(secret) <= KEY_BYTES_MAX else blake2b(secret).digest()
        self.text = lru_cache(100_000)(self._text)
        self.address = lru_cache(100_000)(self._address)

    def _drawn(self, what: bytes, size: int) -> bytes:
        """Bytes that only the key and `what` decide."""
        out = b""
        while len(out) < size:
            out += blake2b(what + b"|%d" % len(out), key=self._key).digest()
        return out[:size]

    def _text(self, text: bytes) -> bytes:
        """Another text of the same length."""
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
        """An address in words, where the other one is as long."""
        try:
            address = ip_address(text.decode("ascii"))
        except ValueError:
            return None
        made = str(ip_address(self.address(address.packed))).encode()
        return made if len(made) == len(text) else None

    def _address(self, packed: bytes) -> bytes:
        """Another address: bit i is turned or not by what the key says of the bits before it."""
        bits = 8 * len(packed)
        value = int.from_bytes(packed, "big")
        made = 0
        for at in range(bits):
            before = value >> (bits - at)
            turned = self._drawn(b"address|%d|%d|%d" % (bits, at, before), 1)[0] & 1
            made = made << 1 | ((value >> (bits - 1 - at) & 1) ^ turned)
        return made.to_bytes(len(packed), "big")

    def hardware(self, address: bytes) -> bytes:
        """Another link-layer address, of a kind that no maker gives out."""
        if not any(address) or address[0] & 1:
            return address  # no host, or every host
        made = self._drawn(b"hardware|" + address, len(address))
        return bytes([made[0] & 0xFC | 2]) + made[1:]
