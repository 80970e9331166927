"""IP headers: options and extension headers are stepped over."""

from struct import pack

import pytest

from tests.capture.handmade import batch_of, ethernet, ipv4, ipv6, tcp
from tests.net.engines import FLOW, FLOW6, both
from tests.net.test_fragments import WHOLE, fragments6

PLAIN = ethernet(ipv4(tcp(b"hello")))


@pytest.mark.parametrize(
    ("chain", "first"),
    [
        (b"\x06\0" + bytes(6), 0),
        (b"\x06\0" + bytes(6), 60),
        (b"\x06\2" + bytes(22), 43),
        (b"\x06\4" + bytes(22), 51),
        (b"\x3c\0" + bytes(6) + b"\x06\1" + bytes(14), 0),
        (b"\x06\0\0\0\0\0\0\1", 44),
    ],
)
def test_extension_headers_are_stepped_over(chain, first):
    got, weirds = both(batch_of(ethernet(ipv6(chain + tcp(b"hello"), protocol=first), 0x86DD)))
    assert [row[3:] for row in got] == [(FLOW6, 1000, 2000, 0x18, 512, 5, b"hello")]
    assert not weirds.seen


def test_an_authentication_header_on_ipv4():
    got, _ = both(batch_of(ethernet(ipv4(b"\x06\4" + bytes(22) + tcp(b"hello"), protocol=51))))
    assert got[0][9] == b"hello"


def test_options_on_ipv4():
    got, _ = both(batch_of(ethernet(ipv4(tcp(b"hello"), options=bytes(40)))))
    assert got[0][3:] == (FLOW, 1000, 2000, 0x18, 512, 5, b"hello")


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


def test_fragments_behind_extension_headers():
    got, _ = both(batch_of(*fragments6(WHOLE, [3, 9], before=b"\x2c\0" + bytes(6))))
    assert [row[9] for row in got] == [bytes(range(200))]


def test_a_fragment_of_nothing_is_malformed():
    _, weirds = both(batch_of(ethernet(ipv4(b"", fragment=0x2000))), finish=True)
    assert weirds.kinds == ["packet_malformed"]


@pytest.mark.parametrize(
    "packet",
    [
        ethernet(ipv4(tcp(b"hello"), total=10)),
        ethernet(ipv4(tcp(b"hello"), total=39)),
        ethernet(b"\x44" + ipv4(tcp(b"hello"))[1:]),
        ethernet(b"\x65" + ipv4(tcp(b"hello"))[1:]),
        ethernet(ipv4(tcp(b"hello")), 0x86DD),
        ethernet(b"\x55" + ipv6(tcp(b"hello"))[1:], 0x86DD),
    ],
)
def test_ip_headers_that_contradict_themselves_are_reported(packet):
    got, weirds = both(batch_of(PLAIN, packet, PLAIN))
    assert [row[0] for row in got] == [1, 3]
    assert weirds.kinds == ["packet_malformed"]
    assert weirds.seen[0][3] == 2


@pytest.mark.parametrize("whole", [ethernet(ipv4(tcp(b"hello"))), ethernet(ipv6(b"\x06\0" + bytes(6) + tcp(), 0), 0x86DD)])
def test_what_ends_within_the_headers_gives_nothing(whole):
    for size in range(14, 34 if whole[12] == 8 else 62):
        got, weirds = both(batch_of(whole[:size], wire=len(whole)))
        assert not got
        assert weirds.kinds == ["packet_cut"]
