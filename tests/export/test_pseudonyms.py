"""Other names are consistent, of the same length, and keep prefixes of addresses."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from kcap.export.pseudonyms import WELL_KNOWN, Pseudonyms

TEXT = st.text(max_size=30).map(str.encode)
FOUR = st.binary(min_size=4, max_size=4)
SIXTEEN = st.binary(min_size=16, max_size=16)


def common(left: bytes, right: bytes) -> int:
    """Bits that both begin with."""
    bits = 8 * len(left)
    return bits - (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).bit_length()


@given(st.one_of(st.tuples(FOUR, FOUR), st.tuples(SIXTEEN, SIXTEEN)), st.text(min_size=1))
def test_addresses_keep_their_common_prefix(pair, key):
    names = Pseudonyms(key)
    left, right = (names.address(address) for address in pair)
    assert common(left, right) == common(*pair)


@given(TEXT, st.text(min_size=1, max_size=200))
def test_text_keeps_its_length_and_its_key_decides(text, key):
    made = Pseudonyms(key).text(text)
    assert len(made) == len(text)
    assert made == Pseudonyms(key).text(text)
    made.decode("utf-8")


def test_keys_and_texts_make_a_difference():
    texts = [b"orders-%d" % n for n in range(100)]
    one, two = Pseudonyms("one"), Pseudonyms("two")
    assert len({one.text(text) for text in texts}) == 100
    assert all(one.text(text) != two.text(text) != text for text in texts)
    assert one.text(b"shop.orders-eu_1")[4:5] + one.text(b"shop.orders-eu_1")[11:12] == b".-"
    assert {one.text(name) for name in WELL_KNOWN} == WELL_KNOWN


def test_addresses_in_words_are_the_addresses_of_the_packets_where_they_fit():
    names = Pseudonyms("key")
    fitting = 0
    for last in range(256):
        text = f"10.0.0.{last}".encode()
        want = str(ip_address(names.address(bytes((10, 0, 0, last))))).encode()
        if len(want) == len(text):
            assert names.text(text) == want
            fitting += 1
        else:
            assert len(names.text(text)) == len(text)


def test_hardware_addresses_become_local_ones():
    names = Pseudonyms("key")
    address = bytes.fromhex("001122334455")
    assert names.hardware(address) != address
    assert names.hardware(address)[0] & 3 == 2
    assert names.hardware(bytes(6)) == bytes(6)
    assert names.hardware(b"\xff" * 6) == b"\xff" * 6
