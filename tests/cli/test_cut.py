"""`kcap cut` as people use it: what it writes, what it says, how it ends; tshark and capinfos read what it wrote."""

import json
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

from tests.cli.running import PCAPS, here, kcap, start
from tests.export.parts import packets

JAVA = PCAPS / "java-transactions.pcap"


def exchanges(path, *more):
    lines = here("rows", path, "--format", "jsonl", "--columns", "api,correlation_id,request_bytes,topics,time", *more).stdout
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_the_part_has_the_rows_that_were_selected(suffix, tmp_path):
    out = tmp_path / f"part.{suffix}"
    done = here("cut", JAVA, "-Y", "api == Produce", "-o", out)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"kcap: 23 exchanges of 3 connections, ")
    found, want = (sorted(exchanges(path, "-Y", "api == Produce"), key=str) for path in (out, JAVA))
    assert found == want
    assert out.read_bytes()[:4] == (b"\x4d\x3c\xb2\xa1" if suffix == "pcap" else b"\n\r\r\n")


def test_nothing_matched_writes_nothing_unless_asked(tmp_path):
    out = tmp_path / "part.pcap"
    done = here("cut", JAVA, "-Y", "api == Vote", "-o", out)
    assert (done.returncode, done.stderr) == (0, f"kcap: no exchange matches; {out} was not written\n".encode())
    assert list(tmp_path.iterdir()) == []
    assert here("cut", JAVA, "-Y", "api == Vote", "-o", out, "--allow-empty").returncode == 0
    assert packets(out) == []


