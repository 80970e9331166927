"""ARIA-GCM through OpenSSL's libcrypto, which has it where the library `cryptography` does not (RFC 6209).

In: key, nonce, protected bytes, additional data. Out: plaintext, or InvalidTag as from `cryptography`. Law: no cipher is
implemented here; where no libcrypto is installed the cipher is not available.
"""

import ctypes
from functools import cache
from typing import Any, Final

NAMES: Final = ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.3.dylib", "libcrypto-3-x64.dll")
TAG_BYTES: Final = 16
SET_TAG: Final = 0x11
"""EVP_CTRL_AEAD_SET_TAG of openssl/evp.h."""
POINTERS: Final = ("EVP_CIPHER_CTX_new", "EVP_aria_128_gcm", "EVP_aria_256_gcm")
"""Functions that return a pointer."""


@cache
def library() -> Any:
    """Libcrypto; None where there is none with ARIA."""
    for name in NAMES:
        try:
            found = ctypes.CDLL(name)
            for function in POINTERS:
                getattr(found, function).restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        return found
    return None


class AriaGcm:
    """ARIA in Galois/Counter Mode with a tag of 16 bytes, as `cryptography`'s AEADs are called."""

    def __init__(self, key: bytes) -> None:
        """Raises UnsupportedAlgorithm where no libcrypto has it."""
        from cryptography.exceptions import UnsupportedAlgorithm

        self._crypto = library()
        if self._crypto is None:
            raise UnsupportedAlgorithm("ARIA")
        self._key = key

    def decrypt(self, nonce: bytes, data: bytes, associated: bytes) -> bytes:
        """The plaintext. Raises InvalidTag where it does not authenticate."""
        from cryptography.exceptions import InvalidTag

        crypto, size = self._crypto, len(data) - TAG_BYTES
        if size < 0:
            raise InvalidTag
        cipher = ctypes.c_void_p(getattr(crypto, f"EVP_aria_{8 * len(self._key)}_gcm")())
        context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
        out, done = ctypes.create_string_buffer(max(size, 1)), ctypes.c_int()
        try:
            opened = (
                crypto.EVP_DecryptInit_ex(context, cipher, None, self._key, nonce)
                and crypto.EVP_DecryptUpdate(context, None, ctypes.byref(done), associated, len(associated))
                and crypto.EVP_DecryptUpdate(context, out, ctypes.byref(done), data, size)
                and crypto.EVP_CIPHER_CTX_ctrl(context, SET_TAG, TAG_BYTES, data[size:])
                and crypto.EVP_DecryptFinal_ex(context, None, ctypes.byref(done)) > 0
            )
        finally:
            crypto.EVP_CIPHER_CTX_free(context)
        if not opened:
            raise InvalidTag
        return out.raw[:size]
