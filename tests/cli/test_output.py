"""Laws of output: the place is the user's, the notices are on stderr."""

import io
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kcap.cli import output
from kcap.cli.main import main
from kcap.session import no_kafka
from kcap.weird import Weird, WeirdKind
from tests.cli.running import PCAPS, kcap, run_here


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colors_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert not output.colored(None)
    monkeypatch.setattr("sys.stdout", Screen())
    assert output.colored(None)
    assert not output.colored("rows.txt")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.colored(None)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not output.colored(None)


def test_binary_formats_do_not_go_to_a_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout", Screen())
    assert main(["rows", str(PCAPS / "aiokafka.pcap"), "--format", "parquet"]) == 2
    assert "name a file with -o" in capsys.readouterr().err


def test_a_dash_is_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["rows", str(PCAPS / "aiokafka.pcap"), "--limit", "2", "--format", "jsonl", "-o", "-"]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 2
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("phases", "packets", "words"),
    [
        ({}, 3, "no Kafka found: 3 packets and no TCP connection"),
        ({"tls": 8, "http": 1}, 99, "no Kafka found in 9 connections (8 tls, 1 http)"),
        ({"tls": 8}, 99, "no Kafka found in 8 connections (8 tls); --tls-keylog"),
        ({"http": 2}, 99, "no Kafka found in 2 connections (2 http); -d tcp.port"),
    ],
)
def test_what_there_is_instead_of_kafka(phases: dict[str, int], packets: int, words: str) -> None:
    reading: Any = SimpleNamespace(phases=Counter(phases), capture_files=[SimpleNamespace(packets=packets)], weirds=[])
    said = no_kafka(reading)
    assert said.startswith(words)
    assert ("--tls-keylog" in said) == ("tls" in phases), "what helps with TLS"
    assert ("-d tcp.port" in said) == ("http" in phases), "what helps with a port that is not recognized"


def test_keys_that_do_not_help_are_said_to_be_useless_and_why() -> None:
    weirds = [(Weird(WeirdKind.NOT_KAFKA, f"tls: {why}", 0, 1, 0, str(at)), 1) for at, why in enumerate("abbbcde")]
    reading: Any = SimpleNamespace(phases=Counter(tls=7), capture_files=[SimpleNamespace(packets=9)], weirds=weirds)
    said = no_kafka(reading)
    assert said == "no Kafka found in 7 connections (7 tls); 3 with TLS: b; 1 with TLS: a; 1 with TLS: c"


def test_a_file_is_written_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rows", str(PCAPS / "aiokafka.pcap"), "-o", str(tmp_path / "rows.csv")]) == 0
    assert os.listdir(tmp_path) == ["rows.csv"]
    assert capsys.readouterr() == ("", "")


def test_a_file_that_a_shell_opens_has_the_rows_of_one_with_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: what stands in a file does not depend on when rows were decided; a pipe gets them as far as they are known then."""
    monkeypatch.setattr("kcap.limits.ROWS_PER_BATCH", 1)
    monkeypatch.setattr("kcap.capture_pass.EAGER_SECONDS", 0)
    capture, named = str(PCAPS / "no-fetch-sessions.pcap"), tmp_path / "named.csv"
    assert run_here("rows", capture, "-o", str(named), "--quiet") == (0, "")
    code, text = run_here("rows", capture, "--format", "csv", "--quiet")
    assert (code, text) == (0, named.read_text())
    piped = kcap("rows", capture, "--format", "csv", "--quiet").stdout.decode()
    assert len(piped.splitlines()) == len(text.splitlines())