def test_pipes_on_both_sides(tmp_path):
    done = kcap("cut", "-", "-Y", "api == EndTxn", "-o", "-", stdin=JAVA.read_bytes())
    assert done.returncode == 0
    out = tmp_path / "part.pcap"
    here("cut", JAVA, "-Y", "api == EndTxn", "-o", out)
    assert done.stdout == out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["-Y", "api == Nope", "-o", "x.pcap"], 2, b"^"),
        (["-Y", "api == Fetch"], 2, b"--output"),
        (["-o", "x.pcap.gz"], 2, b"uncompressed"),
        (["-o", "no/such/x.pcap"], 4, b"no such file or directory"),
        (["no-such.pcap", "-o", "x.pcapng"], 3, b"no such file or directory"),
        (["-o", "x.pcap", "--anonymize", ""], 2, b"at least one character"),
    ],
)
def test_faults_are_one_line_and_a_code(arguments, code, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = here("cut", JAVA, *arguments)
    assert done.returncode == code
    assert word in done.stderr
    assert b"Traceback" not in done.stderr
    assert [p for p in tmp_path.iterdir() if "no-such.pcap" not in arguments] == []


def test_an_interrupt_leaves_nothing(tmp_path):
    out = tmp_path / "part.pcap"
    process = start("cut", "-", "-o", out, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(JAVA.read_bytes())
    process.stdin.flush()
    for _ in range(100):
        if list(tmp_path.iterdir()):
            break
        time.sleep(0.05)
    assert list(tmp_path.iterdir()), "it holds its input there"
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_redacted_and_anonymized(tmp_path):
    out = tmp_path / "part.pcapng"
    done = here("cut", JAVA, "--redact", "--anonymize", "key", "-o", out)
    assert done.returncode == 0
    assert b"compressed batches" in done.stderr
    assert b"shop-tx" not in out.read_bytes()
    sizes = [(row["api"], row["request_bytes"]) for row in exchanges(out)]
    assert sizes == [(row["api"], row["request_bytes"]) for row in exchanges(JAVA)]


@pytest.mark.skipif(shutil.which("tshark") is None or shutil.which("capinfos") is None, reason="tshark is not installed")
@pytest.mark.parametrize("changes", [[], ["--redact"], ["--redact", "--anonymize", "key"]], ids=" ".join)
@pytest.mark.parametrize("name", ["java-transactions.pcap", "any-interface.pcap", "sasl-raw-tokens.pcap"])
def test_tshark_reads_it_without_complaint(name, changes, tmp_path):
    out = tmp_path / "part.pcapng"
    assert here("cut", PCAPS / name, "-Y", "api in {Fetch, Produce}", *changes, "-o", out).returncode == 0
    reported = subprocess.run(["capinfos", "-Tm", "-c", str(out)], capture_output=True, text=True, check=True)
    assert reported.stdout.splitlines()[-1].split(",")[-1] == str(len(packets(out)))
    assert "appears" not in reported.stderr
    checked = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    wrong = ["-Y", "tcp.checksum.status == 0 or ip.checksum.status == 0"]
    done = subprocess.run(["tshark", "-r", str(out), *checked, *wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "appears to have been cut" not in done.stderr
    if changes[1:]:
        assert done.stdout == "", "every packet has other addresses, and so checksums that kcap made"


TLS = PCAPS / "tls13.pcapng"


def keys_in(data: bytes) -> list[bytes]:
    """The secrets of a pcapng file's key logs, as hexadecimal digits."""
    return [line.split()[2] for line in data.splitlines() if re.match(rb"[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64,}$", line)]


def random_lines(path):
    """The client randoms that the key logs of a pcapng file name."""
    return {line.split()[1] for line in path.read_bytes().splitlines() if keys_in(line)}


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
@pytest.mark.parametrize(
    "what", [[], ["-Y", "api == Produce"], ["--connection", "-Y", "tls"], ["-Y", "api == Vote", "--allow-empty"]]
)
def test_no_key_material_is_in_a_part_unless_it_is_asked_for(suffix, what, tmp_path):
    secrets = keys_in(TLS.read_bytes())
    assert len(secrets) > 10
    out = tmp_path / f"part.{suffix}"
    done = here("cut", TLS, *what, "-o", out)
    assert done.returncode == 0
    assert (b"TLS secrets of the input are left out; --keep-secrets writes them too" in done.stderr) == (
        "--allow-empty" not in what
    )
    data = out.read_bytes()
    for secret in secrets:
        assert secret not in data.lower()
        assert bytes.fromhex(secret.decode()) not in data
    if not what:
        assert {row["tls"] for row in exchanges_with_tls(out)} == {False}, "nothing decrypts it"


def exchanges_with_tls(path, *more):
    lines = here("rows", path, "--format", "jsonl", "--columns", "tls,api,correlation_id,request_bytes", *more).stdout
    return [json.loads(line) for line in lines.splitlines()]


def test_secrets_that_are_asked_for_decrypt_the_part(tmp_path):
    out = tmp_path / "part.pcapng"
    done = here("cut", TLS, "-Y", "api == Produce", "--keep-secrets", "-o", out)
    assert (done.returncode, b"TLS secrets" in done.stderr) == (0, False)
    kept, every = set(keys_in(out.read_bytes())), set(keys_in(TLS.read_bytes()))
    assert kept < every, "sessions that are not in the part keep their secrets"
    sessions = here("connections", out, "--format", "json").stdout
    assert 0 < len(random_lines(out)) == sum(row["tls"] for row in json.loads(sessions))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    wanted = sorted(map(str, exchanges_with_tls(TLS, "-Y", "api == Produce")))
    assert sorted(map(str, exchanges_with_tls(out, "-Y", "api == Produce"))) == wanted
    assert "True" in str(wanted)


@pytest.mark.parametrize("change", [["--redact"], ["--anonymize", "key"]])
def test_secrets_do_not_go_with_what_hides(change, tmp_path):
    done = here("cut", TLS, "--keep-secrets", *change, "-o", tmp_path / "part.pcapng")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert b"--keep-secrets" in done.stderr


def test_a_part_without_its_secrets_has_the_rows_for_whoever_has_the_key_log(tmp_path):
    out, log = tmp_path / "part.pcapng", tmp_path / "keys"
    log.write_bytes(b"\n".join(line for line in TLS.read_bytes().splitlines() if keys_in(line)))
    log.chmod(0o600)
    assert here("cut", TLS, "-Y", "api == Produce and tls", "-o", out).returncode == 0
    found = exchanges_with_tls(out, "-Y", "api == Produce and tls", "--tls-keylog", log)
    assert sorted(map(str, found)) == sorted(map(str, exchanges_with_tls(TLS, "-Y", "api == Produce and tls")))
    assert found


@pytest.mark.parametrize("change", [["--redact"], ["--anonymize", "key"]])
def test_nothing_of_an_encrypted_connection_is_in_a_part_that_hides(change, tmp_path):
    """Names within TLS cannot be changed, and who has the keys can read them: the payload goes, the packets stay."""
    out, log = tmp_path / "part.pcapng", tmp_path / "keys"
    log.write_bytes(b"\n".join(line for line in TLS.read_bytes().splitlines() if keys_in(line)))
    log.chmod(0o600)
    done = here("cut", TLS, *change, "--tls-keylog", log, "-o", out)
    assert done.returncode == 0
    assert b"payload of 8 TLS connections is zeros" in done.stderr
    assert {row["tls"] for row in exchanges_with_tls(out, "--tls-keylog", log)} == {False}
    assert packets(out)


@pytest.mark.parametrize("command", [["split", "--by-connection", "4"], ["split", "--by-time", "1h"], ["merge"]])
def test_split_and_merge_leave_secrets_behind_unless_asked(command, tmp_path):
    secrets = keys_in(TLS.read_bytes())
    for keep in (False, True):
        folder = tmp_path / str(keep)
        folder.mkdir()
        done = here(*command, TLS, *(["--keep-secrets"] if keep else []), "-o", folder / "part.pcapng")
        assert done.returncode == 0
        assert (b"--keep-secrets writes them too" in done.stderr) is not keep
        written = [path.read_bytes() for path in folder.iterdir()]
        assert written
        modes = {stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in folder.iterdir()}
        assert modes == {keep}
        for data in written:
            assert set(keys_in(data)) <= set(secrets if keep else [])
        named = {random for path in folder.iterdir() for random in random_lines(path)}
        assert named == (random_lines(TLS) if keep else set())
