"""What is written reads back the same."""

from io import BytesIO

import pytest

from kcap.capture.writer import PcapngWriter, PcapWriter
from kcap.errors import OutputError
from tests.capture.handmade import START_NS, read_all, save

PACKETS = [(START_NS + n * 1001, bytes([n]) * n, n + n % 3, 1) for n in range(50)]


def test_pcap_keeps_nanoseconds_and_lengths(tmp_path):
    stream = BytesIO()
    writer = PcapWriter(stream, 1)
    for packet in PACKETS:
        writer.write(*packet)
    got, _, weirds = read_all(save(tmp_path, stream.getvalue()))
    assert [(time, data, wire, link) for _, time, data, wire, _, link in got] == PACKETS
    assert not weirds.seen
    with pytest.raises(OutputError, match="pcapng"):
        writer.write(START_NS, b"", 0, 113)


def test_pcapng_keeps_link_types_and_secrets(tmp_path):
    stream = BytesIO()
    writer = PcapngWriter(stream, "cut from a larger capture")
    writer.secrets(b"CLIENT_RANDOM aa bb\n")
    packets = [(*packet[:3], (1, 276, 101)[index % 3]) for index, packet in enumerate(PACKETS)]
    for packet in packets:
        writer.write(*packet, comment="odd" if packet[3] == 1 else "")
    got, found, weirds = read_all(save(tmp_path, stream.getvalue()))
    assert [(time, data, wire, link) for _, time, data, wire, _, link in got] == packets
    assert found.files[0].secrets == [b"CLIENT_RANDOM aa bb\n"]
    assert not weirds.seen
