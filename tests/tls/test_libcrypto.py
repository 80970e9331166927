"""ARIA-GCM of libcrypto."""

import pytest
from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm

from kcap.tls import libcrypto
from kcap.tls.libcrypto import AriaGcm, library

pytestmark = pytest.mark.skipif(library() is None, reason="needs OpenSSL's libcrypto")
KEY = bytes.fromhex("e91e5e75da65554a48181f3846349562")
NONCE, ASSOCIATED = bytes.fromhex("000020e8f5eb00000000315e"), bytes.fromhex("8008315ebf2e6fe020e8f5eb")
PLAIN = bytes.fromhex(
    "f57af5fd4ae19562976ec57a5a7ad55a5af5c5e5c5fdf5c55ad57a4a7272d57262e97295"
    "66ed66e97ac54a4a5a7ad5e15ae5fdd5fd5ac5d56ae56ad5c572d54ae54ac55a956afd6aed5a4ac562957a9516991691"
    "d572fd14e97ae962ed7a9f4a955af572e162f57a956666e17ae1f54a95f566d54a66e16e4afd6a9f7ae1c5c55ae5d56a"
    "fde916c5e94a6ec56695e14afde1148416e94ad57ac5146ed59d1cc5"
)
PROTECTED = bytes.fromhex(
    "4d8a9a0675550c704b17d8c9ddc81a5cd6f7da34f2fe1b3db7cb3dfb9697102ea0f3c1fc2dbc873d44bceeae8e444297"
    "4ba21ff6789d3272613fb9631a7cf3f14bacbeb421633a90ffbe58c2fa6bdca534f10d0de0502ce1d531b6336e588782"
    "78531e5c22bc6c85bbd784d78d9e680aa19031aaf89101d669d7a3965c1f7e16229d7463e0535f4e253f5d18187d40b8"
    "ae0f564bd970b5e7e2adfb211e89a9535abace3f37f5a736f4be984bbffbedc1"
)
"""Appendix A.1.1 of RFC 8269."""


def test_the_vector_of_the_rfc_opens() -> None:
    assert AriaGcm(KEY).decrypt(NONCE, PROTECTED, ASSOCIATED) == PLAIN


def test_what_was_changed_does_not_open() -> None:
    broken = bytes([PROTECTED[0] ^ 1]) + PROTECTED[1:]
    for data, associated in ((broken, ASSOCIATED), (PROTECTED, b""), (PROTECTED[:9], ASSOCIATED)):
        with pytest.raises(InvalidTag):
            AriaGcm(KEY).decrypt(NONCE, data, associated)


def test_without_a_library_aria_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcrypto, "NAMES", ("libnowhere.so.9",))
    assert libcrypto.library.__wrapped__() is None
    monkeypatch.setattr(libcrypto, "library", lambda: None)
    assert libcrypto.functions.__wrapped__() is None
    with pytest.raises(UnsupportedAlgorithm):
        AriaGcm(KEY)


def test_a_library_that_lacks_functions_is_not_called_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        """A libcrypto before version 3."""

    monkeypatch.setattr(libcrypto, "library", Old)
    assert libcrypto.functions.__wrapped__() is None


@pytest.mark.skipif(libcrypto.functions() is None, reason="needs OpenSSL 3")
def test_what_the_library_has_not_has_the_address_0() -> None:
    found = libcrypto.functions()
    assert found is not None
    assert found.cipher("AES-128-GCM")
    assert found.cipher("AES-77-GCM") == 0
    assert all(found.opening)
    assert all(found.deriving)
    for name, there in (("sha256", True), ("sha384", True), ("sha9", False)):
        with found.hmac(name) as context:
            assert bool(context) is there, name
    with found.opener() as context:
        assert context
