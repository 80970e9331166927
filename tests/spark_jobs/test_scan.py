"""The scan behind the tables: ranges, what travels, what stays, files that are not what they seem."""

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
from kcap.errors import CaptureError
from kcap.tls.files import read_secrets
from spark_jobs.capture import open_capture, read_capture
from spark_jobs.scan import warn_of_keys
from spark_jobs.spark_session import ENCRYPTION
from tests.spark_jobs.test_capture import reported
from tests.support.messages import far_from_a_boundary
from tests.support.tls import without_secrets

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


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


@pytest.mark.parametrize(("setting", "warned"), [("false", True), ("true", False)])
def test_a_session_that_does_not_encrypt_its_folders_is_warned_of(setting: str, warned: bool) -> None:
    conf = SimpleNamespace(get=lambda name, other: setting if name == ENCRYPTION else other)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_keys(session)
    assert [ENCRYPTION in str(one.message) for one in caught] == [True] * warned
