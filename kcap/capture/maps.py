"""Capture files of large packets mapped into memory, which avoids copying bytes that are never read.

In: the path of a regular file and its status. Out: windows of it as read-only maps. Law: a mapped byte can always be read. The
kernel is asked first to exclude what could break that: a read lease (fcntl(2), F_SETLEASE) makes a process that writes to or
truncates the file wait until the lease is released, and MADV_POPULATE_READ (madvise(2), Linux 5.14) reports unreadable blocks.
If either is refused, as on network file systems, on other systems and for files that are being written, the file is read
instead of mapped.
"""

import fcntl
import os
import signal
from contextlib import suppress
from mmap import PROT_READ, mmap

MADV_POPULATE_READ = 22
F_SETSIG = 10
"""Python 3.11 has no names for these two Linux constants."""


class FileMaps:
    """A file that no process can change while parts of it are mapped."""

    def __init__(self, path: str, status: os.stat_result) -> None:
        """`status` is that of the file to be mapped, from `os.fstat`."""
        self._size = status.st_size
        self._number: int | None = None
        with suppress(OSError, AttributeError):  # other systems have no leases
            self._number = leased(path, status)

    def map_at(self, position: int, size: int) -> mmap | None:
        """Maps up to `size` bytes from a multiple of the page size on; None if the file has to be read from now on."""
        size = min(size, self._size - position)
        if self._number is None or size <= 0:
            return None
        try:
            if not is_leased(self._number):
                raise BlockingIOError
            found = mmap(self._number, size, prot=PROT_READ, offset=position)
            found.madvise(MADV_POPULATE_READ)
        except (OSError, ValueError):
            self.close()
            return None
        return found

    def close(self) -> None:
        """Makes no more maps. The lease ends with the last map that is still in use, since each has its own descriptor."""
        if self._number is not None:
            os.close(self._number)
            self._number = None


def leased(path: str, status: os.stat_result) -> int:
    """Returns a descriptor of the file with a read lease on it. Raises OSError if no lease can be obtained."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not os.path.samestat(os.fstat(number), status):
            raise FileNotFoundError
        fcntl.fcntl(number, F_SETSIG, signal.SIGURG)  # the default, SIGIO, would end the process
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        if os.fstat(number).st_size != status.st_size:
            raise BlockingIOError
    except OSError:
        os.close(number)
        raise
    return number


def is_leased(number: int) -> bool:
    """Whether no other process waits for the lease on a descriptor to end."""
    return fcntl.fcntl(number, fcntl.F_GETLEASE) == fcntl.F_RDLCK
