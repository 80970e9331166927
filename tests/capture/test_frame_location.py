"""Where a frame is, from either kind of row."""

import pytest

from kcap.capture.frame_bytes import SIDES
from kcap.capture.frame_location import location, location_of
from kcap.capture_pass import CapturePass
from kcap.exchange import ExchangeRows
from tests.tui.conftest import PCAPS


@pytest.mark.parametrize("names", [["pipelined.pcap"], ["sasl-raw-tokens.pcap"], ["rotated.pcap", "rotated.pcap1"]])
def test_both_rows_of_an_exchange_give_the_same(names: list[str]) -> None:
    """Law; a frame without bytes, or one that goes over from one file to the next, is in no file."""
    reading, elsewhere, rows = CapturePass([str(PCAPS / name) for name in names]), 0, 0
    for batch in reading.batches():
        columns = ExchangeRows(batch, reading.capture_files).columns
        for at in range(len(batch)):
            row = {name: column[at] for name, column in columns.items()}
            rows += 1
            for side in SIDES:
                found = location(batch, at, side)
                assert location_of(row, side, reading.file_numbers) == found
                elsewhere += found.file is None
                assert (found.size > 0) == bool(found.head)
    assert elsewhere < rows
