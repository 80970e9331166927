"""Opens one record at a time: protected bytes and a record number in, content type and plaintext out, or None.

Law: the result was authenticated under the key and the record number. For suites without encryption, the MAC does this. Source:
RFC 5246 section 6.2.3, RFC 7366 (encrypt-then-MAC), RFC 7905 (ChaCha20-Poly1305), RFC 6655 (CCM), RFC 8446 section 5.2.
"""

import hmac
from collections.abc import Callable
from functools import cache, partial
from hashlib import new as new_hash
from struct import Struct
from typing import Any, Final, NamedTuple

from kcap.tls.key_schedule import WriteKeys
from kcap.tls.record_kernels import KEY_BYTES
from kcap.tls.records import APPLICATION, HANDSHAKE, NONCE, TLS13
from kcap.tls.suites import CIPHERS, RecordCipher, Suite

NO_AEAD = frozenset({"cbc", "null"})
"""Kinds of ciphers that authenticate with a separate MAC."""
KEYS: Final = Struct(f"{KEY_BYTES}s{NONCE}s3Bx")
"""Layout of the keys of a direction in `record_kernels`."""


@cache
def place_of(kind: str, algorithm: str, key_bytes: int) -> int:
    """The index of a cipher with an AEAD in CIPHERS."""
    return list(CIPHERS.values()).index(RecordCipher(kind, algorithm, key_bytes))


class OpenedRecord(NamedTuple):
    """The content of a record."""

    content_type: int
    plaintext: bytes
    start: int
    """Offset of the plaintext's first byte in the record's body, where ciphertext and plaintext have the same order."""


class Whole(NamedTuple):
    """Application data of one record: the first `size` bytes of `buffer`."""

    buffer: bytes
    size: int


