"""Laws of `kcap rows`: every format says the same; rows come as they are decided; several files are one capture."""

import csv
import gzip
import io
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import dpkt
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zstandard

import kcap as package
from kcap.cli.main import main
from kcap.columns import EXCHANGES, TABLES
from tests.cli.running import PCAPS, here, kcap, start
from tests.support.tls import without_secrets

JAVA = PCAPS / "java-transactions.pcap"
NAMES = [column.name for column in EXCHANGES]


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_formats_say_the_same(tmp_path: Path) -> None:
    rows = lines(here("rows", JAVA, "--format", "jsonl").stdout)
    assert [list(row) for row in rows] == [NAMES] * 110
    out = {suffix: tmp_path / f"rows.{suffix}" for suffix in ("csv", "parquet", "arrow", "jsonl")}
    for path in out.values():
        assert here("rows", JAVA, "-o", path).returncode == 0, "the name says the format"
    assert lines(out["jsonl"].read_bytes()) == rows
    table = pq.read_table(out["parquet"])
    assert table.equals(pa.ipc.open_file(out["arrow"]).read_all())
    assert table.column("exchange").to_pylist() == [row["exchange"] for row in rows]
    names, *fields = csv.reader(io.StringIO(out["csv"].read_text(), newline=""))
    assert names == NAMES
    assert [field[NAMES.index("latency_ns")] for field in fields] == [str(row["latency_ns"]) for row in rows]


