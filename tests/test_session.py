"""Laws of a capture in Python: every pass sees the same; messages read again are those of the wire."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kcap
from kcap import limits
from kcap.analyzer import Options
from kcap.capture.fileset import FileSet
from kcap.errors import CaptureError, UsageError
from kcap.session import Capture, CapturePass
from tests.fuzz.hostile import CLASSES

NAMES = ["java-transactions.pcap", "aiokafka.pcap", "quota-0.10.pcap", "pipelined.pcap", "any-interface.pcap"]


@pytest.mark.parametrize("name", NAMES)
def test_messages_read_again_are_those_of_the_rows(pcaps: Path, name: str) -> None:
    """Of every tenth exchange: sizes, headers, and what its bodies say."""
    requests = responses = 0
    for number, exchange in enumerate(kcap.open(pcaps / name)):
        if number % 10:
            continue
        row, request, response = exchange.row, exchange.request, exchange.response
        if row["request_bytes"] is not None:
            requests += 1
            assert request is not None
            assert len(request.frame) + 4 == row["request_bytes"]
            header = request.header
            for field in ("api_key", "api_version", "correlation_id", "client_id"):
                assert getattr(header, field) == row[field]
            assert request.undecoded is None
        if row["outcome"] == "answered":
            responses += 1
            assert response is not None
            assert len(response.frame) + 4 == row["response_bytes"]
            assert response.header.correlation_id == row["correlation_id"]
            body = response.to_json()
            assert body is not None
            assert body.get("throttleTimeMs") == row["throttle_time_ms"]
            assert response.undecoded is None
        else:
            assert response is None
    assert requests > 5
    assert responses > 5


def test_packets_are_those_of_the_frames(pcaps: Path) -> None:
    for exchange in kcap.open(pcaps / "librdkafka-zstd.pcap"):
        row, packets = exchange.row, exchange.packets()
        times = [packet.time_ns for packet in packets]
        assert times == sorted(times)
        for name in ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns"):
            assert row[name] is None or row[name] in times
        if "truncated" not in row["flags"]:
            assert sum(len(packet.data) for packet in packets) >= (row["request_bytes"] or 0) + (row["response_bytes"] or 0)


def test_iteration_and_table_say_the_same(pcaps: Path) -> None:
    capture = kcap.open(pcaps / "raw-frames.pcap", pcaps / "sasl-raw-tokens.pcap")
    rows = [exchange.row for exchange in capture]
    assert rows == capture.exchanges().to_arrow().to_pylist()
    assert "SaslToken" in {row["api"] for row in rows}


def test_raw_tokens_and_orphans_are_no_messages_of_a_kind(pcaps: Path) -> None:
    tokens = [exchange for exchange in kcap.open(pcaps / "sasl-raw-tokens.pcap") if exchange.row["api"] == "SaslToken"]
    assert tokens
    assert all(token.request is None and token.response is None for token in tokens)
    assert all(token.packets() for token in tokens), "their packets are there all the same"
    assert "SaslToken" in repr(tokens[0])


def test_several_files_and_what_goes_over_their_ends(pcaps: Path) -> None:
    capture = kcap.open(*(pcaps / name for name in ("rotated.pcap", "rotated.pcap1", "rotated.pcap2")))
    for exchange in capture:
        if exchange.row["outcome"] == "answered":
            assert (exchange.request is None) == (exchange.row["request_last_capture"] is not None)
            assert (exchange.response is None) == (exchange.row["response_last_capture"] is not None)


def test_a_pipe_allows_one_pass_and_keeps_no_bodies(pcaps: Path) -> None:
    program = """
import json, kcap
from kcap.errors import UsageError
capture = kcap.open("-")
rows = bodies = 0
for exchange in capture:
    rows += 1
    bodies += exchange.request is not None
try:
    capture.exchanges().to_arrow()
    again = ""
except UsageError as error:
    again = str(error)
