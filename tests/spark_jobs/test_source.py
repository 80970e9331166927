"""The data source, and segments by ranges."""

from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.capture.fileset import FileSet, ignore
from kcap.errors import UsageError
from kcap.net.segments import SegmentParser
from spark_jobs.capture import read_capture
from spark_jobs.files import Files
from spark_jobs.segments import KINDS, Segments, rows_of
from spark_jobs.source import KcapReader, register, schema_of

ROTATED = ("rotated.pcap", "rotated.pcap1", "rotated.pcap2")


def reported(rows: Any) -> list[str]:
    return sorted(map(repr, rows))


def wanted(path: Path) -> list[dict[str, Any]]:
    """Segments as one reading has them."""
    parser, found = SegmentParser(ignore), []
    for batch in FileSet([str(path)], ignore).batches():
        found += rows_of(parser.parse(batch), path.name, 0).to_pylist()
    return found


@pytest.mark.parametrize("name", ["cluster-startup.pcap", "tls13.pcapng"])
@pytest.mark.parametrize("split", ["3000", "100000"])
def test_ranges_have_the_segments_of_the_file(name: str, split: str, pcaps: Path) -> None:
    """Law: whatever the cuts, the segments and the numbers of their packets are those of one reading."""
    reader = KcapReader({"path": str(pcaps / name), "table": "segments", "split_bytes": split})
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert reported(rows) == reported(wanted(pcaps / name))


def test_what_cannot_be_is_said(pcaps: Path) -> None:
    with pytest.raises(UsageError, match="no capture given"):
        KcapReader({"table": "exchanges"})
    with pytest.raises(UsageError, match="no table is called"):
        schema_of({"table": "packets"})
    assert schema_of({"table": "segments", "columns": "seq, ack"}).names == ["seq", "ack"]
    assert schema_of({"table": "segments"}).names == list(KINDS)
    assert list(Segments([], [])([])) == []
    assert Files([]).paths == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_captures_are_a_table_of_spark(spark: Any, pcaps: Path) -> None:
    register(spark)
    paths = [str(pcaps / name) for name in ROTATED]
    exchanges = kcap.open(*paths).exchanges().to_arrow()
    frame = spark.read.format("kcap").load(paths)
    assert reported(frame.toArrow().to_pylist()) == reported(exchanges.to_pylist())
    few = spark.read.format("kcap").option("columns", "api,latency_ns").option("filter", "api == Fetch").load(paths[0])
    assert few.columns == ["api", "latency_ns"]
    assert {row.api for row in few.collect()} == {"Fetch"}
    segments = spark.read.format("kcap").option("table", "segments").option("split_bytes", "20000").load(paths[0])
    assert segments.rdd.getNumPartitions() > 1
    assert reported(segments.toArrow().to_pylist()) == reported(wanted(Path(paths[0])))
    mine = read_capture(spark, paths[0], "segments", split_bytes=9000)
    assert reported(mine.toArrow().to_pylist()) == reported(wanted(Path(paths[0])))
