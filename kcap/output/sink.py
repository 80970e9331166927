"""Destinations of output: an open stream, or a file that appears under its name only when it is complete.

In: bytes. Out: the same bytes. Law: a writer that fails leaves nothing under the final name or beside it; an output never
replaces an input (`kcap.inputs`). Raises `OutputError` in one line if the output cannot be written, `UsageError` for an output
that is an input. A closed pipe remains a `BrokenPipeError`.
"""

import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, Protocol, TypeVar, cast

from kcap.errors import OutputError, said
from kcap.inputs import refuse_input
from kcap.runtime import ENDING

Made = TypeVar("Made")
BUFFERED: Final = 1 << 18
"""Bytes that are written to a file at once: Parquet writes each of its pages, and most pages have some kB."""
GZIP_LEVEL: Final = 6
"""The default of gzip(1)."""


class OutputSink(Protocol):
    """Accepts bytes."""

    def write(self, data: bytes | memoryview, /) -> object: ...

    def flush(self) -> object: ...


class Counted:
    """A stream that counts its bytes, since Parquet needs the position, also in pipes."""

    closed = False

    def __init__(self, sink: OutputSink) -> None:
        self._sink = sink
        self._written = 0
        self._failed = False

    def write(self, data: bytes | memoryview) -> int:
        """Writes to the stream, unless the writer was abandoned or failed: what it writes at its end is discarded."""
        size = len(data)
        if not self._failed and not getattr(self._sink, "closed", False):
            try:
                self._sink.write(data)
            except OSError:
                self._failed = True
                raise
        self._written += size
        return size

    def tell(self) -> int:
        """Number of bytes so far."""
        return self._written

    def flush(self) -> None:
        if not self._failed and not getattr(self._sink, "closed", False):
            self._sink.flush()

    def close(self) -> None:
        """Does nothing: the owner of the stream closes it."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


@contextmanager
def output_errors(name: str) -> Iterator[None]:
    """Adds the name of the destination to errors of writing."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{name}: {said(error)}") from None


def is_device(path: str) -> bool:
    """Whether a path is a device, a pipe or a folder, which `new_file` does not replace."""
    return os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)


@contextmanager
def new_file(path: str, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file that replaces its destination when the block ends without an exception; devices and pipes are written directly.
    Only its owner can read a `private` file.

    Raises UsageError for a file that is being read.
    """
    refuse_input(path)
    if is_device(path):
        with output_errors(path), open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)  # a link is kept and its target is replaced
    with beside(target, tempfile.mkstemp, lambda made: os.unlink(made[1]), path) as (number, temporary):
        with os.fdopen(number, "wb", BUFFERED) as file:
            yield file
        os.chmod(temporary, mode_of(target, private=private))
        os.replace(temporary, target)


@contextmanager
def new_folder(path: str) -> Iterator[str]:
    """A folder that appears when the block ends without an exception. Raises OutputError if a folder with content exists, since
    parts of two captures would be mixed; UsageError if that is an input."""
    refuse_input(path, folder=True)
    target = os.path.realpath(path)
    if os.path.isdir(target) and os.listdir(target):
        raise OutputError(f"{path}: the folder is not empty")
    with beside(target, tempfile.mkdtemp, remove, path) as temporary:
        yield temporary
        os.chmod(temporary, masked(0o777))
        os.replace(temporary, target)


@contextmanager
def compressed(sink: BinaryIO, how: str | None) -> Iterator[BinaryIO]:
    """A stream that writes to `sink` with compression: `gzip` (RFC 1952, without name and time), `zstd` (RFC 8878), None."""
    if how is None:
        yield sink
    elif how == "gzip":
        from gzip import GzipFile

        with GzipFile(filename="", mode="wb", fileobj=sink, compresslevel=GZIP_LEVEL, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    else:
        from zstandard import ZstdCompressor

        with ZstdCompressor().stream_writer(sink, closefd=False) as writer:
            yield cast(BinaryIO, writer)


@contextmanager
def beside(target: str, make: Callable[[str, str, str], Made], undo: Callable[[Made], None], name: str) -> Iterator[Made]:
    """A temporary file or folder beside its destination, removed if the block fails. An interrupt during its creation is
    delayed until it can be removed. Raises OutputError with `name`."""
    with output_errors(name):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            made = make(".part", f".{os.path.basename(target)[:200]}.", os.path.dirname(target))
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            raise
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield made
        except BaseException:
            undo(made)
            raise


def remove(folder: str) -> None:
    """Removes a folder with its content."""
    shutil.rmtree(folder, ignore_errors=True)


def mode_of(path: str, *, private: bool = False) -> int:
    """Permissions of the file that is replaced, or of any new file; for a `private` file only those of its owner."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = masked(0o666)
    return mode & ~0o077 if private else mode


def masked(mode: int) -> int:
    """Permissions of new files, as limited by the process's umask."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mode & ~mask
