"""TCP segments out of packets: one law for all links, tunnels, cuts and engines."""

import pickle
from random import Random
from struct import pack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.model import PacketBatch
from kcap.net.segments import WINDOW_UNKNOWN, SegmentParser
from tests.capture.handmade import START_NS, Weirds, batch_of, ethernet, ipv4, ipv6, segments, tcp

FLOW = b"\x0a\0\0\x01\x0a\0\0\x02" + pack(">HH", 40000, 9092)
FLOW6 = bytes(15) + b"\x01" + bytes(15) + b"\x02" + pack(">HH", 40000, 9092)
PLAIN = ethernet(ipv4(tcp(b"hello")))


def columns(batch: PacketBatch) -> PacketBatch:
    """The same batch as the compiled readers would give it."""
    return PacketBatch(
        batch.file,
        batch.first_packet,
        batch.buffer,
        *(np.array(column, np.int64) for column in (batch.time_ns, batch.start, batch.captured, batch.wire, batch.position)),
        batch.link,
    )


def both(batch: PacketBatch, finish=False):
    """Segments and weirds, after making sure that both engines agree."""
    results = []
    for one in (batch, columns(batch)):
        weirds = Weirds()
        parser = SegmentParser(weirds)
        out = parser.parse(one)
        if finish:
            parser.finish()
        assert all(
            isinstance(number, int) for name in ("packet", "time_ns", "position", "seq") for number in getattr(out, name)
        )
        assert all(type(flow) is bytes for flow in out.flow)
        results.append((segments(out), weirds))
    assert results[0] == results[1]
    return results[0]


def test_a_plain_segment_has_every_column():
    got, weirds = both(batch_of(PLAIN))
    assert got == [(1, START_NS, 24, FLOW, 1000, 2000, 0x18, 512, 5, b"hello")]
    assert not weirds.seen


def test_ipv6_is_as_plain():
    got, weirds = both(batch_of(ethernet(ipv6(tcp(b"hello")), 0x86DD)))
    assert got == [(1, START_NS, 24, FLOW6, 1000, 2000, 0x18, 512, 5, b"hello")]
    assert not weirds.seen


def test_options_are_no_payload():
    got, _ = both(batch_of(ethernet(ipv4(tcp(b"hello", options=bytes(12))))))
    assert got[0][8:] == (5, b"hello")


def test_padding_is_no_payload():
    got, weirds = both(batch_of(ethernet(ipv4(tcp())) + bytes(6), ethernet(ipv4(tcp(b"ab"))) + b"FCS!", PLAIN + b"\0"))
    assert [row[8:] for row in got] == [(0, b""), (2, b"ab"), (5, b"hello")]
    assert not weirds.seen


def test_length_zero_means_what_was_on_the_wire():
    zero4 = ethernet(ipv4(tcp(b"hello"), total=0))
    zero6 = ethernet(ipv6(tcp(b"hello"), size=0), 0x86DD)
    got, weirds = both(batch_of(zero4, zero6))
    assert [row[8:] for row in got] == [(5, b"hello")] * 2
    got, _ = both(batch_of(zero4, wire=70000))
    assert got[0][8:] == (70000 - 54, b"hello")
    assert not weirds.seen


def test_jumbo_payload():
    inner = tcp(b"hello")
    header = pack(">BBBBI", 6, 0, 0xC2, 4, 8 + len(inner))
    got, _ = both(batch_of(ethernet(ipv6(header + inner, protocol=0, size=0), 0x86DD) + b"pad"))
    assert got[0][8:] == (5, b"hello")


def test_what_is_no_tcp_is_nothing():
    others = [
        ethernet(bytes(46), 0x0806),
        ethernet(bytes(46), 0x88CC),
        ethernet(ipv4(bytes(30), protocol=17)),
        ethernet(ipv4(bytes(30), protocol=1)),
        ethernet(ipv6(bytes(30), protocol=58), 0x86DD),
        ethernet(bytes(40), 0x0026),
    ]
    got, weirds = both(batch_of(PLAIN, *others, PLAIN))
    assert [row[0] for row in got] == [1, 8]
    assert not weirds.seen


@pytest.mark.parametrize("snaplen", range(60, 73))
def test_a_cut_payload_keeps_its_length(snaplen):
    packet = ethernet(ipv4(tcp(b"0123456789", options=bytes(12))))
    got, weirds = both(batch_of(packet[:snaplen], wire=len(packet)))
    assert got[0][8:] == (10, b"0123456789"[: max(0, snaplen - 66)])
    assert not weirds.seen


