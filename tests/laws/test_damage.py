"""No exception crosses a stage: mutants of real captures, and faults put into the code on purpose.

A fault that is put into a reader costs the exchange whose bytes hold POISON, or the connection, and is reported; all other rows
are what they were without it, in each front end.
"""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import kcap
from kcap import limits
from kcap.cli.main import main
from kcap.decode import projection
from kcap.decode.json import JsonReader
from kcap.kafka.requests import RequestFramer
from kcap.records import legacy, record_sets
from kcap.table.builder import Table
from kcap.tui.reader_main import Child, ReadRequest
from kcap.tui.spill import main_path, read_file
from tests.records.batches import batch, message, record
from tests.support.messages import saved
from tests.support.wire import Tap, metadata, metadata_answer, produce, produce_answer

ROOT = Path(__file__).resolve().parents[2]
POISON = b"POISON"
WORDS = "a fault on purpose"
REPORTS = ("latency", "stats", "slow", "throttle", "errors", "topics", "clients", "versions", "health")


@pytest.mark.slow
def test_mutants_of_captures_raise_nothing(pcaps: Path) -> None:
    """A short run of the harness; `python tests/fuzz/mutate_captures.py` runs for as long as one likes."""
    harness = [sys.executable, str(ROOT / "tests/fuzz/mutate_captures.py"), str(pcaps), "--seed", "7", "--count", "10"]
    done = subprocess.run([*harness, "--seconds", "1200"], capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "'tables': 10," in done.stdout


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Two connections of a metadata and three Produce exchanges each; of the first one's the second holds POISON."""
    taps = []
    for port in (40_000, 41_000):
        tap = Tap(port=port, client_isn=port, time_ns=port * 1_000_000).open().client(metadata(1)).server(metadata_answer(1, 1))
        for correlation in (2, 3, 4):
            value = POISON if (port, correlation) == (40_000, 3) else b"value"
            packed = message(gzip.compress(message(value, offset=0)), codec=1)
            blob = message(value) + packed + batch(record(value=value))
            tap.client(produce(correlation, 1, blob)).server(produce_answer(correlation))
        taps.append(tap.close())
    return saved(tmp_path / "two.pcap", *taps)


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kcap.open(path).table(table).to_arrow().to_pylist()
    return found


def poisoned(path: Path) -> tuple[str, int]:
    """Connection and number of the exchange."""
    row = next(row for row in rows(path, "exchanges") if row["client_port"] == 40_000 and row["correlation_id"] == 3)
    return row["connection"], row["exchange"]


def others(table: list[dict[str, Any]], name: tuple[str, int]) -> list[dict[str, Any]]:
    return [row for row in table if (row["connection"], row["exchange"]) != name]


def faulty(old: Callable[..., Any], held: Callable[..., bytes]) -> Callable[..., Any]:
    """A function that fails where what it is about holds POISON."""

    def fault(*given: Any, **named: Any) -> Any:
        if POISON in held(*given, **named):
            raise RuntimeError(WORDS)
        return old(*given, **named)

    return fault


def of_span(_state: Any, _rows: Any, buffer: bytes, end: int) -> bytes:
    return bytes(buffer[_state.position : end])


def of_reader(reader: Any, *_: Any) -> bytes:
    return bytes(reader.cursor.buffer)


def of_message(blob: bytes, start: int, end: int) -> bytes:
    data = bytes(blob[start:end])
    return gzip.decompress(data[data.index(b"\x1f\x8b") :]) if b"\x1f\x8b" in data else data


FAULTS: dict[str, tuple[Any, str, Callable[..., bytes]]] = {
    "projection": (projection, "run", of_span),
    "json": (JsonReader, "fields", of_reader),
    "batches": (record_sets, "read_batch", of_message),
    "messages": (legacy, "read_message", of_message),
    "counting": (legacy, "count_of", of_message),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", FAULTS)
def test_a_reader_that_fails_costs_one_exchange(
    name: str, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, what, held = FAULTS[name]
    hurt = poisoned(capture)
    before = {table: rows(capture, table) for table in ("exchanges", "partitions", "records", "connections")}
    with (
        patch.object(limits, "FAST_PATH_AFTER_PACKETS", 1 << 60),
        patch.object(projection, "JIT_AFTER", 1 << 60),  # what other tests projected in this process must not count
        patch.object(where, what, faulty(getattr(where, what), held)),
    ):
        for table in ("exchanges", "partitions", "records"):
            assert others(rows(capture, table), hurt) == others(before[table], hurt), table
        assert rows(capture, "connections") == before["connections"]
        row = next(row for row in rows(capture, "exchanges") if (row["connection"], row["exchange"]) == hurt)
        assert (row["api"], row["client_id"], row["outcome"], row["correlation_id"]) == ("Produce", "app", "answered", 3)
        if name in ("projection", "counting"):
            assert "undecoded" in row["flags"]
        for table in ("exchanges", "partitions", "records"):
            reading = kcap.open(capture).read()
            assert sum(made.num_rows for made in Table(lambda one=reading: one, table).record_batches())
            reported = [weird for weird, _ in reading.weirds if weird.kind == "decoder_failed"]
            expected = {"projection": True, "json": table == "records", "batches": table != "exchanges"}
            expected |= {"messages": table != "exchanges", "counting": table == "exchanges"}
            assert bool(reported) == expected[name], table
            assert all("RuntimeError in " in weird.detail and WORDS not in weird.detail for weird in reported)
            assert all(weird.connection == hurt[0] and weird.packet for weird in reported)
        for exchange in kcap.open(capture):
            own = (exchange.row["connection"], exchange.row["exchange"]) == hurt
            for found in (exchange.request, exchange.response):
                assert found is not None
                found.to_json()
                assert (found.undecoded is None) or own
                walk(found.tree())
        assert main(["show", str(capture), f"{hurt[0]}.{hurt[1]}", "--payloads"]) == 0
        for report in REPORTS:
            assert main([report, str(capture)]) == 0
        screen_reads(capture, tmp_path, len(before["exchanges"]))
    assert WORDS not in capsys.readouterr().out


def walk(node: Any) -> None:
    for child in node.children:
        walk(child)


class Line:
    """The other end of the reading process: notes what it is sent."""

    def __init__(self) -> None:
        self.status: Any = None

    def send(self, status: Any) -> None:
        self.status = status


def screen_reads(path: Path, folder: Path, count: int) -> None:
    """The terminal UI's reading process comes to its end with all rows."""
    spill = folder / "spill"
    spill.mkdir()
    line: Any = Line()
    Child(ReadRequest([str(path)], str(spill)), line)._read()
    assert line.status.over
    assert line.status.error is None
    assert read_file(main_path(str(spill), "exchanges")).num_rows == count


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize("method", ["data", "finish"])
def test_a_stream_that_fails_costs_one_connection(fast_path: bool, method: str, capture: Path) -> None:
    """Its rows so far stay, what waits is flagged, its bytes are all accounted for, and the others know nothing of it."""
    uid = poisoned(capture)[0]
    before = rows(capture, "exchanges")

    def of_connection(framer: RequestFramer, *_: Any) -> bytes:
        last = framer.stream.connection.flows[0][-4:]
        its = (40_000).to_bytes(2, "big") in (last[:2], last[2:])
        return POISON if its and (method == "finish" or framer.frames >= 2) else b""

    old = getattr(RequestFramer, method)
    late = patch.object(limits, "FAST_PATH_AFTER_PACKETS", 0 if fast_path else 1 << 60)
    with late, patch.object(RequestFramer, method, faulty(old, of_connection)):
        found, connections, weirds = (rows(capture, name) for name in ("exchanges", "connections", "weirds"))
    hurt = [row for row in found if row["connection"] == uid]
    assert [row for row in found if row["connection"] != uid] == [row for row in before if row["connection"] != uid]
    reported = [weird for weird in weirds if weird["kind"] == "decoder_failed"]
    if not fast_path:
        assert len(hurt) >= 2
        assert [weird["connection"] for weird in reported] == [uid]
    for line in connections:
        for side in ("client", "server"):
            parts = [line[f"{side}_{part}"] for part in ("framed", "skipped", "opaque", "pending")]
            assert line[f"{side}_captured"] == sum(parts)


def test_a_compressed_message_whose_header_is_cut_has_no_records(pcaps: Path) -> None:
    """Messages of formats 0 and 1 are inflated to be counted; one that is not all there is not read on into what follows."""
    path = pcaps / "cut-message.pcap"
    row = rows(path, "exchanges")[-1]
    assert (row["api"], row["api_version"], row["topics"], row["flags"]) == ("Produce", 2, ["orders-9"], ["snaplen"])
    assert rows(path, "records") == []
    (partition,) = (row for row in rows(path, "partitions") if row["topic"] == "orders-9")
    assert (partition["partition"], partition["records"], partition["bytes"]) == (0, 0, 20)
