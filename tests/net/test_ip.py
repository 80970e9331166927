"""IP headers: options and extension headers are stepped over."""

import pytest

from tests.capture.handmade import batch_of, ethernet, ipv4, ipv6, tcp
from tests.net.engines import FLOW, FLOW6, both


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
