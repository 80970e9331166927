"""Kernels: functions of integers and arrays that run as machine code, and the network-order integers that they read.

In: a function with one of the decorators. Out: a `Kernel`, which is called like the function. Numba compiles its machine code
(`kcap.kernel_compiler`) during set-up or in a separate process (`kcap.every_kernel`). The code is stored in a private folder
(`kcap.machine_code`) and loaded by llvmlite, because importing numba would add half a second to every run. Law: a kernel
returns what its Python function returns and writes what it writes.
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
"""Seconds between two checks whether the machine code exists."""
LOADING_NS: Final = 40_000_000
"""Processor time, ns, that the first kernel of a process costs, for loading llvmlite and creating the execution engine."""
FLAGS, FORTRAN = 0x103, 2
"""NPY_ARRAY_C_CONTIGUOUS, F_CONTIGUOUS and ALIGNED: the flags that belong to an array's type beside element type and
dimensions. The writable flag does not: captured bytes come as `bytes` and as `bytearray`, and no kernel writes to them."""


@cache
def engine() -> Any:
    """The execution engine that machine code is loaded into; it exists until the process ends."""
    import llvmlite.binding as llvm

    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())


@cache
def installed() -> bool:
    """Whether this installation can make and store machine code at all."""
    try:
        return find_spec("numba") is not None and find_spec("llvmlite") is not None and folder().is_dir()
    except (ImportError, RuntimeError, OSError):
        return False


class _Readiness:
    """What this process knows about whether the machine code exists."""

    def __init__(self) -> None:
        self.ready = False
        self.looked_s = -LOOK_S
        self.making: subprocess.Popen[bytes] | None = None
        self.began = False
        self.spared_ns = 0
        """Processor time that kernels would have saved so far in places that call `worthwhile`, ns."""

    def usable(self, make: bool) -> bool:
        """As `kcap.kernels.usable`."""
        if self.ready or PLAIN:
            return True
        if monotonic() - self.looked_s < LOOK_S or not installed():
            return False
        self.looked_s = monotonic()
        self.ready = (folder() / COMPLETE).exists()
        if self.making is not None:
            self.making.poll()  # otherwise it would remain a zombie
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

    If their machine code does not exist yet and `make` is set, a low-priority process starts to compile it, which takes some 20
    s on one core. Meanwhile the caller goes on in Python.
    """
    return _readiness.usable(make)


def worthwhile(spared_ns: int) -> bool:
    """Whether kernels should be called here, if they save `spared_ns` of processor time compared with Python.

    Law: without kernels, a process spends at most twice the time in Python that it would cost to load them.
    """
    return _readiness.worthwhile(spared_ns)


