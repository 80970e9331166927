"""Lengths of packets are those that the reader found, whatever the batches."""

from kcap.capture.frame_lengths import FrameLengths
from kcap.model import PacketBatch


def batch(file: int, first: int, lengths: list[int]) -> PacketBatch:
    nothing = [0] * len(lengths)
    return PacketBatch(file, first, b"", nothing, nothing, nothing, lengths, nothing, 1)


def test_each_packet_of_each_file_keeps_its_length() -> None:
    kept = FrameLengths()
    kept.take(batch(0, 1, [60, 1514]))
    kept.take(batch(1, 1, [70]))
    kept.take(batch(0, 3, [2**31 - 1, 80]))
    assert [kept.of(0, packet) for packet in (1, 2, 3, 4)] == [60, 1514, 2**31 - 1, 80]
    assert kept.of(1, 1) == 70
    kept.close()
