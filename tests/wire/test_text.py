"""Kafka's strings as Java reads them."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.wire.text import MASKED, client_text, decode_text, name_text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_good_text_is_itself(text: str) -> None:
    """Law: UTF-8 comes back."""
    assert decode_text(text.encode()) == text


@given(st.binary())
def test_any_bytes_are_text(data: bytes) -> None:
    """Law: nothing raises."""
    assert isinstance(decode_text(data), str)


def test_malformed_bytes_as_in_java() -> None:
    """One U+FFFD for each maximal part, one for an encoded surrogate (`new String(bytes, UTF_8)` of Java 17)."""
    assert decode_text(b"a\xffb") == "a\N{REPLACEMENT CHARACTER}b"
    assert decode_text(b"\xe2\x82") == "\N{REPLACEMENT CHARACTER}"
    assert decode_text(b"\xed\xa0\x80x") == "\N{REPLACEMENT CHARACTER}x"
    assert decode_text(b"\xed\xa0x") == "\N{REPLACEMENT CHARACTER}x"
    assert decode_text(b"\xed\xbf") == "\N{REPLACEMENT CHARACTER}"
    assert decode_text(b"\xf5\x80") == "\N{REPLACEMENT CHARACTER}" * 2
    assert decode_text(memoryview(b"ok")) == "ok"


def test_a_name_with_the_control_characters_of_a_login_is_masked() -> None:
    for token in (b"\0alice\0open sesame", b"n,,\x01auth=Bearer x\x01\x01"):
        assert name_text(token) == MASKED
    for name in ("orders", "caf\u00e9", "t\x1b[31m", "a\tb", "\x07"):
        assert name_text(name.encode()) == name


def test_a_client_id_that_takes_in_the_body_behind_it_is_masked() -> None:
    for text in ("app\0\0\0\x1c\0alice\0open sesame", "app\0\x01\x02\x06alice", "\x08"):
        assert client_text(text) == MASKED
    for name in (None, "", "orders", "caf\u00e9", "\N{REPLACEMENT CHARACTER}", "t\x1b[31m", "a\tb"):
        assert client_text(name) == name
