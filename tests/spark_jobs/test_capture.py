"""Tables of captures on Spark: the rows of the command line, whatever the cuts and the shards."""

import re
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.analyzer import Options
from kcap.columns import TABLES
from kcap.errors import CaptureError, UsageError
from kcap.tls.files import read_secrets
from spark_jobs.capture import open_capture, read_capture
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


@pytest.mark.parametrize(("split", "partitions"), [(4096, 64), (65_536, 1)])
def test_a_rotated_set(split: int, partitions: int, spark: Any, pcaps: Path) -> None:
    paths = [str(pcaps / name) for name in ROTATED]
    found = read_capture(spark, paths, split_bytes=split, partitions=partitions)
    assert reported(found.toArrow()) == reported(kcap.open(*paths).exchanges().to_arrow())


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
