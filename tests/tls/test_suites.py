"""Suites by number, from the names of the registry."""

import pytest

from kcap.tls.suites import names, suite_of, version_name


@pytest.mark.parametrize(
    ("number", "name", "exchange", "hash_name", "kind", "key", "mac"),
    [
        (0x1301, "TLS_AES_128_GCM_SHA256", "", "sha256", "gcm", 16, ""),
        (0x1302, "TLS_AES_256_GCM_SHA384", "", "sha384", "gcm", 32, ""),
        (0x1303, "TLS_CHACHA20_POLY1305_SHA256", "", "sha256", "chacha", 32, ""),
        (0x1305, "TLS_AES_128_CCM_8_SHA256", "", "sha256", "ccm8", 16, ""),
        (0xC09F, "TLS_DHE_RSA_WITH_AES_256_CCM", "DHE_RSA", "sha256", "ccm", 32, ""),
        (0xC028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE_RSA", "sha384", "cbc", 32, "sha384"),
        (0x002F, "TLS_RSA_WITH_AES_128_CBC_SHA", "RSA", "sha256", "cbc", 16, "sha1"),
        (0x000A, "TLS_RSA_WITH_3DES_EDE_CBC_SHA", "RSA", "sha256", "cbc", 24, "sha1"),
        (0x0002, "TLS_RSA_WITH_NULL_SHA", "RSA", "sha256", "null", 0, "sha1"),
    ],
)
def test_a_suite_is_what_its_name_says(
    number: int, name: str, exchange: str, hash_name: str, kind: str, key: int, mac: str
) -> None:
    suite = suite_of(number)
    assert (suite.name, suite.key_exchange, suite.hash) == (name, exchange, hash_name)
    assert suite.cipher is not None
    assert (suite.cipher.kind, suite.cipher.key_bytes, suite.cipher.mac) == (kind, key, mac)


def test_every_registered_suite_has_an_answer_and_those_without_a_cipher_say_so() -> None:
    suites = [suite_of(number) for number in names()]
    assert {suite.name for suite in suites if suite.cipher is None} >= {
        "TLS_ECDHE_RSA_WITH_ARIA_128_CBC_SHA256",
        "TLS_RSA_WITH_RC4_128_SHA",
    }
    assert suite_of(0xFFFE).cipher is None
    assert suite_of(0xFFFE).name == "0xFFFE"


def test_versions_have_their_names() -> None:
    assert [version_name(number) for number in (0x0301, 0x0304, 0x7F1C)] == ["TLS 1.0", "TLS 1.3", "0x7F1C"]
