"""Every link layer leads to the same segment."""

from struct import pack

import pytest

from kcap.net.link import is_read
from tests.capture.handmade import START_NS, batch_of, ethernet, ipv4, ipv6, tcp
from tests.net.engines import FLOW, FLOW6, both

V4, V6 = ipv4(tcp(b"hello")), ipv6(tcp(b"hello"))
INNER = ethernet(V4)
SNAP = b"\xaa\xaa\3\0\0\0\x08\0"
AIR = b"\x08\1" + bytes(22) + SNAP + V4
NFLOG = b"\2\0\0\0" + pack("<HH4s", 8, 1, b"abcd") + pack("<HH3sx", 7, 10, b"fw")
LINKS = {
    "ethernet": (1, INNER),
    "ethernet, ipv6": (1, ethernet(V6, 0x86DD)),
    "vlan": (1, ethernet(b"\0\x05\x08\0" + V4, 0x8100)),
    "vlan, ipv6": (1, ethernet(b"\0\x05\x86\xdd" + V6, 0x8100)),
    "vlan that looks like ipv4": (1, ethernet(b"\x45\0\x08\0" + V4, 0x8100)),
    "qinq": (1, ethernet(b"\0\x05\x81\0\0\x06\x08\0" + V4, 0x88A8)),
    "three tags": (1, ethernet(b"\0\x05\x81\0\0\x06\x81\0\0\x07\x08\0" + V4, 0x9100)),
    "cooked": (113, bytes(14) + b"\x08\0" + V4),
    "cooked, ipv6": (113, bytes(14) + b"\x86\xdd" + V6),
    "cooked, vlan": (113, bytes(14) + b"\x81\0\0\x05\x08\0" + V4),
    "cooked 2": (276, b"\x08\0" + bytes(18) + V4),
    "cooked 2, ipv6": (276, b"\x86\xdd" + bytes(18) + V6),
    "cooked 2, vlan": (276, b"\x81\0" + bytes(18) + b"\x45\0\x08\0" + V4),
    "null": (0, b"\2\0\0\0" + V4),
    "null, big": (0, b"\0\0\0\2" + V4),
    "null, ipv6": (0, b"\x1e\0\0\0" + V6),
    "loop": (108, b"\0\0\0\2" + V4),
    "raw": (101, V4),
    "raw, ipv6": (101, V6),
    "raw, bsd": (12, V4),
    "raw, openbsd": (14, V4),
    "ipv4": (228, V4),
    "ipv6": (229, V6),
    "ppp": (9, b"\xff\x03\0\x21" + V4),
    "ppp, short": (9, b"\x21" + V4),
    "ppp, hdlc": (50, b"\xff\x03\0\x57" + V6),
    "ppp, directed": (204, b"\0\xff\x03\0\x21" + V4),
    "ppp, of pppd": (166, b"\1\xff\x03\0\x21" + V4),
    "cisco hdlc": (104, b"\x0f\0\x08\0" + V4),
    "pppoe": (1, ethernet(b"\x11\0\0\1" + pack(">H", len(V4) + 2) + b"\0\x21" + V4, 0x8864)),
    "pppoe link": (51, b"\x11\0\0\1" + pack(">H", len(V4) + 2) + b"\0\x21" + V4),
    "mpls": (1, ethernet(b"\0\1\0\x40\0\1\1\x40" + V4, 0x8847)),
    "mpls, ipv6": (1, ethernet(b"\0\1\1\x40" + V6, 0x8848)),
    "mpls pseudowire": (1, ethernet(b"\0\1\1\x40\0\0\0\0" + INNER, 0x8847)),
    "cisco hdlc, directed": (205, b"\0\x0f\0\x08\0" + V4),
    "wireless": (105, AIR),
    "wireless, qos": (105, b"\x88\1" + bytes(24) + SNAP + V4),
    "wireless, qos and ht control": (105, b"\x88\x81" + bytes(28) + SNAP + V4),
    "wireless, four addresses": (105, b"\x08\3" + bytes(28) + SNAP + V4),
    "radiotap": (127, b"\0\0" + pack("<HI", 8, 0) + AIR),
    "radiotap, padded": (127, b"\0\0" + pack("<HIQB", 17, 3, 7, 0x20) + b"\x88\1" + bytes(26) + SNAP + V4),
    "radiotap, two words of flags": (127, b"\0\0" + pack("<HIIB", 13, 0x80000002, 0, 0) + AIR),
    "ppi": (192, b"\0\0" + pack("<HI", 12, 1) + b"abcd" + INNER),
    "ppi, wireless": (192, b"\0\0" + pack("<HI", 8, 105) + AIR),
    "nflog": (239, NFLOG + pack("<HH", 4 + len(V4), 9) + V4),
    "nflog, big": (239, b"\2\0\0\0" + pack(">HH", 4 + len(V4), 9) + V4),
    "atm": (100, SNAP + V4),
    "pflog": (117, b"\x3d" + bytes(63) + V4),
    "enc": (109, bytes(12) + V4),
    "netanalyzer": (240, bytes(4) + INNER),
    "pktap": (258, pack("<III", 16, 1, 1) + b"abcd" + INNER),
    "snap": (1, ethernet(b"\xaa\xaa\3\0\0\0\x08\0" + V4, 8 + len(V4))),
}


@pytest.mark.parametrize("name", LINKS)
def test_every_link_leads_to_the_segment(name):
    link, packet = LINKS[name]
    flow = FLOW6 if V6 in packet else FLOW
    got, weirds = both(batch_of(packet, packet + b"trailer", link=link))
    assert [row[3:] for row in got] == [(flow, 1000, 2000, 0x18, 512, 5, b"hello")] * 2
    assert got[0][1] == START_NS
    assert not weirds.seen


@pytest.mark.parametrize("name", LINKS)
def test_no_cut_looks_at_the_next_packet(name):
    link, packet = LINKS[name]
    for size in range(len(packet)):
        got, _ = both(batch_of(packet[:size], link=link, wire=len(packet)))
        assert all(b"hello".startswith(row[9]) and row[8] == 5 for row in got)


@pytest.mark.parametrize(
    ("link", "packet"),
    [
        (9, b"\xff\3\xc0\x21" + bytes(40)),
        (0, b"\2\0\0\0" + bytes(40)),
        (113, bytes(14) + b"\0\4" + bytes(40)),
        (276, b"\x08\x06" + bytes(60)),
    ],
)
def test_what_carries_no_ip_is_nothing(link, packet):
    assert both(batch_of(packet, link=link))[0] == []


def test_link_types_that_are_read_are_known_without_a_packet():
    assert all(map(is_read, (0, 1, 12, 101, 105, 113, 127, 192, 239, 258, 276)))
    assert not any(map(is_read, (189, 195, 201, 253, 999)))
