"""Tunes the process: Arrow without pandas, allocator, garbage collector, pages of libraries.

pyarrow imports pandas with its first array, to recognise its objects: 0.3 s and 40 MB that no command needs. Where pandas is
imported later, pyarrow finds it; but it may not know pandas' missing values then, so this is for kcap's own process alone.
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
"""A private mapping of a library that cannot be written to (proc_pid_smaps(5))."""
MADV_DONTNEED: Final = 4
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Of mallopt(3)."""
STEPS: Final = 16
"""Steps of reading before memory is checked first, then eight times as many: kernels are loaded when they are first needed."""
RARELY: Final = 200_000, 5, 5
"""Thresholds of the garbage collector: new objects before young ones are collected, and how often before older ones are. Closed
connections are freed without it (`Conversation.release`), so all that it does in a large capture is to look at what is alive.
"""
SCREENS: Final = 5_000, 10, 10
"""The same of a process with screens, whose repaints leave lines with caches to the collector."""
ENDING: Final = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__)
"""Signals that end a process in an orderly way: SIGHUP is that of a terminal or a session that is closed."""
AUTOGROUP: Final = "/proc/self/autogroup"
"""The group of this process's session, where Linux schedules sessions as groups."""
POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
"""The memory pool that a user names, read by Arrow's C++ part when it is loaded."""
BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"
"""numpy's linear algebra, which kcap does not use, starts a thread a core when it is loaded; these wait busily for 0.07 s."""


class _NotNow:
    """A finder that finds no pandas."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Raises for pandas, leaves all other modules to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
        return None


def load_arrow(*, of_library: bool = False) -> None:
    """Imports pyarrow and lets it look for pandas, in both places where it does, while none can be found. `of_library`: as of
    `pool`.

    What Arrow allocates in a pool that it chose itself when it was loaded, such as the buffers of Parquet pages, is in the heap
    of the C library: mimalloc, which has a heap for each thread, holds 15 to 30 MB more for a report.
    """
    named = POOL in os.environ
    os.environ.setdefault(POOL, "system")
    import pyarrow as pa

    if not named:
        os.environ.pop(POOL, None)  # processes that this one starts choose for themselves
    pool(of_library=of_library)
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NotNow)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(_NotNow)


def pool(*, of_library: bool = False) -> None:
    """Makes Arrow use jemalloc where its build has it: mimalloc, its default, holds some 20 MB more of freed memory.

    `of_library`: the heap of the C library in its place, for a process that computes now and then and waits for long: with
    `trim_heap` it holds nothing of what was freed, of which both others hold hundreds of MB.
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
    """What still waits for a stream that cannot be written goes nowhere: Python writes it when it ends, and would end with exit
    code 120.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


def collect_rarely(thresholds: tuple[int, int, int] = RARELY) -> None:
    """Excludes loaded objects from garbage collection, which then runs at `thresholds` (gc.set_threshold).

    It has to run, for what libraries and exceptions leave behind. At its default rate it takes a tenth of a large capture's
    time, and a third of that of a flood, whose connections are objects by the million.
    """
    gc.freeze()
    gc.set_threshold(*thresholds)


def start_quickly() -> None:
    """What kcap's process does before it imports anything large: modules are objects by the ten thousand that stay, and at its
    default rate the collector goes through them twenty times; when Python ends, it goes through everything once more.
    """
    gc.set_threshold(*RARELY)
    atexit.register(end_quickly)
    os.environ.setdefault(BLAS_THREADS, "1")


def end_quickly() -> None:
    """Ends the process with what `ends_with` was given, since to take down modules takes a tenth of the time of a small report;
    else keeps the collector from going through everything when Python ends. DuckDB from 2.0 on has to be collected then: what
    is left of it, its bindings (nanobind) list on standard error as leaked.
    """
    if _ends:
        code, last = _ends[-1]
        last()
        os._exit(code)
    if "_duckdb" not in sys.modules:
        gc.freeze()


def ends_with(code: int, last: Callable[[], None]) -> None:
    """Nothing is left to be done by this process, whose exit code this is, but what is registered for its end (`atexit`), and
    then `last`.
    """
    _ends.append((code, last))


_ends: Final[list[tuple[int, Callable[[], None]]]] = []


def give_way(by: int) -> None:
    """Lowers the priority of this process by so many nice values.

    Linux may schedule sessions as groups (sched(7), autogroup), and nice values then compare processes of one session alone:
    where this process leads a session of its own, the whole session gets the value. The kernel may refuse that for a tenth of
    a second after another session got its own; the priority is no more than a wish, and the process goes on without it.
    """
    os.nice(by)
    if os.path.exists(AUTOGROUP) and os.getsid(0) == os.getpid():
        with suppress(OSError), open(AUTOGROUP, "w") as file:
            file.write(str(by))


def enough_room(least: int) -> None:
    """Raises CaptureError where this process may address less than `least` bytes (`ulimit -v`). Libraries in C++ that get no
    memory do not say so: they end the process, or fail to load with a traceback.
    """
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ImportError:  # not on Windows
        return
    room = getrlimit(RLIMIT_AS)[0]
    if room != RLIM_INFINITY and room < least:
        raise CaptureError(
            f"out of memory: the address space is limited to {room >> 20} MB (ulimit -v), and this needs {least >> 20} MB"
        )


def for_tables() -> None:
    """What a command does before it imports what makes tables: Arrow without pandas, and a collector that runs rarely."""
    load_arrow()
    collect_rarely()


def untouched(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Address and size of unmodified library pages, by the lines of /proc/self/smaps.

    They can be released: they are read from the file again when needed.
    """
    place: tuple[int, int] | None = None
    for line in lines:
        if not "A" <= line[0] <= "Z":  # a mapping's addresses; its properties begin with a capital letter
            found = MAPPING.match(line)
            place = (int(found[1], 16), int(found[2], 16)) if found is not None else None
        elif place is not None and line.startswith("Anonymous:"):
            if int(line.split()[1]) == 0:
                yield place[0], place[1] - place[0]
            place = None


