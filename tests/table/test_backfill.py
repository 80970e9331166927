"""Laws of facts of the whole capture: files and tables know what was seen later, streams what was seen so far."""

import json
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kcap
from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.facts.tracker import MetadataTracker
from kcap.table import backfill
from kcap.table.backfill import COMPANIONS, Backfill, companions, needs_backfill, taken_back, waited
from kcap.table.builder import Table
from tests.cli.running import kcap as command
from tests.support import messages as m
from tests.support.wire import Tap, request

FACTS = ["topics", "broker_id", "cluster_id", "version_verdict"]
NAMES = ["connection", "exchange", *FACTS]
ID = "AAECAwQFBgcICQoLDA0ODw"


def stories() -> list[Tap]:
    """A fetch by id on a connection that says nothing of itself; then, elsewhere, all that explains it."""
    early = m.began().ask(m.fetch(1), m.fetch_answer(1), 5).client(request(3, 99, 2)).close()
    late = m.began(40_001, 10**12).ask(m.api_versions(1), m.api_versions_answer(1, {1: (4, 17), 3: (0, 13), 18: (0, 4)}))
    late.ask(m.metadata(2), m.metadata_answer(2, [(7, "10.0.0.2", 9092)], "C", {m.ORDERS: "orders"})).close()
    return [early, late]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return m.saved(tmp_path / "a.pcap", *stories())


KNOWN = {"topics": ["orders"], "broker_id": 7, "cluster_id": "C", "version_verdict": "unnegotiated"}
UNKNOWN = {"topics": [None], "broker_id": None, "cluster_id": None, "version_verdict": "unnegotiated"}


def ordered(table: pa.Table) -> list[dict[str, object]]:
    """Rows of different connections may be decided in another order where fewer packets are read at once."""
    rows: list[dict[str, object]] = table.to_pylist()
    return sorted(rows, key=lambda row: (str(row["connection"]), row["exchange"]))


def facts(row: dict[str, object]) -> dict[str, object]:
    return {name: row[name] for name in FACTS}


def test_the_number_of_brokers_is_filled_in(path: Path) -> None:
    """That of the broker that gave the list, on all of its connections."""
    rows = kcap.open(path).exchanges([*NAMES, "cluster_brokers"]).to_arrow()
    assert set(rows["cluster_brokers"].to_pylist()) == {1}


def test_python_tables_know_what_came_later(path: Path) -> None:
    rows = kcap.open(path).exchanges(NAMES).to_arrow().to_pylist()
    assert facts(rows[0]) == KNOWN
    assert sorted(row["version_verdict"] for row in rows) == ["above_broker_max", "ok", "ok", "unnegotiated"]
    batches = list(kcap.open(path).exchanges(NAMES).record_batches())
    assert pa.Table.from_batches(batches).to_pylist() == rows, "record batches are the same rows"


def test_a_stream_knows_what_came_before(path: Path) -> None:
    """As in an iteration, rows that are decided early leave early."""
    data = path.read_bytes()
    shown = command("rows", "-", "--format", "jsonl", "--columns", ",".join(NAMES), stdin=data)
    resolved = command("rows", "-", "--format", "jsonl", "--columns", ",".join(NAMES), "--resolve", stdin=data)
    want = kcap.open(path).exchanges(NAMES).to_arrow().to_pylist()
    assert [json.loads(line) for line in resolved.stdout.splitlines()] == want
    assert [json.loads(line)["exchange"] for line in shown.stdout.splitlines()] == [row["exchange"] for row in want]


def test_a_stream_of_small_batches_shows_less_than_a_table(path: Path) -> None:
    capture = kcap.open(path)
    table = Table(lambda: eager(capture), "exchanges", NAMES, backfill=Backfill.AS_KNOWN)
    rows = [row for batch in table.record_batches() for row in batch.to_pylist()]
    assert facts(rows[0]) == UNKNOWN
    assert table.tracker is not None
    assert table.tracker.knows_better()
    waits = Table(lambda: eager(capture), "exchanges", NAMES)
    assert ordered(waits.to_arrow()) == ordered(capture.exchanges(NAMES).to_arrow())


def eager(capture: kcap.Capture) -> object:
    """A pass whose batches are as small as they come."""
    reading = capture.read()
    original = reading.files.batches

    def batches() -> object:
        from kcap.model import PacketBatch

        for packets in original():
            for at in range(len(packets)):
                columns = (packets.time_ns, packets.start, packets.captured, packets.wire, packets.position)
                link = packets.link if isinstance(packets.link, int) else packets.link[at : at + 1]
                parts = (list(column[at : at + 1]) for column in columns)
                yield PacketBatch(packets.file, packets.first_packet + at, packets.buffer, *parts, link)

    reading.files.batches = batches  # type: ignore[method-assign,assignment]
    reading._due = lambda: True  # type: ignore[method-assign]
    return reading


def table_in(path: Path, form: str) -> pa.Table:
    """What a file of a format holds."""
    if form == "parquet":
        return pq.read_table(path)
    data = path.read_bytes()
    return (pa.ipc.open_file(data) if form == "feather" else pa.ipc.open_stream(data)).read_all()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "arrow", "arrows"])
@pytest.mark.parametrize("columns", [None, ",".join(NAMES)], ids=["all columns", "some columns"])
def test_files_know_what_came_later(path: Path, tmp_path: Path, suffix: str, columns: str | None) -> None:
    """Whatever the form, and whether or not the rows say of whom they are."""
    out = tmp_path / f"out.{suffix}"
    done = command("rows", path, "-o", out, *(["--columns", columns] if columns else []))
    assert (done.returncode, done.stderr) == (0, b"")
    if suffix == "jsonl":
        first = json.loads(out.read_text().splitlines()[0])
    elif suffix == "csv":
        names, values = (line.split(",") for line in out.read_text().splitlines()[:2])
        found = dict(zip(names, values, strict=True))
        assert (found["topics"], found["broker_id"], found["cluster_id"]) == ("orders", "7", "C")
        return
    else:
        table = table_in(out, {"arrow": "feather", "arrows": "arrow"}.get(suffix, suffix))
        first = table.to_pylist()[0]
        assert table.schema.metadata[b"kcap.table"] == b"exchanges"
    assert facts(first) == KNOWN
    assert list(tmp_path.glob(".*")) == [], "nothing is left beside it"


