"""Block bodies are read as far as they hold together."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.capture import pcapng_blocks
from tests.capture.handmade import option


def test_options_end_where_they_say_or_where_the_body_does():
    body = option(2, b"eth0") + option(9, b"\x09") + option(2, b"again") + option(0, b"") + option(3, b"late")
    assert pcapng_blocks.read_options(body, "<", 0) == {2: b"eth0", 9: b"\x09"}
    assert pcapng_blocks.read_options(body[:10], "<", 0) == {2: b"eth0"}
    assert pcapng_blocks.read_options(option(1, b"a", ">"), ">", 0) == {1: b"a"}


def test_drops_need_a_count():
    assert pcapng_blocks.read_drops(pack("<III", 0, 0, 0), "<") is None
    assert pcapng_blocks.read_drops(pack("<III", 2, 0, 0) + option(5, pack("<Q", 7)), "<") == (2, 7)


@pytest.mark.parametrize(
    ("resolution", "ticks", "ns"),
    [
        (6, 1_500_000, 1_500_000_000),
        (9, 7, 7),
        (3, 2, 2_000_000),
        (0x80 | 10, 1024, 10**9),
        (0x80 | 1, 3, 1_500_000_000),
        (12, 5000, 5),
    ],
)
def test_ticks_are_negative_powers_of_ten_or_of_two(resolution: int, ticks: int, ns: int) -> None:
    body = pack("<HHI", 1, 0, 64) + option(9, bytes([resolution]))
    interface, wrong = pcapng_blocks.read_interface(body, "<")
    assert (interface.link, interface.snaplen, wrong) == (1, 64, "")
    assert ticks * interface.multiplier // interface.divisor == ns


@pytest.mark.parametrize("order", "<>")
def test_an_offset_is_in_seconds(order: str) -> None:
    body = pack(order + "HHI", 101, 0, 0)
    for seconds in (0, 1_700_000_000, -3600):
        interface, wrong = pcapng_blocks.read_interface(body + option(14, pack(order + "q", seconds), order), order)
        assert (interface.offset_ns, wrong) == (seconds * 10**9, "")


@pytest.mark.parametrize(
    "body",
    [
        bytes(7),
        pack("<HHI", 1, 0, 0) + option(9, b"\x7f"),
        pack("<HHI", 1, 0, 0) + option(14, pack("<q", 1 << 62)),
        pack("<HHI", 1, 0, 0) + option(14, b"\0\0\0\1"),
    ],
    ids=["too short", "resolution of no clock", "an offset of ages", "an offset of another size"],
)
def test_what_an_interface_says_that_cannot_be_is_reported(body: bytes) -> None:
    _, wrong = pcapng_blocks.read_interface(body, "<")
    assert wrong


def test_names_are_the_first_of_each_address() -> None:
    four, six = bytes([10, 0, 0, 2]), bytes(15) + b"\1"
    records = [
        (1, four + b"kafka-2\0kafka\0"),
        (2, six + b"here\0"),
        (1, four + b"later\0"),
        (1, four),
        (9, b"unknown"),
        (1, four + b"\0"),
    ]
    body = b"".join(pack("<HH", kind, len(data)) + data + bytes(-len(data) % 4) for kind, data in records)
    assert pcapng_blocks.read_names(body + bytes(4), "<") == {"10.0.0.2": "kafka-2", "::1": "here"}
    assert pcapng_blocks.read_names(body[:10], "<") == {}
    assert pcapng_blocks.read_names(bytes(4) + body, "<") == {}, "a record of type 0 ends them"


def test_secrets_are_key_logs() -> None:
    assert pcapng_blocks.read_secrets(pcapng_blocks.secrets_body(b"CLIENT_RANDOM 1 2"), "<") == b"CLIENT_RANDOM 1 2"
    assert pcapng_blocks.read_secrets(pack("<II", 0x57474B4C, 4) + b"wgkl", "<") is None
    assert pcapng_blocks.read_secrets(b"short", "<") is None


@given(st.binary(max_size=80), st.sampled_from("<>"))
def test_no_body_raises(body, order):
    pcapng_blocks.read_interface(body, order)
    pcapng_blocks.read_drops(body, order)
    pcapng_blocks.read_names(body, order)
    pcapng_blocks.read_secrets(body, order)
