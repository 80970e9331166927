"""TLS conversations made in this process by OpenSSL, with the key log that OpenSSL writes."""

import ssl
import tempfile
import warnings
from base64 import encodebytes
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession

CLIENT, SERVER = 0, 1


@dataclass
class Conversation:
    """What was sent, in order: side and bytes of the wire; the plaintext of each side; the key log."""

    wire: list[tuple[int, bytes]] = field(default_factory=list)
    plain: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    keylog: bytes = b""
    suite: str = ""
    version: str = ""


@cache
def dh_parameters() -> str:
    """A PEM file with the group ffdhe2048 (RFC 7919 appendix A.1)."""
    e, term = 0, 1 << 2200  # Euler's number, 2200 bits behind the point
    for divisor in range(1, 400):
        e, term = e + term, term // divisor
    prime = (1 << 2048) - (1 << 1984) + (((e >> (2200 - 1918)) + 560316) << 64) - 1
    der = bytes.fromhex("30820108 02820101 00") + prime.to_bytes(256, "big") + bytes.fromhex("020102")  # PKCS #3
    path = Path(tempfile.mkdtemp(prefix="kcap-test-"), "dh.pem")
    path.write_bytes(b"-----BEGIN DH PARAMETERS-----\n" + encodebytes(der) + b"-----END DH PARAMETERS-----\n")
    return str(path)


@cache
def certificate(kind: str) -> tuple[str, bytes]:
    """A self-signed certificate with its key in a PEM file, and the key as DER (PKCS #8)."""
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker.test")])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(7).not_valid_before(now).not_valid_after(now + timedelta(days=36500)).sign(key, hashes.SHA256())
    )  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="kcap-test-"))
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
    der = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return str(folder / "both.pem"), der


def converse(
    messages: list[tuple[int, bytes]], *, version: str = "TLSv1_3", ciphers: str | None = None, kind: str = "rsa",
    session: ssl.SSLSession | None = None, keylog: bool = True, tickets: bool = True,
) -> tuple[Conversation, ssl.SSLSession | None]:  # fmt: skip
    """A client and a server that shake hands and send these messages in turn; the session for a later resumption, which is by
    session id without `tickets` (before TLS 1.3).

    Raises ssl.SSLError where OpenSSL of this machine does not have the suite.
    """
    pem, _ = certificate(kind)
    made = Conversation()
    with tempfile.TemporaryDirectory(prefix="kcap-test-") as folder:
        log = str(Path(folder, "keys"))
        contexts = _contexts(version, ciphers, pem, log if keylog else None, tickets=tickets)
        ends = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in contexts]
        client = contexts[0].wrap_bio(*ends[0], server_hostname="broker.test", session=session)
        server = contexts[1].wrap_bio(*ends[1], server_side=True)
        both = (client, server)

        def carry() -> bool:
            moved = False
            for side in (CLIENT, SERVER):
                data = ends[side][1].read()
                if data:
                    made.wire.append((side, data))
                    ends[1 - side][0].write(data)
                    moved = True
            return moved

        todo = {CLIENT, SERVER}
        for _ in range(20):
            for side in sorted(todo):
                try:
                    both[side].do_handshake()
                    todo.discard(side)
                except ssl.SSLWantReadError:
                    pass
            if not carry() and not todo:
                break
        for side, data in messages:
            both[side].write(data)
            made.plain[side].extend(data)
            carry()
            while True:
                try:
                    if not both[1 - side].read(1 << 16):
                        break
                except ssl.SSLWantReadError:
                    break
        for end in both if not tickets else ():  # a server forgets sessions that were not closed
            with suppress(ssl.SSLError):
                end.unwrap()
            carry()
        made.keylog = Path(log).read_bytes() if keylog else b""
        made.suite, made.version = client.cipher()[0], client.version() or ""  # type: ignore[index]
        return made, client.session


