"""Laws of the entry point: what goes wrong is one line and an exit code; help loads nothing."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from kcap import __version__
from kcap.cli.main import FIRST, is_file, main, not_a_command
from tests.cli.running import COMMAND, ENVIRONMENT, PCAPS, ROOT, kcap, start

JAVA = str(PCAPS / "java-transactions.pcap")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in ("rows", "connections", "health"))
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"kcap {__version__}\n")


def test_linear_algebra_starts_no_threads_unless_the_user_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    main(["--version"])
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    main(["--version"])
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"


def test_the_version_is_that_of_the_project() -> None:
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_help_is_quick_and_loads_no_arrow() -> None:
    program = "import sys; from kcap.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert time.perf_counter() - began < 1.0, "a tenth of a second on an idle machine"
    assert not {"pyarrow", "numpy", "pandas"} & set(done.stderr.split())


@pytest.mark.parametrize("name", ["rows", "connections", "versions"])
def test_no_command_loads_pandas(name: str) -> None:
    """pyarrow does where nothing keeps it from that, which costs 0.3 s and 40 MB."""
    program = f"import sys; from kcap.cli.main import main; sys.exit(main([{name!r}, {JAVA!r}]) or 'pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, check=True)


@pytest.mark.parametrize(("name", "most"), [("latency", 29_800), ("stats", 40_000), ("topics", 32_100), ("errors", 31_600)])
def test_a_report_as_text_loads_nothing_that_it_does_not_use(name: str, most: int) -> None:
    """Law: no more than `most` lines of kcap, nothing of filters, compilers, TLS handshakes, file systems and trees. Imports
    are half of the time of a small report."""
    program = f"import sys; from kcap.cli.main import main; main([{name!r}, {JAVA!r}]); print(*sys.modules, file=sys.stderr)"
    run = [sys.executable, "-c", program]
    subprocess.run(run, env=ENVIRONMENT, capture_output=True, check=True)  # compiles its SQL, unless that is kept already
    loaded = {*subprocess.run(run, env=ENVIRONMENT, capture_output=True, text=True, check=True).stderr.split()}
    compilers = {"kcap.filter.ast", "kcap.filter.fields", "ibis", "duckdb", "statistics", "subprocess", "difflib"}
    others = {"pyarrow.parquet", "pyarrow.fs", "kcap.tls.handshake", "kcap.tls.suites", "kcap.decode.tree"}
    assert loaded & (compilers | others) == set()
    own = [find_spec(module) for module in loaded if module.partition(".")[0] == "kcap"]
    assert sum(Path(str(spec.origin)).read_bytes().count(b"\n") for spec in own if spec is not None) <= most
    assert {"kcap.session", "_duckdb"} <= loaded


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rosw", JAVA], "no such command or file 'rosw'; did you mean rows"),
        (["xyz"], "no such command or file 'xyz'; to begin with: browse, check"),
        ([JAVA], "the terminal UI needs a terminal; kcap rows FILE prints the exchanges"),
        (["-d", "9092", JAVA], "tcp.port==9094,kafka"),
        (["rows"], "no capture given"),
        (["rows", JAVA, "--format", "xml"], "'xml' is not one of"),
        (["rows", JAVA, "--no-such"], "--no-such"),
        (["--no-such"], "--no-such"),
        (["rows", JAVA, "--columns", "apu"], "no column 'apu'; did you mean api"),
        (["rows", JAVA, "-d", "tcp.port==9092,http"], "tcp.port==9094,kafka"),
        (["rows", JAVA, "-d", "tcp.port==9092,kafka", "--not-kafka", "9092"], "port 9092 is given as Kafka and as not Kafka"),
        (["rows", JAVA, "--tls-keylog", "no-such-file"], "no-such-file"),
    ],
)
def test_wrong_usage_is_told_in_one_line(capfd: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert main(arguments) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert error.startswith("kcap: ")
    assert len(error.splitlines()) == 1
    assert words in error


def test_kcap_alone_says_how_to_begin_on_one_screen(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert all(f"kcap {name} " in "\n".join(lines) for name in FIRST if name != "browse")


def test_what_is_no_command() -> None:
    assert is_file("-")
    assert is_file("missing.pcapng")
    assert not is_file("helth")
    assert "did you mean health" in not_a_command("helth")


def test_a_capture_that_cannot_be_read_is_3(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.pcap", b"no such file"), (ROOT / "README.md", b"no capture")):
        done = kcap("rows", path)
        assert (done.returncode, done.stdout) == (3, b"")
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_bad_file_among_good_ones_is_3_at_the_end() -> None:
    done = kcap("rows", JAVA, ROOT / "README.md", "--format", "jsonl")
    assert done.returncode == 3
    assert len(done.stdout.splitlines()) == 110
    assert b"README.md: no capture" in done.stderr


def test_output_that_cannot_be_written_is_4(tmp_path: Path) -> None:
    done = kcap("rows", JAVA, "-o", tmp_path / "no" / "rows.csv")
    assert done.returncode == 4
    assert b"no such file or directory" in done.stderr
    if Path("/dev/full").exists():
        with open("/dev/full", "wb") as full:
            words = [*COMMAND, "rows", JAVA, "--format", "jsonl"]
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False)
        assert done.returncode == 4
        assert done.stderr == b"kcap: standard output: no space left on device\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = start("rows", *[PCAPS / f"rotated.pcap{n}" for n in ("", 1, 2)], "--format", "jsonl", stdout=-1, stderr=-1)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A pipe that says no more keeps it waiting in the middle of its work."""
    before = signal.signal(number, signal.default_int_handler)  # as a child inherits it: under nohup(1) SIGHUP is ignored
    process = start("rows", "-", "-o", tmp_path / "rows.parquet", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(number, before)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(Path(JAVA).read_bytes())
    process.stdin.flush()
    until = time.monotonic() + 20
    while not os.listdir(tmp_path) and time.monotonic() < until:
        time.sleep(0.02)
    assert os.listdir(tmp_path)
    process.send_signal(number)
    assert process.wait(20) == code
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()
    assert os.listdir(tmp_path) == []


MEDDLES = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
except BaseException:
    raise TypeError
"""
"""Replaces an exception while it is imported, as compiled modules do."""
WAITS = """
import signal, sys, time
from kcap.cli import main as entry
entry.main(["--version"])
import meddles
time.sleep(10)
"""


def test_a_signal_within_an_import_ends_the_run_behind_it(tmp_path: Path) -> None:
    (tmp_path / "meddles.py").write_text(MEDDLES, encoding="utf-8")
    command = [sys.executable, "-c", WAITS]
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (143, b"")
