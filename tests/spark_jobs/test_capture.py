"""Tables of captures on Spark: the rows of the command line, whatever the cuts and the shards."""

import gzip
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kcap
from kcap.analyzer import Options
from kcap.columns import TABLES
from kcap.errors import CaptureError, UsageError
from kcap.table.schema import choose
from kcap.tls.files import read_secrets
from spark_jobs.capture import OF_EXCHANGES, open_capture, read_capture
from spark_jobs.scan import warn_of_keys
from spark_jobs.spark_session import ENCRYPTION
from tests.support.messages import far_from_a_boundary
from tests.support.tls import without_secrets

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROTATED = ("rotated.pcap2", "rotated.pcap", "rotated.pcap1")


def reported(table: Any) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_every_table_has_the_rows_of_one_process(spark: Any, pcaps: Path) -> None:
    """Law: `read_capture(..., table)` is `kcap rows --table TABLE`, for all tables of one scan."""
    paths = [str(pcaps / "node-platformatic.pcap")]
    capture = open_capture(spark, paths, 20_000, 3)
    for table in TABLES:
        wanted = kcap.open(*paths).table(table).to_arrow()
        found = capture.table(table).toArrow()
        assert found.column_names == wanted.column_names
        assert reported(found) == reported(wanted), table


def test_encrypted_connections_have_the_rows_of_one_process(spark: Any, pcaps: Path) -> None:
    """Law: what handshakes and records say in the open does not depend on the ranges that connections span."""
    path = str(pcaps / "tls13.pcapng")
    capture = open_capture(spark, path, 20_000, 3)
    for table in ("exchanges", "connections", "tls_turns"):
        wanted = reported(kcap.open(path).table(table).to_arrow())
        assert wanted
        assert reported(capture.table(table).toArrow()) == wanted, table


