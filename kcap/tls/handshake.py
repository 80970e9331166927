"""TLS handshake messages that are not encrypted: hellos, certificates, alerts; and the fingerprints JA3 and JA4.

In: the body of a handshake message. Out: its fields; None if it cannot be read. Law: nothing raises. Source: RFC 5246 section
7.4, RFC 8446 section 4, RFC 6066 (server name), RFC 7301 (ALPN); JA3 by Salesforce, JA4 by FoxIO.
"""

import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, update_wrapper
from hashlib import md5, sha256
from struct import Struct, unpack_from
from typing import Final, TypeVar

from kcap import limits
from kcap.limits import CERTIFICATES_KEPT
from kcap.wire import codecs

T = TypeVar("T")

CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET, CERTIFICATE, CLIENT_KEY_EXCHANGE, FINISHED, KEY_UPDATE = 1, 2, 4, 11, 16, 20, 24
END_OF_EARLY_DATA: Final = 5
CERTIFICATE_REQUEST: Final = 13
CERTIFICATE_VERIFY: Final = 15
COMPRESSED_CERTIFICATE: Final = 25
CERTIFICATES: Final = (CERTIFICATE, COMPRESSED_CERTIFICATE)
HELLOS: Final = (CLIENT_HELLO, SERVER_HELLO)
ENCRYPTED_EXTENSIONS: Final = 8
SERVER_NAME, GROUPS, FORMATS, SIGNATURES, ALPN, ETM, EMS, TICKET = 0, 10, 11, 13, 16, 22, 23, 35
PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS, COOKIE = 41, 42, 43, 44
ENCRYPTED_HELLO: Final = 0xFE0D
"""encrypted_client_hello (RFC 9849). If the server accepts it, key logs identify the connection by the random of the inner
hello.
"""
RETRY_RANDOM: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""ServerHello.random of a HelloRetryRequest (RFC 8446 section 4.1.3)."""
ALERTS: Final = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed", 22: "record_overflow",
    40: "handshake_failure", 41: "no_certificate", 42: "bad_certificate", 43: "unsupported_certificate",
    44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
    49: "access_denied", 50: "decode_error", 51: "decrypt_error", 60: "export_restriction", 70: "protocol_version",
    71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
    100: "no_renegotiation", 109: "missing_extension", 110: "unsupported_extension", 111: "certificate_unobtainable",
    112: "unrecognized_name", 113: "bad_certificate_status_response", 114: "bad_certificate_hash_value",
    115: "unknown_psk_identity", 116: "certificate_required", 120: "no_application_protocol", 121: "ech_required",
}  # fmt: skip
"""Alert descriptions of the IANA registry."""
CLOSE_NOTIFY, USER_CANCELED = 0, 90
"""Alerts with which clients announce that they close; Java sends both."""
WIDE: Final = 128
"""Number of cipher suites of a hello, or extensions of a server's hello, that are held as objects; clients offer some 60."""
_SHARED: Final[dict[bytes, bytes]] = {}
ENCRYPTED_ALERT: Final = "encrypted_alert"
"""An alert that is recognised by its length alone."""
ALERT_MEANINGS: Final = {
    ENCRYPTED_ALERT: "recognised by its length; keys are needed to read it",
    "unexpected_message": "an inappropriate message was received", "bad_record_mac": "the authentication of a record failed",
    "decryption_failed": "the decryption of a record failed", "record_overflow": "a record was too long",
    "handshake_failure": "no common cipher suite, group or signature algorithm",
    "no_certificate": "no suitable certificate is available",
    "bad_certificate": "the peer's certificate is damaged, or its signature is wrong",
    "unsupported_certificate": "the peer's certificate is of an unsupported type",
    "certificate_revoked": "the peer's certificate was revoked",
    "certificate_expired": "the peer's certificate has expired or is not currently valid",
    "certificate_unknown": "the peer's certificate was not accepted",
    "illegal_parameter": "a field of the handshake was out of range or inconsistent",
    "unknown_ca": "the issuer of the peer's certificate is not known or not trusted",
    "access_denied": "the peer's certificate is valid, but access was denied", "decode_error": "a message could not be decoded",
    "decrypt_error": "a signature, Finished or PSK binder was wrong", "export_restriction": "export rules were violated",
    "protocol_version": "the version that the peer offers is not supported",
    "insufficient_security": "the peer's cipher suites are too weak", "internal_error": "an error that the peer did not cause",
    "inappropriate_fallback": "the client retried with a version lower than it needs",
    "user_canceled": "the handshake was cancelled",
    "no_renegotiation": "renegotiation was refused", "missing_extension": "a required extension was missing",
    "unsupported_extension": "an extension was received that was not offered",
    "certificate_unobtainable": "a certificate could not be fetched from its URL",
    "unrecognized_name": "no server has the name that the client requested (SNI)",
    "bad_certificate_status_response": "the OCSP response was not valid",
    "bad_certificate_hash_value": "the hash of a certificate was not the one given",
    "unknown_psk_identity": "no offered PSK is known",
    "certificate_required": "the client sent no certificate, and the server requires one",
    "no_application_protocol": "no common application protocol (ALPN)", "ech_required": "Encrypted ClientHello is required",
}  # fmt: skip
"""What an alert means about the sender's peer or the handshake (RFC 5246 section 7.2.2, RFC 8446 section 6.2, RFC 6066)."""


