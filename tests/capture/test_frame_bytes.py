"""A frame's bytes and the packets that brought them."""

from pathlib import Path

import pytest

from kcap.capture.frame_bytes import SIDES, why_not
from kcap.capture.frame_location import location_of
from kcap.capture_pass import CapturePass
from kcap.tui.capture_model import read_whole
from tests.tui.conftest import PCAPS


@pytest.mark.parametrize("name", ["java-transactions.pcap", "librdkafka-zstd.pcap", "any-interface.pcap", "pipelined.pcap"])
def test_spans_tile_the_frame(name: str) -> None:
    """Law: spans lie side by side, from the first packet of the row to its last; each is of the packet that holds it."""
    several = 0
    with read_whole(str(PCAPS / name)) as book:
        for number in range(book.rows):
            found = book.frames(number)
            for side, data in zip(SIDES, (found.request, found.response)):
                spans = found.spans[side]
                if not data:
                    assert spans == []
                    continue
                assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
                assert spans[-1].end == len(data)
                assert spans[0].packet == found.row[f"{side}_first_packet"]
                assert found.row[f"{side}_last_packet"] in {None, *(span.packet for span in spans)}
                several += len(spans) > 1
    assert several or name == "pipelined.pcap"


def test_a_frame_alone_is_as_with_its_packets() -> None:
    """Law: who reads one side of a row by itself gets the same bytes."""
    path = str(PCAPS / "pipelined.pcap")
    reading = CapturePass([path])
    assert sum(map(len, reading.batches()))
    with read_whole(path) as book:
        for number in range(book.rows):
            found = book.frames(number)
            for side, data in zip(SIDES, (found.request, found.response)):
                assert reading.frames.frame(location_of(found.row, side, reading.file_numbers)) == data


def test_what_was_read_from_a_compressed_file_is_kept() -> None:
    import gzip
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pcap.gz"
        path.write_bytes(gzip.compress((PCAPS / "node-platformatic.pcap").read_bytes()))
        with read_whole(str(path)) as packed, read_whole(str(PCAPS / "node-platformatic.pcap")) as plain:
            for number in range(plain.rows):
                assert packed.frames(number).request == plain.frames(number).request
                assert packed.frames(number).response == plain.frames(number).response


def test_a_file_that_changed_is_named_as_the_reason(tmp_path: Path) -> None:
    """Not one of the bounds of pipes, which the file never met."""
    path = tmp_path / "a.pcap"
    path.write_bytes((PCAPS / "go-franz.pcap").read_bytes())
    with read_whole(str(path)) as book:
        assert not book.frames(0).changed
        path.write_bytes(path.read_bytes()[:100])
        assert book.frames(0).changed
        path.unlink()
        found = book.frames(0)
    assert (found.request, found.changed) == (b"", True)
    assert "changed since" in why_not(found.row, changed=True)
    assert "not retained" in why_not(found.row)
    assert "secret" in why_not(found.row | {"api": "SaslToken"}, changed=True)
