"""Packets go to scapy and come from it without losing a nanosecond."""

import pytest

pytest.importorskip("scapy")

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import EDecimal, PcapReader, wrpcap

from kcap.adapters.scapy import from_scapy, to_scapy
from kcap.net.segments import SegmentParser
from tests.capture.handmade import START_NS, Weirds, ethernet, ipv4, pcap, read_all, rows, save, segments, tcp

PACKETS = [(START_NS + n * 1_000_777, ethernet(ipv4(tcp(bytes([n]) * n)))) for n in range(30)]


@pytest.mark.parametrize("link", [1, 101, 113, 276])
def test_a_scapy_reader_gives_what_our_own_gives(tmp_path, link):
    front = {1: ethernet(b""), 101: b"", 113: bytes(14) + b"\x08\0", 276: b"\x08\0" + bytes(18)}[link]
    path = save(tmp_path, pcap([(time, front + data[14:]) for time, data in PACKETS], ns=True, link=link))
    own, *_ = read_all(path)
    with PcapReader(path) as reader:
        got = [row for batch in from_scapy(reader, batch_packets=9) for row in rows(batch)]
    assert [row[:4] for row in got] == [row[:4] for row in own]
    assert {row[5] for row in got} == {228 if link == 101 else link}  # scapy knows an IPv4 packet as such


def test_crafted_packets_are_parsed():
    packets = [Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(seq=n) / b"hello" for n in range(3)]
    for packet in packets:
        packet.time = EDecimal("1.5")
    parser = SegmentParser(Weirds())
    (batch,) = from_scapy(packets)
    assert [(row[1], row[4], row[9]) for row in segments(parser.parse(batch))] == [
        (1_500_000_000, n, b"hello") for n in range(3)
    ]


def test_packets_become_scapy_objects(tmp_path):
    packets = [to_scapy(time, data, 1, len(data) + 5) for time, data in PACKETS]
    assert bytes(packets[7][TCP].payload) == bytes([7]) * 7
    path = str(tmp_path / "back.pcap")
    wrpcap(path, packets, nano=True)
    assert [(row[1], row[2], row[3]) for row in read_all(path)[0]] == [(time, data, len(data) + 5) for time, data in PACKETS]
    assert bytes(to_scapy(0, b"abc", 9999)) == b"abc"
