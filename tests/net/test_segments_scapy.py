"""Packets made by another library are understood as it means them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scapy")

from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, fragment6
from scapy.layers.l2 import GRE, CookedLinux, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN

from tests.capture.handmade import batch_of
from tests.net.test_segments import both

MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
ETHER = Ether(**MACS)
OUTER = IP(src="192.0.2.1", dst="192.0.2.2")
NETWORKS = {
    "v4": IP(src="10.0.0.1", dst="10.0.0.2"),
    "options": IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption_NOP()] * 5),
    "v6": IPv6(src="fd00::1", dst="fd00::2"),
    "v6 hop": IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrHopByHop(),
    "v6 options": IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrDestOpt(),
}
OUTSIDE = {
    "ether": lambda ip: ETHER / ip,
    "vlan": lambda ip: ETHER / Dot1Q(vlan=7) / ip,
    "qinq": lambda ip: ETHER / Dot1AD(vlan=7) / Dot1Q(vlan=9) / ip,
    "gre": lambda ip: ETHER / OUTER / GRE(key_present=1, key=5) / ip,
    "vxlan": lambda ip: ETHER / OUTER / UDP(sport=5, dport=4789) / VXLAN(vni=7) / ETHER / ip,
    "geneve": lambda ip: ETHER / OUTER / UDP(sport=5, dport=6081) / GENEVE(vni=7) / ETHER / ip,
    "mpls": lambda ip: ETHER / MPLS(label=5, s=0) / MPLS(label=6, s=1) / ip,
    "pppoe": lambda ip: ETHER / PPPoE(sessionid=3) / PPP() / ip,
}


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("network", NETWORKS)
def test_layers_made_by_scapy(outside, network):
    segment = TCP(sport=40000, dport=9092, seq=77, ack=88, flags="PA", window=99, options=[("NOP", None)] * 4)
    got, weirds = both(batch_of(bytes(OUTSIDE[outside](NETWORKS[network] / segment / b"hello"))))
    assert len(got) == 1
    assert got[0][3][-4:] == b"\x9c\x40\x23\x84"
    assert len(got[0][3]) == (12 if network in {"v4", "options"} else 36)
    assert got[0][4:] == (77, 88, 0x18, 99, 5, b"hello")
    assert not weirds.seen


def test_cooked_packets_made_by_scapy():
    packet = CookedLinux(proto=0x0800) / NETWORKS["v4"] / TCP(seq=77) / b"hello"
    got, _ = both(batch_of(bytes(packet), link=113))
    assert got[0][4] == 77
    assert got[0][9] == b"hello"


@given(st.binary(min_size=1, max_size=3000), st.integers(64, 900))
def test_fragments_made_by_scapy(payload, size):
    packet = ETHER / IP(src="10.0.0.1", dst="10.0.0.2", id=5) / TCP(seq=7) / payload
    got, weirds = both(batch_of(*map(bytes, fragment(packet, fragsize=size))), finish=True)
    assert [row[9] for row in got] == [payload]
    assert not weirds.seen


def test_ipv6_fragments_made_by_scapy():
    packet = ETHER / IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=9) / TCP(seq=7) / (bytes(range(256)) * 12)
    got, weirds = both(batch_of(*map(bytes, fragment6(packet, 600))), finish=True)
    assert [row[9] for row in got] == [bytes(range(256)) * 12]
    assert not weirds.seen