print(json.dumps([rows, bodies, again]))
"""
    with open(pcaps / "java-transactions.pcap", "rb") as file:
        done = subprocess.run([sys.executable, "-c", program], stdin=file, capture_output=True, check=True, cwd=pcaps.parent)
    assert json.loads(done.stdout) == [110, 0, "a pipe can be read once"]


def test_what_cannot_be_opened(pcaps: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"none\.pcap: no such file"):
        kcap.open(tmp_path / "none.pcap", pcaps / "aiokafka.pcap")
    with pytest.raises(UsageError, match="no capture given"):
        kcap.open()
    (tmp_path / "text.pcap").write_text("no capture at all")
    with pytest.raises(CaptureError, match="no capture"):
        kcap.open(tmp_path / "text.pcap").exchanges().to_arrow()


def test_folders_and_globs(pcaps: Path) -> None:
    assert kcap.open(str(pcaps / "rotated.pcap*")).captures().to_arrow().num_rows == 3
    assert kcap.open(pcaps).captures(["capture"]).to_arrow().num_rows > 15


def test_a_reading_tells_how_far_it_is(pcaps: Path) -> None:
    reading = CapturePass([str(pcaps / "raw-frames.pcap")])
    steps: list[int] = []
    reading.watch = lambda: steps.append(reading.bytes)
    rows = sum(len(batch) for batch in reading.batches())
    assert reading.rows == rows > 0
    assert steps == sorted(steps)
    assert reading.total_bytes == (pcaps / "raw-frames.pcap").stat().st_size
    assert 0 < reading.bytes < reading.total_bytes
    assert reading.phases["kafka"] > 0
    assert reading.details["http"] == 1
    assert reading.connections == []


def test_a_patient_reading_gives_full_batches(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: no clock decides where batches end."""
    monkeypatch.setattr("kcap.session.EAGER_SECONDS", 0)
    monkeypatch.setattr("kcap.limits.ROWS_PER_BATCH", 100)
    monkeypatch.setattr(FileSet.__init__, "__defaults__", (0,))
    early, patient = (CapturePass([str(pcaps / "java-transactions.pcap")]) for _ in range(2))
    patient.patient = True
    ones, others = ([len(batch) for batch in reading.batches()] for reading in (early, patient))
    assert sum(ones) == sum(others)
    assert min(ones) < 100 <= min(others[:-1])


def test_a_capture_opens_from_lists_paths_and_files(pcaps: Path) -> None:
    name = str(pcaps / "too-large.pcap")
    whole = kcap.open(name).exchanges(["connection", "capture"]).to_arrow()
    with open(name, "rb") as file:
        found = kcap.open(file)
    for capture in (kcap.open([name]), kcap.open(os.fsencode(name)), kcap.open(Path(name)), kcap.open((Path(name),)), found):
        assert capture.exchanges(["connection", "capture"]).to_arrow() == whole
    stream = kcap.open(io.BytesIO(Path(name).read_bytes())).exchanges(["connection", "capture"]).to_arrow()
    assert stream["connection"] == whole["connection"]
    assert set(stream["capture"].to_pylist()) == {"stream"}


def test_what_is_no_capture_is_refused(pcaps: Path) -> None:
    with pytest.raises(kcap.UsageError, match="not int"):
        kcap.open(5)  # type: ignore[arg-type]
    with pytest.raises(kcap.UsageError, match="open for text"):
        kcap.open(io.StringIO("text"))  # type: ignore[arg-type]
    with open(pcaps / "too-large.pcap", encoding="utf-8") as file, pytest.raises(kcap.UsageError, match="open for text"):
        kcap.open(file)  # type: ignore[arg-type]


def test_records_have_keys_and_values_where_they_are_asked_for(pcaps: Path) -> None:
    capture = kcap.open(pcaps / "too-large.pcap")
    assert "value" not in capture.records().to_arrow().column_names
    assert capture.records(payloads=True).to_arrow()["value"].null_count < capture.records().to_arrow().num_rows


@pytest.mark.parametrize("fast_path", [True, False])
def test_packets_full_of_messages_make_no_large_batch(fast_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows leave in the middle of what was read at once: of the reference path each takes 2.5 KB until then."""
    path = tmp_path / "dense.pcap"
    path.write_bytes(CLASSES["one_id"][0](10_000))
    whole = [len(batch) for batch in Capture([str(path)], Options(fast_path=fast_path)).read().batches()]
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 500)
    monkeypatch.setattr(limits, "FEED_PACKETS", 8)
    monkeypatch.setattr(limits, "FEED_PACKETS_MIN", 8)
    cut = [len(batch) for batch in Capture([str(path)], Options(fast_path=fast_path)).read().batches()]
    assert sum(cut) == sum(whole)
    assert max(cut) < 2_500 < max(whole)


@pytest.mark.parametrize("fast_path", [True, False])
def test_connections_that_are_open_at_the_end_are_handed_on_a_few_at_a_time(
    fast_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that takes them when it is called never holds all of a flood."""
    monkeypatch.setattr(limits, "CLOSED_TOGETHER", 16)
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 64)
    monkeypatch.setattr("kcap.fastpath.closed_connections.MANY", 16)
    path = tmp_path / "flood.pcap"
    path.write_bytes(CLASSES["syn_flood"][0](400))
    reading = CapturePass([str(path)], Options(fast_path=fast_path), keep_connections=True)
    taken = []

    def take() -> None:
        taken.append(len(reading.connections))
        reading.connections.clear()

    reading.watch = take
    for _ in reading.batches():
        pass
    take()
    assert sum(taken) == 400
    assert max(taken) <= 32
