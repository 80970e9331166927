"""Kernels: functions of integers and arrays that run as machine code; the integers in network order that kernels read.

In: a function with one of the decorators. Out: a `Kernel`, which is called like the function. Its machine code is compiled by
numba (`kcap.kernel_compiler`) in the set-up or in a process of its own (`kcap.every_kernel`), kept in a private folder
(`kcap.machine_code`) and loaded by llvmlite: importing numba would take half a second of every run.
Law: a kernel returns what its Python function returns and writes what it writes.
"""

import ctypes
import os
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.machine_code import COMPLETE, DIGEST, RESULTS, ROOT, folder, keep, kept, machine

if TYPE_CHECKING:
    import subprocess

LOOK_S: Final = 0.2
"""Seconds between two looks whether machine code is there."""
LOADING_NS: Final = 40_000_000
"""Processor time that the first kernel of a process costs: llvmlite and the machine."""
FLAGS, FORTRAN = 0x103, 2
"""NPY_ARRAY_C_CONTIGUOUS, F_CONTIGUOUS and ALIGNED: what an array's type has beside element and dimensions. Whether it can be
written makes no type of its own: captured bytes come as `bytes` and as `bytearray`, and no kernel writes to them.
"""


@cache
def engine() -> Any:
    """Where machine code is loaded; it stays for the process."""
    import llvmlite.binding as llvm

    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())


@cache
def installed() -> bool:
    """Whether machine code can be made and kept here at all."""
    try:
        return find_spec("numba") is not None and find_spec("llvmlite") is not None and folder().is_dir()
    except (ImportError, RuntimeError, OSError):
        return False


class _Readiness:
    """Whether machine code is there, as far as this process knows."""

    def __init__(self) -> None:
        self.ready = False
        self.looked_s = -LOOK_S
        self.making: subprocess.Popen[bytes] | None = None
        self.began = False
        self.spared_ns = 0
        """What kernels would have spared until now in places that ask whether they are worth loading."""

    def usable(self, make: bool) -> bool:
        """As `kcap.kernels.usable`."""
        if self.ready or PLAIN:
            return True
        if monotonic() - self.looked_s < LOOK_S or not installed():
            return False
        self.looked_s = monotonic()
        self.ready = (folder() / COMPLETE).exists()
        if self.making is not None:
            self.making.poll()  # or it would stay a zombie
        if make and not self.ready and not self.began:
            self.began = True
            self.making = begin_making()
        return self.ready

    def worthwhile(self, spared_ns: int) -> bool:
        """As `kcap.kernels.worthwhile`."""
        self.spared_ns += spared_ns
        return self.usable(make=False) if self.ready or PLAIN or self.spared_ns >= LOADING_NS else False


_readiness = _Readiness()


def usable(make: bool = False) -> bool:
    """Whether kernels can be called without waiting for a compiler.

    Where their machine code is not there yet and `make` is set, a process of low priority begins to make it, some 20 s on one
    core, while the caller goes on in Python.
    """
    return _readiness.usable(make)


def worthwhile(spared_ns: int) -> bool:
    """Whether kernels can be called here and now, where they spare `spared_ns` of processor time in Python.

    Law: what a process spends in Python for want of kernels is at most what it costs to load them, and once more.
    """
    return _readiness.worthwhile(spared_ns)


def begin_making() -> "subprocess.Popen[bytes] | None":
    """Starts the compiler in a process of its own, which goes on when this one ends; None where it cannot be started."""
    import subprocess

    path = os.pathsep.join((str(ROOT.parent), *filter(None, [os.environ.get("PYTHONPATH")])))
    quiet = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "kcap.every_kernel", "--low-priority"],
            stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
    except OSError:
        return None


