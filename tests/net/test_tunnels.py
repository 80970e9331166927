"""Every tunnel leads to the segment inside, by the specifications and by what another library makes."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.handmade import START_NS, Weirds, batch_of, ethernet, ipv4, ipv6, tcp
from tests.net.engines import FLOW, FLOW6, both

pytest.importorskip("scapy")

from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, fragment6
from scapy.layers.l2 import GRE, CookedLinux, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN

V4, V6 = ipv4(tcp(b"hello")), ipv6(tcp(b"hello"))
INNER = ethernet(V4)
UDP_HEADER = pack(">HHHH", 50000, 4789, 0, 0)


def udp(port: int, data: bytes, source: int = 50000) -> bytes:
    return ipv4(pack(">HHHH", source, port, 8 + len(data), 0) + data, protocol=17)


def gre(kind: int, data: bytes, flags=0, extra=b"") -> bytes:
    return ipv4(pack(">HH", flags, kind) + extra + data, protocol=47)


TUNNELS = {
    "ip in ip": (1, ethernet(ipv4(V4, protocol=4))),
    "ipv6 in ip": (1, ethernet(ipv4(V6, protocol=41))),
    "ip in ipv6": (1, ethernet(ipv6(V4, protocol=4), 0x86DD)),
    "etherip": (1, ethernet(ipv4(b"\x30\0" + INNER, protocol=143))),
    "gre": (1, ethernet(gre(0x0800, V4))),
    "gre, key": (1, ethernet(gre(0x0800, V4, 0x2000, bytes(4)))),
    "gre, all": (1, ethernet(gre(0x86DD, V6, 0xB000, bytes(12)))),
    "gre, bridged": (1, ethernet(gre(0x6558, INNER, 0x2000, bytes(4)))),
    "gre, vlan": (1, ethernet(gre(0x6558, ethernet(b"\0\5\x08\0" + V4, 0x8100)))),
    "pptp": (1, ethernet(gre(0x880B, b"\xff\3\0\x21" + V4, 0x3081, bytes(12)))),
    "erspan 1": (1, ethernet(gre(0x88BE, INNER))),
    "erspan 2": (1, ethernet(gre(0x88BE, b"\x10" + bytes(7) + INNER, 0x1000, bytes(4)))),
    "erspan 3": (1, ethernet(gre(0x22EB, b"\x20" + bytes(11) + INNER, 0x1000, bytes(4)))),
    "erspan 3, subheader": (1, ethernet(gre(0x22EB, b"\x20" + bytes(10) + b"\1" + bytes(8) + INNER, 0x1000, bytes(4)))),
    "vxlan": (1, ethernet(udp(4789, b"\x08" + bytes(7) + INNER))),
    "vxlan, old port": (1, ethernet(udp(8472, b"\x08" + bytes(7) + INNER))),
    "vxlan over ipv6": (
        1,
        ethernet(ipv6(UDP_HEADER + b"\x08" + bytes(7) + INNER, protocol=17), 0x86DD),
    ),
    "vxlan-gpe": (1, ethernet(udp(4790, b"\x0c\0\0\1" + bytes(4) + V4))),
    "vxlan-gpe, bridged": (1, ethernet(udp(4790, b"\x0c\0\0\3" + bytes(4) + INNER))),
    "geneve": (1, ethernet(udp(6081, b"\0\0\x65\x58" + bytes(4) + INNER))),
    "geneve, options": (1, ethernet(udp(6081, b"\2\0\x08\0" + bytes(4) + bytes(8) + V4))),
    "gre in udp": (1, ethernet(udp(4754, pack(">HH", 0x2000, 0x6558) + bytes(4) + INNER))),
    "mpls in udp": (1, ethernet(udp(6635, b"\0\1\1\x40" + V4))),
    "gtp-u": (1, ethernet(udp(2152, b"\x30\xff" + bytes(6) + V4))),
    "gtp-u, sequence number": (1, ethernet(udp(2152, b"\x32\xff" + bytes(10) + V6))),
    "gtp-u, extension headers": (1, ethernet(udp(2152, b"\x34\xff" + bytes(9) + b"\x85\1\0\0\x40\2" + bytes(7) + V4))),
    "capwap": (1, ethernet(udp(5247, b"\0\x10" + bytes(6) + INNER))),
    "capwap, to an access point": (1, ethernet(udp(9999, b"\0\x10" + bytes(6) + INNER, 5247))),
    "capwap, 802.11": (
        1,
        ethernet(udp(5247, b"\0\x10\3\0" + bytes(4) + b"\x08\1" + bytes(22) + b"\xaa\xaa\3\0\0\0\x08\0" + V4)),
    ),
    "vxlan in vlan in cooked": (113, bytes(14) + b"\x81\0\0\5\x08\0" + udp(4789, b"\x08" + bytes(7) + INNER)),
}


@pytest.mark.parametrize("name", TUNNELS)
def test_every_tunnel_leads_to_the_segment(name):
    link, packet = TUNNELS[name]
    flow = FLOW6 if V6 in packet else FLOW
    got, weirds = both(batch_of(packet, packet + b"trailer", link=link))
    assert [row[3:] for row in got] == [(flow, 1000, 2000, 0x18, 512, 5, b"hello")] * 2
    assert got[0][1] == START_NS
    assert not weirds.seen


@pytest.mark.parametrize("name", TUNNELS)
def test_no_cut_looks_at_the_next_packet(name):
    link, packet = TUNNELS[name]
    for size in range(len(packet)):
        got, _ = both(batch_of(packet[:size], link=link, wire=len(packet)))
        assert all(b"hello".startswith(row[9]) and row[8] == 5 for row in got)


@pytest.mark.parametrize(
    "packet",
    [
        ethernet(udp(4789, bytes(8) + INNER)),
        ethernet(udp(53, b"\x08" + bytes(7) + INNER)),
        ethernet(gre(0x0800, V4, 0x4000)),
        ethernet(gre(0x9000, V4)),
    ],
)
def test_what_is_no_known_tunnel_is_nothing(packet):
    assert both(batch_of(packet)) == ([], Weirds())


STACKS = [
    ipv4(ipv4(tcp(b"x" * 20)), protocol=4),
    ipv4(b"\0" * 8 + b"\x08" + bytes(7) + ethernet(ipv4(tcp(b"x"))), protocol=17),
    ipv4(b"\xb0\0\x65\x58" + bytes(12) + ethernet(ipv4(tcp(b"x"))), protocol=47),
    ipv6(b"\x3c\0" + bytes(6) + b"\x2c\0" + bytes(6) + b"\x06\0\0\1\0\0\0\1" + tcp(b"x"), protocol=0),
]


@given(st.sampled_from(STACKS), st.lists(st.tuples(st.integers(0, 70), st.integers(0, 255)), max_size=6), st.integers(0, 90))
def test_spoilt_tunnels_do_not_raise(packet, changes, size):
    spoilt = bytearray(packet)
    for at, value in changes:
        spoilt[at % len(spoilt)] = value
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    both(batch_of(ethernet(bytes(spoilt), kind)[: size + 14], wire=120), finish=True)


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