def alert_text(alert: str) -> str:
    """An alert of `TlsFacts.alerts` with its meaning in parentheses."""
    meaning = ALERT_MEANINGS.get(alert.partition(": ")[2])
    return alert if meaning is None else f"{alert} ({meaning})"


class _Fields:
    """A reader of length-prefixed fields. Beyond the end it returns empty bytes and remembers that."""

    __slots__ = ("at", "data", "short")

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.short = data, 0, False

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        self.short |= len(found) < size
        self.at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))

    @property
    def left(self) -> bool:
        return self.at < len(self.data) and not self.short


def repeated(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Caches the results of `read` for short bytes that occur in one handshake after another."""
    cached = lru_cache(maxsize=limits.TLS_REPEATS)(read)

    def known(data: bytes) -> T:
        return cached(data) if len(data) <= limits.TLS_REPEATED_BYTES else read(data)

    return update_wrapper(known, read)


@repeated
def numbers(data: bytes) -> Sequence[int]:
    """16-bit numbers without gaps between them. Many are held in an array, which takes 2 bytes for each instead of 36."""
    count = len(data) // 2
    if count <= WIDE:
        return unpack_from(f">{count}H", data)
    found = array("H", data[: 2 * count])
    if sys.byteorder == "little":
        found.byteswap()
    return found


class PackedExtensions(Mapping[int, bytes]):
    """Extensions that are decoded again at each look-up. As objects they would take ten times as many bytes, and the keys of a
    connection depend on little more than that some extensions are absent from its ClientHello.
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        """`data`: the extensions, without their length."""
        self._data = data

    def read(self) -> dict[int, bytes]:
        return extensions_in(self._data)

    def __contains__(self, number: object) -> bool:
        """Works without the objects of `read`, and mostly without iterating over the extensions."""
        data, at = self._data, 0
        if not isinstance(number, int) or not 0 <= number <= 0xFFFF or number.to_bytes(2, "big") not in data:
            return False
        while at + 4 <= len(data):
            found, size = EXTENSION(data, at)
            at += 4 + size
            if found == number:
                return bool(at <= len(data))
        return False

    def __getitem__(self, number: int) -> bytes:
        return self.read()[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())


@dataclass(frozen=True, slots=True)
class Hello:
    """A ClientHello or a ServerHello."""

    version: int
    """`legacy_version` of a ClientHello; the negotiated version of a ServerHello."""
    random: bytes
    session_id: bytes
    suites: Sequence[int]
    """The offered suites, or the chosen one."""
    extensions: Mapping[int, bytes] = field(default_factory=dict)
    """In the order of the message."""

    def unpacked(self) -> "Hello":
        """The same with its extensions as objects, for callers that read many of them."""
        packed = self.extensions
        return replace(self, extensions=packed.read()) if isinstance(packed, PackedExtensions) else self

    @property
    def is_retry(self) -> bool:
        """Whether a ServerHello is a HelloRetryRequest."""
        return self.random == RETRY_RANDOM

    @property
    def server_name(self) -> str | None:
        """The host name in the SNI extension."""
        reader = _Fields(self.extensions.get(SERVER_NAME, b""))
        names = _Fields(reader.vector(2))
        kind, name = names.number(1), names.vector(2)
        return name.decode("ascii", "replace") if name and kind == 0 and not names.short else None

    @property
    def protocols(self) -> list[str]:
        """The protocols in the ALPN extension."""
        reader = _Fields(_Fields(self.extensions.get(ALPN, b"")).vector(2))
        found = []
        while reader.left:
            found.append(reader.vector(1).decode("ascii", "replace"))
        return found

    @property
    def offered_versions(self) -> Sequence[int]:
        """The versions in the supported_versions extension of a ClientHello."""
        return numbers(_Fields(self.extensions.get(SUPPORTED_VERSIONS, b"")).vector(1))


EXTENSION: Final = Struct(">HH").unpack_from
"""Header of an extension: its number, and the length of its data."""


def extensions_in(data: bytes) -> dict[int, bytes]:
    """The extensions in `data`, up to the first incomplete one."""
    out: dict[int, bytes] = {}
    at, end = 0, len(data)
    while at + 4 <= end:
        number, size = EXTENSION(data, at)
        at += 4 + size
        if at <= end:
            out.setdefault(number, data[at - size : at])
    return out


def _extensions(data: bytes, at: int = 0) -> bytes:
    """The bytes of the extensions whose length is at `at`, as far as they are complete."""
    return data[at + 2 : at + 2 + int.from_bytes(data[at : at + 2], "big")]


def _behind_session(body: bytes) -> int:
    """Offset at which the session id of a hello of SSL 3.0 to TLS 1.3 ends; beyond the body if this is no such hello."""
    return 35 + body[34] if len(body) >= 35 and body[0] == 3 else len(body) + 1


def read_client_hello(body: bytes) -> Hello | None:
    at, size = _behind_session(body), len(body)
    if at + 2 > size:
        return None
    session, count = body[35:at], body[at] << 8 | body[at + 1]
    end = at + 2 + count
    if end + 1 > size or end + 1 + body[end] > size:
        return None
    suites = numbers(body[at + 2 : end])
    return Hello(768 | body[1], body[2:34], session, suites, PackedExtensions(_extensions(body, end + 1 + body[end])))


def read_cut_client_hello(message: bytes) -> Hello | None:
    """Reads a ClientHello, with its header, of which only the beginning is there: its version, random and session id."""
    at = 4 + _behind_session(message[4:])
    if message[:1] != b"\x01" or at > len(message):
        return None
    return Hello(768 | message[5], message[6:38], message[39:at], ())


def repeats(first: Hello | None, message: bytes) -> bool:
    """Whether a message is the ClientHello after a HelloRetryRequest: it has the random of `first` (RFC 8446 section 4.1.2)."""
    return first is not None and message[:1] == b"\x01" and message[6:38] == first.random


def read_server_hello(body: bytes) -> Hello | None:
    """Reads a ServerHello or a HelloRetryRequest."""
    at = _behind_session(body)
    if at + 3 > len(body):
        return None
    inner = _extensions(body, at + 3)
    found = extensions_in(inner)
    extensions = found if len(found) <= WIDE else PackedExtensions(inner)
    chosen = found.get(SUPPORTED_VERSIONS, b"")
    version = int.from_bytes(chosen, "big") if len(chosen) == 2 else 768 | body[1]
    return Hello(version, body[2:34], body[35:at], numbers(body[at : at + 2]), extensions)


@repeated
def read_encrypted_extensions(body: bytes) -> tuple[str | None, bool]:
    """Returns the ALPN choice in EncryptedExtensions of TLS 1.3, and whether the client's early data is accepted (RFC 8446
    section 4.2.10).
    """
    found = Hello(0, b"", b"", (), extensions_in(_extensions(body)))
    return next(iter(found.protocols), None), EARLY_DATA in found.extensions


def read_certificates(body: bytes, *, tls13: bool = False) -> list[bytes]:
    """The certificates of a Certificate message, DER, the sender's own first."""
    reader = _Fields(body)
    if tls13:
        reader.vector(1)
    inner, out = _Fields(reader.vector(3)), []
    while inner.left:
        data = inner.vector(3)
        if tls13:
            inner.vector(2)
        if data and not inner.short:
            out.append(data)
    return out


@repeated
def subject_of(certificate: bytes) -> str | None:
    """The subject of a DER certificate in the notation of RFC 4514; None if it cannot be read."""
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(certificate).subject.rfc4514_string() or None
    except Exception:  # noqa: BLE001 - some of the library's exceptions, such as InvalidVersion, have no other base
        return None


def shared(certificate: bytes) -> bytes | str | None:
    """A certificate in the form in which connections hold it: one object for equal ones, whose subject is read when a table
    needs it. After CERTIFICATES_KEPT different certificates, it is only the subject.
    """
    found = _SHARED.get(certificate)
    if found is None and len(_SHARED) < CERTIFICATES_KEPT:
        found = _SHARED[certificate] = certificate
    return found or subject_of(certificate)


@repeated
def same(message: bytes) -> bytes:
    """An equal message that came before, if there was one; otherwise this one."""
    return message


@repeated
def sender12(body: bytes) -> bytes | str | None:
    """The sender's own certificate of a Certificate message before TLS 1.3, as `shared` returns it; None if there is none."""
    return next(map(shared, read_certificates(body)), None)


@repeated
def sender13(body: bytes) -> bytes | str | None:
    """As `sender12`, for TLS 1.3."""
    return next(map(shared, read_certificates(body, tls13=True)), None)


@repeated
def sender_compressed(body: bytes) -> bytes | str | None:
    """As `sender13`, for a CompressedCertificate (RFC 8879)."""
    return sender13(decompressed(body))


def sender_of(number: int, body: bytes, *, tls13: bool) -> bytes | str | None:
    """The sender's own certificate of a message of CERTIFICATES."""
    if number == COMPRESSED_CERTIFICATE:
        return sender_compressed(body)
    return sender13(body) if tls13 else sender12(body)


def decompressed(body: bytes) -> bytes:
    """The Certificate message in a CompressedCertificate; empty if it cannot be read, or if its algorithm is unknown."""
    reader = _Fields(body)
    inflate, size, data = INFLATE.get(reader.number(2)), reader.number(3), reader.vector(3)
    if inflate is None or reader.short or not 0 < size <= limits.TLS_HANDSHAKE_BYTES:
        return b""
    try:
        found = inflate(data, size + 1)
    except Exception:  # noqa: BLE001 - the libraries' exceptions have no other base
        return b""
    return found if len(found) == size else b""


def _brotli(data: bytes, size: int) -> bytes:
    from cramjam import brotli

    out = bytearray(size)
    return bytes(out[: brotli.decompress_into(data, out)])


INFLATE: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    1: lambda data, size: zlib.decompressobj().decompress(data, size), 2: _brotli,
    3: lambda data, size: bytes(codecs.inflate(codecs.CODECS.index("zstd"), data, size).data),
}  # fmt: skip
"""Number of an algorithm (RFC 8879 section 7.3) -> function that decompresses up to the given number of bytes."""