class RecordOpener:
    """Opens the records that one side protected with one set of keys."""

    __slots__ = ("_block", "_chained", "_iv", "_made", "cipher", "etm", "keys", "mac_bytes", "refused", "version")

    def __init__(self, version: int, cipher: RecordCipher, keys: WriteKeys, *, etm: bool = False) -> None:
        """`version`: 0x0301 to 0x0304; `etm`: encrypt-then-MAC. Raises UnsupportedAlgorithm if the library lacks the cipher."""
        self.version, self.cipher, self.keys, self.etm = version, cipher, keys, etm
        self.mac_bytes = 0
        self._made: Any = None
        """The AEAD; None before it is made and after it is released."""
        self._iv = int.from_bytes(keys.iv, "big")
        self.refused: Any = ()
        """The exceptions that the AEAD raises for a record that does not authenticate."""
        self._block: Any = None
        if cipher.kind not in NO_AEAD:
            make, self.refused = _aead_of(cipher.kind, cipher.algorithm)
            self._made = make(keys.key)
        else:
            self.mac_bytes = new_hash(cipher.mac, usedforsecurity=False).digest_size if cipher.mac else 0
            if cipher.kind == "cbc":
                self._block = block_of(cipher, keys.key)
        self._chained = keys.iv
        """The IV of the next record of TLS 1.0: the last block of the one before."""

    @property
    def aead(self) -> Any:
        """The AEAD; None for suites without one."""
        if self._made is None and self.opens_many:
            self._made = aead_of(self.cipher)(self.keys.key)
        return self._made

    def release(self) -> None:
        """Drops objects that are quickly made again from the keys: 5 KB for an AES-GCM, and there are tens of thousands of
        connections.
        """
        self._made = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.version, self.cipher, self.keys, self.etm, self._chained

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        RecordOpener.__init__(self, *state[:3], etm=state[3])
        self._chained = state[4]

    def open(self, number: int, content_type: int, version: int, body: bytes) -> OpenedRecord | None:
        """The record's content; None if it does not authenticate as record `number` under this key."""
        if self.version == TLS13:
            return self._open13(number, content_type, body)
        if self.opens_many:
            return self._open_aead(number, content_type, version, body)
        return self._open_mac(number, content_type, version, body)

    def handshake(self, number: int, record: bytes) -> bytes | None:
        """The handshake messages of a record, with their headers; None if it does not open, or contains anything else."""
        if self.version == TLS13:
            content = self._content13(number, record[:5], record[5:])
            return content[:-1] if content and content[-1] == HANDSHAKE else None
        opened = self.open(number, record[0], record[1] << 8 | record[2], record[5:])
        return opened.plaintext if opened is not None and opened.content_type == HANDSHAKE else None

    def open_whole(self, number: int, record: bytes) -> Whole | None:
        """The application data of a record, given with its header; None if it is anything else, or if only `open` can find out.

        For suites with an AEAD only. The plaintext is not copied again to remove the content type of TLS 1.3.
        """
        kind = self.cipher.kind
        aead = self.aead
        if aead is None or record[0] != APPLICATION:
            return None
        try:
            if self.version == TLS13:
                if record[1:3] != b"\x03\x03":
                    return None
                inner = aead.decrypt((self._iv ^ number).to_bytes(12, "big"), record[5:], record[:5])
                content = unpadded(inner)
                return Whole(inner, len(content) - 1) if content and content[-1] == APPLICATION else None
            size = len(record) - (21 if kind == "chacha" else 21 if kind == "ccm8" else 29)
            if size < 0:
                return None
            header = number.to_bytes(8, "big") + record[:3] + size.to_bytes(2, "big")
            if kind == "chacha":
                inner = aead.decrypt((self._iv ^ number).to_bytes(12, "big"), record[5:], header)
            else:
                inner = aead.decrypt(self.keys.iv + record[5:13], record[13:], header)
            return Whole(inner, size)
        except (self.refused, ValueError):
            return None

    @property
    def opens_many(self) -> bool:
        """Whether records of this suite can be opened in batches."""
        return self.cipher.kind not in NO_AEAD

    @property
    def packed(self) -> bytes:
        """The keys as a row of `record_kernels`, for suites with an AEAD."""
        kind, carried, tag = self.cipher.kind, 0, 0
        if self.version != TLS13:
            carried, tag = 0 if kind == "chacha" else 8, 8 if kind == "ccm8" else 16
        return KEYS.pack(
            self.keys.key, self.keys.iv, place_of(kind, self.cipher.algorithm, self.cipher.key_bytes), carried, tag
        )

    @classmethod
    def unpacked(cls, row: bytes, suite: Suite) -> "RecordOpener":
        """Makes an opener for records of TLS 1.3 from keys that are `packed`."""
        key, iv, *_ = KEYS.unpack(row)
        assert suite.cipher is not None
        return cls(TLS13, suite.cipher, WriteKeys(key[: suite.cipher.key_bytes], iv))

    def passed(self, body: bytes) -> None:
        """A record under this key was not opened. TLS 1.0 chains its last block to the next record."""
        if self.cipher.kind == "cbc":
            end = len(body) - self.mac_bytes * self.etm  # the MAC comes after what is chained (RFC 7366)
            if end >= self.cipher.block_bytes:
                self._chained = body[end - self.cipher.block_bytes : end]

    def _open13(self, number: int, content_type: int, body: bytes) -> OpenedRecord | None:
        if content_type != APPLICATION or len(body) < 17 - 8 * (self.cipher.kind == "ccm8"):
            return None
        content = self._content13(number, b"\x17\x03\x03" + len(body).to_bytes(2, "big"), body)
        if content is None:
            return None
        return OpenedRecord(content[-1], content[:-1], 0) if content else OpenedRecord(0, b"", 0)

    def _content13(self, number: int, header: bytes, body: bytes) -> bytes | None:
        """The content of a record of TLS 1.3, followed by its type, without padding; empty if it consists of padding. None if
        it does not authenticate.
        """
        try:
            content: bytes = self.aead.decrypt((self._iv ^ number).to_bytes(12, "big"), body, header)
        except (self.refused, ValueError):
            return None
        return unpadded(content)

    def _open_aead(self, number: int, content_type: int, version: int, body: bytes) -> OpenedRecord | None:
        tag = 8 if self.cipher.kind == "ccm8" else 16
        if self.cipher.kind == "chacha":
            nonce, start = (self._iv ^ number).to_bytes(12, "big"), 0
        else:
            nonce, start = self.keys.iv + body[:8], 8
        size = len(body) - start - tag
        if size < 0:
            return None
        header = number.to_bytes(8, "big") + bytes([content_type]) + version.to_bytes(2, "big") + size.to_bytes(2, "big")
        try:
            return OpenedRecord(content_type, self.aead.decrypt(nonce, body[start:], header), start)
        except self.refused:
            return None

    def _open_mac(self, number: int, content_type: int, version: int, body: bytes) -> OpenedRecord | None:
        head = number.to_bytes(8, "big") + bytes([content_type]) + version.to_bytes(2, "big")
        if self.cipher.kind == "null":
            return self._checked(head, body, content_type, 0)
        block, mac = self.cipher.block_bytes, self.mac_bytes
        sealed = body
        if self.etm:
            if len(body) < mac or not self._is_mac(head + (len(body) - mac).to_bytes(2, "big") + body[:-mac], body[-mac:]):
                return None
            sealed = body[:-mac]
        explicit = self.version >= 0x0302
        iv, data = (sealed[:block], sealed[block:]) if explicit else (self._chained, sealed)
        if len(iv) != block or not data or len(data) % block:
            return None
        from cryptography.hazmat.primitives.ciphers import Cipher, modes

        decryptor = Cipher(self._block, modes.CBC(iv)).decryptor()
        plain = decryptor.update(data) + decryptor.finalize()
        padding = plain[-1] + 1
        if padding > len(plain) or plain[-padding:] != bytes([plain[-1]]) * padding:
            return None
        bare, start = plain[:-padding], block if explicit else 0
        if self.etm:
            opened: OpenedRecord | None = OpenedRecord(content_type, bare, start)
        else:
            opened = self._checked(head, bare, content_type, start)
        if opened is not None:
            self._chained = data[-block:]
        return opened

    def _checked(self, head: bytes, data: bytes, content_type: int, start: int) -> OpenedRecord | None:
        """Verifies content that is followed by its MAC; None if the MAC is wrong."""
        size = len(data) - self.mac_bytes
        if size < 0 or not self._is_mac(head + size.to_bytes(2, "big") + data[:size], data[size:]):
            return None
        return OpenedRecord(content_type, data[:size], start)

    def _is_mac(self, data: bytes, mac: bytes) -> bool:
        return hmac.compare_digest(hmac.digest(self.keys.mac_key, data, self.cipher.mac), mac)


