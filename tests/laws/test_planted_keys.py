"""Files that are written while an encrypted capture is read hold none of its keys, in no form."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import kcap
from kcap.tls.files import read_secrets
from kcap.tls.key_schedule import traffic_keys
from kcap.tls.suites import suite_of
from kcap.tui.reader_main import ReadRequest
from kcap.tui.reader_process import Process
from tests.cli.running import run_here
from tests.support.tls import without_secrets

CAPTURE = Path(__file__).resolve().parents[2] / "pcaps" / "tls13.pcapng"
SUITES = (0x1301, 0x1302)


def keylog_of(capture: bytes) -> bytes:
    """The text of a little-endian pcapng file's Decryption Secrets Blocks."""
    out, at = b"", 0
    while at < len(capture):
        kind, size = int.from_bytes(capture[at : at + 4], "little"), int.from_bytes(capture[at + 4 : at + 8], "little")
        if kind == 10:
            out += capture[at + 16 : at + 16 + int.from_bytes(capture[at + 12 : at + 16], "little")]
        at += size
    return out


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """A capture without secrets, its key log, and the folder of everything else that may be written."""
    capture, keys, home = tmp_path / "in" / "a.pcapng", tmp_path / "in" / "keys", tmp_path / "home"
    capture.parent.mkdir()
    (home / "tmp").mkdir(parents=True)
    data = CAPTURE.read_bytes()
    capture.write_bytes(without_secrets(data))
    keys.write_bytes(keylog_of(data))
    keys.chmod(0o600)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("TMPDIR", str(home / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return capture, keys, home


def forms(keys: Path) -> list[bytes]:
    """Every secret of a key log and the keys that follow from it: as bytes, and in hexadecimal digits of both cases."""
    found = set()
    for _, session in read_secrets([str(keys)]).keylog.sessions():
        for secret in session.values():
            found.add(secret)
            found |= {traffic_keys(secret, suite_of(number)).key for number in SUITES}
    assert len(found) > 8
    return [form for secret in found for form in (secret, secret.hex().encode(), secret.hex().upper().encode())]


def written(home: Path) -> Iterator[tuple[str, bytes]]:
    """Files below a folder, and files of this process that have no name any more."""
    for path in home.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()
    open_files = Path("/proc/self/fd")
    for entry in open_files.iterdir() if open_files.is_dir() else ():
        try:
            name = os.readlink(entry)
            if name.endswith("(deleted)") and name.startswith(str(home)):
                yield name, entry.read_bytes()
        except OSError:
            continue


def search(home: Path, secrets: list[bytes]) -> int:
    """How many bytes were searched, in which there are no keys."""
    size = 0
    for name, data in written(home):
        assert [secret for secret in secrets if secret in data] == [], name
        size += len(data)
    return size


def test_what_tables_and_reports_write_holds_no_key(places: tuple[Path, Path, Path]) -> None:
    capture, keys, home = places
    secrets, made = forms(keys), home / "made"
    made.mkdir()
    for at, words in enumerate((["rows"], ["rows", "--sort", "latency_ns"], ["rows", "--table", "connections"], ["check"])):
        output = made / f"{at}.{'json' if words == ['check'] else 'parquet'}"
        assert run_here(*words, str(capture), "--tls-keylog", str(keys), "-o", str(output))[0] == 0
    assert search(home, secrets) > 1000


def test_what_is_written_while_rows_are_read_holds_no_key(places: tuple[Path, Path, Path]) -> None:
    capture, keys, home = places
    secrets, rows = forms(keys), 0
    for exchange in kcap.open(str(capture), keylog=str(keys)):
        rows += exchange.row["tls"]
        if rows % 40 == 0:
            assert exchange.request is not None
            search(home, secrets)
    assert rows == 76


def test_the_spill_of_the_terminal_ui_holds_no_key(places: tuple[Path, Path, Path]) -> None:
    """Searched while it is there; what names the key log on the command line is its path alone."""
    capture, keys, home = places
    spill = home / "spill"
    spill.mkdir()
    process = Process(ReadRequest([str(capture)], str(spill), keylogs=[str(keys)]))
    process.start()
    assert process.wait(60)
    size = search(home, forms(keys))
    process.close()
    assert process.status.error is None
    assert process.status.rows > 76
    assert size > 10_000
