"""Compares decryption with plaintext: the same conversations with and without TLS, in bytes of messages per CPU second.

usage: python benchmarks/tls.py [NAME...] [--size 200M] [--rounds 3] [--suite AES128|AES256|CHACHA] [--close real|fin]
                               [--kcap .venv/bin/kcap]

Shapes are those of workloads.py, with one request in flight, and three like `small`, which has 60 requests per connection:
`brief` with 10, `long` with 300, `steady` with 2,000, so that handshakes have more or less weight. This Python's OpenSSL
encrypts (TLS 1.3 by default); the certificate is made for the run. Connections close as those of Java and librdkafka do:
close_notify and FIN of the client, close_notify of the server after it, RST (`--close fin`: only FIN). Prints one line per
shape: megabytes of messages per CPU second of both, from the minimum time of alternating runs; their ratio; and the ratio of
captured bytes, which include handshakes, record headers and their tags.
"""

import argparse
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from grow import size_of
from rows import timed
from workloads import SHAPES as PLAIN_SHAPES
from workloads import Exchanges, Writer, produces

SHAPES = PLAIN_SHAPES | {
    name: (produces(count, 300), 1400, {}) for name, count in (("brief", 10), ("long", 300), ("steady", 2000))
}

SUITES = {"AES128": "ECDHE-ECDSA-AES128-GCM-SHA256", "AES256": "ECDHE-ECDSA-AES256-GCM-SHA384",
          "CHACHA": "ECDHE-ECDSA-CHACHA20-POLY1305"}  # fmt: skip


def contexts(folder: Path, version: str, suite: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS contexts of a client, which writes a key log, and of a server."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "server.pem").write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    server.load_cert_chain(folder / "server.pem")
    client.keylog_filename = str(folder / "keys")
    for context in (client, server):
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        if version == "TLSv1_2":
            context.set_ciphers(SUITES[suite])
    return client, server


class Ends:
    """Both ends of a TLS connection."""

    def __init__(self, client: ssl.SSLContext, server: ssl.SSLContext) -> None:
        self.wires = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
        self.both = client.wrap_bio(*self.wires[0]), server.wrap_bio(*self.wires[1], server_side=True)

    def carried(self, side: int) -> bytes:
        """Moves what one end has sent to the other; returns it."""
        sent = self.wires[side][1].read()
        self.wires[1 - side][0].write(sent)
        return sent

    def encrypted(self, exchanges: Exchanges) -> Iterator[tuple[bytes, bytes]]:
        """The encrypted exchanges as on the wire, after the handshake."""
        for _ in range(3):
            flight = []
            for side in (0, 1):
                with suppress(ssl.SSLWantReadError):
                    self.both[side].do_handshake()
                flight.append(self.carried(side))
            if any(flight):
                yield flight[0], flight[1]
        for messages in exchanges:
            sent = []
            for side, message in enumerate(messages):
                if message:
                    self.both[side].write(message)
                sent.append(self.carried(side))
                with suppress(ssl.SSLWantReadError):
                    while message:  # one record at a time
                        self.both[1 - side].read(1 << 14)
            yield sent[0], sent[1]

    def closed(self) -> tuple[bytes, bytes]:
        """A close_notify of each end."""
        sent = []
        for side in (0, 1):
            with suppress(ssl.SSLWantReadError):
                self.both[side].unwrap()
            sent.append(self.carried(side))
        return sent[0], sent[1]


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="NAME", help="all but partitions, short, lossy, snaplen by default")
    parser.add_argument("--size", default="200M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--version", default="TLSv1_3", choices=["TLSv1_2", "TLSv1_3"])
    parser.add_argument("--suite", default="AES128", choices=SUITES, help="of TLS 1.2; TLS 1.3 takes AES-256-GCM")
    parser.add_argument("--close", default="real", choices=["real", "fin"], help="fin: without close_notify")
    parser.add_argument("--kcap", default=".venv/bin/kcap")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        client, server = contexts(folder, options.version, options.suite)
        for shape in options.shapes or ("brief", "small", "long", "steady", "medium", "mtu", "large"):
            conversation, mss, _ = SHAPES[shape]
            plain, secret = folder / f"{shape}.pcap", folder / f"{shape}-tls.pcap"
            (folder / "keys").write_bytes(b"")  # OpenSSL appends
            with plain.open("wb") as one, secret.open("wb") as other:
                writers, number = (Writer(one, mss), Writer(other, mss)), 0
                while one.tell() < size_of(options.size):
                    writers[0].conversation(number, conversation(number), depth=1)
                    ends = Ends(client, server)
                    last = ends.closed if options.close == "real" else None
                    writers[1].conversation(number, ends.encrypted(conversation(number)), depth=1, last=last)
                    number += 1
            (folder / "keys").chmod(0o600)
            rows = [*options.kcap.split(), "rows", "--jobs", "1", "--format", "parquet", "-o", str(folder / "rows.parquet")]
            commands = [*rows, str(plain)], [*rows, str(secret), "--tls-keylog", str(folder / "keys")]
            spent: list[list[float]] = [[], []]
            found: set[int] = set()
            for _ in range(options.rounds + 1):  # the first one compiles kernels and fills the page cache
                for at, command in enumerate(commands):
                    spent[at].append(timed(command)[1])
                    found.add(pq.ParquetFile(folder / "rows.parquet").metadata.num_rows)
            if len(found) > 1:
                raise SystemExit(f"{shape}: {found} exchanges")
            cpu = [min(some[1:]) for some in spent]
            size = plain.stat().st_size / 1e6
            plaintext, decrypted = (size / one for one in cpu)
            share = decrypted / plaintext
            captured = share * secret.stat().st_size / plain.stat().st_size
            sys.stdout.write(
                f"{shape:8} plaintext {plaintext:6.1f}, decrypted {decrypted:6.1f} MB a CPU second: {share:.2f}, of what was "
                f"captured {captured:.2f}\n"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
