"""Segments of byte ranges are those of one pass."""

from pathlib import Path

import pyarrow as pa
import pytest

from kcap.capture.fileset import FileSet, ignore
from kcap.identities import endpoints
from kcap.net.segments import SegmentParser
from spark_jobs.segments import SEGMENTS, Segments, VerifiedRange
from tests.support.shared import Shared


@pytest.mark.parametrize("name", ["cluster-startup.pcap", "tls13.pcapng", "any-interface.pcap"])
@pytest.mark.parametrize("split", [9_000, 1 << 30])
def test_segments_of_all_ranges_are_those_of_one_pass(name: str, split: int, pcaps: Path) -> None:
    """Law: a row a segment, with the number and the place of its packet, however the file is cut."""
    path = str(pcaps / name)
    shared = Shared([Path(path)], split, 1)
    units = shared.stitched.positions
    verified = [VerifiedRange(shared.task(shared.verified_range(unit))[0], place.packets) for unit, place in units.items()]
    numbers = pa.RecordBatch.from_arrays([pa.array(range(len(verified)), pa.int64())], ["id"])
    made = list(Segments([path], verified)([numbers]))
    assert all(batch.schema == SEGMENTS for batch in made)
    rows = [row for batch in made for row in batch.to_pylist()]
    found = [(row["packet"], row["position"], row["source_port"], row["seq"], row["length"]) for row in rows]
    parser, wanted = SegmentParser(ignore), []
    for batch in FileSet([path], ignore).batches():
        segments = parser.parse(batch)
        columns = segments.packet, segments.position, segments.flow, segments.seq, segments.length
        every = zip(*columns, strict=True)
        wanted += [(packet, place, endpoints(flow)[1], seq, size) for packet, place, flow, seq, size in every]
    assert found == wanted
    assert {row["capture"] for row in rows} == {name}