def test_each_suffix_is_what_it_says(tmp_path: Path) -> None:
    """Read by whoever reads such files; compressed text is the plain text once it is inflated."""

    def file(suffix: str) -> Path:
        path = tmp_path / f"rows{suffix}"
        done = here("rows", JAVA, "-o", path)
        assert (done.returncode, done.stderr) == (0, b"")
        return path

    table = pq.read_table(file(".parquet"))
    assert table.num_rows == 110
    assert pq.read_table(file(".pq")).equals(table)
    assert pa.feather.read_table(file(".feather")).equals(table)
    assert pa.feather.read_table(file(".arrow")).equals(table)
    assert pa.ipc.open_file(tmp_path / "rows.arrow").read_all().equals(table)
    assert pa.ipc.open_stream(file(".arrows")).read_all().equals(table)
    rows = lines(file(".jsonl").read_bytes())
    assert json.loads(file(".json").read_bytes()) == lines(file(".ndjson").read_bytes()) == rows
    for suffix in (".csv", ".tsv", ".json", ".jsonl", ".ndjson"):
        plain = file(suffix).read_bytes()
        assert gzip.decompress(file(f"{suffix}.gz").read_bytes()) == plain
        assert zstandard.ZstdDecompressor().stream_reader(file(f"{suffix}.zst").read_bytes()).read() == plain
    commas = list(csv.reader(io.StringIO((tmp_path / "rows.csv").read_text(), newline="")))
    assert list(csv.reader(io.StringIO((tmp_path / "rows.tsv").read_text(), newline=""), delimiter="\t")) == commas
    assert file(".html").read_text().count("<tr>") == file(".md").read_text().count("\n") - 1 == 111
    assert file(".txt").read_bytes() == here("rows", JAVA).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "x.xlsx"], "write .csv or .parquet"),
        (["-o", "x.foo"], "known are .json, .jsonl"),
        (["-o", "x.csv", "--format", "parquet"], "says csv"),
        (["-T", "json", "-o", "x.csv"], "says csv"),
        (["--partition-by", "hour", "-o", "x.csv"], "says csv"),
    ],
    ids=str,
)
def test_a_name_that_lies_is_refused(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("rows", "connections") if words[0] == "-o" else ("rows",):
        done = here(command, JAVA, *words)
        assert (done.returncode, done.stdout) == (2, b"")
        assert said in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_binary_formats_go_through_pipes_too() -> None:
    for form in ("parquet", "feather", "arrow"):
        data = here("rows", JAVA, "--format", form, "--columns", "api").stdout
        readers = {"parquet": pq.read_table, "feather": pa.feather.read_table}
        table = readers[form](pa.BufferReader(data)) if form in readers else pa.ipc.open_stream(data).read_all()
        assert table.num_rows == 110


def test_the_default_is_a_table() -> None:
    head, *rest = here("rows", JAVA).stdout.decode().splitlines()
    assert head.startswith("time 2026-11-21  client")
    assert len(rest) == 110
    assert "Produce v13" in rest[9]


def test_columns_limit_and_ways_to_name_a_file() -> None:
    want = lines(here("rows", JAVA, "--format", "jsonl", "--columns", "api, exchange").stdout)
    assert list(want[0]) == ["api", "exchange"]
    for arguments in ((JAVA,), ("-r", JAVA), ("-r", f"{PCAPS}/java-tr*.pcap")):
        found = here("rows", *arguments, "--format", "jsonl", "--columns", "api,exchange", "--limit", "7")
        assert lines(found.stdout) == want[:7]
    assert here("rows", JAVA, "--limit", "0", "--format", "csv", "--columns", "api").stdout == b"api\n"


def test_standard_input_gives_the_same_rows() -> None:
    want = here("rows", JAVA, "--format", "jsonl", "--columns", "connection,exchange,time,error").stdout
    found = kcap("rows", "-", "--format", "jsonl", "--columns", "connection,exchange,time,error", stdin=JAVA.read_bytes())
    assert found.stdout == want


def test_rows_of_a_pipe_come_while_it_is_open() -> None:
    process = start("rows", "-", "--format", "jsonl", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(JAVA.read_bytes())
    process.stdin.flush()
    first = [json.loads(process.stdout.readline()) for _ in range(100)]
    assert first[0]["api"] == "ApiVersions"
    process.stdin.close()
    rest = process.stdout.read().splitlines()
    process.stdout.close()
    assert process.wait() == 0
    assert len(rest) == 10


def test_lengths_of_packets_are_those_of_their_files() -> None:
    """Law: of a rotated set, where messages go over from file to file, and of a part alone, which begins in the middle."""
    parts = [PCAPS / f"rotated.pcap{number}" for number in ("", 1, 2)]
    sizes = {}
    for part in parts:
        with part.open("rb") as file:
            sizes[part.name] = [len(data) for _, data in dpkt.pcap.Reader(file)]
    ends = [f"{side}_{end}_packet" for side in ("request", "response") for end in ("first", "last")]
    fields = ["capture", "request_last_capture", "response_capture", "response_last_capture", *ends, "frame.len"]
    for paths in (parts, parts[1:2]):
        words = [word for field in fields for word in ("-e", field)]
        done = here("rows", *map(str, paths), "-T", "fields", *words).stdout.decode().splitlines()
        assert done
        for line in done:
            first, request, response, last, *numbers, found = line.split("\t")
            files = (first, request or first, response, last or response)
            packets = dict.fromkeys((file, int(number)) for file, number in zip(files, numbers) if file and number)
            assert found == ",".join(str(sizes[file][number - 1]) for file, number in packets), line


def test_several_files_are_one_capture(truths: dict[str, Any]) -> None:
    names = truths["rotated.pcap"]["files"]
    rows = lines(here("rows", *(PCAPS / name for name in reversed(names)), "--format", "jsonl").stdout)
    assert {row["capture"] for row in rows} == set(names)
    across = [row for row in rows if row["capture"] != row["response_capture"] and row["outcome"] == "answered"]
    assert across, "a request at the end of one file, its answer at the beginning of the next"
    assert [row["reason"] for row in rows if row["outcome"] == "orphan"] == []


@pytest.mark.parametrize("table", TABLES)
def test_every_table(table: str) -> None:
    files = [PCAPS / "raw-frames.pcap", PCAPS / "go-franz.pcap", *([PCAPS / "tls13.pcapng"] if table == "tls_turns" else [])]
    payloads = ["--payloads"] if table == "records" else []
    found = lines(here("rows", *files, "--table", table, *payloads, "--format", "jsonl").stdout)
    want = package.open(*map(str, files)).table(table).to_arrow()
    assert len(found) == want.num_rows > 0
    assert list(found[0]) == want.schema.names


def test_the_users_word_on_ports_counts() -> None:
    done = here("rows", JAVA, "--not-kafka", "9092", "--format", "jsonl")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"kcap: no Kafka found in 17 connections")
    assert len(here("rows", JAVA, "-d", "tcp.port==9092,kafka", "--format", "jsonl").stdout.splitlines()) == 110


def test_as_tshark_users_type_it(pcaps: Path) -> None:
    """-T fields -e -E, -c, and what contradicts."""
    done = here(
        "rows", pcaps / "pipelined.pcap", "-T", "fields", "-e", "kafka.api_key", "-e", "api", "-E", "separator=|", "-c", "2"
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert all(line.count(b"|") == 1 for line in done.stdout.splitlines())
    assert here("rows", pcaps / "pipelined.pcap", "-e", "api").returncode == 2
    named = ("-T", "fields", "-e", "api", "-e", "kafka.partition_id")
    lines = here("rows", pcaps / "pipelined.pcap", *named).stdout.split(b"\n")
    assert [lines.count(line) for line in (b"Metadata\t0,2,1", b"Produce\t2", b"ApiVersions\t")] == [1, 412, 2]
    assert here("rows", pcaps / "pipelined.pcap", "-T", "fields", "-e", "apis").returncode == 2
    array = json.loads(here("rows", pcaps / "pipelined.pcap", "-T", "json", "--columns", "api", "-c", "3").stdout)
    assert len(array) == 3


def test_sorted_rows(pcaps: Path) -> None:
    """The slowest first; the column that is sorted by need not be shown."""
    done = here(
        "rows",
        pcaps / "java-transactions.pcap",
        "--sort=-latency_ns",
        "--format",
        "csv",
        "--columns",
        "latency_ns",
        "--limit",
        "9",
    )
    found = [int(text) for text in done.stdout.split()[1:]]
    assert found == sorted(found, reverse=True)
    assert len(found) == 9
    assert here("rows", pcaps / "java-transactions.pcap", "--sort", "nothing").returncode == 2


@pytest.mark.parametrize(
    ("words", "found"),
    [(["--payloads"], '  {"seed":21'), (["--payloads", "text", "--format", "csv"], 'fruit-py-0,"{""seed"":21'),
     (["--payloads", "hex"], "66727569742d70792d30"), (["--payloads", "--format", "jsonl"], '"key":"ZnJ1aXQtcHktMA=="')],
)  # fmt: skip
def test_payloads_are_shown_as_they_are_asked_for(words: list[str], found: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file behind --payloads stays a file."""
    shown = ["--table", "records", "--limit", "1", "--columns", "key,value"]
    assert main(["rows", *shown, *words, str(PCAPS / "aiokafka.pcap")]) == 0
    assert found in capsys.readouterr().out


def test_bytes_in_parquet_are_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rows", "--table", "records", str(PCAPS / "aiokafka.pcap"), "-o", str(tmp_path / "a.parquet"), "--payloads"]
    assert main(words) == 0
    assert pa.types.is_binary(pq.read_schema(tmp_path / "a.parquet").field("value").type)
    assert main([*words, "hex"]) == 2
    assert "stores bytes unchanged" in capsys.readouterr().err


def test_a_key_log_that_grows_while_a_pipe_is_read_decrypts_what_came_before_it(tmp_path):
    """The rows are those of a key log that was whole from the beginning, and no key is in what is printed."""
    data = (PCAPS / "tls13.pcapng").read_bytes()
    lines = re.findall(rb"[A-Z]+_[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64,96}", data)
    bare, log, half = without_secrets(data), tmp_path / "keys", len(data) // 3
    log.write_bytes(b"\n".join(lines) + b"\n")
    log.chmod(0o600)
    wanted = kcap("rows", "-", "--format", "jsonl", "--tls-keylog", log, stdin=bare).stdout.splitlines()
    log.write_bytes(b"")
    done = start(
        "rows", "-", "--format", "jsonl", "--tls-keylog", log, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    done.stdin.write(bare[:half])
    done.stdin.flush()
    time.sleep(0.8)
    log.write_bytes(b"\n".join(lines) + b"\n")
    found, said = done.communicate(bare[half:])
    assert sorted(found.splitlines()) == sorted(wanted)
    assert sum(json.loads(line)["tls"] for line in wanted) == 76
    assert not any(line.split()[2] in found + said for line in lines)
