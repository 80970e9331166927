"""Packets go to dpkt and come from it without losing a nanosecond."""

from decimal import Decimal
from io import BytesIO

import dpkt
import pytest

from kcap.adapters.dpkt import from_dpkt, to_dpkt
from tests.capture.handmade import START_NS, ethernet, ipv4, ipv6, pcap, rows, tcp

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
