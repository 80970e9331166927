"""Block bodies are read as far as they hold together."""

from struct import pack

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


@given(st.binary(max_size=80), st.sampled_from("<>"))
def test_no_body_raises(body, order):
    pcapng_blocks.read_interface(body, order)
    pcapng_blocks.read_drops(body, order)
    pcapng_blocks.read_names(body, order)
    pcapng_blocks.read_secrets(body, order)
