"""Handshakes of the program openssl, for what Python's ssl cannot be made to do: what was typed is what is read.

The client and the server of OpenSSL are connected through a relay, which records the wire. The server sends each line back
reversed.
"""

import os
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path

import pytest

from kcap.tls.direction import LostPlaintext, Plaintext
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from tests.support.tls import CLIENT, SERVER, certificate

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the program openssl")
SECONDS = 10
LINES = ["first line", "x" * 3000, "last line"]
PSK = ["-psk", "0123456789abcdef", "-psk_identity", "kafka"]
KINDS = {
    "PSK alone": (["-tls1_2", *PSK, "-cipher", "PSK-AES128-GCM-SHA256:@SECLEVEL=0"], [], LINES),
    "RSA-PSK": (["-tls1_2", *PSK, "-cipher", "RSA-PSK-AES256-CBC-SHA384:@SECLEVEL=0"], [], LINES),
    "DHE-PSK": (["-tls1_2", *PSK, "-cipher", "DHE-PSK-AES128-CCM8:@SECLEVEL=0"], [], LINES),
    "ECDHE-PSK": (["-tls1_2", *PSK, "-cipher", "ECDHE-PSK-CHACHA20-POLY1305"], [], LINES),
    "external PSK of TLS 1.3": (["-tls1_3", *PSK, "-ciphersuites", "TLS_AES_128_GCM_SHA256"], [], LINES),
    "TLS 1.3 with CCM-8": (["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_8_SHA256"], [], LINES),
    "renegotiation": (["-tls1_2"], ["-client_renegotiation"], [LINES[0], "R", *LINES[1:]]),
    "renegotiation with CBC": (["-tls1_2", "-cipher", "AES256-SHA"], ["-client_renegotiation"], [LINES[0], "R", *LINES[1:]]),
    "KeyUpdate": (["-tls1_3"], [], [LINES[0], "K", *LINES[1:]]),
    "HelloRetryRequest": (["-tls1_3", "-groups", "X25519:P-384"], ["-groups", "P-384"], LINES),
    "fragments of 512 bytes": (["-tls1_3", "-max_send_frag", "512"], ["-max_send_frag", "512"], LINES),
    "fragments before TLS 1.3": (["-tls1_2", "-max_send_frag", "512"], ["-max_send_frag", "512"], LINES),
    "MAC then encrypt": (["-tls1_2", "-cipher", "AES128-SHA256"], ["-no_etm"], LINES),
    "max_fragment_length": (["-tls1_2", "-maxfraglen", "512"], [], LINES),
    "max_fragment_length of TLS 1.3": (["-tls1_3", "-maxfraglen", "1024"], [], LINES),
    "client certificate": (["-tls1_3", "-cert", "PEM"], ["-Verify", "1"], LINES),
}  # fmt: skip
"""Options of the client, of the server, and what is typed: R renegotiates, K and k update keys."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def relay(listener: socket.socket, port: int, wire: list[tuple[int, bytes]]) -> None:
    """Carries one connection to the server's port and notes what passes."""
    first, _ = listener.accept()
    with first, socket.create_connection(("127.0.0.1", port)) as second:
        ends = [first, second]
        while True:
            for one in select.select(ends, [], [], SECONDS)[0]:
                data = one.recv(1 << 16)
                if not data:
                    return
                side = ends.index(one)
                wire.append((side, data))
                ends[1 - side].sendall(data)


def await_server(serving: "subprocess.Popen[bytes]", port: int) -> None:
    """Returns once the server takes connections; skips where it has ended."""
    until = time.monotonic() + SECONDS
    while serving.poll() is None and time.monotonic() < until:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
    pytest.skip("this OpenSSL does not have the option or the suite")


def events_of(wire: list[tuple[int, bytes]], keylog: bytes) -> tuple[TlsSession, list[Plaintext | LostPlaintext]]:
    """What a session reads of the wire."""
    secrets = Secrets()
    secrets.keylog.add(keylog)
    session, events, offsets = TlsSession(secrets), list[Plaintext | LostPlaintext](), [0, 0]
    for ref, (side, data) in enumerate(wire):
        events += session.data(side, offsets[side], data, len(data), ref, ref, offsets[side])
        offsets[side] += len(data)
    return session, [*events, *session.finish()]


