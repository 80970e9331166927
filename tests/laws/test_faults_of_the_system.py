"""What the system refuses leads to the right answer, or to one line and an exit code: full disks, few descriptors, little
memory, temporary folders that are not there, captures that shrink, ends by a signal. Nothing is left half-written.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kcap
from kcap.limits import ADDRESS_SPACE_DUCKDB, ADDRESS_SPACE_TABLES
from tests.cli.running import COMMAND, ENVIRONMENT, PCAPS, start

CAPTURE = PCAPS / "aiokafka.pcap"
SMALL = 2000
"""Bytes of the largest file that may be written: fewer than any output of these commands has."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes as Linux has them")


def limited(
    words: list[str], folder: Path, limits: dict[int, int], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs kcap in a folder under limits of the process (`resource.RLIMIT_*`). It keeps no bytecode: CPython 3.11 keeps what is
    cut off at a file's largest size, and no program can import it after that.
    """

    def bound() -> None:
        for number, value in limits.items():
            resource.setrlimit(number, (value, value))

    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONDONTWRITEBYTECODE": "1"} | (environment or {}),
        preexec_fn=bound,
        capture_output=True,
        timeout=60,
        check=False,
    )


def one_line(message: bytes) -> bool:
    """Whether it is a message for a person."""
    return message.startswith(b"kcap: ") and message.count(b"\n") == 1 and b"Traceback" not in message


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["rows", str(CAPTURE), "-o", "rows.parquet"], b"rows.parquet"),
        (["rows", str(CAPTURE), "-o", "rows", "--partition-by", "api"], b"part-00001.parquet"),
        (["cut", str(CAPTURE), "-o", "cut.pcapng"], b"cut.pcapng"),
        (["merge", str(CAPTURE), "-o", "merged.pcap"], b"merged.pcap"),
        (["errors", str(CAPTURE), "-o", "errors.html"], b"temporary files"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else None,
)
def test_a_full_disk_is_4_and_nothing_stays(words: list[str], named: bytes, tmp_path: Path) -> None:
    """A file that may not grow fails in `write` as on a full disk, with another number of the error."""
    done = limited(words, tmp_path, {resource.RLIMIT_FSIZE: SMALL}, {"TMPDIR": str(tmp_path)})
    assert done.returncode == 4
    assert one_line(done.stderr)
    assert named in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("limits", "environment"),
    [
        ({resource.RLIMIT_NOFILE: 16}, {}),
        ({resource.RLIMIT_AS: 450 << 20}, {"OPENBLAS_NUM_THREADS": "1"}),
        ({}, {"TMPDIR": "/no/such/folder", "HOME": "/no/such/folder", "XDG_CACHE_HOME": "/proc/no"}),
    ],
    ids=["descriptors", "memory", "temporary"],
)
def test_little_of_something_gives_the_right_answer(
    limits: dict[int, int], environment: dict[str, str], tmp_path: Path
) -> None:
    """Of more files than there may be descriptors."""
    files = sorted(map(str, PCAPS.glob("*.pcap")))[:8] * 3
    (tmp_path / "less").mkdir()
    done = limited(["rows", *files, "-o", "rows.jsonl"], tmp_path / "less", limits, environment)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "all").mkdir()
    assert limited(["rows", *files, "-o", "rows.jsonl"], tmp_path / "all", {}).returncode == 0
    assert (tmp_path / "less/rows.jsonl").read_bytes() == (tmp_path / "all/rows.jsonl").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_file_has_its_name_before_it_is_whole(number: signal.Signals, tmp_path: Path) -> None:
    """A stalled pipe keeps the command in the middle of its work; only what cannot be caught leaves a part beside it."""
    process = start("rows", "-", "-o", tmp_path / "rows.parquet", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(CAPTURE.read_bytes()[:50_000])
    process.stdin.flush()
    until = time.monotonic() + 20
    while not os.listdir(tmp_path) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(20) == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()
    left = os.listdir(tmp_path)
    assert left == [] if number == signal.SIGTERM else all(name.startswith(".rows.parquet.") for name in left)


@pytest.mark.parametrize("left", [0, 10, 24, 1_500_003])
def test_a_capture_may_shrink_while_it_is_read(left: int, tmp_path: Path) -> None:
    """What was read counts; the capture's row says that the rest is missing or that it was cut."""
    data = CAPTURE.read_bytes()
    path = tmp_path / "shrinks.pcap"
    path.write_bytes(data[:24] + data[24:] * 40)
    whole = len(list(kcap.open(path)))
    seen = 0
    for number, _ in enumerate(kcap.open(path)):
        if number == 0:
            os.truncate(path, left)
        seen += 1
    assert 0 < seen <= whole
    cut = kcap.open(path)
    if left >= 24:
        assert len(list(cut)) <= whole
        assert len(cut.captures().to_arrow()) == 1
    else:
        with pytest.raises(kcap.CaptureError):
            list(cut)


@pytest.mark.parametrize(("words", "least"), [(["rows"], ADDRESS_SPACE_TABLES), (["check"], ADDRESS_SPACE_DUCKDB)])
def test_too_little_address_space_is_a_line(
    words: list[str], least: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`ulimit -v`: before libraries are loaded that would end the process."""
    from kcap.cli.main import main

    monkeypatch.setattr(resource, "getrlimit", lambda _: (least - 1, -1))
    assert main([*words, str(CAPTURE)]) == 3
    message = capfd.readouterr().err
    assert one_line(message.encode())
    assert f"needs {least >> 20} MB" in message
    assert main(["schema", "Fetch"]) == 0


def test_out_of_memory_is_a_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Where an allocation fails that is not a single connection's."""
    from kcap.cli.main import main
    from kcap.net.segments import SegmentParser

    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(SegmentParser, "columns", fails)
    assert main(["rows", str(CAPTURE)]) == 3
    assert capfd.readouterr().err == "kcap: out of memory\n"


@pytest.mark.parametrize("words", [["merge", "-o", "out.pcap"], ["rows", "-o", "out.jsonl"]], ids=lambda words: words[0])
def test_more_files_at_once_than_may_be_open_are_a_line(words: list[str], tmp_path: Path) -> None:
    """Files that overlap in time are open at once: what can be opened of them is not the whole, and must not pass for it."""
    copies = [tmp_path / f"{number:02}.pcap" for number in range(24)]
    for copy in copies:
        copy.write_bytes(CAPTURE.read_bytes())
    (tmp_path / "made").mkdir()
    done = limited([words[0], *map(str, copies), *words[1:]], tmp_path / "made", {resource.RLIMIT_NOFILE: 16})
    assert done.returncode == 3
    assert one_line(done.stderr)
    assert b"too many open files" in done.stderr
    assert os.listdir(tmp_path / "made") == []
