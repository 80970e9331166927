"""Tunes the process: Arrow without pandas, allocator, garbage collector, pages of libraries.

pyarrow imports pandas with its first array, to recognise pandas objects. This takes 0.3 s and 40 MB, and no command needs it.
If pandas is imported later, pyarrow finds it, but may not recognise pandas' missing values; so this is for kcap's own process
only.
"""

import atexit
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from kcap import limits
from kcap.errors import CaptureError

MAPPING: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) .-.p \S+ \S+ \d+ .*\.so\b")
"""A private, read-only mapping of a library (proc_pid_smaps(5))."""
MADV_DONTNEED: Final = 4
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Options of mallopt(3)."""
STEPS: Final = 16
"""Steps of reading before memory is first checked; each later check follows after eight times as many."""
RARELY: Final = 200_000, 5, 5
"""Thresholds of the garbage collector: the number of new objects before young ones are collected, and how often before older
ones are. Closed connections are freed without it (`Conversation.release`), so that in a large capture it only traverses live
objects."""
SCREENS: Final = 5_000, 10, 10
"""The same for a process with screens, whose repaints leave lines with caches to the collector."""
ENDING: Final = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__)
"""Signals that end a process in an orderly way. SIGHUP arrives when a terminal or a session is closed."""
AUTOGROUP: Final = "/proc/self/autogroup"
"""The scheduling group of this process's session, on Linux systems that schedule sessions as groups."""
POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
"""Environment variable for the memory pool, which Arrow's C++ part reads when it is loaded."""
BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"
"""Environment variable for the threads of numpy's linear algebra. kcap does not use it, but it starts a thread per core when it
is loaded, and these busy-wait for 0.07 s."""


class _NotNow:
    """A module finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Raises for pandas and leaves all other modules to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
        return None


def load_arrow(*, of_library: bool = False) -> None:
    """Imports pyarrow and makes it search for pandas, in both places where it does so, while pandas is hidden. `of_library` is
    that of `pool`.

    What Arrow allocates in a pool that it chose itself at load time, such as the buffers of Parquet pages, is then in the heap
    of the C library. mimalloc, which has a heap for each thread, would hold 15 to 30 MB more for a report.
    """
    named = POOL in os.environ
    os.environ.setdefault(POOL, "system")
    import pyarrow as pa

    if not named:
        os.environ.pop(POOL, None)  # child processes choose for themselves
    pool(of_library=of_library)
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NotNow)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(_NotNow)


def pool(*, of_library: bool = False) -> None:
    """Makes Arrow use jemalloc if its build has it: mimalloc, its default, holds some 20 MB more of freed memory.

    With `of_library`, Arrow uses the heap of the C library instead. This is for a process that computes now and then and is
    idle for long. With `trim_heap` that heap holds no freed memory, while both other allocators hold hundreds of MB.
    """
    import pyarrow as pa

    if POOL in os.environ:
        return
    try:
        pa.set_memory_pool(pa.system_memory_pool() if of_library else pa.jemalloc_memory_pool())
    except NotImplementedError:
        return


def taken_signals() -> list[signal.Signals]:
    """Those of `ENDING` that get a handler of their own: Python turns SIGINT into an exception, and nohup(1) ignores SIGHUP."""
    return [number for number in ENDING if number != signal.SIGINT and signal.getsignal(number) != signal.SIG_IGN]


def give_up(number: int) -> None:
    """Discards what is buffered for a stream that cannot be written. Python would try at exit, and end with exit code 120."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


def collect_rarely(thresholds: tuple[int, int, int] = RARELY) -> None:
    """Excludes loaded objects from garbage collection, which then runs at `thresholds` (gc.set_threshold).

    Collection has to run for what libraries and exceptions leave behind. At its default rate it takes a tenth of the time of a
    large capture, and a third of that of a flood, whose connections are millions of objects.
    """
    gc.freeze()
    gc.set_threshold(*thresholds)


def start_quickly() -> None:
    """Prepares kcap's process before it imports anything large. Modules are tens of thousands of objects that stay, and at its
    default rate the collector traverses them twenty times. When Python ends, it traverses everything once more."""
    gc.set_threshold(*RARELY)
    atexit.register(end_quickly)
    os.environ.setdefault(BLAS_THREADS, "1")


def end_quickly() -> None:
    """Ends the process with the arguments of `ends_with`, since taking down modules takes a tenth of the time of a small
    report. Without `ends_with`, it keeps the collector from traversing everything when Python ends. DuckDB from 2.0 on has to
    be collected at that point: its bindings (nanobind) report remaining objects on standard error as leaked."""
    if _ends:
        code, last = _ends[-1]
        last()
        os._exit(code)
    if "_duckdb" not in sys.modules:
        gc.freeze()


def ends_with(code: int, last: Callable[[], None]) -> None:
    """Declares that only `atexit` functions and then `last` are left to be run, and that the exit code is `code`."""
    _ends.append((code, last))