@cache
def c_library() -> Any:
    """Functions of the C library. ctypes makes classes for each handle, which only the collector of cycles frees."""
    import ctypes

    return ctypes.CDLL(None)


def give_back() -> None:
    """Releases library pages, which count as memory of this process until they are needed elsewhere.

    Most were touched while libraries were loaded, those of numba's compiler (70 MB) while kernels were. Linux only.
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
    """Resident bytes of this process that are of files, or shared; 0 where the system does not say. Linux only."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def share_heap() -> None:
    """Gives the C library one heap for all threads: by default it has up to eight a processor (mallopt(3), M_ARENA_MAX), and
    what threads freed in each stays with this process. glibc only; threads that begin later obey.
    """
    _set_heap(M_ARENA_MAX, 1)


def keep_heap() -> None:
    """Has the C library keep freed memory up to `limits.HEAP_KEPT_BYTES` for what is allocated next. By default it returns more
    than twice the largest block that was freed to the system, and gets it back page by page (mallopt(3)): an eighth of the CPU
    time of a process that reads packets and makes no tables. glibc only.
    """
    _set_heap(M_MMAP_THRESHOLD, limits.HEAP_KEPT_BYTES)
    _set_heap(M_TRIM_THRESHOLD, limits.HEAP_KEPT_BYTES)


def _set_heap(option: int, value: int) -> None:
    """Sets an option of the C library's heap, where it has them."""
    if sys.platform.startswith("linux"):
        set_option = getattr(c_library(), "mallopt", None)
        if set_option is not None:
            set_option(option, value)


def trim_heap() -> None:
    """Returns freed memory of Arrow and of the C library to the system. Threads free what they allocated in pieces, so that
    without this a process whose views are computed again and again grows by the hour. glibc only.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        trim = getattr(c_library(), "malloc_trim", None)
        if trim is not None:
            trim(0)


def release_reading() -> None:
    """Returns memory and library pages that reading a capture needed and what comes next does not."""
    if "llvmlite.binding" in sys.modules:  # small captures are read without compiled parts
        trim_heap()
        give_back()


class PageRelease:
    """Releases library pages now and then while a capture is read, where they are many: to list them takes the kernel 10 ms."""

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
    """What a reading calls now and then that shows nothing of its progress: pages are released (`ReportInput.watch`)."""
    return PageRelease().step