def test_key_logs_are_shipped_with_the_options(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    """Law: with a key log beside the capture Spark has the rows of one process, also of connections over several ranges."""
    bare, log = tmp_path / "bare.pcapng", tmp_path / "keys"
    data = (pcaps / "tls13.pcapng").read_bytes()
    bare.write_bytes(without_secrets(data))
    log.write_bytes(b"\n".join(re.findall(rb"[A-Z]+_[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64,96}", data)))
    log.chmod(0o600)
    wanted = kcap.open(bare, keylog=log).table("exchanges").to_arrow()
    assert sum(wanted.column("tls").to_pylist()) == 76
    options = Options(secrets=read_secrets([str(log)]))
    assert reported(read_capture(spark, str(bare), "exchanges", 20_000, 3, options=options).toArrow()) == reported(wanted)


@pytest.mark.parametrize("ship", ["references", "packets", "edges"])
@pytest.mark.parametrize("beside", [False, True])
def test_resumed_sessions_take_their_secret_from_another_connection(
    ship: str, beside: bool, spark: Any, pcaps: Path, tmp_path: Path
) -> None:
    """Law: however many shards there are, connections that share a session of TLS 1.2 are read together, whether their key
    log stands beside the capture or in it.
    """
    path, options, log = pcaps / "tls12-resumed.pcapng", None, None
    if beside:
        data, log = path.read_bytes(), tmp_path / "keys"
        log.write_bytes(b"\n".join(re.findall(rb"[A-Z]+_[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64,96}", data)))
        log.chmod(0o600)
        path = tmp_path / "bare.pcapng"
        path.write_bytes(without_secrets(data))
        options = Options(secrets=read_secrets([str(log)]))
    wanted = kcap.open(path, keylog=log).table("exchanges").to_arrow()
    assert len(set(wanted.column("connection").to_pylist())) == 5
    found = read_capture(spark, str(path), "exchanges", 8192, 5, ship=ship, options=options).toArrow()
    assert reported(found) == reported(wanted)


def test_keys_are_not_in_the_folders_of_spark(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    """Law: neither keys of a capture, which ranges bring to the driver, nor a key log that is too large for Spark to keep in
    memory stand in a file.
    """
    data, log, bare = (pcaps / "tls12-resumed.pcapng").read_bytes(), tmp_path / "keys", tmp_path / "bare.pcapng"
    found = re.search(rb"CLIENT_RANDOM [0-9a-f]{64} ([0-9a-f]{96})", data)
    assert found is not None
    others = (b"CLIENT_RANDOM %064x %096x" % (number, number) for number in range(20_000))
    log.write_bytes(b"\n".join([found[0], *others]))
    log.chmod(0o600)
    bare.write_bytes(without_secrets(data))
    folder = Path(spark.conf.get("spark.local.dir"))
    for ship in ("packets", "edges"):
        for path, options in ((pcaps / "tls12-resumed.pcapng", None), (bare, Options(secrets=read_secrets([str(log)])))):
            rows = read_capture(spark, str(path), "exchanges", 8192, 3, ship=ship, options=options)
            assert rows.count() == 23
            files = list(contents(folder))
            assert len(files) > 3
            for secret in (found[1], bytes.fromhex(found[1].decode())):
                assert not [file for file, content in files if secret in content]


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """The files under a folder of Spark, but for those that Spark, which removes old shuffles at any time, takes away
    meanwhile.
    """
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield Path(parent, name), Path(parent, name).read_bytes()


@pytest.mark.parametrize("only", [None, 'version_verdict == "ok" && request.max_wait_ms >= 0'])
def test_tables_that_are_read_together(only: str | None, spark: Any, pcaps: Path) -> None:
    """Law: one reading gives each table as a reading of its own does, with the same filter."""
    path = str(pcaps / "node-platformatic.pcap")
    columns = {table: [column.name for column in choose(table, None)] for table in TABLES}
    tables = open_capture(spark, path, 20_000, 3).tables(columns, only)
    assert list(tables) == list(TABLES)
    for table, frame in tables.items():
        source = kcap.open(path) if only is None or table not in OF_EXCHANGES else kcap.open(path).filter(only)
        wanted = source.table(table).to_arrow()
        assert reported(frame.toArrow()) == reported(wanted), table


@pytest.mark.parametrize(("split", "partitions"), [(4096, 64), (65_536, 1)])
def test_a_rotated_set(split: int, partitions: int, spark: Any, pcaps: Path) -> None:
    paths = [str(pcaps / name) for name in ROTATED]
    found = read_capture(spark, paths, split_bytes=split, partitions=partitions)
    assert reported(found.toArrow()) == reported(kcap.open(*paths).exchanges().to_arrow())


@pytest.mark.parametrize("ship", ["packets", "edges"])
def test_what_travels_changes_no_row(ship: str, spark: Any, pcaps: Path) -> None:
    path = str(pcaps / "cluster-startup.pcap")
    capture = open_capture(spark, path, 30_000, 2, ship=ship)
    assert bool(capture.scanned.local) == (ship == "edges")
    for table in ("exchanges", "connections", "partitions", "weirds"):
        assert reported(capture.table(table).toArrow()) == reported(kcap.open(path).table(table).to_arrow()), table


def test_blanked_bytes_that_were_looked_at_come_as_they_are(spark: Any, tmp_path: Path) -> None:
    """Law: where a search went on into blanked records, its shard is made again with the connection's packets as they are; a
    later table takes them from the start."""
    path = far_from_a_boundary(tmp_path / "far.pcap")
    capture = open_capture(spark, str(path), 60_000, 3, ship="edges")
    assert not capture.scanned.unstripped.keys
    for table in ("exchanges", "partitions", "connections", "weirds"):
        assert reported(capture.table(table).toArrow()) == reported(kcap.open(path).table(table).to_arrow()), table
        assert len(capture.scanned.unstripped.keys) == 8


@pytest.mark.parametrize("ship", ["references", "edges"])
def test_what_was_let_go_is_made_again(ship: str, spark: Any, pcaps: Path) -> None:
    """Law: behind `close` nothing is kept of a capture, and its tables, old ones too, have the same rows."""
    path = str(pcaps / "cluster-startup.pcap")
    wanted = reported(kcap.open(path).exchanges().to_arrow())
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    capture = open_capture(spark, path, 30_000, 2, ship=ship)
    frame = capture.table("exchanges")
    assert reported(frame.toArrow()) == wanted
    capture.close()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
    assert reported(frame.toArrow()) == wanted
    assert reported(capture.table("exchanges").toArrow()) == wanted
    capture.close()


def test_a_compressed_file_is_one_range(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap.gz"
    with gzip.open(path, "wb") as file:
        file.write((pcaps / "pipelined.pcap").read_bytes())
    found = read_capture(spark, str(path), split_bytes=5000, partitions=2)
    assert reported(found.toArrow()) == reported(kcap.open(path).exchanges().to_arrow())


@pytest.mark.parametrize(
    "only",
    [
        "api == Fetch and latency > 1ms",
        "topics contains 'o'",
        "request.max_wait_ms > 0 or version_verdict == ok",
        "frame.number == 20",
    ],
)
def test_a_filter_lets_the_same_rows_pass(only: str, spark: Any, pcaps: Path) -> None:
    """Filters on columns, on what the whole capture knows, and into bodies."""
    path = str(pcaps / "node-platformatic.pcap")
    wanted = kcap.open(path).filter(only).exchanges(["connection", "exchange", "topics"]).to_arrow()
    assert 0 < wanted.num_rows < 37
    found = read_capture(spark, path, split_bytes=9000, only=only, columns=["connection", "exchange", "topics"])
    assert reported(found.toArrow()) == reported(wanted)


def test_connections_are_numbered_over_all_shares(spark: Any, pcaps: Path) -> None:
    """The column `stream` is there where it is asked for; a filter on it would have to know what other shards have."""
    path, columns = str(pcaps / "node-platformatic.pcap"), ["stream", "exchange", "api"]
    found = read_capture(spark, path, split_bytes=9000, partitions=3, columns=columns)
    assert found.columns == columns
    assert reported(found.toArrow()) == reported(kcap.open(path).exchanges(columns).to_arrow())
    with pytest.raises(UsageError, match="whole capture"):
        read_capture(spark, path, only="tcp.stream == 1")


def test_a_corrupt_file_among_good_ones(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    """It is left out and stands in `weirds`; with `strict` it is an error. An empty file is no capture."""
    good, bad, empty = tmp_path / "good.pcap", tmp_path / "bad.pcap", tmp_path / "empty.pcap"
    shutil.copy(pcaps / "pipelined.pcap", good)
    bad.write_bytes(b"no capture at all, but text")
    empty.write_bytes(b"")
    paths = [str(good), str(bad), str(empty)]
    capture = open_capture(spark, paths, 20_000, 2)
    assert [Path(path).name for path, _ in capture.scanned.failed] == ["bad.pcap", "empty.pcap"]
    assert reported(capture.table("exchanges").toArrow()) == reported(kcap.open(*paths).exchanges().to_arrow())
    assert "file_unreadable" in {row["kind"] for row in capture.table("weirds").collect()}
    with pytest.raises(CaptureError, match="2 files"):
        open_capture(spark, paths, strict=True)
    with pytest.raises(CaptureError, match="no capture"):
        open_capture(spark, [str(bad)])


def test_a_file_that_grows_is_what_it_was_at_the_start(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    """Bytes that come later are of a later job; a file that was cut meanwhile is an error, never a short answer."""
    data, path = (pcaps / "pipelined.pcap").read_bytes(), tmp_path / "growing.pcap"
    path.write_bytes(data)
    wanted = reported(kcap.open(path).exchanges(["connection", "exchange", "response_bytes"]).to_arrow())
    capture = open_capture(spark, str(path), 20_000, 2)
    with path.open("ab") as file:
        file.write(data[24:])
    assert reported(capture.table("exchanges", ["connection", "exchange", "response_bytes"]).toArrow()) == wanted
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(Exception, match="it was longer when it was read first"):
        capture.table("exchanges", ["connection"]).toArrow()


def test_what_cannot_be_is_said(spark: Any, pcaps: Path) -> None:
    path = str(pcaps / "pipelined.pcap")
    with pytest.raises(UsageError, match="no table is called"):
        read_capture(spark, path, "exchange")
    with pytest.raises(UsageError, match="has no column"):
        read_capture(spark, path, columns=["latency"])
    with pytest.raises(UsageError, match="a filter is about exchanges"):
        read_capture(spark, path, "connections", only="api == Fetch")
    with pytest.raises(UsageError, match="split_bytes is 0"):
        read_capture(spark, path, split_bytes=0)
    with pytest.raises(CaptureError, match="no such file"):
        read_capture(spark, "missing.pcap")


@pytest.mark.parametrize(("setting", "warned"), [("false", True), ("true", False)])
def test_a_session_that_does_not_encrypt_its_folders_is_warned_of(setting: str, warned: bool) -> None:
    conf = SimpleNamespace(get=lambda name, other: setting if name == ENCRYPTION else other)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_keys(session)
    assert [ENCRYPTION in str(one.message) for one in caught] == [True] * warned