@pytest.mark.parametrize("size", range(54))
def test_a_cut_header_says_so_or_gives_what_it_can(size):
    got, weirds = both(batch_of(PLAIN[:size], wire=len(PLAIN)))
    if size >= 14 + 20 + 14:
        window = 512 if size >= 14 + 20 + 16 else WINDOW_UNKNOWN
        assert got == [(1, START_NS, 24, FLOW, 1000, 2000, 0x18, window, 5, b"")]
    else:
        assert not got
        assert weirds.kinds == ["packet_cut"]


@pytest.mark.parametrize("size", [0, 13, 20, 33, 40])
def test_a_packet_that_was_never_longer_is_malformed(size):
    got, weirds = both(batch_of(PLAIN[:size]))
    assert not got
    assert weirds.kinds == ["packet_malformed" if size < 34 else "packet_cut"]


@pytest.mark.parametrize(
    "packet",
    [
        ethernet(ipv4(tcp(b"hello"), total=10)),
        ethernet(ipv4(tcp(b"hello"), total=39)),
        ethernet(b"\x44" + ipv4(tcp(b"hello"))[1:]),
        ethernet(b"\x65" + ipv4(tcp(b"hello"))[1:]),
        ethernet(ipv4(tcp(b"hello")), 0x86DD),
        ethernet(ipv4(tcp(b"hello")[:12] + b"\x40" + tcp(b"hello")[13:])),
        ethernet(ipv4(tcp(b"hello")[:12] + b"\xf0" + tcp(b"hello")[13:])),
    ],
)
def test_headers_that_contradict_themselves_are_told(packet):
    got, weirds = both(batch_of(PLAIN, packet, PLAIN))
    assert [row[0] for row in got] == [1, 3]
    assert weirds.kinds == ["packet_malformed"]
    assert weirds.seen[0][3] == 2


def test_unknown_links_are_counted():
    got, weirds = both(batch_of(PLAIN, PLAIN, link=147))
    assert not got
    assert weirds.kinds == ["link_unknown"] * 2


def test_every_packet_may_have_its_own_link():
    inner = ipv4(tcp(b"hello"))
    batch = batch_of(PLAIN, inner, inner, b"\2\0\0\0" + inner)
    batch.link = [1, 101, 228, 0]
    got, weirds = both(batch)
    assert [row[9] for row in got] == [b"hello"] * 4
    assert [row[0] for row in got] == [1, 2, 3, 4]
    assert not weirds.seen


def test_an_empty_batch():
    assert both(batch_of()) == ([], Weirds())


@given(st.data())
def test_any_mixture_keeps_its_order_in_both_engines(data):
    inner = [
        PLAIN,
        ethernet(b"\0\x05\x08\0" + ipv4(tcp(b"vlan")), 0x8100),
        ethernet(ipv6(tcp(b"six")), 0x86DD),
        ethernet(ipv4(tcp(b"options"), options=bytes(8))),
        ethernet(ipv4(tcp(b"fragment")[:24], fragment=0x2000)),
        ethernet(ipv4(tcp(b"fragment")[24:], fragment=3)),
        ethernet(bytes(30), 0x0806),
        ethernet(ipv4(ipv4(tcp(b"inside")), protocol=4)),
        PLAIN[:40],
    ]
    chosen = data.draw(st.lists(st.sampled_from(inner), max_size=30))
    both(batch_of(*chosen, wire=1), finish=True)


@given(
    st.binary(max_size=120),
    st.sampled_from([0, 1, 9, 12, 50, 51, 101, 104, 105, 108, 113, 127, 204, 228, 276, 999]),
    st.integers(0, 200),
)
def test_no_bytes_raise(data, link, more):
    both(batch_of(data, link=link, wire=len(data) + more), finish=True)


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


def test_a_parser_travels_between_any_two_packets():
    rng = Random(7)
    packets = []
    for ident in range(30):
        whole = tcp(bytes([ident]) * rng.randrange(60), seq=ident)
        packets += [
            ethernet(ipv4(whole[:16], fragment=0x2000, ident=ident)),
            ethernet(ipv4(whole[16:], fragment=2, ident=ident)),
        ]
    rng.shuffle(packets)
    expected, weirds = both(batch_of(*packets), finish=True)
    parser, got, one = SegmentParser(Weirds()), [], batch_of(*packets)
    for index, packet in enumerate(packets):
        single = batch_of(packet)
        single.first_packet = index + 1
        single.time_ns, single.position = [one.time_ns[index]], [one.position[index]]
        parser = pickle.loads(pickle.dumps(parser))
        got += segments(parser.parse(single))
    assert got == expected
    parser.finish()
    assert parser.report == weirds
