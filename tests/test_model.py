"""The records that cross stages."""

from kcap.model import CaptureFile, PacketBatch, SegmentBatch


def test_lengths_are_those_of_the_columns() -> None:
    assert len(PacketBatch(0, 1, b"", [5, 6], [0, 0], [0, 0], [0, 0], [24, 40], 1)) == 2
    assert len(SegmentBatch(0, b"")) == 0


def test_a_new_file_is_thought_complete() -> None:
    assert CaptureFile("a/b.pcap", "b.pcap").complete