@pytest.mark.parametrize("form", ["parquet", "arrow", "feather"])
def test_a_file_that_was_written_is_written_again(path: Path, tmp_path: Path, form: str) -> None:
    """Rows that left before the fact came: the file is read back."""
    from kcap.cli.output import OutputRequest, write_rows

    capture = kcap.open(path)
    capture.read = lambda **_: eager(kcap.open(path))  # type: ignore[method-assign,assignment]
    out = tmp_path / "out"
    with (
        patch.object(backfill, "leading", lambda batches, tracker: batches),
        patch("kcap.table.builder.leading", lambda b, _: b),
    ):
        with patch("kcap.cli.output.write_again", side_effect=AssertionError), pytest.raises(AssertionError):
            write_rows(capture, OutputRequest("exchanges", form, output=str(out)))
        assert not out.exists()
        write_rows(capture, OutputRequest("exchanges", form, output=str(out)))
    table = table_in(out, form)
    assert ordered(table) == ordered(kcap.open(path).exchanges().to_arrow())
    schema = kcap.open(path).exchanges().schema
    assert table.schema.equals(schema)
    assert table.schema.metadata == schema.metadata
    assert table.schema.field("api").metadata[b"doc"] == schema.field("api").metadata[b"doc"]


@pytest.mark.parametrize("name", ["rotated.pcap1", "old-java-new-broker.pcap", "any-interface.pcap", "go-franz.pcap"])
def test_all_ways_give_the_same_rows(pcaps: Path, tmp_path: Path, name: str) -> None:
    """A Parquet file, record batches on disk and a table in memory, of real captures."""
    capture = kcap.open(pcaps / name)
    want = capture.exchanges().to_arrow()
    out = tmp_path / "out.parquet"
    assert command("rows", pcaps / name, "-o", out).returncode == 0
    assert pq.read_table(out).to_pylist() == want.to_pylist()
    with patch("kcap.table.builder.waited", partial(waited, held=0)):
        table = Table(lambda: eager(capture), "exchanges", None)
        assert ordered(table.to_arrow()) == ordered(want)


def test_a_limit_ends_the_reading(pcaps: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert command("rows", pcaps / "go-franz.pcap", "-o", out, "--limit", "3").returncode == 0
    assert len(out.read_text().splitlines()) == 3
    capture = kcap.open(pcaps / "go-franz.pcap")
    reading = eager(capture)
    assert Table(lambda: reading, "exchanges", NAMES, limit=3).to_arrow().num_rows == 3
    assert reading.rows < 10  # type: ignore[attr-defined]


def test_what_must_be_made_beside_a_column() -> None:
    by_name = {column.name: column for column in (*EXCHANGES, *ON_REQUEST["exchanges"])}
    assert set(COMPANIONS) - {"topic"} <= by_name.keys()
    asked = [by_name["topics"], by_name["api"]]
    assert [column.name for column in companions("exchanges", asked)] == ["topics", "api", "topic_ids"]
    assert companions("exchanges", EXCHANGES) == list(EXCHANGES)
    assert needs_backfill("exchanges", asked)
    assert not needs_backfill("exchanges", asked[1:])


@pytest.mark.parametrize("held", [0, 3, 100])
def test_what_waits_comes_back_in_order(held: int) -> None:
    batches = [pa.RecordBatch.from_pydict({"n": [at, at + 1]}) for at in range(0, 20, 2)]
    came = waited(iter(batches), lambda: lambda some: some, held)
    assert [batch.to_pylist() for batch in came] == [b.to_pylist() for b in batches]


def test_wide_rows_wait_in_a_file() -> None:
    """What waits in memory is bounded in bytes too: rows may have thousands of topics each."""
    made = [pa.RecordBatch.from_pydict({"topics": [["t" * 1000] * 400]}) for _ in range(10)]
    taken = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for one in made:
            taken += 1
            yield one

    with patch.object(backfill, "HELD_ROW_BYTES", 1000):
        assert backfill.rows_held(made[0]) > 400
        first = next(backfill.leading((("x", one) for one in batches()), MetadataTracker(), held=1000))
        assert (first[1].num_rows, taken) == (1, 3)
        assert [some.num_rows for some in waited(iter(made), lambda: lambda same: same, 1000)] == [1] * 10


def test_what_cannot_be_read_back_stays() -> None:
    import io
    import os

    with taken_back(io.BytesIO(b"x")) as written:
        assert written is None
    read, write = os.pipe()
    with os.fdopen(write, "wb") as pipe, taken_back(pipe) as written:
        assert written is None
    os.close(read)


def test_what_was_read_back_is_not_kept(tmp_path: Path) -> None:
    """A file is written again with the memory of a few row groups, not of the file."""
    path, group = tmp_path / "many.parquet", 1 << 20
    texts = pa.table({"client_id": [f"{number:0128}" for number in range(20 * group // 128)]})
    pq.write_table(texts, path, row_group_size=group // 128, compression="none", use_dictionary=False)
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            held = [tracemalloc.get_traced_memory()[0] for _ in backfill.read_again("parquet", file)]
    finally:
        tracemalloc.stop()
    assert len(held) == 20
    assert max(held) < 4 * group
