"""Packets go to dpkt and come from it without losing a nanosecond."""

from decimal import Decimal
from io import BytesIO
from struct import pack

import dpkt
import pytest

from kcap.adapters.dpkt import from_dpkt, network_layer, to_dpkt
from tests.capture.handmade import START_NS, batch_of, ethernet, ipv4, ipv6, pcap, rows, tcp
from tests.net.engines import both

INNER = ipv4(tcp(b"hello"))
PACKETS = [(START_NS + n * 1_000_777, ethernet(ipv4(tcp(bytes([n]) * n)))) for n in range(30)]


@pytest.mark.parametrize("ns", [False, True])
def test_a_dpkt_reader_gives_batches(ns):
    reader = dpkt.pcap.Reader(BytesIO(pcap(PACKETS, ns=ns)))
    got = [row for batch in from_dpkt(reader, batch_packets=7) for row in rows(batch)]
    unit = 1 if ns else 1000
    assert [(time, data) for _, time, data, *_ in got] == [(time // unit * unit, data) for time, data in PACKETS]
    assert [number for number, *_ in got] == list(range(1, 31))
    assert {link for *_, link in got} == {1}


def test_packets_become_dpkt_objects():
    time, frame = to_dpkt(START_NS + 1, ethernet(INNER), 1)
    assert time == Decimal("1700000000.000000001")
    assert frame.data.data.data == b"hello"
    assert to_dpkt(0, INNER, 101)[1].data.data == b"hello"
    assert to_dpkt(0, ipv6(tcp(b"hello")), 101)[1].data.data == b"hello"
    assert to_dpkt(0, bytes(14) + b"\x08\0" + INNER, 113)[1].data.data.data == b"hello"
    assert to_dpkt(0, b"\x08\0" + bytes(18) + INNER, 276)[1].data.data.data == b"hello"
    assert to_dpkt(0, b"ab", 1)[1] == b"ab"
    assert to_dpkt(0, b"ab", 9999)[1] == b"ab"


WIRELESS = b"\x08\1" + bytes(22) + b"\xaa\xaa\3\0\0\0\x08\0" + INNER


@pytest.mark.parametrize(("link", "packet"), [(105, WIRELESS), (127, b"\0\0" + pack("<HI", 8, 0) + WIRELESS)])
def test_wireless_frames_are_read_by_dpkt(link, packet):
    got, weirds = both(batch_of(packet, link=link))
    assert [row[9] for row in got] == [b"hello"]
    assert not weirds.seen


def test_unknown_links_and_odd_bytes():
    assert network_layer(9999, b"abc") is None
    for size in range(40):
        network_layer(127, WIRELESS[:size])
        network_layer(105, WIRELESS[:size])
