"""Laws of output: the place is the user's, the notices are on stderr."""

import io
import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kcap import open as kcap_open
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


NAME = str(PCAPS / "java-transactions.pcap")


def lines_of(*words: str) -> list[str]:
    code, said = run_here("rows", NAME, *words)
    assert code == 0, said
    return said.splitlines()


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_columns_stand_in_the_order_in_which_they_are_named(form: str) -> None:
    """Also those inside of messages, and those that only the order of rows needs are left out."""
    words = ["--columns", "api,exchange,request.client_software_name,connection", "--sort", "-latency_ns", "--format", form]
    first = lines_of(*words[:4], *words[4:])[0]
    separator = "\t" if form == "tsv" else ","
    if form == "jsonl":
        assert list(json.loads(first)) == ["api", "exchange", "request.client_software_name", "connection"]
    else:
        assert first.split(separator) == ["api", "exchange", "request.client_software_name", "connection"]


def test_rows_are_sorted_before_they_are_limited() -> None:
    every = [json.loads(line)["latency_ns"] for line in lines_of("--columns", "latency_ns", "--format", "jsonl")]
    slowest = lines_of("--sort", "-latency_ns", "--limit", "5", "--columns", "latency_ns", "--format", "jsonl")
    few = [json.loads(line)["latency_ns"] for line in slowest]
    assert few == sorted((value for value in every if value is not None), reverse=True)[:5]
    assert len(lines_of("--limit", "7", "--format", "jsonl")) == 7


@pytest.mark.parametrize("form", ["parquet", "arrow", "feather"])
def test_facts_that_come_late_are_in_the_file(tmp_path: Path, form: str) -> None:
    """The rows of a file are written once more where the end of the capture knows better."""
    name, place = str(PCAPS / "cluster-startup.pcap"), tmp_path / f"rows.{'arrows' if form == 'arrow' else form}"
    assert main(["rows", name, "-o", str(place)]) == 0
    wanted = kcap_open(name).exchanges().to_arrow().to_pylist()
    assert read(form, place).to_pylist() == wanted
    assert any(row["broker_id"] is not None for row in wanted)


def read(form: str, place: Path) -> Any:
    if form == "parquet":
        return pq.read_table(place)
    with open(place, "rb") as file:
        ipc: Any = pa.ipc
        return (ipc.open_stream(file) if form == "arrow" else ipc.open_file(file)).read_all()


def test_a_folder_is_parted_by_what_its_rows_say(tmp_path: Path) -> None:
    assert main(["rows", NAME, "--partition-by", "api", "-o", str(tmp_path / "parts"), "--columns", "connection"]) == 0
    files = sorted((tmp_path / "parts").rglob("*.parquet"))
    assert {file.parent.name.partition("=")[0] for file in files} == {"api"}
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == 110
    assert {tuple(pq.ParquetFile(file).schema_arrow.names) for file in files} == {("connection",)}


def test_children_stand_beside_their_exchange(tmp_path: Path) -> None:
    place = tmp_path / "rows.parquet"
    assert main(["rows", NAME, "--columns", "api", "--partitions", "-o", str(place)]) == 0
    assert pq.read_schema(place).names == ["api", "partitions"]


def test_fields_of_packets_need_the_lengths_of_packets(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["rows", NAME, "-T", "fields", "-e", "frame.number", "-e", "frame.len", "--limit", "3"]) == 0
    rows = [line.split(b"\t") for line in capfdbinary.readouterr().out.splitlines()]
    assert len(rows) == 3
    assert all(int(size) > 60 for _, sizes in rows for size in sizes.split(b","))


@pytest.mark.parametrize("form", ["ek", "json", "tabs"])
def test_forms_of_tshark(form: str) -> None:
    assert lines_of("-T", form, "--limit", "2")


def test_what_was_not_kept_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    reading: Any = SimpleNamespace(failed=[], phases=Counter(), weirds=[], capture_files=[])
    reading.analyzer = SimpleNamespace(kafka_connections=0)
    assert output.reported(None) == 0
    assert output.reported(reading, found=True) == 0
    assert capsys.readouterr().err == ""
    assert output.reported(reading) == 0
    assert "no Kafka found" in capsys.readouterr().err
