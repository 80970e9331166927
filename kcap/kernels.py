"""How functions are compiled, where their machine code is cached and when cached code is stale; integers that kernels read.

In: a function of numbers and arrays. Out: the same function in machine code, cached by numba beside its module or in the user's
cache folder. Law: cached code is used only while every source it was made from is unchanged. Numba compares the function's own
file alone, but constants and callees of other modules are compiled in too: `SOURCES` names them all. Importing this module
imports numba. Raises RuntimeError where no folder can hold a cache that only this user and root can write.
"""

import os
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from stat import S_ISVTX, S_IWOTH
from typing import Any

import numpy as np
from numba import njit

ROOT = Path(__file__).parent
KERNELS = ("kernels.py", "*/*_kernels.py", "fastpath/client_ids.py", "fastpath/flow_table.py")
"""Modules with compiled functions, as patterns below the package."""
CONSTANTS = (
    "columns.py", "limits.py", "decode/opcodes.py", "decode/slots.py", "fastpath/layout.py", "kafka/frames.py",
    "kafka/headers.py", "net/segment_columns.py", "net/tcp.py", "records/verified.py", "schema/quirks.py", "wire/cursor.py",
    "wire/formats.py",
)  # fmt: skip
"""Other modules whose constants are compiled in."""


@cache
def edition() -> str:
    """A digest of every source that is compiled in. A package inside a zip has no such files: numba compares the whole zip."""
    digest = blake2b(digest_size=16)
    for pattern in (*KERNELS, *CONSTANTS):
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def compiled(function: Callable[..., Any]) -> Any:
    """Compiles a function that Python calls, alone or beside other compiled functions.

    Compiled callers inline it: an array is seven arguments, and calls with twenty arrays took a third of the fast path's time.
    """
    return _cached(njit(cache=True, nogil=True, forceinline=True)(function))


def inner(function: Callable[..., Any]) -> Any:
    """Compiles a function that only compiled code calls: its wrappers for Python take as long to compile as the function."""
    make: Any = njit  # its hints leave two options out
    return _cached(make(cache=True, nogil=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def routine(function: Callable[..., Any]) -> Any:
    """Compiles a large function that only compiled code calls, in several places or rarely: it is not inlined."""
    make: Any = njit
    return _cached(make(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def _cached(made: Any) -> Any:
    """Binds the cache of a compiled function to the edition; a cache written for another edition counts as empty."""
    store: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if store is not None:
        if not private(made._cache.cache_path, made.py_func.__code__.co_filename):
            raise RuntimeError(f"other users can write to {made._cache.cache_path}: compiled code is not cached there")
        store._source_stamp = (store._source_stamp, edition())
    return made


def private(folder: str, source: str) -> bool:
    """Whether code cached in `folder` is as safe as its source: no user can change it who cannot change the source anyway."""
    beside = Path(source).parent
    return os.name == "nt" or not _shared(Path(folder), beside) or _shared(beside, beside)


@cache
def _shared(folder: Path, owner: Path) -> bool:
    """Whether users other than this one, root and the owner of `owner` can create or replace files of a folder."""
    first = folder.stat()
    above = (parent.stat().st_mode for parent in folder.resolve().parents)
    return (
        bool(first.st_mode & S_IWOTH)
        or first.st_uid not in (0, os.geteuid(), owner.stat().st_uid)
        or any(mode & S_IWOTH and not mode & S_ISVTX for mode in above)
    )


# -- integers in a uint8 array, in network order; each gives an int64 -----------------------------------------------------
@compiled
def int16(data: Any, at: int) -> Any:
    """A signed 16 bit integer."""
    return np.int64(np.int16(np.uint16(data[at]) << np.uint16(8) | np.uint16(data[at + 1])))


@compiled
def int32(data: Any, at: int) -> Any:
    """A signed 32 bit integer."""
    return np.int64(np.int32(uint32(data, at)))


@compiled
def uint16(data: Any, at: int) -> int:
    """An unsigned 16 bit integer."""
    return int(data[at]) << 8 | int(data[at + 1])


@compiled
def uint32(data: Any, at: int) -> int:
    """An unsigned 32 bit integer."""
    return int(data[at]) << 24 | int(data[at + 1]) << 16 | int(data[at + 2]) << 8 | int(data[at + 3])
