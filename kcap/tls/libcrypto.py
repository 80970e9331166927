"""OpenSSL's libcrypto: ARIA-GCM (RFC 6209), which the library `cryptography` does not have, and functions for compiled code.

In: key, nonce, protected bytes, additional data; names of ciphers and hashes. Out: plaintext, or InvalidTag as from
`cryptography`; addresses of functions. Law: no cipher is implemented here. If no libcrypto is installed, ARIA is not available,
and `cryptography` opens records of the other ciphers, one at a time.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np

NAMES: Final = ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.3.dylib", "libcrypto-3-x64.dll")
TAG_BYTES: Final = 16
"""Bytes of a tag of GCM and ChaCha20-Poly1305."""
SET_TAG: Final = 0x11
"""EVP_CTRL_AEAD_SET_TAG of openssl/evp.h."""
POINTERS: Final = ("EVP_CIPHER_CTX_new", "EVP_aria_128_gcm", "EVP_aria_256_gcm")
"""Functions that return a pointer."""
OPENING: Final = ("EVP_DecryptInit_ex", "EVP_DecryptUpdate", "EVP_CIPHER_CTX_ctrl", "EVP_DecryptFinal_ex")
"""Functions that `record_kernels.deciphered` calls."""
DERIVING: Final = ("EVP_MAC_init", "EVP_MAC_update", "EVP_MAC_final")
"""Functions that `record_kernels.derived` calls."""
MAKING: Final = ("EVP_CIPHER_fetch", "EVP_CIPHER_CTX_new", "EVP_MAC_fetch", "EVP_MAC_CTX_new")
"""Functions of OpenSSL 3 that return a pointer."""
UTF8_STRING: Final = 4
"""OSSL_PARAM_UTF8_STRING of openssl/core.h."""


@cache
def library() -> Any:
    """Libcrypto; None if there is none with ARIA."""
    for name in NAMES:
        try:
            found = ctypes.CDLL(name)
            for function in POINTERS:
                getattr(found, function).restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        return found
    return None


class Parameter(ctypes.Structure):
    """OSSL_PARAM of openssl/core.h."""

    _fields_ = (
        ("key", ctypes.c_char_p), ("data_type", ctypes.c_uint), ("data", ctypes.c_char_p), ("data_size", ctypes.c_size_t),
        ("return_size", ctypes.c_size_t),
    )  # fmt: skip


class LibraryFunctions:
    """Functions of libcrypto that compiled code calls."""

    def __init__(self, crypto: Any) -> None:
        """Raises AttributeError if this libcrypto lacks one of them: before OpenSSL 3, or if it offers no HMAC."""
        for name in MAKING:
            getattr(crypto, name).restype = ctypes.c_void_p
        self._crypto = crypto
        self.opening, self.deriving = (np.array([_address(crypto, name) for name in names]) for names in (OPENING, DERIVING))
        """Addresses of OPENING and DERIVING."""
        self._mac = ctypes.c_void_p(crypto.EVP_MAC_fetch(None, b"HMAC", None))
        if self._mac.value is None:
            raise AttributeError("HMAC")

    def cipher(self, name: str) -> int:
        """The address of a cipher; 0 if there is none with this name."""
        return self._crypto.EVP_CIPHER_fetch(None, name.encode(), None) or 0

    @contextmanager
    def opener(self) -> Iterator[int]:
        """Yields the address of an EVP_CIPHER_CTX, whose keys are wiped after the block. Raises MemoryError."""
        made = self._crypto.EVP_CIPHER_CTX_new()
        if not made:
            raise MemoryError
        try:
            yield made
        finally:
            self._crypto.EVP_CIPHER_CTX_free(ctypes.c_void_p(made))

    @contextmanager
    def hmac(self, hash_name: str) -> Iterator[int]:
        """Yields the address of an EVP_MAC_CTX for HMAC with a hash, 0 if there is none; its keys are wiped after the block."""
        made = self._crypto.EVP_MAC_CTX_new(self._mac) or 0
        name = hash_name.encode()
        parameters = (Parameter * 2)(Parameter(b"digest", UTF8_STRING, name, len(name), 0), Parameter())
        try:
            yield made if made and self._crypto.EVP_MAC_CTX_set_params(ctypes.c_void_p(made), parameters) > 0 else 0
        finally:
            self._crypto.EVP_MAC_CTX_free(ctypes.c_void_p(made))


def _address(crypto: Any, name: str) -> int:
    found = ctypes.cast(getattr(crypto, name), ctypes.c_void_p).value
    assert found is not None
    return found


@cache
def functions() -> LibraryFunctions | None:
    """The functions of the installed libcrypto; None if it lacks one of them, or if there is none."""
    crypto = library()
    try:
        return None if crypto is None else LibraryFunctions(crypto)
    except AttributeError:
        return None


class AriaGcm:
    """ARIA in Galois/Counter Mode with a tag of 16 bytes; it is called like `cryptography`'s AEADs."""

    def __init__(self, key: bytes) -> None:
        """Raises UnsupportedAlgorithm if no libcrypto has ARIA."""
        from cryptography.exceptions import UnsupportedAlgorithm

        self._crypto = library()
        if self._crypto is None:
            raise UnsupportedAlgorithm("ARIA")
        self._key = key

    def decrypt(self, nonce: bytes, data: bytes, associated: bytes) -> bytes:
        """The plaintext. Raises InvalidTag if it does not authenticate."""
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