def begin_making() -> "subprocess.Popen[bytes] | None":
    """Starts the compiler in a separate process, which outlives this one; None if it cannot be started."""
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
    """A function in machine code, which is compiled or loaded at the first call with arguments of given types."""

    def __init__(self, py_func: Callable[..., Any], inline: bool) -> None:
        self.py_func = py_func
        self.__name__, self.__module__ = py_func.__name__, py_func.__module__
        self.inline = inline
        """Whether compiled callers inline it."""
        self.entries: dict[tuple[Any, ...], tuple[Any, str]] = {}
        """Types of arguments -> the machine code, and the form of its result."""

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the kernel, for kernels that call it."""
        from kcap.kernel_compiler import dispatcher

        return dispatcher(self)._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Runs the function. Raises RuntimeError if the function raises."""
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
        """Compiles and stores the machine code for arguments of these types."""
        self.made(flattened(arguments)[0], arguments)

    def made(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[str, bytes]:
        """Returns name and object file for arguments of these types; compiles and stores it if needed."""
        code = self.py_func.__code__
        place = code.co_filename.removeprefix(str(ROOT))  # a package that is moved can still use its machine code
        own = (self.__module__, place, code.co_firstlineno, code.co_code.hex(), repr(code.co_consts))
        name = f"{self.__name__}_{blake2b(repr((own, key)).encode(), digest_size=DIGEST).hexdigest()}"
        path = folder() / f"{name}.kernel"
        found = kept(path)
        if found is None:
            from kcap.kernel_compiler import object_code

            found = object_code(self, arguments, name)
            with suppress(OSError):  # a full disk must not end this run; the next process compiles again
                keep(path, found)
        return name, found

    def _load(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, str]:
        import llvmlite.binding as llvm

        name, found = self.made(key, arguments)
        engine().add_object_file(llvm.ObjectFileRef.from_data(found[1:]))
        engine().finalize_object()
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(engine().get_function_address(name)), found[:1].decode()


class LibraryCall:
    """Calls the function of a C library at an address, with integers and addresses as arguments; returns an `int`."""

    def __call__(self, address: int, *arguments: int) -> int:
        """Calls the function as the machine code does."""
        found: int = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * len(arguments))(int(address))(*map(int, arguments))
        return found

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the library call, for kernels that use it."""
        from kcap.kernel_compiler import library_call_type

        return library_call_type()


called: Final = LibraryCall()


def flattened(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """Returns the types of arguments, and the words of a call: space for results, then the arguments."""
    types: list[Any] = []
    words = [0] * RESULTS
    for argument in arguments:
        flatten(argument, types, words)
    return tuple(types), words


def flatten(argument: Any, types: list[Any], words: list[int]) -> None:
    """Appends the type and the word of an argument; for a tuple, those of its elements. The word of an array is the address of
    its object, from which the machine code takes data, shape and strides. Getting these from numpy would take longer than most
    calls."""
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
    """Compiles a function that compiled callers inline.

    Each array is seven arguments, and calls with twenty arrays would take a third of the fast path's time.
    """
    return Kernel(function, inline=True)


def routine(function: Callable[..., Any]) -> Any:
    """Compiles a large function that is not inlined: compiled code calls it in several places or rarely."""
    return Kernel(function, inline=False)


PLAIN: Final = os.environ.get("NUMBA_DISABLE_JIT") == "1"
"""Whether kernels run as plain Python."""


# -- integers in network order, read from a uint8 array; each function returns an int64 -----------------------------------
@compiled
def int16(data: Any, at: int) -> Any:
    """A signed 16-bit integer."""
    return (uint16(data, at) ^ 1 << 15) - (1 << 15)


@compiled
def int32(data: Any, at: int) -> Any:
    """A signed 32-bit integer."""
    return (uint32(data, at) ^ 1 << 31) - (1 << 31)


@compiled
def int64(data: Any, at: int) -> Any:
    """A signed 64-bit integer."""
    return int32(data, at) << 32 | uint32(data, at + 4)


@compiled
def uint16(data: Any, at: int) -> int:
    """An unsigned 16-bit integer."""
    return int(data[at]) << 8 | int(data[at + 1])


@compiled
def uint32(data: Any, at: int) -> int:
    """An unsigned 32-bit integer."""
    return int(data[at]) << 24 | int(data[at + 1]) << 16 | int(data[at + 2]) << 8 | int(data[at + 3])


@compiled
def copied(data: Any, low: int, high: int, out: Any, top: int) -> None:
    """Copies `data[low:high]` to `out[top:]`. It is a separate function because compiling a slice takes half a second."""
    for k in range(high - low):
        out[top + k] = data[low + k]


# -- tables with open addressing ------------------------------------------------------------------------------------------
SEED: Final = int.from_bytes(os.urandom(7))
"""Initial value of hashes, an argument of kernels. It is random, as a capture made for a known value could cause collisions."""
ODD = 0x1E3779B97F4A7C15
"""An odd number without a pattern in its bits; multiplication by it spreads values over the high bits (Knuth)."""
HALF = 32


@compiled
def mixed(code: int, value: int) -> Any:
    """Combines a hash with one more number."""
    return (code ^ (code >> HALF) ^ value) * ODD


@compiled
def home(code: int, room: int) -> Any:
    """Index where the search for a hash begins in a table of `room` entries; `room` is a power of two."""
    return (code ^ (code >> HALF)) & (room - 1)