def converse(folder: Path, client: list[str], server: list[str], typed: list[str]) -> tuple[list[tuple[int, bytes]], bytes]:
    """The wire and the key log of one conversation; skips where this OpenSSL lacks an option or suite."""
    pem, log, port = certificate("rsa")[0], folder / "keys", free_port()
    psk = PSK[:2] if "-psk" in client else []
    version = [option for option in client if option.startswith("-tls1")]
    suites = [
        word for name in ("-cipher", "-ciphersuites") if name in client for word in (name, client[client.index(name) + 1])
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    words = ["-accept", str(port), "-cert", pem, "-key", pem, "-rev", *psk, *version, *suites, *server]
    serving = subprocess.Popen(["openssl", "s_server", *words], **quiet)
    wire: list[tuple[int, bytes]] = []
    try:
        await_server(serving, port)  # before the relay listens, which may be given a port that is free
        with socket.create_server(("127.0.0.1", 0)) as listener:
            carrying = threading.Thread(target=relay, args=(listener, port, wire), daemon=True)
            carrying.start()
            options = [pem if word == "PEM" else word for word in client]
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            words = ["openssl", "s_client", "-connect", place, "-keylogfile", str(log), *options]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            with subprocess.Popen(words, **pipes) as speaking, ExitStack() as ended:
                ended.callback(speaking.kill)  # else one that hangs would be waited for
                assert speaking.stdin is not None
                assert speaking.stdout is not None
                said = b""
                for line in typed:
                    speaking.stdin.write(line.encode() + b"\n")
                    speaking.stdin.flush()
                    wanted = line[::-1].encode() + b"\n" if len(line) > 1 else b"RENEGOTIATING" if line == "R" else b"KEYUPDATE"
                    until, before = time.monotonic() + SECONDS, said.count(wanted)
                    while said.count(wanted) <= before and time.monotonic() < until:
                        if select.select([speaking.stdout], [], [], 0.2)[0]:
                            new = os.read(speaking.stdout.fileno(), 1 << 16)
                            if not new:
                                break
                            said += new
                    if said.count(wanted) <= before:
                        pytest.skip("this OpenSSL does not have the option or the suite")
                speaking.stdin.close()
                speaking.wait(SECONDS)
            carrying.join(SECONDS)
    finally:
        serving.kill()
        serving.wait()
    return wire, log.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_what_openssl_says_is_what_is_read(kind: str, tmp_path: Path) -> None:
    client, server, typed = KINDS[kind]
    wire, keylog = converse(tmp_path, client, server, typed)
    _, events = events_of(wire, keylog)
    lines = [line for line in typed if len(line) > 1]
    found = [
        b"".join(one.data for one in events if isinstance(one, Plaintext) and one.side == side) for side in (CLIENT, SERVER)
    ]
    assert not any(isinstance(one, LostPlaintext) for one in events)
    assert found[CLIENT] == "".join(f"{line}\n" for line in lines).encode()
    assert found[SERVER] == "".join(f"{line[::-1]}\n" for line in lines).encode()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("renegotiation")])
def test_a_repeated_handshake_is_read_whichever_side_stands_ahead(kind: str, tmp_path: Path) -> None:
    """Each packet in turn stands behind the next ones of the other side, as where taps order their packets separately."""
    wire, keylog = converse(tmp_path, *KINDS[kind])

    def said(wire: list[tuple[int, bytes]]) -> list[bytes]:
        session, events = events_of(wire, keylog)
        assert not any(isinstance(one, LostPlaintext) for one in events)
        assert not session.facts.undecrypted
        return [b"".join(e.data for e in events if isinstance(e, Plaintext) and e.side == side) for side in (CLIENT, SERVER)]

    whole = said(wire)
    for at, (side, data) in enumerate(wire):
        to = next((place for place in range(at + 1, len(wire)) if wire[place][0] == side), len(wire))
        assert said([*wire[:at], *wire[at + 1 : to], (side, data), *wire[to:]]) == whole


def await_true(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > until:
            pytest.skip("this OpenSSL does not have the option")
        time.sleep(0.02)


@pytest.mark.parametrize("answer", ["accepted", "refused", "HelloRetryRequest"])
def test_early_data_is_read_where_the_server_takes_it(answer: str, tmp_path: Path) -> None:
    """0-RTT data of TLS 1.3 (RFC 8446 section 2.3): the second connection resumes the first and sends data with its hello."""
    accepted, group = answer == "accepted", ["-groups", "P-256"] if answer == "HelloRetryRequest" else []
    pem, log, saved, port = certificate("rsa")[0], tmp_path / "keys", tmp_path / "session", free_port()
    early, out = tmp_path / "early", tmp_path / "out"
    early.write_bytes(b"early request\n")
    wire: list[tuple[int, bytes]] = []

    def speaking(place: str, *more: str) -> "subprocess.Popen[bytes]":
        quiet = subprocess.DEVNULL
        words = ["openssl", "s_client", "-connect", place, "-tls1_3", "-keylogfile", str(log), *more]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)

    def serving() -> "subprocess.Popen[bytes]":
        words = ["-accept", str(port), "-cert", pem, "-key", pem, "-tls1_3", "-quiet", "-num_tickets", "1", *group]
        return subprocess.Popen(
            ["openssl", "s_server", *words, "-early_data" if accepted else "-no_anti_replay", "-max_early_data", "16384"],
            stdin=subprocess.PIPE, stdout=said_file, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    said_file = out.open("wb")
    server, clients = serving(), list[subprocess.Popen[bytes]]()
    try:
        await_server(server, port)
        clients.append(speaking(f"127.0.0.1:{port}", "-sess_out", str(saved)))
        await_true(lambda: saved.exists() and saved.stat().st_size > 0)
        clients[0].communicate(timeout=SECONDS)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            carrying = threading.Thread(target=relay, args=(listener, port, wire), daemon=True)
            carrying.start()
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            clients.append(
                speaking(
                    place, "-sess_in", str(saved), "-early_data", str(early), *(["-groups", "X25519:P-256"] if group else [])
                )
            )
            assert clients[1].stdin is not None
            clients[1].stdin.write(b"later request\n")
            clients[1].stdin.flush()
            await_true(lambda: b"later request" in out.read_bytes())
            clients[1].communicate(timeout=SECONDS)
            carrying.join(SECONDS)
    finally:
        said_file.close()
        for program in (server, *clients):
            program.kill()
            program.communicate()
    assert (b"early" in out.read_bytes()) is accepted
    for sent in (wire, sorted(wire, key=itemgetter(0))):  # directions may be put in order separately
        session, events = events_of(sent, log.read_bytes())
        said = b"".join(one.data for one in events if isinstance(one, Plaintext) and one.side == CLIENT)
        assert said == (b"early request\nlater request\n" if accepted else b"later request\n")
        assert not any(isinstance(one, LostPlaintext) for one in events)
        assert session.facts.resumed
        if not group:
            assert session.facts.handshake_ns is None, "its end is not to be told from the early data without keys"