class Kernel:
    """A function in machine code, made or loaded at its first call with arguments of some types."""

    def __init__(self, py_func: Callable[..., Any], inline: bool) -> None:
        self.py_func = py_func
        self.__name__, self.__module__ = py_func.__name__, py_func.__module__
        self.inline = inline
        """Whether compiled callers inline it."""
        self.entries: dict[tuple[Any, ...], tuple[Any, str]] = {}
        """By types of arguments: the machine code, and the form of its result."""

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of it, for kernels that call it."""
        from kcap.kernel_compiler import dispatcher

        return dispatcher(self)._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Runs the function. Raises RuntimeError where it raises."""
        if PLAIN:
            return self.py_func(*arguments)
        key, words = flattened(arguments)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = self._load(key, arguments)
        run, form = entry
        passed = array("q", words)
        if run(passed.buffer_info()[0]):
            raise RuntimeError(f"the kernel {self.__name__} failed")
        if form == "n":
            return None
        if form == "i":
            return passed[0]
        if form == "b":
            return bool(passed[0] & 0xFF)
        return tuple(passed[: int(form)])

    def make(self, *arguments: Any) -> None:
        """Makes and keeps the machine code for arguments of these types."""
        self.made(flattened(arguments)[0], arguments)

    def made(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[str, bytes]:
        """The name in the object file and the file for arguments of these types; made and kept where there is none."""
        code = self.py_func.__code__
        place = code.co_filename.removeprefix(str(ROOT))  # a package that is copied or moved keeps its machine code
        own = (self.__module__, place, code.co_firstlineno, code.co_code.hex(), repr(code.co_consts))
        name = f"{self.__name__}_{blake2b(repr((own, key)).encode(), digest_size=DIGEST).hexdigest()}"
        path = folder() / f"{name}.kernel"
        found = kept(path)
        if found is None:
            from kcap.kernel_compiler import object_code

            found = object_code(self, arguments, name)
            with suppress(OSError):  # a full disk costs the next process its time, not this one its run
                keep(path, found)
        return name, found

    def _load(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, str]:
        import llvmlite.binding as llvm

        name, found = self.made(key, arguments)
        engine().add_object_file(llvm.ObjectFileRef.from_data(found[1:]))
        engine().finalize_object()
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(engine().get_function_address(name)), found[:1].decode()


class LibraryCall:
    """Calls the function of a C library at an address with integers and addresses; it returns an `int`."""

    def __call__(self, address: int, *arguments: int) -> int:
        """As machine code does it."""
        found: int = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(arguments))(int(address))(*map(int, arguments))
        return found

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of it, for kernels that call it."""
        from kcap.kernel_compiler import library_call_type

        return library_call_type()


called: Final = LibraryCall()


def flattened(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """The types of arguments, and the words of a call: places for results, then the arguments."""
    types: list[Any] = []
    words = [0] * RESULTS
    for argument in arguments:
        flatten(argument, types, words)
    return tuple(types), words


def flatten(argument: Any, types: list[Any], words: list[int]) -> None:
    """Appends the type and the word of an argument, of a tuple those of its elements. The word of an array is the address of
    its object, from which the machine code takes data, shape and strides: to ask numpy for them takes longer than most calls.
    """
    kind = type(argument)
    if kind is np.ndarray:
        flags = argument.flags.num & FLAGS
        types.append((argument.dtype.num, argument.ndim, flags & ~FORTRAN if flags & 1 else flags))
        words.append(id(argument))
    elif kind is bool or kind is np.bool_:
        types.append("b")
        words.append(int(argument))
    elif isinstance(argument, tuple):
        types.append(len(argument))
        for each in argument:
            flatten(each, types, words)
    else:
        types.append("i")
        words.append(argument.__index__())


# -- decorators -----------------------------------------------------------------------------------------------------------
def compiled(function: Callable[..., Any]) -> Any:
    """Compiles a function, which compiled callers inline.

    An array is seven arguments, and calls with twenty arrays took a third of the fast path's time.
    """
    return Kernel(function, inline=True)


def routine(function: Callable[..., Any]) -> Any:
    """Compiles a large function that compiled code calls in several places or rarely: it is not inlined."""
    return Kernel(function, inline=False)


PLAIN: Final = os.environ.get("NUMBA_DISABLE_JIT") == "1"
"""Whether kernels run as Python."""


# -- integers in a uint8 array, in network order; each gives an int64 -----------------------------------------------------
@compiled
def int16(data: Any, at: int) -> Any:
    """A signed 16 bit integer."""
    return (uint16(data, at) ^ 1 << 15) - (1 << 15)


@compiled
def int32(data: Any, at: int) -> Any:
    """A signed 32 bit integer."""
    return (uint32(data, at) ^ 1 << 31) - (1 << 31)


@compiled
def int64(data: Any, at: int) -> Any:
    """A signed 64 bit integer."""
    return int32(data, at) << 32 | uint32(data, at + 4)


@compiled
def uint16(data: Any, at: int) -> int:
    """An unsigned 16 bit integer."""
    return int(data[at]) << 8 | int(data[at + 1])


@compiled
def uint32(data: Any, at: int) -> int:
    """An unsigned 32 bit integer."""
    return int(data[at]) << 24 | int(data[at + 1]) << 16 | int(data[at + 2]) << 8 | int(data[at + 3])


@compiled
def copied(data: Any, low: int, high: int, out: Any, top: int) -> None:
    """Copies `data[low:high]` to `out[top:]`; a function of its own, since compiling a slice takes half a second."""
    for k in range(high - low):
        out[top + k] = data[low + k]


# -- tables with open addressing ------------------------------------------------------------------------------------------
SEED: Final = int.from_bytes(os.urandom(7))
"""Where hashes begin: a capture that knew it could make them collide. Kernels take it as an argument."""
ODD = 0x1E3779B97F4A7C15
"""An odd number without a pattern in its bits: what is multiplied with it spreads over the high bits (Knuth)."""
HALF = 32


@compiled
def mixed(code: int, value: int) -> Any:
    """A hash of what `code` is one of, and of a number more."""
    return (code ^ (code >> HALF) ^ value) * ODD


@compiled
def home(code: int, room: int) -> Any:
    """Where in a table of `room` entries, a power of two, the search for what has this hash begins."""
    return (code ^ (code >> HALF)) & (room - 1)
