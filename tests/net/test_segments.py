"""TCP segments out of packets: one law for all links, tunnels, cuts and engines."""

import pickle
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.fileset import FileSet
from kcap.net.segments import WINDOW_UNKNOWN, SegmentParser
from tests.capture.handmade import START_NS, Weirds, batch_of, ethernet, ipv4, ipv6, segments, tcp
from tests.net.engines import FLOW, FLOW6, both

PLAIN = ethernet(ipv4(tcp(b"hello")))


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
        ethernet(ipv4(tcp(b"hello")[:12] + b"\x40" + tcp(b"hello")[13:])),
        ethernet(ipv4(tcp(b"hello")[:12] + b"\xf0" + tcp(b"hello")[13:])),
    ],
)
def test_tcp_headers_that_contradict_themselves_are_reported(packet):
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


@given(
    st.binary(max_size=120),
    st.sampled_from([0, 1, 9, 12, 50, 51, 101, 104, 105, 108, 113, 127, 204, 228, 276, 999]),
    st.integers(0, 200),
)
def test_no_bytes_raise(data, link, more):
    both(batch_of(data, link=link, wire=len(data) + more), finish=True)


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


ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT.parent / "shared" / "tools"
CAPTURES = sorted(path for path in (ROOT / "pcaps").glob("*.pcap*") if path.stat().st_size < 4 << 20)


def read(path, jit_after=None):
    weirds = Weirds()
    parser, out = SegmentParser(weirds), []
    for batch in FileSet([str(path)], weirds, jit_after).batches():
        out += segments(parser.parse(batch))
    parser.finish()
    return out, sorted(weirds.seen)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_both_engines_read_a_capture_alike(path):
    assert read(path, 0) == read(path)


RECIPES = {
    "to_pcapng": [{}, {"big": "1"}],
    "to_pcap_ns": [{}],
    "byteswap": [{}],
    "gzip": [{}],
    "vlan": [{}],
    "qinq": [{}],
    "sll": [{}],
    "sll2": [{}],
    "raw_ip": [{}],
    "null_loopback": [{}, {"big": "1"}],
    "ip_options": [{}],
    "trailer": [{}, {"fcs": "1"}],
    "bad_checksum": [{}],
    "vxlan": [{}],
    "gre": [{}, {"key": "0"}, {"teb": "1"}],
    "ip_fragment": [{}, {"copies": "1"}],
    "ipv6": [{"ext": name} for name in ("none", "hop", "dest", "route", "mix")],
}


@pytest.mark.skipif(not TOOLS.is_dir(), reason="the capture tools are not beside the repository")
@pytest.mark.parametrize(("name", "options"), [(name, options) for name in RECIPES for options in RECIPES[name]])
def test_a_rewritten_capture_gives_the_same_segments(tmp_path, name, options):
    original = TOOLS.parent / "captures" / "modern" / "kafka-python.pcap"
    target = tmp_path / "disturbed"
    given = [f"--{key}={value}" for key, value in options.items()]
    subprocess.run(
        [sys.executable, "-B", str(TOOLS / "disturb.py"), str(original), str(target), "--recipe", name, *given],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    before, _ = read(original)
    after, weirds = read(target)
    assert read(target, 0) == (after, weirds)

    def facts(rows):
        return [(row[1], row[3][-4:], *row[4:]) for row in rows]  # number and place change, addresses may

    order = sorted if name == "ip_fragment" else list
    assert order(facts(after)) == order(facts(before))