def message_size(buffer: bytes | bytearray) -> int:
    """Bytes of the handshake message that begins here, with its header; 0 if it is incomplete."""
    return 4 + (buffer[1] << 16 | buffer[2] << 8 | buffer[3]) if len(buffer) >= 4 else 0


def messages(buffer: bytearray) -> Iterator[tuple[int, bytes, bytes]]:
    """Removes complete handshake messages from the front of `buffer` and yields type, body, and all bytes with the header."""
    while 4 <= (size := message_size(buffer)) <= len(buffer):
        whole = bytes(buffer[:size])
        del buffer[:size]
        yield whole[0], whole[4:], whole


def is_grease(number: int) -> bool:
    """Whether a number is one of those that clients insert to test the tolerance of servers (RFC 8701)."""
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


def ja3(hello: Hello) -> str:
    """JA3: the MD5 of version, suites, extensions, groups and point formats."""
    lists = [
        [n for n in hello.suites if not is_grease(n)],
        [n for n in hello.extensions if not is_grease(n)],
        [n for n in numbers(_Fields(hello.extensions.get(GROUPS, b"")).vector(2)) if not is_grease(n)],
        list(_Fields(hello.extensions.get(FORMATS, b"")).vector(1)),
    ]
    text = ",".join([str(hello.version), *("-".join(map(str, some)) for some in lists)])
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def ja4(hello: Hello) -> str:
    """JA4 of a ClientHello over TCP."""
    offered = [n for n in hello.offered_versions if not is_grease(n)]
    version = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3"}.get(
        max(offered, default=hello.version), "00"
    )
    suites = [n for n in hello.suites if not is_grease(n)]
    extensions = [n for n in hello.extensions if not is_grease(n)]
    first = _Fields(_Fields(hello.extensions.get(ALPN, b"")).vector(2)).vector(1)
    readable = first[:1].isalnum() and first[-1:].isalnum()
    letters = first.decode("ascii", "replace") if readable else first.hex()
    alpn = letters[0] + letters[-1] if letters else "00"
    named = "d" if SERVER_NAME in hello.extensions else "i"
    head = f"t{version}{named}{min(len(suites), 99):02d}{min(len(extensions), 99):02d}{alpn}"
    listed = ",".join(f"{n:04x}" for n in sorted(n for n in extensions if n not in (SERVER_NAME, ALPN)))
    signatures = ",".join(
        f"{n:04x}" for n in numbers(_Fields(hello.extensions.get(SIGNATURES, b"")).vector(2)) if not is_grease(n)
    )
    second = listed + (f"_{signatures}" if signatures else "")
    return f"{head}_{_short(','.join(f'{n:04x}' for n in sorted(suites)))}_{_short(second if extensions else '')}"


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12] if text else "0" * 12
