"""Keys from secrets, held against published vectors."""

import pytest

from kcap.tls.key_schedule import expand_label, key_block, master_secret, next_secret, prf, traffic_keys
from kcap.tls.suites import suite_of


def test_the_keys_of_rfc_8448() -> None:
    """Section 3, the simple handshake: client and server handshake traffic keys."""
    client = bytes.fromhex("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21")
    server = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    suite = suite_of(0x1301)
    assert traffic_keys(client, suite).key.hex() == "dbfaa693d1762c5b666af5d950258d01"
    assert traffic_keys(client, suite).iv.hex() == "5bd3c71b836e0b76bb73265f"
    assert traffic_keys(server, suite).key.hex() == "3fce516009c21727d0f2e4e86ee403bc"
    assert traffic_keys(server, suite).iv.hex() == "5d313eb2671276ee13000b30"


def test_the_prf_of_tls_1_2() -> None:
    """The P_SHA256 vector that the TLS working group circulated for RFC 5246."""
    secret, seed = bytes.fromhex("9bbe436ba940f017b17652849a71db35"), bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c")
    found = prf(0x0303, "sha256", secret, b"test label", seed, 100)
    assert found.hex() == (
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd37"
        "97c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66"
    )


def test_both_halves_of_the_secret_count_before_tls_1_2() -> None:
    one, other = (prf(0x0301, "sha256", secret, b"x", b"seed", 48) for secret in (b"ab" * 24, b"ab" * 23 + b"ac"))
    assert one != other
    assert len(one) == 48


def test_key_blocks_have_the_lengths_of_their_suites() -> None:
    for number, version, key, iv, mac in (
        (0xC02F, 0x0303, 16, 4, 0),
        (0x002F, 0x0301, 16, 16, 20),
        (0xC028, 0x0303, 32, 0, 48),
    ):
        for keys in key_block(version, suite_of(number), bytes(48), bytes(32), bytes(32)):
            assert (len(keys.key), len(keys.iv), len(keys.mac_key)) == (key, iv, mac)


def test_the_extended_master_secret_hangs_on_the_transcript() -> None:
    plain = master_secret(0x0303, "sha256", bytes(48), bytes(64), None)
    extended = {master_secret(0x0303, "sha256", bytes(48), bytes(64), text) for text in (b"a", b"b")}
    assert len(extended | {plain}) == 3


def test_an_update_gives_another_secret_of_the_same_length() -> None:
    suite = suite_of(0x1302)
    assert len(next_secret(bytes(48), suite)) == 48
    assert next_secret(bytes(48), suite) == expand_label(bytes(48), b"traffic upd", 48, "sha384")
    assert "00" * 8 not in repr(traffic_keys(bytes(48), suite)), "keys are in no repr"


@pytest.mark.parametrize("number", [0x1301, 0x1302, 0x1303, 0x1304])
def test_keys_are_what_the_label_of_each_gives(number: int) -> None:
    suite = suite_of(number)
    assert suite.cipher is not None
    secret = bytes(range(48 if suite.hash == "sha384" else 32))
    made = traffic_keys(secret, suite)
    assert made.key == expand_label(secret, b"key", suite.cipher.key_bytes, suite.hash)
    assert made.iv == expand_label(secret, b"iv", 12, suite.hash)