_ends: Final[list[tuple[int, Callable[[], None]]]] = []


def give_way(by: int) -> None:
    """Lowers the priority of this process by `by` nice values.

    Linux may schedule sessions as groups (sched(7), autogroup), and nice values then compare only processes of one session. If
    this process leads a session of its own, the whole session gets the value. The kernel may refuse that for a tenth of a
    second after another session got its value; the process then goes on without it.
    """
    os.nice(by)
    if os.path.exists(AUTOGROUP) and os.getsid(0) == os.getpid():
        with suppress(OSError), open(AUTOGROUP, "w") as file:
            file.write(str(by))


def enough_room(least: int) -> None:
    """Raises CaptureError if the address space of this process is limited to less than `least` bytes (`ulimit -v`). C++
    libraries that get no memory do not report it: they end the process, or fail to load with a traceback."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ImportError:  # not available on Windows
        return
    room = getrlimit(RLIMIT_AS)[0]
    if room != RLIM_INFINITY and room < least:
        raise CaptureError(
            f"out of memory: the address space is limited to {room >> 20} MB (ulimit -v), and this needs {least >> 20} MB"
        )


def for_tables() -> None:
    """Prepares the process before it imports what makes tables: Arrow without pandas, a collector that runs rarely."""
    load_arrow()
    collect_rarely()


def untouched(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yields address and size of unmodified library pages, from the lines of /proc/self/smaps.

    Such pages can be released: the system reads them from the file again when they are needed.
    """
    place: tuple[int, int] | None = None
    for line in lines:
        if not "A" <= line[0] <= "Z":  # a line with addresses; lines with properties begin with a capital
            found = MAPPING.match(line)
            place = (int(found[1], 16), int(found[2], 16)) if found is not None else None
        elif place is not None and line.startswith("Anonymous:"):
            if int(line.split()[1]) == 0:
                yield place[0], place[1] - place[0]
            place = None


@cache
def c_library() -> Any:
    """Functions of the C library, loaded once: only the garbage collector frees the classes that ctypes makes each time."""
    import ctypes

    return ctypes.CDLL(None)


def give_back() -> None:
    """Releases library pages, which count as memory of this process until they are needed elsewhere.

    Most were touched while libraries were loaded, and those of numba's compiler (70 MB) while kernels were. Linux only.
    """
    if "ctypes" not in sys.modules or not sys.platform.startswith("linux"):
        return
    import ctypes

    libc = c_library()
    try:
        with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
            places = list(untouched(file))
    except OSError:
        return
    for address, size in places:
        libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), MADV_DONTNEED)


def file_bytes() -> int:
    """Resident bytes of this process that are file-backed or shared; 0 if the system does not report them. Linux only."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def share_heap() -> None:
    """Makes the C library use one heap for all threads. By default it has up to eight per processor (mallopt(3), M_ARENA_MAX),
    and what threads free in each stays with this process. glibc only; it applies to threads that start later."""
    _set_heap(M_ARENA_MAX, 1)


def keep_heap() -> None:
    """Makes the C library retain up to `limits.HEAP_KEPT_BYTES` of freed memory for later allocations. By default it returns
    memory to the system if more than twice the largest freed block is free, and gets it back page by page (mallopt(3)). That
    takes an eighth of the CPU time of a process that reads packets and makes no tables. glibc only."""
    _set_heap(M_MMAP_THRESHOLD, limits.HEAP_KEPT_BYTES)
    _set_heap(M_TRIM_THRESHOLD, limits.HEAP_KEPT_BYTES)


def _set_heap(option: int, value: int) -> None:
    """Sets an option of the C library's heap, if the library has mallopt(3)."""
    if sys.platform.startswith("linux"):
        set_option = getattr(c_library(), "mallopt", None)
        if set_option is not None:
            set_option(option, value)


def trim_heap() -> None:
    """Returns freed memory of Arrow and of the C library to the system. Threads free their allocations piece by piece, so that
    without this call a process that recomputes its views repeatedly grows by the hour. glibc only."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        trim = getattr(c_library(), "malloc_trim", None)
        if trim is not None:
            trim(0)


def release_reading() -> None:
    """Returns memory and library pages to the system that were needed to read a capture and are not needed afterwards."""
    if "llvmlite.binding" in sys.modules:  # small captures are read without compiled code
        trim_heap()
        give_back()


class PageRelease:
    """Releases library pages from time to time while a capture is read, if there are many: listing them takes 10 ms."""

    def __init__(self) -> None:
        self._count = 0
        self._next = STEPS

    def step(self) -> None:
        self._count += 1
        if self._count == self._next:
            self._next *= 8
            if file_bytes() >= limits.LIBRARY_BYTES_LEAST:
                give_back()


def releasing(_reading: object) -> Callable[[], None]:
    """Returns a callback for a pass that shows no progress; it releases pages from time to time (`ReportInput.watch`)."""
    return PageRelease().step
