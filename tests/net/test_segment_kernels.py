"""The compiled parser is the plain one, only faster."""

from struct import pack

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.net.segment_kernels import ETHERNET, parse_packets
from tests.capture.handmade import batch_of, ethernet, ipv4, ipv6, tcp
from tests.net.engines import both

PLAIN = ethernet(ipv4(tcp(b"hello")))
VXLAN = ipv4(pack(">HHHH", 5, 4789, 0, 0) + b"\x08" + bytes(7), protocol=17, total=150)


@given(st.data())
def test_any_mixture_keeps_its_order_in_both_engines(data):
    inner = [
        PLAIN,
        ethernet(b"\0\x05\x08\0" + ipv4(tcp(b"vlan")), 0x8100),
        ethernet(ipv6(tcp(b"six")), 0x86DD),
        ethernet(ipv4(tcp(b"options"), options=bytes(8))),
        ethernet(ipv4(tcp(b"", flags=16, options=b"\x01\x01\x05\x0a" + pack(">II", 2100, 2200)))),
        ethernet(ipv6(tcp(b"", flags=16, options=b"\x01\x01\x05\x0a" + pack(">II", 900, 1100))), 0x86DD),
        ethernet(ipv4(tcp(b"fragment")[:24], fragment=0x2000)),
        ethernet(ipv4(tcp(b"fragment")[24:], fragment=3)),
        ethernet(bytes(30), 0x0806),
        ethernet(ipv4(ipv4(tcp(b"inside")), protocol=4)),
        PLAIN[:40],
        ethernet(VXLAN + PLAIN),
        ethernet(VXLAN + ethernet(VXLAN + PLAIN)),
        ethernet(VXLAN + PLAIN)[:100],
        ethernet(VXLAN + ethernet(bytes(30), 0x0806)),
        ethernet(ipv4(pack(">HHHH", 5, 53, 0, 0) + bytes(40), protocol=17)),
        ethernet(ipv4(pack(">HHHH", 5, 6081, 0, 0) + b"\0\0\x65\x58" + bytes(4) + PLAIN, protocol=17)),
    ]
    chosen = data.draw(st.lists(st.sampled_from(inner), max_size=30))
    both(batch_of(*chosen, wire=1), finish=True)


def test_the_python_text_of_a_kernel_reads_packets_of_any_length():
    """Law: without machine code no number of a packet is of the type of a byte."""
    packet = ethernet(ipv4(tcp(bytes(1400))))
    data, one = np.frombuffer(packet, np.uint8), np.zeros(1, np.int64)
    columns, state = np.zeros((7, 1), np.int64), np.zeros(1, np.uint8)
    links = np.full(1, ETHERNET, np.int64)
    parse_packets.py_func(data, one, one + len(packet), links, columns, one.copy(), one.copy(), state)
    assert columns[4:, 0].tolist() == [54, 1400, 1400]
