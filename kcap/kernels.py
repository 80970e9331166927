"""How the lane's functions are compiled and when a compiled one is out of date.

In: a function of numbers and arrays. Out: the same in machine code, kept in numba's cache. Law: compiled code is never used
again after a text it was made from has changed. Numba looks at the function's own file only, but constants and called functions
of other modules are part of the machine code too. Importing this module imports numba.
"""

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba import njit

ROOT = Path(__file__).parent
TEXTS = ("limits.py", "net/segment_columns.py", "net/tcp.py", "kafka/headers.py", "kafka/frames.py", "schema/quirks.py")
"""Modules outside the lane whose constants stand in compiled code."""


@cache
def edition() -> str:
    """A name for the texts the lane is compiled from, the same for the same texts."""
    digest = blake2b(digest_size=16)
    for path in (*sorted(ROOT.glob("fastpath/*.py")), *(ROOT / name for name in TEXTS)):
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def compiled(function: Callable[..., Any]) -> Any:
    """The function in machine code; what the cache holds of other texts counts as not there.

    It is put into whoever calls it: an array is seven arguments, and a call with twenty of them a third of the lane's time.
    """
    return _stamped(njit(cache=True, nogil=True, forceinline=True)(function))


def inner(function: Callable[..., Any]) -> Any:
    """As `compiled`, for what only compiled code calls: the ways in from Python take as long to compile as the function."""
    make: Any = njit  # its hints leave two options out
    return _stamped(make(cache=True, nogil=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def _stamped(made: Any) -> Any:
    kept: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(kept, "_source_stamp"):
        kept._source_stamp = (kept._source_stamp, edition())
    return made
