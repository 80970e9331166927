"""Laws of the table `records`: what was produced is what was fetched, offsets are absolute, ids get their names."""

import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import pack
from typing import Any

import pytest

import kcap
from kcap import limits
from kcap.batch.columns import BatchColumns
from kcap.capture import spool
from kcap.capture.writer import PcapWriter
from kcap.capture_pass import CapturePass
from kcap.columns import RECORDS
from kcap.decode.programs import program_index
from kcap.decode.projection import project
from kcap.facts.topic_names import METADATA_ID
from kcap.facts.tracker import Fact, MetadataTracker
from kcap.kafka.body_batch import BodyBatch
from kcap.model import ROW
from kcap.records.batch import Batch
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.table import records
from kcap.table.builder import Table
from kcap.table.records import Exchanged, records_of
from tests.cli.running import kcap as run
from tests.records.batches import batch as magic2
from tests.records.batches import message, record
from tests.support.wire import Segment, Tap, metadata, metadata_answer, produce, produce_answer, request, response
from tests.table.handmade import batch as rows_of
from tests.table.handmade import row

HEADER = 4 + 8 + 2 + 3
"""Length, fixed header and client id of the requests made here."""
RESPONSE_HEADER = 8


def table(*paths: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = kcap.open(*map(str, paths)).table("records").to_arrow().to_pylist()
    return rows


def not_read(*_: object) -> None:
    """A file that cannot be read again."""


def bodies(*parts: bytes) -> BodyBatch:
    """A batch of bodies; what programs would make of them is not asked here."""
    arena, starts, ends = bytearray(), [], []
    for part in parts:
        starts.append(len(arena))
        arena += part
        ends.append(len(arena))
    return BodyBatch(arena, starts, ends, [-1] * len(parts), project(b"", [], [], []), {})


def found(request: bytes, response: bytes | None, key: int, version: int) -> list[Any]:
    made = row(api_key=key, api_version=version, request_slot=0, response_slot=-1 if response is None else 1)
    if response is None:
        made = tuple(None if name == "response_bytes" else value for name, value in zip(ROW, made, strict=True))
    batch = rows_of(made)
    batch.bodies = bodies(request, *([] if response is None else [response]))
    return list(records_of(BatchColumns(batch), MetadataTracker(), not_read))


def test_what_was_produced_was_fetched(pcaps: Path) -> None:
    seen: dict[str, dict[Any, Any]] = defaultdict(dict)
    for entry in table(pcaps / "go-franz.pcap"):
        if entry["offset"] is not None and entry["control"] is None:
            place = entry["topic"], entry["partition"], entry["offset"]
            seen[entry["api"]].setdefault(place, (entry["key"], entry["value"], entry["timestamp_ms"]))
    assert len(seen["Fetch"]) >= 200
    both = seen["Fetch"].keys() & seen["Produce"].keys()
    assert len(both) == 200
    assert all(seen["Fetch"][place] == seen["Produce"][place] for place in both)


def test_every_column_is_there(pcaps: Path) -> None:
    rows = table(pcaps / "librdkafka-zstd.pcap")
    assert list(rows[0]) == [column.name for column in RECORDS]
    for entry in rows:
        assert entry["key_bytes"] == (None if entry["key"] is None else len(entry["key"]))
        assert entry["value_bytes"] == (None if entry["value"] is None else len(entry["value"]))
    assert {entry["codec"] for entry in rows} >= {"zstd"}
    assert {entry["magic"] for entry in rows} == {2}


def test_control_records_are_flagged(pcaps: Path) -> None:
    rows = table(pcaps / "java-transactions.pcap")
    assert {entry["control"] for entry in rows} >= {None, "COMMIT", "ABORT"}


def test_ids_get_their_names(pcaps: Path) -> None:
    rows = [entry for entry in table(pcaps / "java-transactions.pcap") if entry["topic_id"]]
    assert rows
    assert all(entry["topic"] for entry in rows)


def test_a_pipe_is_read_once(pcaps: Path) -> None:
    path = pcaps / "go-franz.pcap"
    arguments = ["--table", "records", "--payloads", "--format", "jsonl"]
    once, twice = run("rows", "-", *arguments, stdin=path.read_bytes()), run("rows", path, *arguments)
    assert once.returncode == twice.returncode == 0
    assert once.stdout == twice.stdout != b""


def test_what_can_be_read_once_has_no_earlier_pass(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = kcap.open(str(pcaps / "go-franz.pcap")).read()
    another = reading.another()
    assert another is not None
    for one in (reading, another):
        one.files.close()
    monkeypatch.setattr("os.path.isfile", lambda path: False)
    assert reading.another() is None


def test_a_small_batch_changes_nothing(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait for their answers from batch to batch keep their records, without a second look at the file."""
    path = str(pcaps / "pipelined.pcap")
    whole = table(pcaps / "pipelined.pcap")
    monkeypatch.setattr("kcap.limits.ROWS_PER_BATCH", 1)
    monkeypatch.setattr("kcap.capture_pass.EAGER_SECONDS", 0)
    monkeypatch.setattr(records, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(CapturePass, "message", not_read)
    reading = kcap.open(path).read()
    rows = Table(lambda: reading, "records").to_arrow().to_pylist()
    order = lambda entry: (entry["connection"], entry["exchange"])  # noqa: E731
    assert sorted(rows, key=order) == sorted(whole, key=order)


def produced(blob: bytes, answered: bool = True, error: int = 0) -> list[Any]:
    return found(produce(7, 1, blob)[HEADER:], produce_answer(7, error)[RESPONSE_HEADER:] if answered else None, 0, 2)


@pytest.mark.parametrize(
    "blob",
    [
        magic2(record(0, b"a") + record(1, b"b"), 2) + magic2(record(0, b"c")),
        message(b"1", 1, offset=0, key=b"a") + message(b"2", 1, offset=1, key=b"b") + message(b"3", 1, offset=2, key=b"c"),
        message(b"1", 0, offset=0, key=b"a") + message(b"2", 0, offset=0, key=b"b") + message(b"3", 0, offset=0, key=b"c"),
    ],
    ids=["batches", "messages", "messages without offsets"],
)
def test_what_is_produced_counts_from_the_answer(blob: bytes) -> None:
    rows = produced(blob)
    assert [(entry[6], entry[8].key) for entry in rows] == [(5, b"a"), (6, b"b"), (7, b"c")]
    assert [entry[6] for entry in produced(blob, answered=False)] == [None] * 3
    assert [(entry[2], entry[3], entry[5]) for entry in rows] == [("Produce", "t", 0)] * 3


def fetch(blob: bytes) -> list[Any]:
    body = pack(">iih1siihqqii", 0, 1, 1, b"t", 1, 3, 0, 100, 90, -1, len(blob)) + blob
    return found(b"", body, 1, 4)


def test_what_is_fetched_has_its_offsets() -> None:
    blob = magic2(record(0, b"a") + record(4, None, None), 5, base=40)
    assert [(entry[6], entry[5], entry[8].key) for entry in fetch(blob)] == [(40, 3, b"a"), (44, 3, None)]


def test_an_incomplete_batch_ends_the_partition() -> None:
    whole = magic2(record(0, b"a"), base=40)
    for size in range(len(whole)):
        assert [entry[6] for entry in fetch(whole + whole[:size])] == [40]


def test_damage_raises_nothing() -> None:
    request, response = produce(7, 1, magic2(record(0, b"a")))[HEADER:], produce_answer(7)[RESPONSE_HEADER:]
    for size in range(len(request)):
        found(request[:size], response, 0, 2)
        found(request[:size], response[: size % len(response)], 0, 11)
        found(b"", request[:size], 1, 17)
    assert found(request, response, 0, 999) == []


def test_krafts_log_tells_names() -> None:
    uuid = bytes(range(16))
    value = b"\1\2\0" + b"\7orders" + uuid + b"\0"
    blob = magic2(record(0, None, value))
    partition = pack(">ihqqq", 0, 0, 1, 1, 0) + b"\1" + pack(">i", -1) + bytes([len(blob) + 1]) + blob + b"\0"
    body = b"\0" + pack(">ihi", 0, 0, 0) + b"\2" + bytes(15) + b"\1" + b"\2" + partition + b"\0" + b"\0"
    batch = rows_of(row(api_key=1, api_version=17, request_slot=-1, response_slot=0))
    program = program_index(1, 17, RESPONSE)
    batch.bodies = BodyBatch(bytearray(body), [0], [len(body)], [0], project(body, [0], [len(body)], [program]), {})
    tracker = MetadataTracker()
    tracker.observe(BatchColumns(batch), Fact.TOPICS)
    assert tracker.topic_name(METADATA_ID) == "__cluster_metadata"
    assert tracker.topic_name("AAECAwQFBgcICQoLDA0ODw") == "orders"


def pcap(segments: Sequence[Segment]) -> bytes:
    """Segments as packets of raw IP."""
    out = io.BytesIO()
    writer = PcapWriter(out, 101)
    for one in segments:
        ends = one.flow[:8], one.flow[8:]
        tcp = ends[1] + pack(">IIHHHH", one.seq, one.ack, 5 << 12 | one.flags, one.window, 0, 0) + one.payload
        packet = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ends[0] + tcp
        writer.write(one.time_ns, packet, len(packet), 101)
    return out.getvalue()


def test_large_messages_of_what_is_read_once(tmp_path: Path) -> None:
    """A message that is not gathered is read again, from the file or from the spool of a compressed one."""
    blob = magic2(record(0, b"k", bytes(1 << 20)))
    data = pcap(Tap().open().client(metadata(1)).client(produce(2, 1, blob), 60_000).server(metadata_answer(1)).segments)
    (tmp_path / "plain.pcap").write_bytes(data)
    (tmp_path / "packed.pcap.gz").write_bytes(gzip.compress(data))
    names = ("plain.pcap", "packed.pcap.gz")
    plain, packed = (run("rows", tmp_path / name, "--table", "records", "--format", "jsonl") for name in names)
    assert plain.stdout.count(b"Produce") == 1
    assert plain.stderr == packed.stderr == b""
    assert plain.stdout == packed.stdout


def test_what_was_not_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound of the spool."""
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (1000,))
    blob = magic2(record(0, b"k", bytes(1 << 20)))
    data = pcap(Tap().open().client(metadata(1)).client(produce(2, 1, blob), 60_000).server(metadata_answer(1)).segments)
    (tmp_path / "packed.pcap.gz").write_bytes(gzip.compress(data))
    reading = CapturePass([str(tmp_path / "packed.pcap.gz")])
    assert Table(lambda: reading, "records", ["offset"]).to_arrow().num_rows == 0
    assert reading.not_kept


@pytest.mark.parametrize("fast", [False, True])
def test_an_empty_body_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    """Law: a batch that has all of a body has that of no bytes, too."""
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0 if fast else 1 << 30)
    tap = Tap().open()
    for number in range(5):
        tap.client(request(18, 0, number)).server(response(number, bytes(6)))
    (tmp_path / "empty.pcap").write_bytes(pcap(tap.segments))
    reading = CapturePass([str(tmp_path / "empty.pcap")])
    reading.keep_bodies()

    def again(*_: Any) -> None:
        raise AssertionError("a body of no bytes is read again")

    seen = [Exchanged(BatchColumns(batch), at, again).body(REQUEST) for batch in reading.batches() for at in range(len(batch))]
    assert seen == [{}] * 5


def lines(text: str) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, text.splitlines())


def columns_of(arguments: Sequence[str], pcaps: Path) -> list[str]:
    done = run("rows", pcaps / "go-franz.pcap", "--table", "records", "--format", "jsonl", "--limit", "2", *arguments)
    assert done.returncode == 0, done.stderr
    return list(next(lines(done.stdout.decode())))


def test_payloads_are_there_only_where_they_are_asked_for(pcaps: Path) -> None:
    every = [column.name for column in RECORDS]
    assert columns_of(["--payloads"], pcaps) == every
    assert columns_of([], pcaps) == every[:-2]
    assert columns_of(["--payloads", "--columns", "value,offset"], pcaps) == ["value", "offset"]
    assert run("rows", pcaps / "go-franz.pcap", "--table", "records", "--columns", "value").returncode == 2
    assert run("rows", pcaps / "go-franz.pcap", "--payloads").returncode == 2


def test_records_of_a_batch_are_not_kept(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame may have thousands of batches with millions of records each."""

    def kept(_batch: Batch) -> None:
        raise AssertionError("all records of a batch are held")

    monkeypatch.setattr(Batch, "contents", property(kept))
    assert len(kcap.open(str(pcaps / "librdkafka-zstd.pcap")).table("records").to_arrow())