def unpadded(content: bytes) -> bytes:
    """The content of a record of TLS 1.3, followed by its type, without the zeros after it: Java pads each record."""
    return content if content and content[-1] else content.rstrip(b"\0")


@cache
def library() -> Any:
    """The exceptions of the library of ciphers, which is loaded when a connection needs it."""
    from cryptography import exceptions

    return exceptions


def opener_of(version: int, cipher: RecordCipher | None, keys: WriteKeys, *, etm: bool = False) -> RecordOpener | None:
    """Makes an opener of records. None if the library lacks the cipher, or if TLS 1.3 does not allow it: it has only ciphers
    with an AEAD (RFC 8446 section 4.1.2), whatever a damaged ServerHello names.
    """
    if cipher is None or (version == TLS13 and cipher.kind in NO_AEAD):
        return None
    try:
        return RecordOpener(version, cipher, keys, etm=etm)
    except library().UnsupportedAlgorithm:
        return None


def aead_of(cipher: RecordCipher) -> Callable[[bytes], Any]:
    """Returns a function that makes the AEAD of a suite, with its tag length, from a key. The AEAD raises InvalidTag for data
    that does not authenticate.
    """
    return _aead_of(cipher.kind, cipher.algorithm)[0]


@cache  # cached by names, whose hashes are known; the hash of a cipher would be computed from its fields each time
def _aead_of(kind: str, algorithm: str) -> tuple[Callable[[bytes], Any], Any]:
    """The function that makes it, and the exception that it raises."""
    from cryptography.hazmat.primitives.ciphers import aead

    refused = library().InvalidTag
    if algorithm == "ARIA":
        from kcap.tls.libcrypto import AriaGcm

        return AriaGcm, refused
    if kind == "gcm":
        return aead.AESGCM, refused
    if kind == "chacha":
        return aead.ChaCha20Poly1305, refused
    return partial(aead.AESCCM, tag_length=8 if kind == "ccm8" else 16), refused


def block_of(cipher: RecordCipher, key: bytes) -> Any:
    """The block cipher of a suite. Raises UnsupportedAlgorithm if the library no longer has it."""
    from cryptography.hazmat.primitives.ciphers import algorithms

    if cipher.algorithm == "AES":
        return algorithms.AES(key)
    from cryptography.hazmat.decrepit.ciphers import algorithms as decrepit

    name = {"CAMELLIA": "Camellia", "3DES": "TripleDES", "SEED": "SEED"}[cipher.algorithm]
    made = getattr(decrepit, name, None) or getattr(algorithms, name, None)
    if made is None:
        from cryptography.exceptions import UnsupportedAlgorithm

        raise UnsupportedAlgorithm(cipher.algorithm)
    return made(key)