_KEPT: dict[tuple[str, str | None, str, bool], list[ssl.SSLContext]] = {}


def _contexts(version: str, ciphers: str | None, pem: str, log: str | None, *, tickets: bool) -> list[ssl.SSLContext]:
    """Contexts of client and server; the same ones again for the same arguments, so that sessions can be resumed."""
    made = _KEPT.get((version, ciphers, pem, tickets))
    if made is None:
        client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        server.load_cert_chain(pem)
        server.load_dh_params(dh_parameters())
        for context in (client, server):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # TLS 1.0 and 1.1 are what is asked for
                context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
            if not tickets:
                context.options |= ssl.OP_NO_TICKET
            if ciphers is not None:
                context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
        made = _KEPT[version, ciphers, pem, tickets] = [client, server]
    if log is not None:
        made[0].keylog_filename = log
    return made


def without_secrets(capture: bytes, first: int = 0) -> bytes:
    """A little-endian pcapng file without its Decryption Secrets Blocks and without its `first` packets."""
    out, at = bytearray(), 0
    while at < len(capture):
        kind, size = int.from_bytes(capture[at : at + 4], "little"), int.from_bytes(capture[at + 4 : at + 8], "little")
        first -= kind == 6
        out += b"" if kind == 10 or (kind == 6 and first >= 0) else capture[at : at + size]
        at += size
    return bytes(out)


def sealed_record(opener: RecordOpener, number: int, data: bytes, kind: int = 23, padding: int = 0) -> bytes:
    """The record of this number that opens under the keys of `opener`, of a suite with an AEAD; of TLS 1.3 with this much
    padding.
    """
    if opener.version == 0x0304:
        inner = data + bytes([kind]) + bytes(padding)
        header = b"\x17\x03\x03" + (len(inner) + (8 if opener.cipher.kind == "ccm8" else 16)).to_bytes(2, "big")
        nonce = (int.from_bytes(opener.keys.iv, "big") ^ number).to_bytes(12, "big")
        return header + opener.aead.encrypt(nonce, inner, header)
    head = number.to_bytes(8, "big") + bytes([kind]) + b"\x03\x03" + len(data).to_bytes(2, "big")
    if opener.cipher.kind == "chacha":
        nonce, explicit = (int.from_bytes(opener.keys.iv, "big") ^ number).to_bytes(12, "big"), b""
    else:
        explicit = number.to_bytes(8, "big")
        nonce = opener.keys.iv + explicit
    body = explicit + opener.aead.encrypt(nonce, data, head)
    return bytes([kind]) + b"\x03\x03" + len(body).to_bytes(2, "big") + body


class Sealer:
    """Both ends of a connection whose handshake OpenSSL made; its records are made here, so that they can have any form."""

    def __init__(self, version: str, ciphers: str | None = None) -> None:
        """Raises ssl.SSLError as `converse`."""
        made, _ = converse([], version=version, ciphers=ciphers)
        self.handshake: list[tuple[int, bytes]] = made.wire
        """Side and bytes."""
        self.keylog = made.keylog
        secrets = Secrets()
        secrets.keylog.add(made.keylog)
        session, offsets = TlsSession(secrets), [0, 0]
        for side, data in made.wire:
            list(session.data(side, offsets[side], data, len(data), 0, 0, 0))
            offsets[side] += len(data)
        self.openers = session.sides[CLIENT].opener, session.sides[SERVER].opener
        self._first = session.sides[CLIENT].number, session.sides[SERVER].number
        self.numbers = list(self._first)

    def restart(self) -> "Sealer":
        """Numbers records from behind the handshake again."""
        self.numbers = list(self._first)
        return self

    def record(self, side: int, data: bytes, kind: int = 23, padding: int = 0) -> bytes:
        """One record; of TLS 1.3 with this much padding."""
        opener, number = self.openers[side], self.numbers[side]
        self.numbers[side] += 1
        return sealed_record(opener, number, data, kind, padding)
